"""A stage's work as a task, a shard as a typed call, and what an executor is. The executors are local.py and remote.py."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from tasks.context import StageContext

In = TypeVar("In")
Out = TypeVar("Out")
Out_co = TypeVar("Out_co", covariant=True)
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class End:
    """How a task ended whose result is not all that was wanted: what is shown of it beside its name."""

    why: str
    is_failure: bool


@dataclass(frozen=True, slots=True)
class StageTask(Generic[P, Out]):
    """What a stage does with a shard, or with the whole run, under the names by which it is shown.

    `run_name` may name parameters of `work` in braces. Work that failed of what may pass is tried `n_retries` times more.
    `end_of` says of a result how it falls short, if it does: it is given back all the same, and shown as what it is.
    """

    work: Callable[P, Out]
    name: str
    run_name: str
    n_retries: int = 2
    end_of: Callable[[Any], End | None] | None = None


def stage_task(
    name: str, run_name: str = "", n_retries: int = 2, end_of: Callable[[Any], End | None] | None = None
) -> Callable[[Callable[P, Out]], StageTask[P, Out]]:
    """Make a function a stage's task."""

    def made(work: Callable[P, Out]) -> StageTask[P, Out]:
        return StageTask(work, name, run_name or name, n_retries, end_of)

    return made


@dataclass(frozen=True, slots=True)
class ShardCall(Generic[In, Out]):
    """One shard of a stage: the stage's task, what it knows of the run, and which shard.

    `spends_money`: a worker follows the flow behind it, and ends when that ends, after what was under way is stored.
    `carries_pictures`: the shard holds pictures' bytes, too much to send, and stays in the flow's process.
    """

    task: StageTask[[StageContext, In], Out]
    context: StageContext
    shard: In
    spends_money: bool = False
    carries_pictures: bool = False


class Submitted(Protocol[Out_co]):
    """A task's run that was submitted to threads."""

    def done(self) -> bool:
        """Whether it has ended."""

    def result(self) -> Out_co:
        """Wait for it; its result, or its error."""


class Threads(Protocol):
    """Threads of the flow's process, open while their block lasts."""

    def __enter__(self) -> Self:
        """Begin to take tasks."""

    def __exit__(self, *_: object) -> None:
        """Wait for what was submitted."""

    def submit(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Submitted[Out]:
        """Run a task as soon as a thread is free."""

    def more(self, n: int) -> "Threads":
        """So many others of the same kind."""


class Executor(ABC):
    """Runs shards, in `n_processes` that share what a run may do; `is_remote`: what shards are given and give back travels.

    `n_lost`: shards that were begun and gave nothing back. What is told of one that was handed out again is its last try alone.
    """

    is_remote = False
    n_processes = 1
    n_lost = 0

    @abstractmethod
    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls of one stage and yield their results in order. Raises what a shard raises, StoppedError."""

    @abstractmethod
    def once(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call, made in the flow's own process: its tables are large."""

    @abstractmethod
    def beside(self, n: int) -> Threads:
        """So many threads of the flow's own process for calls that take hours, while shards run."""
