"""What a check found: fine, wrong or not looked at, and what to do. What is looked at is said in the other files here."""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from schemas.errors import SalonError

LONGEST = 300
"""Characters of a stranger's words that a line shows."""

_OF_STORE = re.compile(r"(?P<asked>(?P<verb>[A-Z]+) s3://.*?) failed: .* - (?P<why>.+?); fix this")
"""What tasks/lake/object_store/client.py says of a request that failed."""


class State(StrEnum):
    """How a check ended."""

    OK = "ok"
    WRONG = "wrong"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the doctor's: what was looked at, how it is, the value found, and what to do where something is to be done."""

    what: str
    state: State
    found: str
    advice: str = ""


def ok(what: str, found: str, advice: str = "") -> Finding:
    """It is as it should be."""
    return Finding(what, State.OK, found, advice)


def wrong(what: str, found: str, advice: str) -> Finding:
    """It is down, missing or broken: a run or a night fails of it, or leaves something out."""
    return Finding(what, State.WRONG, found, advice)


def skipped(what: str, found: str, advice: str = "") -> Finding:
    """It was not looked at, or there is nothing to look at: no fault."""
    return Finding(what, State.SKIPPED, found, advice)


def guarded(what: str, check: Callable[[], Iterable[Finding]], advice: str) -> Iterator[Finding]:
    """What a check finds. An error is a finding too: whoever asks how things are is told of all, not of the first that fails."""
    try:
        yield from check()
    except SalonError as error:
        yield wrong(what, " ".join(str(error).split()), "")  # our own say what to do, at their end
    except Exception as error:  # noqa: BLE001 - whatever a broken part makes the libraries raise
        yield wrong(what, shortened(f"{type(error).__name__}: {error}"), advice)


def each_cause_once(findings: Iterable[Finding]) -> Iterator[Finding]:
    """The same; of a store's error that an earlier one told, only what was asked. A right may be lacking to one verb alone."""
    told = set[tuple[str, str]]()
    for one in findings:
        if (failed := _OF_STORE.match(one.found)) is not None:
            is_of_verb = failed["why"].endswith(("403 Forbidden", "(AccessDenied)"))
            cause = (failed["verb"] if is_of_verb else "", failed["why"])
            yield replace(one, found=f"{failed['asked']} failed as above") if cause in told else one
            told.add(cause)
        else:
            yield one


def shortened(text: str) -> str:
    """The beginning of a text, as one line."""
    words = " ".join(text.split())
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"
