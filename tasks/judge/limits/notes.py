"""What a holder of an allowance has heard and owes since it last told the ledger. Told to it by allowance.py."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from tasks.judge.limits.headers import Heard, Listener
from tasks.judge.limits.leases import Limit
from tasks.judge.limits.tables import Report


@dataclass(slots=True)
class Notes:
    """Collects responses and debts until `take` makes a report of them. `has_news`: others should know at once."""

    has_news: bool = False
    _has_heard: bool = False
    _heard: list[Heard | None] = field(default_factory=lambda: [None, None])
    _n_owed: int = 0
    _listeners: tuple[Listener, Listener] = field(default_factory=lambda: (Listener("requests"), Listener("tokens")))

    def hear(self, headers: Mapping[str, str], known: tuple[Limit, Limit] | None) -> None:
        """Take in a response's headers; `known` are the limits the ledger knew of."""
        is_first = known is not None and known[0].heard_us is None
        if not headers and known is not None and not is_first:
            return
        self._has_heard = True
        for index, listener in enumerate(self._listeners):
            heard = listener.hear(headers)
            self._heard[index] = _lower(self._heard[index], heard)
            if known is not None and (is_first or _is_news(heard, known[index])):
                self.has_news = True

    def owe(self, n_tokens: int) -> None:
        """Tokens used beyond what was taken; negative: taken and not used."""
        self._n_owed += n_tokens

    def take(self, sizes: tuple[int, ...], ahead: tuple[int, ...]) -> Report:
        """All of it, together with what is asked for."""
        report = Report(sizes, ahead, self._n_owed, self._has_heard, *self._heard)
        self.has_news, self._has_heard, self._heard, self._n_owed = False, False, [None, None], 0
        return report


def _lower(before: Heard | None, now: Heard | None) -> Heard | None:
    """The lower of two limits, of two that are the same the newer: late replies still tell of a limit that was."""
    return before if before is not None and (now is None or now.per_minute > before.per_minute) else now


def _is_news(heard: Heard | None, known: Limit) -> bool:
    """A lower limit than was known, or a burst where none was."""
    if heard is None:
        return False
    if known.per_minute is None or heard.per_minute < known.per_minute:
        return True
    return heard.per_minute == known.per_minute and heard.burst is not None and known.burst is None
