"""`salon gate`: whether a checkpoint got worse, for a pull request's checks. The ruling itself is tasks/aggregate/gate.py."""

import hashlib
import sys
from collections.abc import Sequence
from dataclasses import asdict
from enum import StrEnum
from itertools import groupby, pairwise
from typing import Annotated, Any

import orjson
import polars as pl
import typer
from rich.table import Table as Grid
from rich.text import Text

from flows.commands.printed.judge_moves import moves_of
from flows.commands.printed.ruling import Told
from flows.commands.reading import DEFAULT_LAKE, BenchmarkName, LakePlace
from flows.nights.judge_between import Compared, error_of
from flows.observability.terminal import name_of, one_line, result_console
from schemas.benchmark.file import Statistics
from schemas.errors import InputError
from schemas.metrics import TOTALS
from schemas.statuses.cells import HealthMeasure
from schemas.tables.nights import EXAM
from schemas.tables.published import COMPARISONS, HEALTH, STANDINGS
from tasks.aggregate.gate import (
    ABSENT,
    ALPHA,
    TOO_FEW,
    Contestant,
    Outcome,
    Ruling,
    contestants,
    rulings,
    summary,
)
from tasks.lake.reading import open_lake
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.reading import Publication, checked_file, chosen
from tasks.publish.standings.exam import marks
from tasks.publish.standings.wording import signed

PREDECESSOR = "predecessor"
_WORDS = {
    Outcome.REGRESSION: "worse",
    Outcome.IMPROVED: "better",
    Outcome.NO_REGRESSION: "no drop found",
    Outcome.UNKNOWN: "can't tell",
}
_STYLES = {Outcome.REGRESSION: "red", Outcome.IMPROVED: "green", Outcome.NO_REGRESSION: "", Outcome.UNKNOWN: "yellow"}
_REASONS = {
    ABSENT: "one of the two was not judged under this rubric and judge",
    "fails_more": "it fails more often, and the failures may hide a drop",
    TOO_FEW: "too few shared prompts for this --alpha",
}


class GateFormat(StrEnum):
    """How `salon gate` writes."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


def gate(
    publication: Annotated[str | None, typer.Argument(help="A publication's id, or its beginning; default: the current.")] = None,
    baseline: Annotated[
        str,
        typer.Option(help="What to compare with: MODEL/CHECKPOINT, MODEL (its newest), or predecessor: the previous checkpoint."),
    ] = PREDECESSOR,
    candidate: Annotated[
        list[str] | None,
        typer.Option(help="MODEL/CHECKPOINT or MODEL; may be given several times; default: the newest of each model."),
    ] = None,
    alpha: Annotated[
        float,
        typer.Option(min=1e-9, max=0.5, help="Two-sided, for all comparisons together: the false alarm rate of a quiet night."),
    ] = ALPHA,
    judge: Annotated[
        list[str] | None,
        typer.Option(help="Look only at this judge's rankings; may be given several times; default: every judge."),
    ] = None,
    allow_unknown: Annotated[
        bool, typer.Option("--allow-unknown", help="Pass where two checkpoints cannot be compared.")
    ] = False,
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    form: Annotated[GateFormat, typer.Option("--format", help="markdown for a pull request's comment.")] = GateFormat.TABLE,
) -> int:
    """Say whether a checkpoint got worse than another, for a pull request's checks. Exit code 1: worse, or undecided."""
    lake_root = open_lake(lake).root
    found = chosen(lake_root, benchmark, publication)
    standings, comparisons = (_read(found, f"{table.name}.parquet") for table in (STANDINGS, COMPARISONS))
    if standings.is_empty():
        named = found.publication_id[:16]
        raise InputError(
            f"publication {named} ranks no means, and salon gate compares means; salon table --publication {named} shows the "
            "results of its pairs"
        )
    judges = _judges(standings, judge or [])
    blind = [row for row in _blind(found) if row["judge_model"] in judges]
    pairs = _pairs(contestants(standings), baseline, candidate or [])
    looked_at = standings.filter(pl.col("judge_model").is_in(judges))
    ruled = rulings(comparisons, looked_at, pairs, alpha, is_worst_case=_is_worst_case(found))
    moves = moves_of(lake_root, found.benchmark, _compared(ruled, comparisons))
    n_left = len(set(comparisons["category"]) - {*TOTALS, *(one.category for one in ruled)})
    told = Told(found, ruled, alpha, _n_again(found), blind, judges if judge else (), moves, n_left)
    outcome = summary(ruled)
    if form is GateFormat.JSON:
        said: dict[str, Any] = {
            "publication_id": found.publication_id,
            "benchmark": found.benchmark,
            "alpha": alpha,
            "judges": judges,
            "outcome": outcome,
            "n_again": told.n_again,
            "blind": blind,
            "judge_moved": [asdict(one) for one in moves],
        }
        sys.stdout.write(
            orjson.dumps(said | {"rulings": [asdict(one) for one in ruled]}, option=orjson.OPT_INDENT_2).decode() + "\n"
        )
    elif form is GateFormat.MARKDOWN:
        sys.stdout.write(_markdown(told))
    else:
        _print(told)
    return 1 if outcome is Outcome.REGRESSION or (outcome is Outcome.UNKNOWN and not allow_unknown) else 0


