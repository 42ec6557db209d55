"""`salon anchors freeze`, `list` and `bridge`: frozen samples, and a new judge joined by them. The work: flows/nights/."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import polars as pl
import typer
from rich.table import Table

from flows.commands.options import BenchmarkFile, MaxUsd, RunDate
from flows.executors.lake_use import lake_in_use
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, format_usd, name_of, one_line, result_console
from flows.run.context import RunContext, check_keys, open_run
from schemas.statuses.cells import CellStatus
from schemas.tables.nights import BRIDGES

if TYPE_CHECKING:
    from flows.bridging import BridgePlan
    from flows.nights.anchors import AnchorSet

N_ANCHORS = 50


def freeze(
    file: BenchmarkFile,
    n: Annotated[int, typer.Option(min=2, help="Samples for each group of rubrics that use the same sources.")] = N_ANCHORS,
    anew: Annotated[bool, typer.Option("--anew", help="Freeze a new set even though one exists.")] = False,
) -> int:
    """Choose the anchors from the current publication, once; every later night judges them again."""
    from flows.nights import anchors

    run = open_run(file)
    with lake_in_use(run):
        made = anchors.freeze(run, n, is_anew=anew)
    counts = ", ".join(f"{count} of {source}" for source, count in made.n_by_source.items())
    out = result_console()
    made_from = f"from publication {made.publication_id[:12]}"
    out.print(name_of(f"frozen: {made.anchor_set[:12]}, {made.n_samples} samples ({counts}), {made_from}"))
    out.print("salon nightly judges them every night: each night costs that many requests per rubric, judge and repeat")
    return 0


def list_(file: BenchmarkFile) -> int:
    """List the sets frozen so far; the last one is in use."""
    from flows.nights.anchors import anchor_sets

    run = open_run(file)
    found = anchor_sets(run.lake.root, run.benchmark.name)
    if not found:
        print(
            f"{one_line(run.benchmark.name)} has no anchors; salon anchors freeze FILE chooses them from its current publication"
        )
        return 0
    Console().print(_table(found))
    return 0


def bridge(
    file: BenchmarkFile,
    old: Annotated[str, typer.Option(help="The judge to be replaced.")],
    new: Annotated[str, typer.Option(help="Its successor; the benchmark file lists both.")],
    line: Annotated[bool, typer.Option("--line", help="Fit a slope too; default: only an offset.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what it would ask and cost; nothing is sent.")] = False,
    run_date: RunDate = None,
    max_usd: MaxUsd = None,
) -> int:
    """Have both judges score the anchors, so that the old one's series continue under the new one."""
    from flows.bridging import make_bridge, plan_bridge
    from flows.nights.drift import bridges_of

    run = open_run(file, run_date.date() if run_date else None, max_usd=max_usd)
    out = result_console()
    with shown_progress() as reporter, lake_in_use(run):
        planned = plan_bridge(RunContext.of(run, reporter=reporter), old, new)
        out.print(_plan(planned))
        if dry_run:
            out.print("nothing was sent")
            return 0
        check_keys(planned.run)
        found = make_bridge(planned, has_slope=line)
    out.print(_bridges(found, has_slope=line))
    failed = found.filter(pl.col("status") != CellStatus.OK.value)
    n_kept = _kept(failed, bridges_of(run.lake.root, run.benchmark.name))
    for said in _outcome(found.height - failed.height, n_kept, failed.height - n_kept, (old, new, file.name)):
        out.print(name_of(said))
    return 0 if failed.height < found.height else 1


def _kept(failed: pl.DataFrame, there: pl.DataFrame | None) -> int:
    """How many of the rows that failed an earlier bridge still joins; where a later one led back, the old judge has its own."""
    from tasks.aggregate.drift.bridge import OF, present_judges

    if there is None:
        return 0
    left = present_judges(there).filter(pl.col("present") != pl.col("judge_model")).rename({"judge_model": "judge_old"})
    again = failed.join(there, on=BRIDGES.key, how="semi")
    return again.join(left, on=[*OF, "judge_old"], how="semi").height


def _outcome(n_joined: int, n_kept: int, n_ending: int, names: tuple[str, str, str]) -> Iterator[str]:
    """What becomes of the old judge's series: joined now, kept joined by an earlier bridge, or ending without the judge."""
    old, new, file = names
    goes_on = f"{'continues' if n_joined == 1 else 'continue'} under {new} from the next night on"
    then = "" if n_kept or n_ending or not n_joined else f"; remove {old} from {file}"
    yield f"{n_joined} of {n_joined + n_kept + n_ending} series of {old} {goes_on}{then}"
    if n_kept:
        yield f"{n_kept} could not be bridged anew and stay joined by the bridge made before, which stays in use"
    if n_ending or not n_joined + n_kept:
        yield f"keep {old} in {file}: what no bridge joins ends on the night that {old} is taken out"
    elif n_kept:
        yield f"remove {old} from {file}: all its series are joined"


def _plan(planned: "BridgePlan") -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("judge", "rubric", "anchors", "stored", "to ask", "online", "batch", "at most"):
        table.add_column(name, justify="left" if name in ("judge", "rubric") else "right")
    for row in planned.rubrics:
        each = row.forecast
        usd = (each.online_usd, each.batch_usd, each.worst_usd)
        table.add_row(
            name_of(row.judge.id), name_of(row.rubric_id), f"{each.n_requests:,}", f"{each.n_cached:,}", f"{row.n_to_ask:,}",
            *(format_usd(value) if row.n_to_ask else "-" for value in usd),
        )  # fmt: skip
    return table


def _bridges(found: pl.DataFrame, *, has_slope: bool) -> Table:
    """A line for each rubric and dimension; in 80 columns a dimension's name stays whole, so what says nothing is left out."""
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("rubric", "dimension"):
        table.add_column(name, overflow="fold")
    named = {"offset": "new minus old", "offset_se": "± error"} | ({"slope": "slope"} if has_slope else {})
    for name in ("prompts", "images", *named.values()):
        table.add_column(name, justify="right", overflow="fold")
    if found["reason"].null_count() < found.height:
        table.add_column("", overflow="fold")
    for row in found.iter_rows(named=True):
        is_fitted = row["status"] == "ok"
        figures = [f"{row[name]:{'+' if name == 'offset' else ''}.3f}" if is_fitted else "" for name in named]
        counts = (str(row["n_prompts"]), str(row["n_images"]))
        table.add_row(
            name_of(row["rubric_id"]),
            name_of(row["dimension"]),
            *counts,
            *figures,
            *([name_of(row["reason"])] if row["reason"] else []),
        )
    return table


def _table(found: "list[AnchorSet]") -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("set", "frozen", "from", "samples", "of", ""):
        table.add_column(name, justify="right" if name == "samples" else "left")
    for one in found:
        of = ", ".join(f"{count} {source}" for source, count in one.n_by_source.items())
        used = "in use" if one is found[-1] else ""
        table.add_row(one.anchor_set[:12], one.frozen_at[:10], one.publication_id[:12], str(one.n_samples), name_of(of), used)
    return table
