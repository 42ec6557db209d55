"""What a run shows in Prefect: its artifacts as the server gives them back, the trend's images, and where the report is found."""

import asyncio
import base64
import re
import sqlite3
from collections.abc import Callable
from contextlib import closing
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from prefect import flow
from prefect.client.orchestration import get_client
from prefect.client.schemas.filters import FlowRunFilter, FlowRunFilterId
from prefect.runtime import flow_run

from flows.observability import alerting
from flows.observability.artifacts import ProgressArtifact, page_address, show_in_prefect
from flows.observability.events import alerts_after_run, emit_after_run
from flows.observability.trend_images import trend_markdown
from schemas.tables.nights import DRIFT
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.table import Table
from tasks.judge.outcome import Outcome
from tasks.publish.folders import Published
from tasks.publish.living_tables import write_living_table
from tasks.publish.standings.placed_cells import placed
from tests.support.servers.prefect_server import RunningPrefect
from tests.support.small_lake import filled_row

pytestmark = pytest.mark.usefixtures("prefect_api")

DAY = date(2026, 11, 3)


def table_of(table: Table, rows: list[dict[str, Any]]) -> pl.DataFrame:
    schema = table.empty().schema
    return pl.DataFrame([dict.fromkeys(table.columns) | row for row in rows], schema=schema)


def cells(*checkpoints: str, model: str = "north") -> pl.DataFrame:
    common = {
        "rubric_id": "small", "judge_model": "eye", "model": model, "dimension": "score", "category": "__macro__",
        "metric": "mean", "estimand": "prompts_like_these", "status": "ok", "coverage": 1.0,
        "n_prompts": 9, "n_images": 9, "n_judgements": 9, "n_failed": 0,
    }  # fmt: skip
    rows = [
        common | {"checkpoint": name, "estimate": 5.0 + n, "ci_low": 4.0 + n, "ci_high": 6.0 + n, "cell_id": f"{n:012}"}
        for n, name in enumerate(checkpoints)
    ]
    return placed({BENCHMARK_LONG: table_of(BENCHMARK_LONG, rows)})


def drift(*estimates: float | None) -> pl.DataFrame:
    common = {"rubric_id": "small", "judge_model": "eye", "model": "north", "dimension": "score"}
    rows = [
        common
        | {"run_date": date(2026, 11, n), "estimate": e, "ewma": e, "limit_low": 4.0, "limit_high": 6.0, "is_alarm": e == 9.0}
        for n, e in enumerate(estimates, start=1)
    ]
    return DRIFT.frame([filled_row(DRIFT, **row) for row in rows])


def images(page: str) -> list[str]:
    return [base64.b64decode(found).decode() for found in re.findall(r"\(data:image/svg\+xml;base64,([A-Za-z0-9+/=]+)\)", page)]


@pytest.mark.parametrize(
    ("board", "series", "n_images"),
    [
        (cells("step-2", "step-10"), None, 1),
        (cells("step-2"), None, 0),
        (pl.concat([cells("a"), cells("b", model="south")]), None, 0),
        (cells("a"), drift(5.0, 5.1, 9.0), 1),
        (cells("a"), drift(5.0, None), 0),
        (cells("a", "b"), drift(5.0, 5.1), 2),
        (cells(), None, 0),
    ],
    ids=["two checkpoints", "one", "one of each of two", "three nights", "one night", "both", "nothing"],
)
def test_the_trend_has_an_image_for_each_series_there_is(board: pl.DataFrame, series: pl.DataFrame | None, n_images: int) -> None:
    found = images(trend_markdown(board, series))
    assert len(found) == n_images
    for svg in found:
        assert ET.fromstring(svg).get("width")


@pytest.mark.parametrize(
    ("places", "expected"),
    [([None] * 4, ["base", "step-2", "step-10", "final"]), ([3, 1, 2, 4], ["final", "step-10", "step-2", "base"])],
    ids=["by their names", "as declared"],
)
def test_checkpoints_stand_oldest_first(places: list[int | None], expected: list[str]) -> None:
    board = cells("step-2", "final", "step-10", "base").with_columns(place=pl.Series(places, dtype=pl.Int64))
    (svg,) = images(trend_markdown(board, None))
    assert sorted(expected, key=lambda name: svg.index(f">{name}<")) == expected


def test_a_hostile_name_stays_text() -> None:
    page = trend_markdown(cells("</text><script>alert(1)</script>", "](javascript:x) <img>", "\0\x1b[31m"), None)
    assert "<img>" not in page
    assert "javascript" not in page
    assert not [element for element in ET.fromstring(images(page)[0]).iter() if element.tag.endswith("script")]


def summary_of(folder: Path, board: pl.DataFrame, *, is_spent: bool = False, **changes: Any) -> Any:
    published = Published(folder, "f" * 64, **({"is_new": True, "is_current": True} | changes))
    return SimpleNamespace(
        published=published, outcome="published", n_cells=board.height, n_blocked=0, n_requests=9, cells=board,
        dataset=SimpleNamespace(n_samples=9, n_ok=9, n_by_status={}), asked=Outcome(n_asked=9, is_spent=is_spent),
    )  # fmt: skip