def _read(found: Publication, name: str) -> pl.DataFrame:
    if name not in found.files:
        raise InputError(f"publication {found.publication_id[:16]} has no {name}; publish it again (salon run) with this release")
    return pl.read_parquet(checked_file(found, name))


def _is_worst_case(found: Publication) -> bool:
    """Whether its verdicts ask what failures could turn (`statistics.failures`)."""
    statistics = (found.provenance().get("settings") or {}).get("statistics") or {}
    return bool(statistics.get("failures", Statistics().failures) == "worst_case")


def _n_again(found: Publication) -> int:
    """Judgements of samples that are earlier ones again."""
    name = f"{HEALTH.name}.parquet"
    return int(_read(found, name).filter(measure=HealthMeasure.N_AGAIN.value)["value"].sum()) if name in found.files else 0


def _blind(found: Publication) -> list[dict[str, Any]]:
    """What judges are blind to, as their exam found: rubric_id, judge_model, dimension, blind_to."""
    name = f"{EXAM.name}.parquet"
    return marks({EXAM: _read(found, name)}).to_dicts() if name in found.files else []


def _compared(ruled: Sequence[Ruling], comparisons: pl.DataFrame) -> list[Compared]:
    """What was ruled on that has a difference, with its standard error, whichever way it was published."""
    names = ("rubric_id", "judge_model", "dimension", "category", "model_a", "checkpoint_a", "model_b", "checkpoint_b")
    errors = {tuple(row[name] for name in names): error_of(row) for row in comparisons.iter_rows(named=True)}
    found = []
    for one in ruled:
        cell = (one.rubric_id, one.judge_model, one.dimension)
        published = ((*cell, one.category, *pair) for pair in (one.candidate + one.reference, one.reference + one.candidate))
        se, df = next((errors[key] for key in published if key in errors), (None, None))
        if one.delta is not None:
            found.append(Compared(*cell, one.candidate, one.reference, one.delta, se, df))
    return found


def _judges(standings: pl.DataFrame, asked: Sequence[str]) -> list[str]:
    """Whose rankings are looked at. Raises InputError for a judge that has none."""
    known = sorted(standings["judge_model"].unique())
    for name in asked:
        if name not in known:
            raise InputError(f"--judge {name!r} is not a judge of this publication; available: {', '.join(known)}")
    return [name for name in known if name in asked or not asked]


