"""Threads whose tasks are Prefect's: each has a task run that its server shows. Without a server the threads are local.py's."""

from collections.abc import Callable
from functools import wraps
from inspect import signature
from typing import Any, Generic, Self, cast

from prefect import Task
from prefect.cache_policies import NO_CACHE
from prefect.client.schemas.objects import State
from prefect.futures import PrefectConcurrentFuture
from prefect.states import Completed, Failed
from prefect.task_runners import ThreadPoolTaskRunner

from flows.executors.base import End, Out, P, StageTask, Submitted, Threads
from flows.executors.local import RETRY_DELAYS_S
from flows.observability.redaction import redacted
from flows.observability.terminal import hanging
from schemas.errors import SalonError

NOT_DONE = "Not done"
N_LETTERS = 1000  # of a state's message


class PrefectThreads(Threads):
    """At most `n` threads, within a flow run."""

    def __init__(self, n: int) -> None:
        self._runner: Any = ThreadPoolTaskRunner(max_workers=n)
        self._tasks: dict[StageTask[..., Any], Task[..., Any]] = {}

    def __enter__(self) -> Self:
        """Begin to take tasks."""
        self._runner.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        """Wait for what was submitted."""
        self._runner.__exit__(*error)

    def submit(self, task: StageTask[P, Out], *inputs: P.args, **named: P.kwargs) -> Submitted[Out]:
        """Run a task as soon as a thread is free."""
        if task not in self._tasks:
            self._tasks[task] = prefect_task(task)
        return _Submitted(self._runner.submit(self._tasks[task], dict(signature(task.work).bind(*inputs, **named).arguments)))

    def more(self, n: int) -> Threads:
        """So many others."""
        return PrefectThreads(n)


class _Submitted(Generic[Out]):
    """Prefect's future, which does not say whether it has ended."""

    def __init__(self, future: PrefectConcurrentFuture[Out]) -> None:
        self._future = future

    def done(self) -> bool:
        return self._future.wrapped_future.done()

    def result(self) -> Out:
        try:
            return self._future.result()
        except FellShortError as error:
            return cast("Out", error.result)


class FellShortError(Exception):
    """What a failed state holds, so that who waits for the task has its result."""

    def __init__(self, result: object) -> None:
        super().__init__("the task's result falls short")
        self.result = result


def prefect_task(task: StageTask[..., Out]) -> Task[..., Out]:
    """A stage's task as Prefect's.

    Replies live in the ledger and tables in the lake: Prefect's own cache would keep a third copy, written in place and unsynced.
    """
    return Task(
        _standing(task), name=task.name, task_run_name=task.run_name, cache_policy=NO_CACHE, persist_result=False,
        retries=task.n_retries, retry_delay_seconds=list(RETRY_DELAYS_S), retry_condition_fn=may_pass,
    )  # fmt: skip


def _standing(task: StageTask[..., Any]) -> Callable[..., Any]:
    """The task's work, its result in a state that says where it falls short; a failed one does not end the flow."""
    end_of = task.end_of
    if end_of is None:
        return task.work

    @wraps(task.work)
    def work(*inputs: Any, **named: Any) -> Any:
        result = task.work(*inputs, **named)
        end = end_of(result)
        return result if end is None else _state(end, result)

    return work


def _state(end: End, result: object) -> State[Any]:
    said = hanging(redacted(end.why))[:N_LETTERS]
    return (
        Failed(message=said, data=FellShortError(result))
        if end.is_failure
        else Completed(name=NOT_DONE, message=said, data=result)
    )


def may_pass(_task: Any, _run: Any, state: Any) -> bool:
    """Whether it failed of something that may pass: a store or a provider that was away, as the error's type says."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, SalonError) and error.may_pass
