"""What is complete where a provider ended the asking: whole judges, and all single scores. What was bought: bought.py."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

from flows.run.bought import asked_parts
from flows.run.context import RunContext
from flows.run.other_models import others_of
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
            said = _what_is_complete(run, planned, error.judge_id)
            error.args = (f"{str(error).rstrip('.')}.{said}" if said else str(error),)
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


def _what_is_complete(run: RunContext, planned: Plan, failed: str) -> str:
    every = asked_parts(run, planned.parts)
    with opened(run.ledger_url) as ledger:
        mixed = set(others_of(run, ledger, every))
        parts = [
            _Stored(
                part.judge_model,
                run.rubrics[part.rubric_id].is_of_pairs,
                part.n_requests,
                len(ledger.known(run.request_keys(part))),
            )
            for part in every
        ]
    return _of_judges(parts, failed, mixed) + _of_pairs(run, parts)


def _of_judges(parts: Sequence[_Stored], failed: str, mixed: Collection[str]) -> str:
    """What to leave out: who `failed`, whose stored replies are by several models; who merely was not asked to the end stays."""
    n_asked = Counter[str]()
    for part in parts:
        n_asked[part.judge_model] += part.n_asked
    lacking = {part.judge_model for part in parts if not part.is_whole}
    whole = [judge for judge in n_asked if judge not in lacking and judge not in mixed]
    rest = [judge for judge in n_asked if judge not in whole]
    out = [judge for judge in rest if judge == failed or judge in mixed] or rest
    others = [judge for judge in rest if judge not in out]
    names = " and ".join(judge for judge in n_asked if judge in mixed)
    several = f" Stored replies of {names} are by several models, and such cells are not published." if names else ""
    if not whole or not rest:
        return several
    counts = ", ".join(f"{judge} ({n_asked[judge]:,} of {n_asked[judge]:,})" for judge in whole)
    which = "its [[judges]]" if len(out) == 1 else "their [[judges]]"
    asked = f", and of {' and '.join(others)} only what is missing is asked" if others else ""
    return (
        f"{several} Complete, with every reply stored: {counts}. To publish without {' and '.join(out)}, take {which} out of the "
        f"benchmark file and run it again: nothing is asked or paid for twice{asked}."
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
