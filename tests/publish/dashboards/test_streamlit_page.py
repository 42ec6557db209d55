"""infra/dashboards/streamlit_page.py, run with a `streamlit` that keeps what it is told to show."""

import ast
import runpy
import sys
from collections.abc import Callable, Sequence
from datetime import date
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import duckdb
import pandas as pd
import polars as pl
import pytest

from schemas.tables.nights import DRIFT
from schemas.tables.stored import RUNS
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.withdrawn import Withdrawal, note_withdrawn
from tests.publish.dashboards.mixed_lake import publish_mixed
from tests.support.small_lake import SmallLake, digest, filled_row, put_cells, table_of

pytestmark = pytest.mark.slow

PAGE = Path(__file__).parents[3] / "infra/dashboards/streamlit_page.py"


class StoppedPageError(Exception):
    """What st.stop() raises."""


class Page(ModuleType):
    """Streamlit at our border: each call of a page, in order, and the choices a reader made in the side bar."""

    def __init__(self, choices: dict[str, str]) -> None:
        super().__init__("streamlit")
        self.shown: list[Any] = []
        self.choices, self.offered = choices, dict[str, list[str]]()
        self.sidebar = SimpleNamespace(selectbox=self._select)
        for name in ("title", "caption", "subheader", "write", "warning", "dataframe", "altair_chart", "error"):
            setattr(self, name, self._shows(name))

    def _shows(self, name: str) -> Callable[..., None]:
        return lambda *values, **_: self.shown.extend((name, value) for value in values)

    def _select(self, label: str, options: Sequence[str], index: int = 0) -> str:
        self.offered[label] = list(options)
        return self.choices.get(label, self.offered[label][index])

    def set_page_config(self, **_: object) -> None:
        """Nothing that a reader reads."""

    def stop(self) -> None:
        raise StoppedPageError

    def said(self) -> str:
        return "\n".join(str(value) for name, value in self.shown if name in ("write", "caption", "warning", "subheader"))


@pytest.fixture
def file(tmp_path: Path, small_lake: SmallLake) -> Path:
    return publish_mixed(tmp_path / "lake", small_lake)


def looked_at(file: Path, monkeypatch: pytest.MonkeyPatch, **choices: str) -> Page:
    page = Page(choices)
    monkeypatch.setitem(sys.modules, "streamlit", page)
    monkeypatch.setattr(sys, "argv", [str(PAGE), str(file.parents[3]), "demo"])
    try:
        runpy.run_path(str(PAGE), run_name="__main__")
    except StoppedPageError:
        page.shown.append(("stop", None))
    return page


def add_nights(file: Path, *nights: dict[str, object]) -> None:
    named = {"benchmark": "demo", "rubric_id": "small", "judge_model": "eye", "measured_by": "eye", "dimension": "overall_score"}
    rows = table_of(DRIFT, [filled_row(DRIFT, **(named | night)) for night in nights]).to_arrow()
    with duckdb.connect(str(file)) as database:
        database.register("nights", rows)
        database.execute("INSERT INTO drift BY NAME FROM nights")


def test_where_no_publication_is_current_it_says_so_and_what_there_is(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "latest.json").unlink()
    write_duckdb(file.parents[3], "demo")
    page = looked_at(file, monkeypatch)
    assert page.shown[-1] == ("stop", None)
    assert "No publication is current" in page.said()
    (listed,) = (value for name, value in page.shown if name == "dataframe")
    assert len(listed) == 1


def withdraw(file: Path, publication_id: str) -> None:
    note_withdrawn(file.parents[3], Withdrawal(publication_id, "demo", "2026-11-03", "2026-11-04T00:00", "here", "a clock", 9))
    write_duckdb(file.parents[3], "demo")


def test_no_text_stands_alone_in_the_page_where_streamlit_would_show_it() -> None:
    """Streamlit shows each expression of a script that is a statement; of texts all but the first."""
    _, *rest = ast.parse(PAGE.read_text()).body
    assert [line.lineno for line in rest if isinstance(line, ast.Expr) and isinstance(line.value, ast.Constant)] == []


