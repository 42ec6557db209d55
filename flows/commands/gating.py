"""`salon gate`: whether a checkpoint got worse, for a pull request's checks. It is ruled in tasks/aggregate, told in printed/."""

import sys
from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import polars as pl
import typer

from flows.commands.options import DEFAULT_LAKE, BenchmarkName, LakePlace
from flows.commands.printed.judge_moves import moves_of
from flows.commands.printed.ruling import Told, as_json, as_markdown, print_ruling
from flows.nights.judge_between import Compared, error_of
from flows.observability.terminal import result_console
from schemas.benchmark.file import Statistics
from schemas.errors import InputError
from schemas.lineage import Lineage
from schemas.metrics import BOARD, TOTALS
from schemas.statuses.cells import CellReason, ComparisonReason, HealthMeasure, Total
from schemas.tables.nights import EXAM
from schemas.tables.published import (
    BENCHMARK_LONG,
    COMPARISONS,
    HEALTH,
    POSITION_BIAS,
    PREFERENCE_RATINGS,
    PREFERENCES,
    STANDINGS,
)
from schemas.tables.table import Table
from tasks.aggregate.gate import ALPHA, predecessors, rulings, with_cells
from tasks.aggregate.preferences.prompts import PAIR
from tasks.aggregate.ruling import NOT_SHOWN, Contestant, Outcome, Ruling
from tasks.lake.reading import open_lake, with_later_columns
from tasks.publish.caveats import caveats_of
from tasks.publish.identity import LINEAGE
from tasks.publish.reading import Publication, checked_file, chosen
from tasks.publish.standings.categories import blocked_in_totals
from tasks.publish.standings.exam import marks
from tasks.publish.standings.pair_boards import pair_boards
from tasks.publish.standings.placed_cells import placed

PREDECESSOR = "predecessor"
_NO_SHARED = ComparisonReason.DATASET_DIFFERS.value


class GateFormat(StrEnum):
    """How `salon gate` writes."""

    TABLE = "table"
    MARKDOWN = "markdown"
    JSON = "json"


Baseline = Annotated[
    str,
    typer.Option(help="What to compare with: MODEL/CHECKPOINT, MODEL (its newest), or predecessor: the previous checkpoint."),
]
Candidates = Annotated[
    list[str] | None,
    typer.Option(help="MODEL/CHECKPOINT or MODEL; may be given several times; default: the newest of each model."),
]
Alpha = Annotated[
    float,
    typer.Option(min=1e-9, max=0.5, help="Two-sided, for all comparisons together: the false alarm rate of a quiet night."),
]
Judges = Annotated[
    list[str] | None,
    typer.Option(help="Look only at this judge's rankings; may be given several times; default: every judge."),
]
AllowUnknown = Annotated[bool, typer.Option("--allow-unknown", help="Pass where two checkpoints cannot be compared.")]


