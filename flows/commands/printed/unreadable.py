"""What a run's last lines say of replies that could not be read: the commonest reasons, what they mean, what to do.

The sentences are rubrics/replies/remedies.py's. A rubric of pairs has no such counts in `health`; its boards say what is blocked.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import polars as pl
from rich.text import Text

from flows.observability.redaction import redacted
from flows.observability.terminal import Console, one_line
from rubrics.replies.remedies import N_SAID, commonest, remedy
from schemas.benchmark.judges import Judge
from schemas.statuses.cells import HealthMeasure
from schemas.tables.published import HEALTH


def print_unreadable(console: Console, folder: Path, judges: Sequence[Judge]) -> None:
    """A line for each of the commonest reasons of a publication in `folder`, for judges that can be asked anew."""
    for line in _told(folder / f"{HEALTH.name}.parquet", {judge.id: judge for judge in judges if not judge.recorded}):
        console.print(Text(one_line(f"unreadable  {redacted(line)}")))


def _told(health: Path, judges: dict[str, Judge]) -> Iterator[str]:
    if not judges or not health.is_file():
        return
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for judge_model, reason, n in _counted(health):
        counts[judge_model][reason] = n
    found = [(reason, n, judges[name]) for name in judges for reason, n in commonest(counts[name])]
    for reason, n, judge in sorted(found, key=lambda one: -one[1])[:N_SAID]:
        whose = judge.id if len(judges) > 1 else ""
        yield remedy(reason, n, judge.parameters, whose=whose, shown="`salon explain CELL` shows them")


def _counted(health: Path) -> list[tuple[str, str, int]]:
    """(judge, reason, judgements without a score for it), over all checkpoints and rubrics."""
    failed = pl.scan_parquet(health).filter(measure=HealthMeasure.N_WITHOUT_SCORE.value)
    counted = failed.group_by("judge_model", "word").agg(n=pl.col("value").sum().cast(pl.Int64))
    return counted.collect().rows()