def test_publications_that_were_taken_back_are_marked(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (file.parent / "latest.json").unlink()
    withdraw(file, digest("publication"))
    page = looked_at(file, monkeypatch)
    assert "No publication is current: all were taken back." in page.said()
    (listed,) = (value for name, value in page.shown if name == "dataframe")
    assert listed["is_withdrawn"].to_list() == [True]


def test_a_newer_publication_that_is_held_back_is_named(
    file: Path, monkeypatch: pytest.MonkeyPatch, small_cells: pl.DataFrame
) -> None:
    assert "did not become current" not in looked_at(file, monkeypatch).said()
    pointer = (file.parent / "latest.json").read_bytes()
    put_cells(file.parents[3], small_cells, benchmark="demo", publication_id=digest("next"), run_date=date(2026, 11, 4))
    (file.parent / "latest.json").write_bytes(pointer)
    write_duckdb(file.parents[3], "demo")
    page = looked_at(file, monkeypatch)
    said = f"A newer publication, {digest('next')[:16]} of 2026-11-04, did not become current: `salon table` says why."
    assert [value for name, value in page.shown if name == "warning"] == [said]
    withdraw(file, digest("next"))
    assert "did not become current" not in looked_at(file, monkeypatch).said()


@pytest.mark.parametrize(
    ("versions", "names"),
    [("1", {"lab/north / 1|a"}), ("12", {"lab/north / 1|a, version 1", "lab/north / 1|a, version 2"})],
    ids=["one", "two"],
)
def test_each_version_of_a_rubric_has_a_line_of_its_own(
    file: Path, monkeypatch: pytest.MonkeyPatch, versions: str, names: set[str]
) -> None:
    with duckdb.connect(str(file)) as database:
        run = table_of(RUNS, [filled_row(RUNS, benchmark="demo", publication_id=digest("publication"))])
        database.register("run", run.to_arrow())
        database.execute("INSERT INTO runs BY NAME FROM run")
        for version in versions:
            changed = "'these_prompts' AS estimand, ? AS rubric_version"
            total = "category = '__macro__' AND metric = 'mean' AND estimand = 'prompts_like_these'"
            insert = f"INSERT INTO benchmark_long SELECT * REPLACE ({changed}) FROM benchmark_long WHERE {total}"
            database.execute(insert, [version])
    page = looked_at(file, monkeypatch, Rubric="small")
    (_, trend) = (value for name, value in page.shown if name == "altair_chart")
    assert set(trend.data["name"]) == names


def test_where_there_is_no_night_it_says_so_and_draws_none(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with duckdb.connect(str(file)) as database:
        assert database.execute("SELECT count(*) FROM trend").fetchone() == (0,)
    page = looked_at(file, monkeypatch, Rubric="small")
    assert len([name for name, _ in page.shown if name == "altair_chart"]) == 1, "the leaderboard's"
    assert "No night has a total of this yet." in page.said()


UNKNOWN = {"verdict": "unknown", "reason": "baseline_incomplete", "is_alarm": False}
QUIET = {"verdict": "quiet", "is_alarm": False}
ALARM = {"verdict": "unknown", "reason": "no_anchor", "is_alarm": True}


@pytest.mark.parametrize(
    ("nights", "says", "says_not"),
    [
        ([], ["Nothing was watched", "no drift before a second night"], "No alarm"),
        ([UNKNOWN, UNKNOWN], ["Nothing was watched", "Not watched: 2 nights of series, baseline_incomplete"], "No alarm"),
        ([UNKNOWN, QUIET], ["No alarm in 1 night of series", "Not watched: 1 night of series, baseline"], "Nothing was"),
        ([QUIET], ["No alarm in 1 night of series"], "Not watched"),
        ([QUIET, ALARM], [], "No alarm"),
    ],
    ids=["one night", "the baseline is incomplete", "one is watched", "all are watched", "an alarm without a verdict"],
)
def test_no_alarm_is_said_of_what_was_watched(
    file: Path, monkeypatch: pytest.MonkeyPatch, nights: list[dict[str, object]], says: list[str], says_not: str
) -> None:
    if nights:
        add_nights(file, *nights)
    page = looked_at(file, monkeypatch, Rubric="small")
    for text in says:
        assert text in page.said()
    assert says_not not in page.said()
    alarms = [value for name, value in page.shown if name == "dataframe" and "is_alarm" in value.columns]
    assert [len(one) for one in alarms] == ([1] if ALARM in nights else [])


def test_the_lowest_scores_are_of_checkpoints_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = looked_at(file, monkeypatch, Rubric="small")
    (lowest,) = (value for name, value in page.shown if name == "dataframe" and "note" in value.columns)
    assert set(lowest["model"]) == {"lab/north"}, "neither anchors nor planted faults"


def test_an_alarm_of_a_night_that_a_bridge_carried_over_says_who_measured_it(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    add_nights(file, ALARM, ALARM | {"measured_by": "old-eye"})
    page = looked_at(file, monkeypatch, Rubric="small")
    (alarms,) = (value for name, value in page.shown if name == "dataframe" and "is_alarm" in value.columns)
    assert {*zip(alarms["measured_by"], alarms["is_shifted"], strict=True)} == {("eye", False), ("old-eye", True)}
    assert "Nights measured by old-eye (is_shifted): a bridge shifted them to the scale of eye." in page.said()


def test_a_rubric_of_pairs_can_be_chosen_and_shows_ratings_and_win_rates(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert looked_at(file, monkeypatch).offered["Rubric"] == ["preference", "small"]
    page = looked_at(file, monkeypatch, Rubric="preference")
    assert [value for name, value in page.shown if name == "subheader"] == ["Ratings", "Win rates"]
    ratings, rates = (value for name, value in page.shown if name == "dataframe")
    assert isinstance(ratings, pd.DataFrame)
    assert ratings["checkpoint"].to_list() == ["1|a", "2"]
    assert rates["win_rate"].to_list() == [0.75]
    assert page.offered["Judge"] == ["eye", "__pooled__"]
    assert "choose one" in looked_at(file, monkeypatch, Rubric="preference", Judge="__pooled__").said()
