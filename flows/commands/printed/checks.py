"""What a run's last lines say of data checks that failed and block nothing. What the checks are is tasks/validate."""

from pathlib import Path

import polars as pl
from rich.text import Text

from flows.observability.terminal import Console, one_line
from schemas.statuses.rows import CheckStatus
from schemas.tables.stored import CHECKS

_N_NAMED = 3


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
    told = f"checks      {failed.height} failed, which block nothing: {named}{more}. The page says what they mean"
    console.print(Text(one_line(told), style="yellow"))


def _named(check: str, n_failing: int, n_checked: int) -> str:
    return f"{check} ({n_failing:,} of {n_checked:,} rows)" if n_failing else check
