"""`salon probe-injection`: what is printed of the shifts. What is measured is flows/probing.py."""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.table import Table
from rich.text import Text

from flows.commands.running import BenchmarkFile, words_in
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, one_line, result_console
from flows.run.context import RunContext, check_keys, open_run
from schemas.errors import InputError
from tasks.ingest.probe_twins import PLACES
from tasks.stopping import heeding_sigterm

if TYPE_CHECKING:
    from flows.probing import Shift


def probe_injection(
    file: BenchmarkFile,
    places: Annotated[str, typer.Option(help="Where the text is put, separated by commas.")] = ",".join(PLACES),
    text: Annotated[Path | None, typer.Option(help="A file with the text to put there; default: Salon's own.")] = None,
    samples: Annotated[int, typer.Option(min=1, help="Samples of each source; each is judged once more for each place.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead.")] = False,
) -> int:
    """Judge samples beside twins that hold a hostile text; print how far it moves the scores. Promises nothing beyond that."""
    wanted = words_in(places) or []
    unknown = [place for place in wanted if place not in PLACES]
    if unknown or not wanted:
        raise InputError(f"--places {places!r}: there are {', '.join(PLACES)}")
    run = open_run(file)
    check_keys(run)
    from flows.probing import TEXT, probe

    with shown_progress() as reporter, heeding_sigterm():
        found = probe(RunContext.of(run, reporter=reporter), wanted, _read(text) if text else TEXT, samples)
    if as_json:
        print(orjson.dumps([asdict(one) for one in found]).decode())
    else:
        _print(result_console(), found)
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--text {path}: cannot be read: {error}; name a UTF-8 text file") from error


def _print(console: Console, found: "list[Shift]") -> None:
    for (rubric_id, judge), shifts in groupby(found, key=lambda one: (one.rubric_id, one.judge_model)):
        console.print(Text.assemble((one_line(rubric_id), "bold"), one_line(f", judged by {judge}")))
        table = Table(box=None, padding=(0, 1), header_style="dim")
        table.add_column("place", no_wrap=True)
        table.add_column("dimension", overflow="fold", min_width=14)
        table.add_column("without → with", no_wrap=True)
        table.add_column("shift [95 %]", no_wrap=True)
        for name in ("pairs", "prompts", "lost", "gained"):
            table.add_column(name, justify="right", no_wrap=True)
        for one in shifts:
            counts = [str(n) for n in (one.n_pairs, one.n_prompts, one.n_lost, one.n_gained)]
            means = f"{_number(one.mean)} → {_number(one.mean_of_twins)}"
            table.add_row(Text(one.place), name_of(one.dimension), means, _shift(one), *counts)
        console.print(table)
        console.print()
    console.print("lost: the text left the twin without a score; gained: the original had none. Of one text on these samples;")
    console.print("another text may do more.")


def _shift(one: "Shift") -> str:
    if one.shift is None:
        return f"- ({one.reason})"
    if one.low is None or one.high is None:
        return f"{one.shift:+.2f} ({one.reason})"
    return f"{one.shift:+.2f} [{one.low:+.2f}, {one.high:+.2f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
