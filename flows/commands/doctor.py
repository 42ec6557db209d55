"""`salon doctor` and `salon check`: the order of the checks, one screen, an exit code. What is looked at is flows/doctor/."""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text

from flows.commands.options import BenchmarkFile
from flows.doctor.findings import Finding, State, each_cause_once, guarded, skipped
from flows.observability import redaction
from flows.observability.terminal import keep_prefect_quiet, result_console
from flows.run.context import open_run
from schemas.errors import StoreError
from tasks.context import StageContext

COLOURS = {State.OK: "green", State.WRONG: "bold red", State.SKIPPED: "dim"}
NO_FILE = "no benchmark file was given"


def doctor(
    file: Annotated[
        Path | None, typer.Argument(help="The benchmark file (TOML); without it, only what can be checked without one.")
    ] = None,
    ask: Annotated[
        bool,
        typer.Option(
            "--ask", help="Also ask each judge about one sample, once for each rubric, and read the replies; it may cost money."
        ),
    ] = False,
) -> int:
    """Check everything a night needs, and say what is wrong and what to do. Exit code 3: something is down or missing."""
    run = open_run(file) if file else None  # what is wrong with the file is the user's, and said before anything is looked at
    keep_prefect_quiet()
    return _tell(_examined(run, file, is_asking=ask))


def check(file: BenchmarkFile) -> int:
    """Ask each judge of the file about one sample, once for each rubric, and show how the replies are read; it may cost money.

    Exit code 3: a judge does not answer, or its reply cannot be read.
    """
    run = open_run(file)
    keep_prefect_quiet()
    return _tell(_judges(run, is_asking=True))


def _examined(run: StageContext | None, file: Path | None, *, is_asking: bool) -> Iterator[Finding]:
    """What is found, check by check: what nights hang on, what is written to, who is asked."""
    from flows.doctor import judges, nights, prefect_server, publications, sources, stores

    yield from prefect_server.check_server(run.benchmark if run else None, file)
    if run is None:
        of_file = (nights.NIGHT, nights.BATCHES, sources.SOURCES, stores.LEDGER, stores.LAKE, stores.SYNC)
        yield from (skipped(what, NO_FILE) for what in of_file)
        yield from stores.check_disk(Path.cwd())
        yield from (skipped(what, NO_FILE) for what in (judges.KEY, judges.JUDGE))
        return
    permitted = "check the folder, its permissions and its disk"
    yield from guarded(nights.NIGHT, lambda: nights.check_night(run), "fix what is wrong below first")
    yield from guarded(nights.SERIES, lambda: nights.check_series(run), "fix what is wrong below first")
    yield from guarded(nights.ANCHORS, lambda: nights.check_anchors(run), "fix what is wrong below first")
    yield from guarded(nights.BATCHES, lambda: nights.check_batches(run), "fix what is wrong below first")
    yield from sources.check_sources(run)
    yield from guarded(stores.LEDGER, lambda: stores.check_ledger(run), permitted)
    yield from guarded(stores.LAKE, lambda: stores.check_lake(run.lake, run.benchmark.name), permitted)
    published = partial(publications.check_publications, run.lake, run.benchmark.name)
    yield from guarded(publications.PUBLICATIONS, published, permitted)
    yield from guarded(nights.RECORDS, lambda: nights.check_readable(run), permitted)
    yield from guarded(stores.SYNC, lambda: stores.check_sync(run), "fix what is wrong above first")
    yield from guarded(stores.DISK, lambda: stores.check_disk(*stores.places(run)), permitted)
    yield from judges.check_budget(run.benchmark)
    yield from _judges(run, is_asking=is_asking)


def _judges(run: StageContext, *, is_asking: bool) -> Iterator[Finding]:
    from flows.doctor import judges

    yield from guarded(judges.KEY, lambda: judges.check_keys(run.benchmark), "export the variable by hand")
    yield from guarded(judges.JUDGE, lambda: judges.check_judges(run, is_asking=is_asking), "salon plan FILE shows what is asked")


def _tell(findings: Iterable[Finding]) -> int:
    """Print each finding as it comes; the exit code."""
    console = result_console()
    n_by_state: Counter[State] = Counter()
    for one in each_cause_once(findings):
        n_by_state[one.state] += 1
        line = Text(f"{one.state:<8}", COLOURS[one.state])
        line.append(f"{one.what:<16}{redaction.redacted(one.found)}", "default")
        console.print(line)
        if one.advice:
            console.print(Text(f"{'':<8}-> {redaction.redacted(one.advice)}"))
    console.print("\n" + ", ".join(f"{n_by_state[state]} {state}" for state in State))
    return StoreError.exit_code if n_by_state[State.WRONG] else 0
