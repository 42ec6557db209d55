"""`salon table` and `salon open`: what a person sees on 80 columns, what a program is given, what is said when it is wrong."""

import csv
import io
import json
import os
import webbrowser
from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from typer import Typer
from typer.testing import CliRunner

from flows.commands.reading import open_page
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, FAILURES, PREFERENCES, STANDINGS
from schemas.tables.stored import CHECKS, QUARANTINE
from schemas.tables.table import Table
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tests.aggregate.preferences.conftest import said as said_of
from tests.aggregate.preferences.conftest import tables as pair_tables
from tests.flows.flow_support import Said

DAY = date(2026, 11, 3)
ESC = "\x1b"


def table_of(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = table.empty().schema
    return pl.DataFrame([dict.fromkeys(table.columns) | row for row in rows], schema=schema)


def cell(model: str, estimate: float | None, **changes: Any) -> dict[str, Any]:
    is_there = estimate is not None
    return {
        "cell_id": f"{model:0<12.12}", "publication_id": "r" * 64,
        "run_date": DAY, "benchmark": "nightly", "dataset_id": "d" * 64,
        "rubric_id": "small", "rubric_version": "1", "judge_model": "eye", "model": model, "checkpoint": "step-1",
        "dimension": "score",
        "category": "__macro__", "metric": "mean", "estimand": "prompts_like_these", "estimate": estimate, "ci_level": 0.95,
        "ci_low": estimate - 0.51 if is_there else None, "ci_high": estimate + 0.49 if is_there else None, "scale_low": 0.0,
        "scale_high": 10.0, "n_prompts": 60, "n_images": 120, "n_judgements": 120, "n_scored": 120, "n_failed": 0,
        "n_rule_violations": 0, "fail_rate": 0.0, "coverage": 1.0, "coverage_floor": 0.99,
        "bound_low": 0.0, "bound_high": 10.0,
        "status": "ok" if is_there else "blocked", "reason": None if is_there else "refusal",
    } | changes  # fmt: skip


def tables_of(rows: list[dict[str, Any]]) -> dict[Table, pl.DataFrame]:
    """The tables of a publication of these cells; `why` of a cell are its rows in `failures`."""
    failed = [row | {"reason": word, "n_failed": n} for row in rows for word, n in row.get("why", {}).items()]
    cells = [{name: value for name, value in row.items() if name != "why"} for row in rows]
    tables = {BENCHMARK_LONG: table_of(BENCHMARK_LONG, cells), FAILURES: FAILURES.frame(failed)}
    return tables | {CHECKS: table_of(CHECKS, []), QUARANTINE: table_of(QUARANTINE, [])}


def tables_of_pairs() -> dict[Table, pl.DataFrame]:
    """The tables of a publication whose only rubric compared three checkpoints in pairs."""
    words = {("3", "2"): "a a a a = a", ("3", "1"): "a a a a a a", ("2", "1"): "a b a = a a"}
    rows = [row for pair, told in words.items() for row in said_of(*pair, told)]
    return tables_of([]) | {COMPARISONS: COMPARISONS.empty(), STANDINGS: STANDINGS.empty()} | pair_tables(rows)


@pytest.fixture
def published(tmp_path: Path) -> Path:
    """A lake with one publication: two models, one of them blocked, and a third with failures."""
    rows = [
        cell("north", 7.123456789), cell("south", None, n_failed=60, coverage=0.5, why={"refusal": 60}),
        cell("a [red]hostile[/] name", 6.5, cell_id="abcdef012345", n_failed=1, coverage=0.992, why={"truncated": 1}),
    ]  # fmt: skip
    tables = tables_of(rows)
    name = PublicationName("nightly", "f" * 64, DAY)
    done = publish(tmp_path / "lake", Draft(name, tables, {}, {"report.html": b"<p>page</p>"}))
    return done.folder


def test_it_fits_80_columns_without_colour_when_piped(published: Path, salon: Callable[..., Said], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    said = salon("table")
    assert said.code == 0
    assert ESC not in said.out
    assert max(len(line) for line in said.out.splitlines()) <= 80
    assert "7.12 [6.61, 7.61]" in said.out
    assert "– (blocked:" in said.out
    assert "   south / step-1: blocked: 50.0 % of the judgements have a score" in said.out
    assert "a [red]hostile[/]" in said.out
    assert said.out.count(" cell ") == 1
    lines = [line.split() for line in said.out.splitlines() if line.startswith("   – ")]
    assert [line[-1] for line in lines] == ["north0", "abcdef", "south0"], (
        "a publication without standings has means and no ranks"
    )


@pytest.fixture
def ragged(tmp_path: Path) -> None:
    """Two models and a predecessor, of unequal numbers of prompts: the widest table there is."""
    cells = [
        cell(model, 9.0 - n, checkpoint=f"step-{3 - n}", cell_id=f"{n}{model:0<11.11}", n_prompts=60 - n)
        for model in ("painter", "rival") for n in range(3)
    ]  # fmt: skip
    _publish_ranked(tmp_path, cells, _compared("predecessor", -1.0))


def _publish_ranked(folder: Path, cells: list[dict[str, Any]], compared: dict[str, Any]) -> None:
    ranked = {"is_headline": True, "state": "ranked", "n_ranked": 6, "n_shared_prompts": 58, "n_prompts_needed": 5,
              "rank_low": 1, "rank_high": 3}  # fmt: skip
    rows = [{name: (one | ranked | compared).get(name) for name in STANDINGS.columns} for one in cells]
    tables = tables_of(cells) | {STANDINGS: table_of(STANDINGS, rows)}
    publish(folder / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {}))


@pytest.mark.parametrize("columns", [None, "80"])
@pytest.mark.usefixtures("ragged")
def test_no_column_is_cut_off(salon: Callable[..., Said], monkeypatch: Any, columns: str | None) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    if columns is not None:
        monkeypatch.setenv("COLUMNS", columns)
    out = salon("table").out
    assert "prompts cell" in " ".join(out.split())
    assert all(f"{n}{model}"[:6] in out for model in ("painter", "rival") for n in range(3)), out
    assert "cut off by this terminal" not in out
    whole = "-1.00 [-1.50, -0.50] worse" in out
    assert whole is (columns is None), "a file's lines are not broken"


def _compared(other: str, delta: float) -> dict[str, Any]:
    ends = {"": delta, "_low": delta - 0.5, "_high": delta + 0.5}
    return {f"delta_{other}{end}": value for end, value in ends.items()} | {
        f"verdict_{other}": "lower", f"n_prompts_{other}": 59
    }  # fmt: skip


HEADED = {"table": " vs. {}", "markdown": "| vs. {} |", "latex": "& vs. {} &"}
AGAINST: dict[str, tuple[dict[str, Any], set[str]]] = {
    "a baseline alone": (_compared("baseline", -1.0), {"baseline"}),
    "both": (_compared("predecessor", -2.0) | _compared("baseline", -1.0), {"predecessor", "baseline"}),
    "the predecessor is the baseline": (_compared("predecessor", -1.0) | _compared("baseline", -1.0), {"predecessor"}),
}


@pytest.mark.parametrize("form", HEADED)
@pytest.mark.parametrize(("compared", "headed"), AGAINST.values(), ids=AGAINST.keys())
def test_the_difference_to_the_baseline_is_shown_beside_or_in_place_of_the_predecessors(
    tmp_path: Path, salon: Callable[..., Said], compared: dict[str, Any], headed: set[str], form: str
) -> None:
    _publish_ranked(tmp_path, [cell("a", 7.0), cell("b", 6.0)], compared)
    out = salon("table", "--format", form).out
    has_column = {"predecessor"} if form == "markdown" else set()
    for other in ("predecessor", "baseline"):
        assert (HEADED[form].format(other) in out) == (other in headed | has_column), out
    assert "-1.00 [-1.50, -0.50] worse" in out.replace("\\", "")


@pytest.mark.usefixtures("ragged")
def test_a_table_wider_than_the_terminal_says_so(salon: Callable[..., Said], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "60")
    assert "cut off by this terminal: salon table | less -S" in salon("table").out


@pytest.mark.parametrize("wanted", [("--checkpoint", "step-1"), ("--checkpoint", "step-3"), ("--model", "north"), ()])
def test_whichever_rows_are_printed_the_answer_is_of_the_whole_ranking(
    tmp_path: Path, salon: Callable[..., Said], wanted: tuple[str, ...]
) -> None:
    """The last of three alone, or the best alone: neither is "the best" of those that are printed."""
    cells = [cell("north", 9.0 - n, checkpoint=f"step-{3 - n}", cell_id=f"{n:012}") for n in range(3)]
    ranked = {"is_headline": True, "state": "ranked", "n_ranked": 3, "n_shared_prompts": 60, "n_prompts_needed": 5}
    ranks = [one | ranked | {"rank_low": n + 1, "rank_high": n + 1} for n, one in enumerate(cells)]
    standings = table_of(STANDINGS, [{name: row.get(name) for name in STANDINGS.columns} for row in ranks])
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(cells) | {STANDINGS: standings}, {}))
    said = salon("table", *wanted)
    assert (said.code, " step-3 is the best of 3, on 60 shared prompts." in said.out) == (0, True), said