def gate(
    publication: Annotated[str | None, typer.Argument(help="A publication's id, or its beginning; default: the current.")] = None,
    baseline: Baseline = PREDECESSOR,
    candidate: Candidates = None,
    alpha: Alpha = ALPHA,
    judge: Judges = None,
    allow_unknown: AllowUnknown = False,
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    form: Annotated[GateFormat, typer.Option("--format", help="markdown for a pull request's comment.")] = GateFormat.TABLE,
) -> int:
    """Say whether a checkpoint got worse than another, for a pull request's checks. Exit code 1: worse, or undecided."""
    lake_root = open_lake(lake).root
    found = chosen(lake_root, benchmark, publication)
    standings, comparisons = (_read(found, table) for table in (STANDINGS, COMPARISONS))
    won = _win_rates(found)
    judges = _judges([*standings["judge_model"], *won["judge_model"]], judge or [])
    blind = [row for row in _blind(found) if row["judge_model"] in judges]
    lineage = Lineage.read(found.provenance().get(LINEAGE) or {})
    known = sorted({*_named_in(standings), *_named_in(won, "_a"), *_named_in(won, "_b")}, key=lineage.key)
    pairs = _pairs(known, lineage.before(known) | predecessors(comparisons), baseline, candidate or [])
    caveats = caveats_of(lake_root, found, is_named=publication is not None)
    if caveats.withdrawn is not None:
        pairs = []  # nothing is ruled by what was taken back
    looked_at, met = (table.filter(pl.col("judge_model").is_in(judges)) for table in (standings, won))
    ruled = rulings(comparisons, looked_at, pairs, alpha, won=met, **_tested_by(found))
    cells = _read(found, BENCHMARK_LONG)
    ruled = with_cells(ruled, cells)
    moves = moves_of(found.folder, _compared(ruled, comparisons))
    n_left = len(set(comparisons["category"]) - {*TOTALS, *(one.category for one in ruled)})
    apart = _apart(met, pairs)
    unruled = _unruled(ruled, pairs, comparisons, apart)
    told = Told(
        found, ruled, alpha, _n_again(found), blind, judges if judge else (), moves, n_left, caveats, apart, unruled,
        _blocked(placed({BENCHMARK_LONG: cells, STANDINGS: looked_at}), judges, pairs),
    )  # fmt: skip
    if form is GateFormat.JSON:
        sys.stdout.write(as_json(told, judges))
    elif form is GateFormat.MARKDOWN:
        sys.stdout.write(as_markdown(told))
    else:
        print_ruling(result_console(), told)
    is_allowed = allow_unknown and caveats.withdrawn is None  # what was taken back is not merely open
    return 1 if told.verdict is Outcome.REGRESSION or (told.verdict is Outcome.UNKNOWN and not is_allowed) else 0


def _read(found: Publication, table: Table) -> pl.DataFrame:
    name = f"{table.name}.parquet"
    if name not in found.files:
        raise InputError(f"publication {found.publication_id[:16]} has no {name}; publish it again (salon run) with this release")
    return with_later_columns(pl.scan_parquet(checked_file(found, name)), table).collect()


def _win_rates(found: Publication) -> pl.DataFrame:
    """The rows of `preferences` that are headlines: over all categories, in a rubric's main dimension. None without pairs."""
    if f"{PREFERENCES.name}.parquet" not in found.files:
        return PREFERENCES.empty()
    tables = {table: _read(found, table) for table in (PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS)}
    mine = [(one.rubric_id, one.judge_model, one.dimension) for one in pair_boards(tables) if one.is_headline]
    headlines = pl.DataFrame(mine, schema=dict.fromkeys(BOARD, pl.String), orient="row")
    return tables[PREFERENCES].filter(category=Total.MACRO.value).join(headlines, on=BOARD, how="semi", maintain_order="left")


def _named_in(table: pl.DataFrame, end: str = "") -> list[Contestant]:
    return table.select(f"model{end}", f"checkpoint{end}").unique().rows()


def _apart(won: pl.DataFrame, pairs: Sequence[tuple[Contestant, Contestant]]) -> list[dict[str, Any]]:
    """By rubric and judge of pairs, the two of whom they have none: rubric_id, judge_model, candidate, reference."""
    met: dict[tuple[str, str], set[frozenset[Contestant]]] = {}
    for rubric_id, judge_model, *names in won.select("rubric_id", "judge_model", *PAIR).iter_rows():
        met.setdefault((rubric_id, judge_model), set()).add(frozenset({(names[0], names[1]), (names[2], names[3])}))
    return [
        {"rubric_id": rubric_id, "judge_model": judge_model, "candidate": candidate, "reference": reference}
        for (rubric_id, judge_model), known in sorted(met.items())
        for candidate, reference in pairs if frozenset({candidate, reference}) not in known
    ]  # fmt: skip


def _blocked(cells: pl.DataFrame, judges: Sequence[str], pairs: Sequence[tuple[Contestant, Contestant]]) -> list[str]:
    """In sentences, the categories of these contestants that are blocked on their own within a mean; `cells` are placed."""
    named = ["/".join(one) for pair in pairs for one in pair]
    is_of_one = pl.concat_str("model", "checkpoint", separator="/").is_in(named)
    by_ranking = blocked_in_totals(cells.filter(is_of_one, pl.col("judge_model").is_in(judges)))
    return [f"{rubric_id}, {judge}: {' '.join(told)}" for (rubric_id, judge), told in by_ranking.items()]


