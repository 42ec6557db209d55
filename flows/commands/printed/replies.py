"""What a run's last lines say of replies and data checks: what they cost, who gave them, why some cannot be read, what failed.

Why, and what to do, are rubrics/replies/remedies.py's sentences.
What cannot be read is counted in judgements: checkpoints with the same picture share a reply, and a pair has one for each
order. The checks are tasks/validate.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
from rich.text import Text

from flows.observability.redaction import redacted
from flows.observability.terminal import Console, format_usd, one_line
from rubrics.replies.remedies import N_SAID, commonest, remedy
from schemas.benchmark.judges import Judge
from schemas.statuses.cells import HealthMeasure
from schemas.statuses.rows import CheckStatus
from schemas.tables.published import HEALTH
from schemas.tables.stored import CHECKS
from tasks.judge.budget.prices import price_of
from tasks.publish.standings.answers import listed

if TYPE_CHECKING:
    from tasks.judge.outcome import Outcome  # brings the ledger, which no command needs that only reads

_DATE = re.compile(r"[-_@:.](20\d\d-\d\d-\d\d|20\d{6}|\d{4}|\d\d-\d\d(-\d{4})?)", re.ASCII)
"""Behind a model's name, as providers write it: -2025-04-14, @20250514, -0613, -05-06."""
_N_NAMED = 3  # failed checks


def requests_told(asked: "Outcome", judges: Sequence[Judge]) -> str:
    """How many of the requests of these judges were stored before, how many attempts were sent, and what they cost."""
    reasked = f", {asked.n_reasked:,} of them asked again" if asked.n_reasked else ""
    fetched = f", {asked.n_fetched:,} fetched from batches of earlier runs" if asked.n_fetched else ""
    return f"{asked.n_cached:,} stored already{fetched}, {asked.n_asked:,} sent{reasked}{cost_of(asked, judges)}"


def cost_of(asked: "Outcome", judges: Sequence[Judge]) -> str:
    """What the run's own requests cost, and replies it fetched; those of which it is not known are counted, and why is said."""
    if not asked.may_cost:
        return ""
    known = "" if asked.cost_usd is None else f"; {'at least ' * bool(asked.n_in_doubt)}{format_usd(asked.cost_usd)}"
    replies = f"{asked.n_without_cost:,} {'reply' if asked.n_without_cost == 1 else 'replies'}"
    of = f"{replies} of unknown cost ({_why(judges)})" if asked.n_without_cost else ""
    absurd = f"; {asked.n_not_believed:,} of them report impossibly many tokens"
    return (
        f"{known}{' and ' if known and of else '; ' if of else ''}{of}{absurd if asked.n_not_believed else ''}{_in_doubt(asked)}"
    )


def _why(judges: Sequence[Judge]) -> str:
    """Why a reply has no cost: its judge has no price, which is said of whom, or it tells too little."""
    asked = [judge for judge in judges if not judge.recorded]
    unpriced = [judge.id for judge in asked if price_of(judge) is None]
    told = [f"no price of {listed(unpriced)}: write [judges.price]"] if unpriced else []
    others = [] if asked and len(unpriced) == len(asked) else ["no tokens reported, or a dearer tier than was asked for"]
    return ", ".join([*told, *others])


def _in_doubt(asked: "Outcome") -> str:
    """Attempts that ended without a reply after they were sent: only the provider's bill says whether they cost anything."""
    if not asked.n_in_doubt:
        return ""
    more = " more" if asked.cost_usd is not None else ""
    bound = f" ({format_usd(asked.in_doubt_usd)} at most)" if isfinite(asked.in_doubt_usd) else ""
    return f"; up to {asked.n_in_doubt:,}{more} may have been billed{bound} without a reply"


