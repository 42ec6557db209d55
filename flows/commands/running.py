"""`salon demo`, `run`, `plan` and `import`: the commands that start a flow, and what they print before and after it."""

import json
import re
import shutil
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ParamSpec, TypeVar

import polars as pl
import typer
from rich.table import Table

from flows.commands.app import usable
from flows.commands.options import AsJson, BenchmarkFile, Checkpoints, MaxUsd, RetryOption, RunDate, RunnerOption
from flows.commands.printed.plan import plan_object, print_plan
from flows.commands.tables import print_leaderboard, print_summary, read_cells
from flows.executors.choose import check_runner
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, keep_prefect_quiet, name_of, result_console
from flows.prefect_server import server_url
from flows.run.context import check_keys, open_run
from schemas.benchmark.file import Retry, Runner
from schemas.errors import InputError
from tasks.publish.folders import LAYOUT, POINTER
from tasks.publish.leaderboard import format_estimate

if TYPE_CHECKING:
    from tasks.judge.batch.folders import BatchResults

Reread = Annotated[bool, typer.Option("--reread", help="Read every source again, whether or not its files have changed.")]

P = ParamSpec("P")
Out = TypeVar("Out")
DEMO_DATE = date(2026, 1, 1)  # the demo's logical date never changes, so that a second run publishes nothing new


def run(
    file: BenchmarkFile,
    run_date: RunDate = None,
    checkpoints: Checkpoints = None,
    max_usd: MaxUsd = None,
    runner: RunnerOption = None,
    retry: RetryOption = None,
    reread: Reread = False,
) -> int:
    """Run a benchmark file and publish its table. After any failure, run it again: it continues where it stopped."""
    if reread:
        _forget_sources(file)
    return _run(file, run_date.date() if run_date else None, words_in(checkpoints), max_usd=max_usd, runner=runner, retry=retry)


def import_(
    file: BenchmarkFile,
    replies: Annotated[
        Path | None, typer.Option(help="Replies recorded elsewhere (JSONL, JSON, CSV or Parquet), or a lake's replies.")
    ] = None,
    batch_results: Annotated[
        Path | None,
        typer.Option(help="A folder with results of exported requests: *.jsonl, split in any way; parts and repeats are fine."),
    ] = None,
    run_date: RunDate = None,
) -> int:
    """Import replies recorded elsewhere, or results of exported requests, and publish; no judge is asked."""
    from tasks.judge.batch.folders import BatchResults

    if (replies is None) == (batch_results is None):
        raise InputError(
            "give either --replies RECORDED (replies recorded elsewhere) or --batch-results DIR (results of salon export)"
        )
    taken = replies.absolute() if replies else BatchResults(batch_results.absolute()) if batch_results else None
    return _run(file, run_date.date() if run_date else None, None, replies=taken)


def plan(
    file: BenchmarkFile,
    checkpoints: Checkpoints = None,
    reread: Reread = False,
    as_json: AsJson = False,
) -> int:
    """Show what a run would ask, cost and take; nothing is sent."""
    from flows.run.preview import preview

    if reread:
        _forget_sources(file)
    with shown_progress() as reporter:
        previewed = preview(file, words_in(checkpoints), reporter)
    if as_json:
        print(json.dumps(plan_object(previewed)))
    else:
        print_plan(Console(), previewed)
    return 0


def _forget_sources(file: Path) -> None:
    from tasks.ingest.known_sources import forget

    forget(open_run(file).lake)