def _unruled(
    ruled: Sequence[Ruling],
    pairs: Sequence[tuple[Contestant, Contestant]],
    comparisons: pl.DataFrame,
    apart: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """The two on which nothing at all is ruled, and why: candidate, reference, reason."""
    strangers = {frozenset({row[:2], row[2:]}) for row in comparisons.filter(reason=_NO_SHARED).select(PAIR).iter_rows()}
    known = dict.fromkeys(strangers, _NO_SHARED)
    known |= {frozenset({row["candidate"], row["reference"]}): NOT_SHOWN for row in apart}
    done = {(one.candidate, one.reference) for one in ruled}
    return [
        {"candidate": one, "reference": other, "reason": known.get(frozenset({one, other}), CellReason.NOT_APPLICABLE.value)}
        for one, other in pairs if (one, other) not in done
    ]  # fmt: skip


def _tested_by(found: Publication) -> dict[str, Any]:
    """Whether its verdicts ask what failures could turn (`statistics.failures`), and its looks."""
    said = (found.provenance().get("settings") or {}).get("statistics") or {}
    is_worst_case = said.get("failures", Statistics().failures) == "worst_case"
    return {"is_worst_case": is_worst_case, "looks": (said.get("stopping") or {}).get("looks") or []}


def _n_again(found: Publication) -> int:
    """Judgements of samples that are earlier ones again."""
    if f"{HEALTH.name}.parquet" not in found.files:
        return 0
    return int(_read(found, HEALTH).filter(measure=HealthMeasure.N_AGAIN.value)["value"].sum())


def _blind(found: Publication) -> list[dict[str, Any]]:
    """What judges are blind to, as their exam found: rubric_id, judge_model, dimension, blind_to."""
    return marks({EXAM: _read(found, EXAM)}).to_dicts() if f"{EXAM.name}.parquet" in found.files else []


def _compared(ruled: Sequence[Ruling], comparisons: pl.DataFrame) -> list[Compared]:
    """What was ruled on that has a difference, with its standard error, whichever way it was published."""
    names = (*BOARD, "category", *PAIR)
    errors = {tuple(row[name] for name in names): error_of(row) for row in comparisons.iter_rows(named=True)}
    found = []
    for one in ruled:
        cell = (one.rubric_id, one.judge_model, one.dimension)
        published = ((*cell, one.category, *pair) for pair in (one.candidate + one.reference, one.reference + one.candidate))
        se, df = next((errors[key] for key in published if key in errors), (None, None))
        if one.delta is not None and not one.is_win_rate:
            found.append(Compared(*cell, one.candidate, one.reference, one.delta, se, df))
    return found


def _judges(ranking: Sequence[str], asked: Sequence[str]) -> list[str]:
    """Whose rankings are looked at, of those that are `ranking`. Raises InputError for a judge that has none."""
    known = sorted(set(ranking))
    for name in asked:
        if name not in known:
            raise InputError(f"--judge {name!r} is not a judge of this publication; available: {', '.join(known)}")
    return [name for name in known if name in asked or not asked]


def _pairs(
    known: Sequence[Contestant], before: Mapping[Contestant, Contestant], baseline: str, candidates: Sequence[str]
) -> list[tuple[Contestant, Contestant]]:
    """Each candidate and what it is held against. Raises InputError for a name that stands for nobody, and one without a pair."""
    newest = dict(known)  # the newest of each model is its last
    reference = None if baseline == PREDECESSOR else _named(known, baseline, "--baseline")
    asked = [_named(known, one, "--candidate") for one in candidates] or [one for one in newest.items() if one != reference]
    pairs = [(one, reference or before.get(one)) for one in dict.fromkeys(asked)]  # one may be named in two ways
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
