"""`salon exam` and `salon probe-injection`: twins of a benchmark's samples, judged. The work: flows/probing.py."""

from dataclasses import asdict
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer
from rich.table import Table
from rich.text import Text

from flows.commands.options import BenchmarkFile
from flows.commands.printed.replies import requests_told
from flows.commands.running import words_in
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, one_line, result_console
from flows.observability.waiting import say_stopping
from flows.run.context import RunContext, check_keys, open_run
from schemas.benchmark.exam import FAULTS, Exam, PlantedFault
from schemas.errors import InputError
from tasks.ingest.twins.probe import PLACES
from tasks.stopping import heeding_sigterm

if TYPE_CHECKING:
    from flows.probing import Shift
    from tasks.judge.outcome import Outcome


def probe_injection(
    file: BenchmarkFile,
    places: Annotated[str, typer.Option(help="Where the text is put, separated by commas.")] = ",".join(PLACES),
    text: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="<path>", help="A file with a text to put there; may be given several times; default: Salon's own texts."
        ),
    ] = None,
    samples: Annotated[int, typer.Option(min=1, help="Samples per source; each is judged two more times per place.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead.")] = False,
) -> int:
    """Judge samples and twins that contain a hostile text; print how far it moves the scores. It proves nothing beyond that."""
    wanted = words_in(places) or list(PLACES)
    unknown = [place for place in wanted if place not in PLACES]
    if unknown:
        raise InputError(f"--places {places!r} is not valid; available: {', '.join(PLACES)}")
    run = open_run(file)
    check_keys(run)
    from flows.probing import TEXTS, probe

    with shown_progress() as reporter, heeding_sigterm(say_stopping):
        found, asked = probe(
            RunContext.of(run, reporter=reporter), wanted, [_read(one) for one in text] if text else TEXTS, samples
        )
    if as_json:
        print(orjson.dumps([asdict(one) | _counts(asked) for one in found]).decode())
    else:
        _print(result_console(), found)
        result_console().print(f"requests: {requests_told(asked, run.benchmark.judges)}", soft_wrap=True, markup=False)
    return 0


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"--text {path}: cannot be read: {error}; name a UTF-8 text file") from error


def exam(
    file: BenchmarkFile,
    samples: Annotated[int, typer.Option(min=1, help="Samples per source; each is judged once more per fault.")] = 50,
    faults: Annotated[str | None, typer.Option(help="Which faults, separated by commas; default: the file's, or all.")] = None,
    is_whole: Annotated[bool, typer.Option("--all", help="Also show faults that a dimension is not meant to notice.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON list instead, with all rows.")] = False,
) -> int:
    """Plant faults in some of a benchmark's own samples; print how many of them each dimension of a judge notices."""
    run = open_run(file)
    chosen = run.benchmark.exam or Exam()
    wanted = words_in(faults)
    if wanted is not None:
        unknown = [fault for fault in wanted if fault not in FAULTS]
        if unknown:
            raise InputError(f"--faults {faults!r} is not valid; available: {', '.join(FAULTS)}")
        chosen = chosen.model_copy(update={"faults": [PlantedFault(fault) for fault in dict.fromkeys(wanted)]})
    check_keys(run)
    from flows.commands.reading import print_exam_rows
    from flows.probing import examine

    with shown_progress() as reporter, heeding_sigterm(say_stopping):
        found, asked = examine(RunContext.of(run, reporter=reporter), chosen, samples)
    rows = found.drop("publication_id", "exam_id", "dataset_id").to_dicts()
    if as_json:
        print(orjson.dumps([row | _counts(asked) for row in rows]).decode())
        return 0
    console = result_console()
    print_exam_rows(console, [row for row in rows if is_whole or row["is_meant"] is not False])
    console.print("noticed: scored at least a step below the untouched sample; false: the same for twins with nothing changed.")
    console.print("lost: twins without a score although the unchanged sample has one.")
    if nowhere := [fault for fault in wanted or () if fault not in {row["fault"] for row in rows}]:
        console.print(f"Planted nowhere, as no sample can take it: {', '.join(nowhere)}.")
    if paired := sorted(one.id for one in run.rubrics.values() if one.is_of_pairs):
        console.print(name_of(f"Not examined, because they are rubrics of pairs: {', '.join(paired)}."))
    console.print(f"requests: {requests_told(asked, run.benchmark.judges)}", soft_wrap=True, markup=False)
    console.print("Nothing was published: add [exam] to the benchmark file to make it part of every run.", markup=False)
    return 0


def _counts(asked: "Outcome") -> dict[str, int | float | None]:
    """What every row of the JSON says of the requests of all rows together."""
    return {"n_cached": asked.n_cached, "n_asked": asked.n_asked, "cost_usd": asked.cost_usd}


def _print(console: Console, found: "list[Shift]") -> None:
    for (rubric_id, judge), shifts in groupby(found, key=lambda one: (one.rubric_id, one.judge_model)):
        console.print(Text.assemble((one_line(rubric_id), "bold"), one_line(f", judged by {judge}")))
        table = Table(box=None, padding=(0, 1), header_style="dim")
        table.add_column("place", no_wrap=True)
        table.add_column("dimension", overflow="fold", min_width=12)
        for name in ("without → with", "shift [95 %]", "harmless", "obeyed [95 %]"):
            table.add_column(name, no_wrap="[" not in name)
        for name in ("pairs, prompts", "lost, gained"):
            table.add_column(name, justify="right")
        for one in shifts:
            counts = [f"{one.n_pairs}, {one.n_prompts}", f"{one.n_lost}, {one.n_gained}"]
            means = f"{_number(one.mean)} → {_number(one.mean_of_twins)}"
            harmless = "-" if one.harmless_shift is None else f"{one.harmless_shift:+.2f}"
            obeyed = _moved(one.obeyed, one.obeyed_low_adjusted, one.obeyed_high_adjusted, one.obeyed_reason)
            shift = _moved(one.shift, one.low, one.high, one.reason)
            table.add_row(Text(one.place), name_of(one.dimension), means, shift, harmless, obeyed, *counts)
        console.print(table)
        console.print()
    n_family, n_texts = (found[0].n_family, found[0].n_texts) if found else (0, 0)
    console.print("harmless: the shift from harmless words of the same form; obeyed: what the hostile words shift beyond")
    console.print(f"that, its interval corrected for {n_family} rows. lost: the text left the twin without a score; gained: the")
    console.print(f"original had none. Tested with {n_texts} texts on these samples; another text may do more.")


def _moved(value: float | None, low: float | None, high: float | None, reason: str | None) -> str:
    if value is None:
        return f"- ({reason})"
    return f"{value:+.2f} ({reason})" if low is None or high is None else f"{value:+.2f} [{low:+.2f}, {high:+.2f}]"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"