def _pairs(known: Sequence[Contestant], baseline: str, candidates: Sequence[str]) -> list[tuple[Contestant, Contestant]]:
    """Each candidate and what it is held against. Raises InputError for a name that stands for nobody, and one without a pair."""
    newest = dict(known)  # the newest of each model is its last
    reference = None if baseline == PREDECESSOR else _named(known, baseline, "--baseline")
    asked = [_named(known, one, "--candidate") for one in candidates] or [one for one in newest.items() if one != reference]
    before = {later: one for one, later in pairwise(known) if one[0] == later[0]}
    pairs = [(one, reference or before.get(one)) for one in asked]
    found = [(one, other) for one, other in pairs if other is not None and one != other]
    if candidates and found and len(found) < len(pairs):  # passed in silence, it would seem to have been looked at
        left = _listed([one for one, other in pairs if other is None or one == other])
        why = "has no predecessor" if reference is None else "is the baseline itself"
        raise InputError(f"the candidate {left} {why}; name another, or give --baseline to compare it with")
    if not found:
        whose = "has a predecessor" if reference is None else f"differs from the baseline {'/'.join(reference)}"
        raise InputError(f"no candidate {whose}; name what to compare with: --baseline; available: {_listed(known)}")
    return found


def _named(known: Sequence[Contestant], name: str, option: str) -> Contestant:
    named = [one for one in known if name in (one[0], "/".join(one))]
    if not named:
        raise InputError(f"{option} {name!r} does not exist in this publication; available: {_listed(known)}")
    return named[-1]


def _listed(known: Sequence[Contestant]) -> str:
    return ", ".join("/".join(one) for one in known)


def _print(told: Told) -> None:
    console = result_console()
    for sentence in (told.outcome, *told.judge_moved, told.notes):
        console.print(name_of(sentence))
    by_pair = sorted(told.ruled, key=lambda one: (one.candidate, one.reference, one.judge_model))
    for (candidate, reference, judge), some in groupby(by_pair, lambda one: (one.candidate, one.reference, one.judge_model)):
        console.print()
        console.print(name_of(f"{'/'.join(candidate)} against {'/'.join(reference)}, judged by {judge}", "bold"))
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for header in ("rubric, dimension", *_HEADERS[3:]):
            grid.add_column(header, justify="right" if header in _HEADERS[3:6] else "left")
        for ruling in some:
            *numbers, word = _row(ruling)[3:]
            asked = name_of(f"{ruling.rubric_id}, {ruling.dimension}")
            grid.add_row(asked, *map(Text, numbers), Text(one_line(word), style=_STYLES[ruling.outcome]))
        console.print(grid)


_HEADERS = ("ranking", "candidate", "compared with", "change", "would find", "prompts", "ruling")


def _row(ruling: Ruling) -> tuple[str, ...]:
    """The cells of _HEADERS."""
    ranking = f"{ruling.rubric_id}, {ruling.dimension}, judged by {ruling.judge_model}"
    change = "" if ruling.delta is None else signed(ruling.delta)
    if ruling.delta_low is not None and ruling.delta_high is not None:
        change += f" [{signed(ruling.delta_low)}, {signed(ruling.delta_high)}]"
    drop = "" if ruling.smallest_drop is None else signed(-ruling.smallest_drop)
    why = "" if ruling.reason is None else f": {_REASONS.get(ruling.reason, ruling.reason.replace('_', ' '))}"
    prompts = "" if ruling.n_prompts is None else str(ruling.n_prompts)
    return ranking, "/".join(ruling.candidate), "/".join(ruling.reference), change, drop, prompts, _WORDS[ruling.outcome] + why


def _markdown(told: Told) -> str:
    rows = [(*cells[:3], *cells[6:], *cells[3:6]) for cells in map(_row, told.ruled)]
    headers = (*_HEADERS[:3], _HEADERS[6], *_HEADERS[3:6])
    benchmark = told.found.benchmark
    mark = hashlib.sha256(benchmark.encode()).hexdigest()[:8]  # an earlier push's comment on this benchmark is found by it
    moved = "".join(f"{escape_markdown(sentence)}\n\n" for sentence in told.judge_moved)
    told_so = f"**{escape_markdown(told.outcome)}**\n\n{moved}{to_markdown(headers, rows, 4)}\n{escape_markdown(told.notes)}\n"
    return f"<!-- salon gate {mark} -->\n{told_so}"