def print_answering(console: Console, folder: Path, judges: Sequence[Judge]) -> None:
    """A line for each judge under whose name another model answered than it asks for, or several did."""
    of_judges: dict[str, dict[str, int]] = defaultdict(dict)
    for judge_model, name, n in counted(folder / f"{HEALTH.name}.parquet", HealthMeasure.N_ANSWERED_BY):
        of_judges[judge_model][name] = n
    for judge in judges:
        models = of_judges[judge.id]
        if judge.recorded or all(map(judge.is_called, models)):
            continue
        told = ", ".join(f"{name} ({models[name]:,} replies)" for name in sorted(models, key=lambda name: -models[name])[:N_SAID])
        advice = _advice(judge.model, set(map(judge.one_name, models)))
        console.print(Text(one_line(f"answered    {judge.model} by {told} in this table; {advice}")))


def _advice(asked: str, names: Collection[str]) -> str:
    """What to do where these answered. A gateway's prefix or a server's path is no other model, and needs no date."""
    if len(names) > 1:
        return "use a dated name as the judge's model: answers of two models are never compared"
    (name,) = names
    if name.startswith(asked) and _DATE.fullmatch(name.removeprefix(asked)):
        return "an undated name may be another model tomorrow"
    return "if this is the same model under another name, list it in the judge's accept_models"


def print_unreadable(console: Console, folder: Path, judges: Sequence[Judge], shown_by: str = "CELL") -> None:
    """A line for each of the commonest reasons of a publication in `folder` and one for the rest; of judges that can be asked.

    `shown_by`: what salon explain takes to show them.
    """
    asked = {judge.id: judge for judge in judges if not judge.recorded}
    for line in _unreadable(folder / f"{HEALTH.name}.parquet", asked, f"`salon explain {shown_by}` shows them"):
        console.print(Text(one_line(f"unreadable  {redacted(line)}")))


def _unreadable(health: Path, judges: dict[str, Judge], shown: str) -> Iterator[str]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for judge_model, reason, n in counted(health, HealthMeasure.N_WITHOUT_SCORE):
        counts[judge_model][reason] = n
    n_cut: dict[str, dict[str, int]] = defaultdict(dict)
    for judge_model, word, n in counted(health, HealthMeasure.N_CUT):
        n_cut[judge_model][word] = n
    found = [(reason, n, judges[name]) for name in judges for reason, n in commonest(counts[name])]
    ordered = sorted(found, key=lambda one: -one[1])
    for reason, n, judge in ordered[:N_SAID]:
        whose = judge.id if len(judges) > 1 else ""
        what = ("judgement", "judgements")
        yield remedy(reason, n, judge.parameters, whose=whose, shown=shown, what=what, n_cut=n_cut[judge.id])
    if rest := [f"{reason.value} {n:,}{f' of {judge.id}' * (len(judges) > 1)}" for reason, n, judge in ordered[N_SAID:]]:
        yield f"also {', '.join(rest)}"


def counted(health: Path, measure: HealthMeasure) -> list[tuple[str, str, int]]:
    """(judge, word, number) over all checkpoints and rubrics; none where a publication has no such table."""
    if not health.is_file():
        return []
    rows = pl.scan_parquet(health).filter(measure=measure.value)
    counted = rows.group_by("judge_model", "word").agg(n=pl.col("value").sum().cast(pl.Int64)).sort("judge_model", "word")
    return counted.collect().rows()


def print_failed_checks(console: Console, folder: Path) -> None:
    """A line that names the failed checks of a publication in `folder`, those with most failing rows first."""
    path = folder / f"{CHECKS.name}.parquet"
    if not path.is_file():
        return
    rows = pl.read_parquet(path, columns=["check", "status", "n_checked", "n_failing"])
    failed = rows.filter(status=CheckStatus.FAILED.value).sort("n_failing", "check", descending=[True, False])
    if failed.is_empty():
        return
    named = "; ".join(map(_named, *(failed.head(_N_NAMED)[name] for name in ("check", "n_failing", "n_checked"))))
    more = f"; and {failed.height - _N_NAMED} more" if failed.height > _N_NAMED else ""
    told = f"checks      {failed.height} failed but block nothing: {named}{more}. The report page explains them"
    console.print(Text(one_line(told), style="yellow"))


def _named(check: str, n_failing: int, n_checked: int) -> str:
    return f"{check} ({n_failing:,} of {n_checked:,} rows)" if n_failing else check
