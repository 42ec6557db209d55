"""What `salon export`, `import` and `verify` say: of batch lines, of recorded replies, of a bundle layer by layer."""

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape

from flows.observability.terminal import Console, name_of, one_line
from tasks.publish.standings.wording import counted

if TYPE_CHECKING:
    from collections.abc import Sequence

    from flows.verification.verifying import Verdict
    from tasks.judge.batch.export import Exported
    from tasks.ledger.import_replies.importing import ImportResult
    from tasks.verify.layers import LayerResult

N_TOO_LARGE = 5
"""Requests too large for a file that are named."""
N_COLUMNS = 4
"""Columns that differ in a layer, up to which they are named."""


def print_imported(console: Console, found: "ImportResult") -> None:
    """What became of recorded replies; every kind that was not taken is told with its first rows."""
    contradicting = f", {found.n_contradicting:,} contradicting" if found.n_contradicting else ""
    failed = f", {found.n_failed:,} failed" if found.n_failed else ""
    console.print(
        f"imported    {found.n_rows:,} rows: {found.n_stored:,} stored, {found.n_already_there:,} there already, "
        f"{found.n_unmatched:,} left out{contradicting}{failed}"
    )
    if found.n_reasked:
        console.print(f"            {found.n_reasked:,} cannot be read and must be asked once more: salon export, or salon run")
    if found.n_without_number:
        console.print(
            f"            {found.n_without_number:,} state a count or amount that is not a number; it is stored as null"
        )
    for told, examples in (
        ("null", found.without_number_examples),
        ("left out", found.unmatched_examples),
        ("contradicting", found.contradicting_examples),
    ):
        for example in examples:
            console.print(f"            {told}: {escape(one_line(example))}")


def print_exported(console: Console, found: "Exported", folder: Path) -> None:
    """The files that were written, what was left out, and what to do with them."""
    console.print(f"exported    {counted(found.n_requests, 'request')} in {counted(len(found.files), 'file')}")
    for file in found.files:
        again = f", {file.n_reasks:,} of them asked once more" if file.n_reasks else ""
        console.print(
            f"            {escape(one_line(file.name))}: {file.n_requests:,} requests, {file.n_bytes / 1e6:,.1f} MB{again}"
        )
    if found.n_in_batches:
        console.print(f"            {found.n_in_batches:,} left out: a Batch API has them; salon run fetches them")
    for key, n_bytes in list(found.too_large.items())[:N_TOO_LARGE]:
        console.print(f"            left out: request {key[:12]}, whose line has {n_bytes:,} bytes; raise --max-mb")
    if len(found.too_large) > N_TOO_LARGE:
        console.print(f"            left out: {len(found.too_large) - N_TOO_LARGE:,} more too large")
    if found.files:
        console.print(
            f"next        run an engine over {escape(one_line(str(folder)))}/*.jsonl, then salon import --batch-results"
        )
    elif not found.too_large and not found.n_in_batches:
        console.print("            nothing is left to ask: every request has a reply")


def print_layers(console: Console, verdict: "Verdict", layers: "Sequence[LayerResult]", code: str) -> None:
    """A bundle's publication and code, a line for each layer, and what follows from them."""
    made_by, is_other = verdict.made_by or "", verdict.made_by != code
    told = f"{code[:12]} is installed: differences may come from that" if is_other else "the same is installed"
    written = f"; release {verdict.bundle.name.release} wrote the bundle" if is_other and verdict.bundle else ""
    console.print(name_of(f"publication {verdict.folder.name}  {verdict.folder.parent.name}"))
    console.print(name_of(f"code        {made_by[:12] or 'unknown code'} published it, {told}{written}"))
    print_values(console, verdict)
    for layer in layers:
        console.print(
            name_of(
                f"{layer.layer:<11} {_result(layer, verdict)}",
                "red" if layer.n_differences else "" if layer.is_whole else "yellow",
            )
        )
    for note in verdict.notes:
        console.print(name_of(f"note        {note}", "yellow"))
    if not verdict.is_verified:
        n = counted(len(verdict.differences), "difference")
        sure = f" as this code derives it; {made_by[:12]} can tell for sure: verify with that" if is_other and made_by else ""
        console.print(name_of(f"differs     {n}: the content does not match the publication's id{sure}", "red"))
    elif all(layer.is_whole for layer in layers):
        console.print(name_of("verified    every published number follows from the stored replies; all could be derived again"))
    else:
        console.print(name_of("holds       nothing differs; what could not be derived again is listed above (exit code 4)"))


def print_values(console: Console, verdict: "Verdict") -> None:
    """Where other code published it, and anything differs: whether the numbers do."""
    if verdict.values and not verdict.is_verified:
        of = f"of the {verdict.values.n:,} values in the columns that the published and the rebuilt tables share"
        n = verdict.values.n_differing
        console.print(name_of(f"values      {of}, {f'{n:,} differ' if n else 'none differs'}", "red" if n else "green"))


def _result(layer: "LayerResult", verdict: "Verdict") -> str:
    from tasks.verify.layers import layer_of

    if layer.n is None:
        return "could not be derived again: its inputs cannot be read"
    said = f"{layer.n_derived:,} of {layer.n:,} {layer.what} derived again"
    if layer.n_differences:
        columns = sorted({one.column or "whole rows" for one in verdict.differences if layer_of(one) == layer.layer})
        where = f" in {', '.join(columns)}" if len(columns) <= N_COLUMNS else ""
        said += f"; {counted(layer.n_differences, 'difference')}{where}"
    elif layer.n_derived:
        said += ", all the same"
    if layer.why is None:
        return said
    return f"{said}; could not: {f'{layer.n_missing:,}, ' if layer.n_missing else ''}{layer.why}"