def test_of_pairs_alone_every_format_holds_the_win_rates(tmp_path: Path, salon: Callable[..., Said]) -> None:
    tables = tables_of_pairs()
    folder = publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {})).folder
    rates = tables[PREFERENCES].filter(category="__macro__")
    assert rates.height == 3
    by_pair = dict(rates.select("pair_id", "win_rate").iter_rows())
    as_csv = list(csv.DictReader(io.StringIO(salon("table", "--format", "csv").out)))
    assert {row["pair_id"]: float(row["win_rate"]) for row in as_csv} == by_pair
    as_json = json.loads(salon("table", "--format", "json").out)
    assert {row["pair_id"]: row["win_rate"] for row in as_json} == by_pair
    assert list(as_json[0]) == list(as_csv[0]) == list(PREFERENCES.columns)
    of = {(row["benchmark"], row["run_date"], row["publication_id"]) for row in (*as_csv, *as_json)}
    assert of == {("nightly", DAY.isoformat(), "f" * 64)}
    for page in ("markdown", "latex", "table"):
        told = salon("table", "--format", page).out
        assert all(pair_id[:6] in told for pair_id in by_pair), page
    page, tex = ((folder / f"leaderboard.{end}").read_text() for end in ("md", "tex"))
    assert all(pair_id in page and pair_id in tex for pair_id in by_pair)
    assert "A win rate is" in page
    assert "Means " not in page + tex
    narrowed = salon("table", "--rubric", "pairs", "--dimension", "better", "--format", "csv").out
    assert narrowed == salon("table", "--format", "csv").out
    for arguments, why in ((("--rubric", "x"), "available: pairs"), (("--model", "m"), f"{folder.name}/preferences.csv")):
        refused = salon("table", *arguments)
        assert (refused.code, why in refused.err) == (2, True), refused


