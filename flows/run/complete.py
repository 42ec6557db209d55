"""Where one judge ends a run: which others have all their replies, and how their table is published without it."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from flows.run.context import RunContext
from flows.run.judging import asked_parts
from schemas.errors import ProviderError, SalonError
from schemas.records import Plan
from tasks.ledger.ledger import opened


@contextmanager
def saying_who_is_complete(run: RunContext, planned: Plan) -> Iterator[None]:
    """While judges are asked: an error of one of several providers also says whose replies are all there."""
    try:
        yield
    except ProviderError as error:
        with suppress(SalonError):  # what ended the run is told, not this
            said = _who_is_complete(run, planned)
            error.args = (f"{error}{said}",)
        raise


def _who_is_complete(run: RunContext, planned: Plan) -> str:
    n_asked, n_stored = Counter[str](), Counter[str]()
    with opened(run.ledger_url) as ledger:
        for part in asked_parts(run, planned.parts):
            n_asked[part.judge_model] += part.n_requests
            n_stored[part.judge_model] += len(ledger.known(run.request_keys(part)))
    whole = [judge for judge, n in n_asked.items() if n_stored[judge] >= n]
    rest = [judge for judge in n_asked if judge not in whole]
    if not whole or not rest:
        return ""
    counts = ", ".join(f"{judge} ({n_asked[judge]:,} of {n_asked[judge]:,})" for judge in whole)
    which = "its [[judges]]" if len(rest) == 1 else "their [[judges]]"
    return (
        f" Complete, with every reply stored: {counts}. To publish without {' and '.join(rest)}, take {which} out of the "
        "benchmark file and run it again: nothing is asked or paid twice."
    )
