"""What is complete where a provider ended the asking: whole judges, and all single scores. What was bought: bought.py."""

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from flows.run.context import RunContext
from flows.run.judging import asked_parts
from schemas.errors import ProviderError, SalonError
from schemas.records import Plan
from tasks.ledger.open_ledgers import opened


@contextmanager
def saying_what_is_complete(run: RunContext, planned: Plan) -> Iterator[None]:
    """While judges are asked: an error of a provider also says which replies are all there, and how to publish them alone."""
    try:
        yield
    except ProviderError as error:
        with suppress(SalonError):  # what ended the run is told, not this
            said = _what_is_complete(run, planned)
            error.args = (f"{error}{said}",)
        raise


@dataclass(frozen=True, slots=True)
class _Stored:
    """How many of a part's requests have a reply."""

    judge_model: str
    is_of_pairs: bool
    n_asked: int
    n_stored: int

    @property
    def is_whole(self) -> bool:
        return self.n_stored >= self.n_asked


def _what_is_complete(run: RunContext, planned: Plan) -> str:
    with opened(run.ledger_url) as ledger:
        parts = [
            _Stored(
                part.judge_model,
                run.rubrics[part.rubric_id].is_of_pairs,
                part.n_requests,
                len(ledger.known(run.request_keys(part))),
            )
            for part in asked_parts(run, planned.parts)
        ]
    return _of_judges(parts) + _of_pairs(run, parts)


def _of_judges(parts: Sequence[_Stored]) -> str:
    n_asked = Counter[str]()
    for part in parts:
        n_asked[part.judge_model] += part.n_asked
    lacking = {part.judge_model for part in parts if not part.is_whole}
    whole, rest = ([judge for judge in n_asked if (judge in lacking) is is_rest] for is_rest in (False, True))
    if not whole or not rest:
        return ""
    counts = ", ".join(f"{judge} ({n_asked[judge]:,} of {n_asked[judge]:,})" for judge in whole)
    which = "its [[judges]]" if len(rest) == 1 else "their [[judges]]"
    return (
        f" Complete, with every reply stored: {counts}. To publish without {' and '.join(rest)}, take {which} out of the "
        "benchmark file and run it again: nothing is asked or paid for twice."
    )


def _of_pairs(run: RunContext, parts: Sequence[_Stored]) -> str:
    single, pairs = ([part for part in parts if part.is_of_pairs is is_of_pairs] for is_of_pairs in (False, True))
    if not single or not all(part.is_whole for part in single) or all(part.is_whole for part in pairs):
        return ""
    rubrics = " and ".join(rubric.id for rubric in run.rubrics.values() if rubric.is_of_pairs)
    n_single, n_pairs = (sum(part.n_asked for part in some) for some in (single, pairs))
    return (
        f" Only pairs lack replies: every reply about single samples is stored ({n_single:,}), and "
        f"{sum(part.n_stored for part in pairs):,} of {n_pairs:,} about pairs. Nothing is published now; the same command asks "
        f"these pairs alone. To publish the single scores without them, take {rubrics} out of the benchmark file."
    )