def test_pairs_of_an_older_release_have_null_where_it_had_no_column(tmp_path: Path, salon: Callable[..., Said]) -> None:
    name = PublicationName("nightly", "f" * 64, DAY)
    path = publish(tmp_path / "lake", Draft(name, tables_of_pairs(), {})).folder / "preferences.parquet"
    older = pl.read_parquet(path).drop(PREFERENCES.later)
    path.unlink()
    older.write_parquet(path)
    said = salon("table", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(said.out)))
    assert (said.code, len(rows), {row["n_unanswered"] for row in rows}) == (0, 3, {""}), said


@pytest.mark.parametrize("form", ["table", "markdown", "latex"])
def test_a_dimension_without_a_total_is_left_out_of_what_people_read(
    tmp_path: Path, salon: Callable[..., Said], form: str
) -> None:
    rows = [
        cell("north", 7.0),
        cell("north", None, dimension="spelling", cell_id="c" * 12, status="null", reason="not_in_all_categories"),
    ]
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(rows), {}))
    assert "spelling" not in salon("table", "--format", form).out
    assert "spelling" in salon("table", "--format", "csv").out


def test_a_rubric_by_categories_is_one_table_that_fits(tmp_path: Path, salon: Callable[..., Said], monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    names = [f"kind_{index}" for index in range(20)]
    rows = [cell(model, 7.0) for model in ("north", "south")]
    rows += [
        cell(model, None if (model, name) == ("south", "kind_3") else index / 2, category=name, cell_id=f"{model[0]}{index:011}")
        for model in ("north", "south") for index, name in enumerate(names)
    ]  # fmt: skip
    tables = tables_of(rows)
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {}))
    out = salon("table", "--rubric", "small").out
    assert max(len(line) for line in out.splitlines()) <= 80
    shown = out.partition("score by category")[2].splitlines()
    values = [word for line in shown if line.startswith("north") for word in line.split()[3:]]
    assert sorted(map(float, values)) == [index / 2 for index in range(20)]
    assert sum(line.split().count("blocked") for line in shown if line.startswith("south")) == 1
    assert "by category" not in salon("table").out
    assert "by category" not in salon("table", "--rubric", "small", "--category", "kind_3").out


