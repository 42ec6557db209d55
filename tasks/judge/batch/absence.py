"""A provider that does not know a batch or its results, or does not answer: when that is believed, and what is said meanwhile."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from tasks.judge.batch.state import Batch
from tasks.judge.provider.exchange import InDoubt

N_ABSENT: Final = 3
"""Looks in a row in which the provider does not know a batch, or its results, before that is believed."""


@dataclass(slots=True)
class Absences:
    """By a batch's token, how often nothing was found, and since when. A gateway whose backend restarts answers 404 as well.

    `forgotten`: that a batch which this run handed over is not known any more.
    """

    at_least_s: float
    say: Callable[[str], object] = lambda _: None
    forgotten: str | None = None
    _looks: dict[str, tuple[int, float]] = field(default_factory=dict)

    def add(self, token: str) -> int:
        """Count one look that found nothing; how many there are in a row."""
        n, since_s = self._looks.get(token, (0, asyncio.get_running_loop().time()))
        self._looks[token] = n + 1, since_s
        return n + 1

    def is_believed(self, token: str) -> bool:
        """Whether there were enough such looks, over enough time."""
        n, since_s = self._looks.get(token, (0, 0.0))
        return n >= N_ABSENT and asyncio.get_running_loop().time() - since_s >= self.at_least_s

    def forget(self, token: str) -> None:
        """It is known after all."""
        self._looks.pop(token, None)

    def say_missing(self, batch: Batch) -> None:
        """Say that results which the provider has are not to be had."""
        most = _spoken(self.at_least_s)
        self.say(
            f"the Batch API of {batch.judge_model} has no results of batch {batch.provider_id}; looking for them, at least {most}"
        )

    def look(self, batch: Batch, detail: str | None, is_own: bool) -> InDoubt | None:
        """Count a look at a batch that is not known, which the second one says; how its lines end, where that is believed."""
        if self.add(batch.token) == 2:
            whose, most = f"the Batch API of {batch.judge_model}", _spoken(self.at_least_s)
            self.say(f"{whose} does not know batch {batch.provider_id} ({detail}); looking for it, at least {most}")
        if not self.is_believed(batch.token):
            return None
        said = f"the provider no longer knows batch {batch.provider_id}; it may have been billed"
        self.forgotten = said if is_own else self.forgotten
        return InDoubt(said)


def saying_away(judge: str, say: Callable[[str], object]) -> Callable[[str, float], object]:
    """For CallBackoff.on_wait: says that calls fail and are made again."""
    return lambda detail, most_s: say(
        f"the Batch API of {judge} does not answer ({detail}); waiting for it, at most {_spoken(most_s)}"
    )


def _spoken(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
