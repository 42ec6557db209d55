"""Stages that are no row of steps: a part of one that others of this process work on beside it, and one that is a single step."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from flows.observability.progress import Reporter

if TYPE_CHECKING:
    from schemas.records import JudgeReply


@contextmanager
def one_step(reporter: Reporter, stage: str) -> Iterator[None]:
    """A stage of one step, which may take minutes: told when it begins, also where no bar shows that it goes on."""
    reporter.start(stage, 1)
    reporter.line(stage, "under way")
    yield
    reporter.finish(stage)
    reporter.line(stage, "done")


class PartReporter(Reporter):
    """Hands on to `whole` the replies that come, `n_to_do` at most, attempts, waits and sentences; it begins and ends no stage.

    `heard_from` is told of each judge that answers.
    """

    def __init__(self, whole: Reporter, n_to_do: int, heard_from: Callable[[str], None]) -> None:
        super().__init__()
        self._whole, self._n_left, self._heard_from = whole, n_to_do, heard_from

    def start(self, stage: str, total: int) -> None:
        """Its stage is the whole's, which began it."""

    def finish(self, stage: str) -> None:
        """The whole ends it."""

    def find(self, stage: str, n: int) -> None:
        """What was there before is not among what the whole has left to do."""

    def advance(self, stage: str, n: int = 1) -> None:
        """Count `n` more for the whole."""
        with self._lock:
            n = min(n, self._n_left)
            self._n_left -= n
        if n:
            self._whole.advance(stage, n)

    def describe(self, stage: str, said: str) -> None:
        """What is waited for."""
        self._whole.describe(stage, said)

    def count_attempts(self, by_status: Mapping[str, int]) -> None:
        """Count attempts."""
        self._whole.count_attempts(by_status)

    def hear_reply(self, reply: "JudgeReply") -> None:
        """Tell whose reply came."""
        self._heard_from(reply.judge_model)

    def hear_from(self, judge: str) -> None:
        """Tell whose provider has a batch."""
        self._heard_from(judge)

    def say(self, sentence: str) -> None:
        """One sentence, in the whole's words."""
        self._whole.say(sentence)
