"""How a stage's shards are run: as Prefect tasks, a few at once, or plainly in this process. Other processes: remote.py."""

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeAlias

from prefect import Task

from tasks.stopping import check_not_stopped

FanOut: TypeAlias = Callable[[Task[..., Any], Iterable[Mapping[str, Any]]], Iterator[Any]]
"""Runs a task once for each set of keyword arguments and yields the results in that order."""


class Elsewhere(ABC):
    """A fan-out whose shards run in other processes: what they are given and what they give back travels, and is small.

    A single task (figures, the publication) runs in the flow's own process: its tables are large, and there is only one.
    """

    n_at_once: int  # shards that work at the same time

    @abstractmethod
    def __call__(self, task: Task[..., Any], calls: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        """Run the calls and yield their results in order."""


def one(fan_out: FanOut, task: Task[..., Any], **call: Any) -> Any:
    """The result of a task that is called once."""
    (result,) = (as_prefect_tasks(1) if isinstance(fan_out, Elsewhere) else fan_out)(task, [call])
    return result


def as_prefect_tasks(n_at_once: int) -> FanOut:
    """Submit shards to the flow's task runner, never more than `n_at_once` waiting, so that memory does not grow with them."""

    def run(task: Task[..., Any], calls: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
        waiting: deque[Any] = deque()
        for call in calls:
            check_not_stopped()
            if len(waiting) == n_at_once:
                yield waiting.popleft().result()
            waiting.append(task.submit(**call))
        while waiting:
            yield waiting.popleft().result()
        check_not_stopped()

    return run


def in_this_process(task: Task[..., Any], calls: Iterable[Mapping[str, Any]]) -> Iterator[Any]:
    """Run the shards one after the other, without Prefect: for `salon plan`, which needs no server and no history."""
    for call in calls:
        check_not_stopped()
        yield task.fn(**call)
