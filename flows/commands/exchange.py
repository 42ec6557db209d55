"""What `salon export` and `salon import` say of what they wrote and took in."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from flows.observability.terminal import Console, one_line

if TYPE_CHECKING:
    from tasks.judge.batch.export import Exported
    from tasks.ledger.import_replies.importing import ImportResult

N_TOO_LARGE = 5
"""Requests too large for a file that are named."""


def print_imported(console: Console, found: "ImportResult") -> None:
    """What became of recorded replies; every kind that was not taken is told with its first rows."""
    contradicting = f", {found.n_contradicting:,} contradicting" if found.n_contradicting else ""
    failed = f", {found.n_failed:,} failed" if found.n_failed else ""
    console.print(
        f"imported    {found.n_rows:,} rows: {found.n_stored:,} stored, {found.n_already_there:,} there already, "
        f"{found.n_unmatched:,} left out{contradicting}{failed}"
    )
    if found.n_reasked:
        console.print(f"            {found.n_reasked:,} cannot be read and are to be asked once more: salon export, or salon run")
    for told, examples in (("left out", found.unmatched_examples), ("contradicting", found.contradicting_examples)):
        for example in examples:
            console.print(f"            {told}: {escape(one_line(example))}")


def print_exported(console: Console, found: "Exported", folder: Path) -> None:
    """The files that were written, what was left out, and what to do with them."""
    console.print(f"exported    {found.n_requests:,} requests in {len(found.files):,} files")
    for file in found.files:
        again = f", {file.n_reasks:,} of them once more" if file.n_reasks else ""
        console.print(
            f"            {escape(one_line(file.name))}: {file.n_requests:,} requests, {file.n_bytes / 1e6:,.1f} MB{again}"
        )
    if found.n_in_batches:
        console.print(f"            {found.n_in_batches:,} left out: a Batch API has them, and salon run fetches them")
    for key, n_bytes in list(found.too_large.items())[:N_TOO_LARGE]:
        console.print(f"            left out: request {key[:12]}, whose line has {n_bytes:,} bytes; raise --max-mb")
    if len(found.too_large) > N_TOO_LARGE:
        console.print(f"            left out: {len(found.too_large) - N_TOO_LARGE:,} more that are too large")
    if found.files:
        console.print(
            f"next        run an engine over {escape(one_line(str(folder)))}/*.jsonl, then salon import --batch-results"
        )
    elif not found.too_large and not found.n_in_batches:
        console.print("            nothing is left to ask: every request has its reply")
