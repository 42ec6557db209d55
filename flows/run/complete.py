"""What is complete where a provider ended the asking: whole judges, and all single scores. What was bought: bought.py."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

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


def _what_is_complete(run: RunContext, planned: Plan) -> str:
    n_asked, n_stored = Counter[tuple[str, bool]](), Counter[tuple[str, bool]]()  # by judge, and whether it is about pairs
    with opened(run.ledger_url) as ledger:
        for part in asked_parts(run, planned.parts):
            key = part.judge_model, run.rubrics[part.rubric_id].is_of_pairs
            n_asked[key] += part.n_requests
            n_stored[key] += len(ledger.known(run.request_keys(part)))
    return _of_judges(_summed(n_asked, 0), _summed(n_stored, 0)) + _of_pairs(run, _summed(n_asked, 1), _summed(n_stored, 1))


def _summed(counts: Counter[tuple[str, bool]], place: int) -> Counter[str | bool]:
    found = Counter[str | bool]()
    for key, n in counts.items():
        found[key[place]] += n
    return found


def _of_judges(n_asked: Counter[str | bool], n_stored: Counter[str | bool]) -> str:
    whole = [judge for judge, n in n_asked.items() if n_stored[judge] >= n]
    rest = [str(judge) for judge in n_asked if judge not in whole]
    if not whole or not rest:
        return ""
    counts = ", ".join(f"{judge} ({n_asked[judge]:,} of {n_asked[judge]:,})" for judge in whole)
    which = "its [[judges]]" if len(rest) == 1 else "their [[judges]]"
    return (
        f" Complete, with every reply stored: {counts}. To publish without {' and '.join(rest)}, take {which} out of the "
        "benchmark file and run it again: nothing is asked or paid for twice."
    )


def _of_pairs(run: RunContext, n_asked: Counter[str | bool], n_stored: Counter[str | bool]) -> str:
    if not n_asked[False] or n_stored[False] < n_asked[False] or n_stored[True] >= n_asked[True]:
        return ""
    rubrics = " and ".join(rubric.id for rubric in run.rubrics.values() if rubric.is_of_pairs)
    return (
        f" Only pairs lack replies: every reply about single samples is stored ({n_asked[False]:,}), and {n_stored[True]:,} of "
        f"{n_asked[True]:,} about pairs. Nothing is published now; the same command asks these pairs alone. To publish "
        f"the single scores without them, take {rubrics} out of the benchmark file."
    )