def run_of(lake_root: Path) -> Any:
    nightly, limits = SimpleNamespace(model_fields_set=frozenset()), SimpleNamespace(max_usd=5.0)
    benchmark = SimpleNamespace(name="Nightly_1", nightly=nightly, limits=limits)
    return SimpleNamespace(benchmark=benchmark, lake=SimpleNamespace(root=lake_root), run_date=DAY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A published folder with a report."""
    made = tmp_path / "publish/v1/Nightly_1" / ("f" * 64)
    made.mkdir(parents=True)
    (made / "report.html").write_text("<p>page</p>")
    return made


def _artifacts_of(shown: Callable[[], None]) -> dict[str, Any]:
    @flow(name="shows")
    def shows() -> str:
        shown()
        return str(flow_run.get_id())

    run_id = shows()

    async def ask() -> dict[str, Any]:
        async with get_client() as client:
            mine = FlowRunFilter(id=FlowRunFilterId(any_=[run_id]))
            return {str(found.key): found.data for found in await client.read_artifacts(flow_run_filter=mine)}

    return asyncio.run(ask())


def test_a_run_shows_leaderboard_summary_report_and_trend(tmp_path: Path, folder: Path) -> None:
    board = cells("step-1", "step-2 ![x](https://e.example/x.png)")
    found = _artifacts_of(lambda: show_in_prefect(run_of(tmp_path), summary_of(folder, board), board))
    assert r'"step-2 !\\[x](https\\://e.example/x.png)"' in found["salon-leaderboard-nightly-1-f31480"]
    assert '"step-1"' in found["salon-leaderboard-nightly-1-f31480"]
    assert set(found) == {f"salon-{word}-nightly-1-f31480" for word in ("leaderboard", "summary", "report", "trend")}, (
        "nightly.1 and nightly-1 have keys of their own"
    )
    assert '"score": "6.00 [5.00, 7.00]"' in found["salon-leaderboard-nightly-1-f31480"]
    assert (folder / "report.html").as_uri() in found["salon-report-nightly-1-f31480"]
    assert "# Nightly\\_1, 2026-11-03" in found["salon-summary-nightly-1-f31480"]
    assert len(images(found["salon-trend-nightly-1-f31480"])) == 1


def test_a_run_that_published_nothing_new_draws_nothing(tmp_path: Path, folder: Path) -> None:
    board = cells("step-1", "step-2")
    found = _artifacts_of(lambda: show_in_prefect(run_of(tmp_path), summary_of(folder, board, is_new=False), board))
    assert "salon-trend-nightly-1-f31480" not in found


def test_the_report_is_found_as_a_file_or_where_it_is_served(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert page_address(folder) == (folder / "report.html").as_uri()
    monkeypatch.setenv("SALON_PUBLISH_URL", "https://pages.example.org/salon/")
    assert page_address(folder) == f"https://pages.example.org/salon/Nightly_1/{'f' * 64}/report.html"
    (folder / "report.html").unlink()
    assert page_address(folder) is None


def test_a_server_that_fails_is_spoken_of_and_ends_nothing(
    tmp_path: Path, folder: Path, prefect_server: RunningPrefect, caplog: pytest.LogCaptureFixture
) -> None:
    """Its database lacks the artifacts' table, so that it answers with 500: what was bought is published all the same."""
    board = cells("step-1")

    @flow(name="is refused")
    def shows() -> str:
        ProgressArtifact("board")("judge", 0.5)
        show_in_prefect(run_of(tmp_path), summary_of(folder, board), board)
        return "went on"

    with closing(sqlite3.connect(prefect_server.home / "prefect.db", timeout=60)) as database:
        database.execute("ALTER TABLE artifact RENAME TO artifact_gone")
        try:
            assert shows() == "went on"
        finally:
            database.execute("ALTER TABLE artifact_gone RENAME TO artifact")
    assert caplog.text.count("the Prefect server does not answer correctly") == 2


@pytest.mark.parametrize(
    ("is_new", "is_current", "is_spent", "names"),
    [
        (True, True, False, [alerting.SCORE_DRIFT, alerting.BLOCKED, alerting.PUBLISHED]),
        (True, False, False, [alerting.BLOCKED, alerting.PUBLISHED]),
        (False, True, False, [alerting.PUBLISHED]),
        (False, True, True, [alerting.PUBLISHED, alerting.BUDGET_REACHED]),
    ],
    ids=["new", "backfill", "again", "out of money"],
)
def test_events_are_sent_once_and_of_the_current_night(
    tmp_path: Path, folder: Path, is_new: bool, is_current: bool, is_spent: bool, names: list[str]
) -> None:
    write_living_table(tmp_path, DRIFT, folder.parent.name, drift(5.0, 5.0, 9.0).with_columns(verdict=pl.lit("model")))
    board = cells("step-1").with_columns(status=pl.lit("blocked"))
    summary = summary_of(folder, board, is_new=is_new, is_current=is_current, is_spent=is_spent)
    sending = flow(name="sends events")(lambda: emit_after_run(run_of(tmp_path), summary, board))
    assert sending() == names


def test_an_alarm_says_who_measured_its_night_and_under_whom_it_began(tmp_path: Path, folder: Path) -> None:
    """A bridge gave the series the name of the judge that took over."""
    rows = drift(5.0, 5.0, 9.0).with_columns(
        verdict=pl.lit("model"), judge_model=pl.lit("new eye"), measured_by=pl.Series(["eye", "eye", "new eye"]),
        changed_on=pl.lit(date(2026, 11, 2)),
    )  # fmt: skip
    write_living_table(tmp_path, DRIFT, folder.parent.name, rows)
    summary = summary_of(folder, cells("step-1"), is_new=True, is_current=True)
    alerts = alerts_after_run(run_of(tmp_path), summary.published, cells("step-1"))
    (row,) = next(one.payload["rows"] for one in alerts if one.name == alerting.SCORE_DRIFT)
    assert [row[name] for name in ("judge_model", "measured_by", "changed_under")] == ["new eye", "new eye", "eye"]