def demo(
    folder: Annotated[Path, typer.Option(help="Where the demo's pictures are drawn.")] = Path("salon-demo"),
) -> int:
    """Draw, judge and publish the demo benchmark: no key, no server."""
    from demo import paint
    from demo.running import running_judge

    console = Console()
    console.print("Salon's demo: three checkpoints of an imaginary image model draw simple scenes; a judge scores every picture.")
    console.print(
        "The judge is a program that looks at drawn scenes, not a model: it needs no key and cannot judge other pictures.\n"
    )
    with usable(folder):
        painted = paint(folder)
        shutil.copyfile(Path(__file__).parents[2] / "demo" / "benchmark.toml", folder / "benchmark.toml")
    console.print(name_of(f"{painted.n_images} pictures drawn in {folder}/"))
    there = (folder / "../lake/publish" / LAYOUT).glob(f"*/{POINTER}")  # of the lake that the copied file names
    if others := sorted({path.parent.name for path in there} - {"demo"}):
        said = "The lake here has other benchmarks too. Commands show what was published last, unless you name one:"
        console.print(name_of(f"{said} --benchmark demo, --benchmark {others[0]}"))
    with running_judge() as judge_url:
        return _run(folder / "benchmark.toml", DEMO_DATE, None, judge_url=judge_url)


def _run(
    file: Path,
    run_date: date | None,
    checkpoints: list[str] | None,
    *,
    judge_url: str | None = None,
    replies: "Path | BatchResults | None" = None,
    max_usd: float | None = None,
    runner: Runner | None = None,
    retry: Retry | None = None,
) -> int:
    opened = open_run(file, run_date, judge_url, max_usd)  # what is wrong with the file is said at once
    if replies is None:
        check_keys(opened)
    check_runner(opened, runner)
    from flows.benchmark import benchmark

    with shown_progress():
        flow = shown_by_prefect(benchmark)
        summary = flow(file.absolute(), run_date, checkpoints, judge_url, replies, max_usd, runner, retry)
    out = result_console()
    print_leaderboard(out, summary.published.folder)
    if judge_url is not None:  # the demo's: what it expects lies beside what came out
        print_expected(out, summary.published.folder)
    print_summary(out, summary)
    return 1 if summary.is_blocked else 0


def shown_by_prefect(flow: Callable[P, Out]) -> Callable[P, Out]:
    """The flow as Prefect runs and shows it where a server is configured; without one it runs as it is, and waits for none."""
    if server_url() is None:
        return flow
    from flows.prefect_flows import flow_of

    keep_prefect_quiet()
    return flow_of(flow)


_WORD = re.compile(r'\s*"((?:[^"]|"")*)"\s*(?:,|$)|([^,]*)(?:,|$)')


def words_in(words: str | None) -> list[str] | None:
    """What a comma-separated option names, one with a comma in double quotes as in CSV; None where it was not given.

    Raises InputError where it names nothing: a variable of a script that is not set would stand for all.
    """
    if words is None:
        return None
    found = (quoted.replace('""', '"') or plain.strip() for quoted, plain in _WORD.findall(words))
    named = [word for word in found if word]
    if not named:
        raise InputError(f"{words!r} names nothing; write names separated by commas, or leave the option out for all")
    return named


def print_expected(console: Console, folder: Path) -> None:
    """Beside each checkpoint's overall_score, what it must be under the painter's known error rates."""
    from demo.truth import expected

    truth = expected()
    table = Table(
        title="overall_score as expected from the painter's known error rates", title_justify="left", title_style="bold", box=None
    )
    for name in ("rubric", "checkpoint", "mean [95 % interval]", "exact expected value", "inside"):
        table.add_column(name, justify="right" if name == "exact expected value" else "left")
    rows = read_cells(folder).filter(pl.col("dimension") == "overall_score", pl.col("category") == "__macro__")
    for row in rows.sort("rubric_id", "estimate", descending=[False, True], nulls_last=True).iter_rows(named=True):
        value = truth.get((row["rubric_id"], row["checkpoint"], row["dimension"], "__macro__"))
        if value is None:
            continue
        is_inside = row["ci_low"] is not None and row["ci_low"] <= value <= row["ci_high"]
        estimate = format_estimate(row["estimate"], row["ci_low"], row["ci_high"])
        table.add_row(row["rubric_id"], row["checkpoint"], estimate, f"{value:.3f}", "yes" if is_inside else "no")
    console.print(table)
    console.print()
