"""How the samples of a plan look in a terminal: whose they are, which cannot be judged, and what of the sources is not read."""

from typing import TYPE_CHECKING

from rich.text import Text

from flows.commands.printed.asked import print_categories
from flows.observability.terminal import Console, name_of
from schemas.records import UNNAMED
from schemas.statuses.rows import SampleStatus

if TYPE_CHECKING:
    from flows.run.preview import Preview

N_CHECKPOINTS = 10
"""Checkpoints that are listed."""


def print_samples(console: Console, preview: "Preview") -> None:
    """The checkpoints and categories that were found, the rows nobody is asked about, and the notes."""
    _print_checkpoints(console, preview)
    print_categories(console, preview)
    _print_unusable(console, preview)
    for note in preview.notes:
        console.print(name_of(f"note        {note}", "yellow"))


def _print_checkpoints(console: Console, preview: "Preview") -> None:
    found = preview.found.checkpoints
    if [one.checkpoint for one in found] == [UNNAMED]:
        n = found[0].n_samples
        advice = 'name the column that says so in columns = { checkpoint = "…" }, or put {checkpoint} in path'
        console.print(f"checkpoints all {n:,} samples are one checkpoint, {UNNAMED}; where they are of several, {advice}")
        return
    console.print(f"checkpoints {len(found):,}, in the order of the trend")
    for one in found[:N_CHECKPOINTS]:
        of = f" of {one.n_samples:,}" if one.n_usable < one.n_samples else ""
        console.print(name_of(f"            {one.model}/{one.checkpoint}: {one.n_usable:,}{of} usable"))
    if len(found) > N_CHECKPOINTS:
        console.print(f"            … and {len(found) - N_CHECKPOINTS:,} more")


def _print_unusable(console: Console, preview: "Preview") -> None:
    """Rows that nobody is asked about, or that stand there twice, some of each status."""
    for status in dict.fromkeys(row.status for row in preview.unusable):
        rows = [row for row in preview.unusable if row.status == status]
        n = preview.dataset.n_by_status[status]
        which = f"; the first {len(rows)}:" if n > len(rows) else ":"
        told = (
            "are earlier samples again, whose judgement counts for both" if status == SampleStatus.DUPLICATE else "are not judged"
        )
        console.print(Text(f"{status:<11} {n:,} rows {told}{which}", style="yellow"))
        for row in rows:
            console.print(name_of(f"            {row.source}, {row.source_key}{': ' + row.detail if row.detail else ''}"))
