"""`salon anchors freeze` and `list`: the frozen samples every night asks about. Chosen in flows/nights/anchors.py."""

from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flows.commands.running import BenchmarkFile
from flows.run.opening import open_run
from flows.telling.terminal import Console

if TYPE_CHECKING:
    from flows.nights.anchors import AnchorSet

N_ANCHORS = 50


def freeze(
    file: BenchmarkFile,
    n: Annotated[int, typer.Option(min=2, help="Samples for each set of sources that rubrics share.")] = N_ANCHORS,
    anew: Annotated[bool, typer.Option("--anew", help="Freeze another set.")] = False,
) -> int:
    """Choose the anchors from what is published, once; every night from then on asks about them anew."""
    from flows.nights import anchors

    made = anchors.freeze(open_run(file), n, is_anew=anew)
    counts = ", ".join(f"{count} of {source}" for source, count in made.n_by_source.items())
    print(f"frozen: {made.anchor_set[:12]}, {made.n_samples} samples ({counts}), from publication {made.publication_id[:12]}")
    print("salon nightly asks about them every night; each night costs that many questions for each rubric and judge")
    return 0


def list_(file: BenchmarkFile) -> int:
    """The sets frozen so far; the last one is in use."""
    from flows.nights.anchors import anchor_sets

    run = open_run(file)
    found = anchor_sets(run.lake.root, run.benchmark.name)
    if not found:
        print(f"{run.benchmark.name} has no anchors; salon anchors freeze FILE chooses them from its current publication")
        return 0
    Console().print(_table(found))
    return 0


def _table(found: "list[AnchorSet]") -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("set", "frozen", "from", "samples", "of", ""):
        table.add_column(name, justify="right" if name == "samples" else "left")
    for one in found:
        of = ", ".join(f"{count} {source}" for source, count in one.n_by_source.items())
        used = "in use" if one is found[-1] else ""
        table.add_row(one.anchor_set[:12], one.frozen_at[:10], one.publication_id[:12], str(one.n_samples), of, used)
    return table