def test_colours_where_they_are_wanted_and_intervals_where_there_is_room(
    published: Path, salon: Callable[..., Said], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    assert "───●───" in salon("table", "--model", "north").out
    (header,) = (line for line in salon("table", "--model", "south").out.splitlines() if line.startswith("rank"))
    assert header.split() == ["rank", "checkpoint", "mean", "[95", "%]", "cell"], "without a number there is no scale"
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert ESC in salon("table").out
    assert ESC not in salon("table", "--format", "csv").out


@pytest.mark.parametrize(
    ("sort", "first"),
    [("mean", "north"), ("model", "a [red]"), ("coverage", "south"), ("failures", "south")],
)
def test_sorting(published: Path, salon: Callable[..., Said], sort: str, first: str) -> None:
    rows = json.loads(salon("table", "--sort", sort, "--format", "json").out)
    assert rows[0]["model"].startswith(first)
    assert len(rows) == 3


def test_formats_hold_every_digit(published: Path, salon: Callable[..., Said]) -> None:
    (row, *_) = csv.DictReader(io.StringIO(salon("table", "--format", "csv").out))
    assert (row["model"], row["estimate"]) == ("north", "7.123456789")
    assert json.loads(salon("table", "--format", "json").out)[0]["estimate"] == 7.123456789
    assert "| – | north | step-1 | 7.12 \\[6.61, 7.61] |" in salon("table", "--format", "markdown").out
    assert "{}\\textendash{} & north & step-1 & 7.12 [6.61, 7.61] &  & 60" in salon("table", "--format", "latex").out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--model", "nobody"), "no cell has model 'nobody'; available: "),
        (("--judge", "nobody"), "no cell has judge_model 'nobody'; available: eye"),
        (("--format", "xml"), "csv"),
        (("--sort", "luck"), "coverage"),
    ],
)
def test_what_is_wrong_is_said_with_what_is_allowed(
    published: Path, salon: Callable[..., Said], arguments: tuple[str, ...], says: str
) -> None:
    said = salon("table", *arguments)
    assert said.code == 2
    assert says in said.err


@pytest.fixture
def opening() -> Callable[..., Any]:
    app = Typer()
    app.command()(open_page)
    return lambda *arguments: CliRunner().invoke(app, [str(argument) for argument in arguments])


@pytest.mark.usefixtures("published")
def test_an_argument_that_is_no_text_is_no_cell(salon: Callable[..., Said]) -> None:
    said = salon("explain", os.fsdecode(b"\xff\xfe"))
    assert (said.code, "there is no cell '\ufffd\ufffd' in publication" in said.err) == (2, True), said


def test_open_prints_the_page_and_opens_it_on_request(published: Path, opening: Callable[..., Any], monkeypatch: Any) -> None:
    lake, opened = published.parents[3], []
    monkeypatch.setattr(webbrowser, "open", lambda address: bool(opened.append(address)) or True)
    assert opening("--lake", lake).stdout == f"{published}/report.html\n"
    assert opened == []
    assert opening("--lake", lake, "--publication", "ffff", "--browser").stdout == f"{published}/report.html\n"
    assert opened == [(published / "report.html").as_uri()]


def test_open_says_what_to_do_where_there_is_no_page(published: Path, opening: Callable[..., Any]) -> None:
    result = opening("--lake", published.parents[3], "--index")
    assert "run the benchmark again" in str(result.exception)
    assert "there is no publication" in str(opening("--lake", published.parents[3], "--benchmark", "weekly").exception)


def put(lake: Path, id_: str, day: date, *, is_blocked: bool) -> Path:
    rows = [cell("north", 7.0), cell("east", 6.0), cell("south", *([None] if is_blocked else [5.0]))]
    if is_blocked:
        rows[-1] |= {"n_failed": 60, "coverage": 0.5, "why": {"refusal": 60}}
    tables = tables_of(rows)
    name = PublicationName("nightly", id_ * 64, day)
    return publish(lake, Draft(name, tables, {}, {"report.html": b"<p>page</p>"})).folder


def test_good_is_the_last_publication_without_a_blocked_cell(tmp_path: Path, salon: Callable[..., Said]) -> None:
    blocked_first = put(tmp_path / "lake", "a", date(2026, 11, 1), is_blocked=True)
    none_yet = salon("table", "--good")
    assert (none_yet.code, none_yet.out) == (2, "")
    assert "no publication is good so far" in none_yet.err
    good = put(tmp_path / "lake", "b", date(2026, 11, 2), is_blocked=False)
    blocked = put(tmp_path / "lake", "c", date(2026, 11, 3), is_blocked=True)
    assert salon("open").out.strip() == str(blocked / "report.html")
    assert salon("open", "--good").out.strip() == str(good / "report.html")
    said = salon("table", "--good").out
    assert "2026-11-02, publication bbbbbbbbbbbbbbbb (the last good one)" in said
    assert "blocked" not in said
    both = salon("open", "--good", "--publication", blocked_first.name[:6])
    assert both.code == 2
    assert "leave one of them out" in both.err
