"""A shard as a typed call, and the executors of this process: Prefect tasks in its threads, or plainly one after the other.

Other processes are remote.py, the choice among all of them is choose.py.
"""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, ParamSpec, TypeVar

from tasks.context import StageContext
from tasks.stopping import check_not_stopped

if TYPE_CHECKING:
    from prefect import Task

In = TypeVar("In")
Out = TypeVar("Out")
P = ParamSpec("P")


@dataclass(frozen=True, slots=True)
class ShardCall(Generic[In, Out]):
    """One shard of a stage: the stage's task, what it knows of the run, and which shard.

    `spends_money`: a worker follows the flow behind it, and ends when that ends, after what was under way is stored.
    `carries_pictures`: the shard holds pictures' bytes, too much to send, and stays in the flow's process.
    """

    task: "Task[[StageContext, In], Out]"
    context: StageContext
    shard: In
    spends_money: bool = False
    carries_pictures: bool = False


class Executor(ABC):
    """Runs shards. `n_at_once` of them work at the same time; `is_remote`: what they are given and give back travels."""

    is_remote = False
    n_at_once: int

    @abstractmethod
    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls of one stage and yield their results in order. Raises what a shard raises, StoppedError."""

    def once(self, task: "Task[P, Out]", *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call, made in the flow's own process: its tables are large."""
        return task.submit(*inputs, **named).result()


class PrefectExecutor(Executor):
    """Submits shards to the flow's task runner, never more than `n_submitted` waiting: memory does not grow with them."""

    n_at_once = 2  # one prepares or stores while the other waits for the judge

    def __init__(self, n_submitted: int) -> None:
        self._n_submitted = n_submitted

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        waiting: deque[Any] = deque()
        for call in calls:
            check_not_stopped()
            if len(waiting) == self._n_submitted:
                yield waiting.popleft().result()
            waiting.append(call.task.submit(call.context, call.shard))
        while waiting:
            yield waiting.popleft().result()
        check_not_stopped()


class InProcessExecutor(Executor):
    """Runs shards one after the other, without Prefect: for `salon plan`, which needs no server and no history.

    `n_at_once`: more than one where others like it work beside it, and share the limits of one process.
    """

    def __init__(self, n_at_once: int = 1) -> None:
        self.n_at_once = n_at_once

    def run(self, calls: Iterable[ShardCall[In, Out]]) -> Iterator[Out]:
        """Run the calls and yield their results in order."""
        for call in calls:
            check_not_stopped()
            yield call.task.fn(call.context, call.shard)

    def once(self, task: "Task[P, Out]", *inputs: P.args, **named: P.kwargs) -> Out:
        """The result of a stage that is one call."""
        return task.fn(*inputs, **named)
