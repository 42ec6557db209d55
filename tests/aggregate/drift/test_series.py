"""From published nights to series: which rows a night gives, the anchors' cells, and drift over a whole lake of publications."""

import shutil
import signal
import subprocess
import sys
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import polars as pl
import pytest

from flows.nights.drift import nightly_publications, series_of
from flows.nights.record import Night, note_night
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import CHECKS, JUDGEMENTS, QUARANTINE, SCORES
from tasks.aggregate.drift.anchors import ANCHORS, anchor_cells
from tasks.aggregate.drift.drift import drift
from tasks.aggregate.drift.series import night_series
from tasks.aggregate.tables import Settings, cells
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.folders import PublicationName
from tasks.publish.machine_tables import record_run
from tasks.publish.publication import Draft, publish

pytestmark = pytest.mark.slow

FIRST = date(2026, 1, 1)
N_NIGHTS, SHIFTED = 13, 10
REPOSITORY = Path(__file__).resolve().parents[3]
KILLED = """
import os, signal, sys
from pathlib import Path
from flows.nights.drift import nightly_publications, series_of

def hook(frame, what, function):
    if what == event and function.__qualname__ == point:
        os.kill(os.getpid(), signal.SIGKILL)

root, point, event = sys.argv[1:]
sys.setprofile(lambda frame, what, function: hook(frame, what, function) if what.startswith("c_") else None)
series_of(Path(root), nightly_publications(Path(root), "nightly"), {})
"""


def drift_of_lake(root, rubrics, until=None):
    """The drift of the lake's nights, up to a date."""
    nights = [one for one in nightly_publications(root, "nightly") if until is None or one.run_date <= until.isoformat()]
    return drift(series_of(root, nights, rubrics), n_baseline=8)


def rows_of(night: int, *, shift: float = 0.0, wobble: float = 0.0):
    """Six prompts of a new checkpoint, and four anchors asked anew."""
    made = {"model": "north", "checkpoint": f"c{night:02d}"}
    own = [made | {"prompt": f"p{n}", "sample": f"s{n}", "scores": {"q": 5 + n / 4 + shift + wobble}} for n in range(6)]
    frozen = {"model": "frozen", "checkpoint": "old", "occasion": (FIRST + timedelta(night)).isoformat()}
    anchors = [
        frozen | {"prompt": f"a{n}", "sample": f"anchor {n}", "scores": {"q": 3 + n + shift - wobble / 2}} for n in range(4)
    ]
    return own + anchors


@pytest.fixture
def anchored(make_rubric, make_frames):
    """Night -> (cells, anchors' cells), as a run would publish them."""

    def run(rows, night):
        asked = make_rubric({None: ("q",)})
        judgements, scores = make_frames(rows, asked)
        day = FIRST + timedelta(night)
        named = {"benchmark": "nightly", "dataset_id": "d" * 64, "publication_id": "e" * 64, "run_date": day}
        whole = cells(judgements, scores, {"plain": asked}, Settings(**named, min_coverage=0))
        frozen = anchor_cells(judgements, scores, {"plain": asked}, Settings("nightly", "", "", day, 0.9))
        return whole, frozen

    return run


def test_a_night_and_its_anchors_are_one_row(anchored):
    whole, frozen = anchored(rows_of(3, shift=0.5), 3)
    row = night_series([whole], [frozen]).row(0, named=True)
    assert (row["run_date"], row["model"], row["checkpoint"]) == (FIRST + timedelta(3), "north", "c03")
    assert row["estimate"] == pytest.approx(5 + 0.625 + 0.5, abs=1e-12)
    assert row["anchor_estimate"] == pytest.approx(4.5 + 0.5, abs=1e-12)
    assert (row["n_judgements"], row["bridge_se"], row["measured_by"], row["reason"]) == (6, 0.0, "eye", None)
    assert len(row["anchor_set"]) == 64


def test_anchors_are_those_of_the_very_night(anchored):
    rows = rows_of(3) + [row | {"occasion": "2025-12-31", "scores": {"q": 0}} for row in rows_of(3)[6:]]
    _, frozen = anchored(rows[:10], 3)
    assert frozen.filter(pl.col("category") == "__macro__")["estimate"].to_list() == [4.5]
    assert set(frozen["model"]) == {ANCHORS}
    _, other_night = anchored(rows_of(3), 4)
    assert other_night.height == 0


def test_the_anchor_set_is_its_samples(anchored):
    sets = [
        night_series([whole], [frozen])["anchor_set"][0]
        for whole, frozen in (anchored(rows_of(3), 3), anchored(rows_of(3, shift=1), 3), anchored(rows_of(3)[:-1], 3))
    ]
    assert sets[0] == sets[1] != sets[2]


@pytest.mark.parametrize(
    ("last", "n_failed", "mean"), [(5.0, 0, 2.5), ("refusal", 1, 2.25)], ids=["all are scored", "the best one is refused"]
)
def test_a_mean_of_anchors_says_how_many_it_lacks(anchored, last, n_failed, mean):
    """It moves with which are missing, and that is no change of the judge: the row tells the two apart."""
    own, asked = rows_of(3)[:6], rows_of(3)[6]
    frozen = [asked | {"prompt": f"a{n}", "sample": f"anchor {n}", "scores": {"q": n / 2 if n < 10 else last}} for n in range(11)]
    row = drift(night_series(*([one] for one in anchored(own + frozen, 3))), n_baseline=8).row(0, named=True)
    assert (row["n_anchors_failed"], row["anchor_estimate"]) == (n_failed, pytest.approx(mean))


def test_without_anchors_none_of_them_failed_and_none_was_scored(anchored):
    row = night_series([anchored(rows_of(3)[:6], 3)[0]]).row(0, named=True)
    assert (row["anchor_set"], row["n_anchors_failed"]) == (None, None)


def test_anchors_under_the_floor_have_no_mean_and_are_counted(anchored):
    rows = rows_of(3)
    whole, frozen = anchored(rows, 3)
    anchor_set = night_series([whole], [frozen])["anchor_set"][0]
    rows[-1] |= {"scores": {"q": "refusal"}}  # three of four, and the floor is 90 %
    whole, frozen = anchored(rows, 3)
    row = night_series([whole], [frozen]).row(0, named=True)
    assert (row["anchor_estimate"], row["anchor_set"], row["n_anchors_failed"]) == (None, anchor_set, 1)


def test_several_checkpoints_of_a_model_are_no_observation(anchored):
    rows = rows_of(3) + [row | {"checkpoint": "c99"} for row in rows_of(3)[:6]]
    row = night_series([anchored(rows, 3)[0]]).row(0, named=True)
    assert (row["estimate"], row["checkpoint"], row["reason"]) == (None, None, "several_checkpoints")


def test_the_later_of_two_frames_of_a_night_counts(anchored):
    first, second = anchored(rows_of(3), 3)[0], anchored(rows_of(3, shift=1.0), 3)[0]
    series = night_series([first, anchored(rows_of(4), 4)[0], second])
    assert series["estimate"].to_list() == pytest.approx([6.625, 5.625], abs=1e-12)


def test_a_night_without_estimate_keeps_its_reason(anchored):
    rows = [row | {"scores": {"q": "refusal"}} for row in rows_of(3)[:6]]
    row = night_series([anchored(rows, 3)[0]]).row(0, named=True)
    assert (row["estimate"], row["reason"]) == (None, "refusal")


def test_publications_of_an_older_schema_are_read(anchored):
    whole, frozen = anchored(rows_of(3), 3)
    added = whole.with_columns(added_since=pl.lit(1))
    assert night_series([added, anchored(rows_of(4), 4)[0]], [frozen]).height == 2


@pytest.fixture(scope="module")
def published(tmp_path_factory, make_rubric, make_frames):
    """Thirteen published nights; from the tenth on the judge is harder. One night was published twice."""
    root, asked = tmp_path_factory.mktemp("nights"), make_rubric({None: ("q",)})
    for night in range(N_NIGHTS):
        wobble = (0.02, -0.01, 0.03, -0.03, 0.01, -0.02)[night % 6]
        publish_night(root, make_frames, asked, night, rows_of(night, shift=-0.5 if night >= SHIFTED else 0.0, wobble=wobble))
    publish_night(root, make_frames, asked, 0, rows_of(0, shift=0.02), attempt=1)
    return root, {"plain": asked}


@pytest.fixture
def lake(published, tmp_path):
    """A copy of them, to be changed."""
    root, rubrics = published
    shutil.copytree(root, tmp_path, dirs_exist_ok=True)
    return tmp_path, rubrics


def publish_night(root, make_frames, asked, night, rows, attempt=0):
    judgements, scores = make_frames(rows, asked)
    day, key = FIRST + timedelta(night), f"{attempt}{night:063d}"
    for table, frame in ((JUDGEMENTS, judgements), (SCORES, scores)):
        staging = stage(Lake(root), table)
        staging.write_part(0, frame)
        staging.commit(key)
    whole = cells(judgements, scores, {"plain": asked}, Settings("nightly", key, key, day, 0.9))
    provenance = {
        "identities": {"plan_id": key, "reading_id": key}, "min_coverage": 0.9, "rubrics": {"plain": {"digest": asked.digest}},
    }  # fmt: skip
    empty = {table: table.empty() for table in (CHECKS, QUARANTINE)}
    publish(root, Draft(PublicationName("nightly", key, day), {BENCHMARK_LONG: whole} | empty, provenance))
    # The night's second publication has the greater id, and its run was the earlier one.
    at = datetime(2026, 1, 1, 3, tzinfo=UTC) + timedelta(days=night, hours=-attempt)
    record_run(Lake(root), {
        "started_at": at, "finished_at": at, "benchmark": "nightly", "run_date": day, "publication_id": key,
        "outcome": "published", "dataset_id": key, "n_samples": 6, "n_samples_ok": 6, "n_requests": 10, "n_cached": 0,
        "n_asked": 10, "cost_usd": None, "code_version": "c" * 64,
    })  # fmt: skip


def test_drift_of_a_lake(lake):
    root, rubrics = lake
    found = drift_of_lake(root, rubrics)
    assert found["run_date"].to_list() == [FIRST + timedelta(n) for n in range(N_NIGHTS)]
    assert found["verdict"].to_list() == ["unknown"] * 8 + ["quiet"] * 4 + ["judge"]
    assert found["changed_on"][-1] == FIRST + timedelta(SHIFTED)
    assert found["shift"][-1] == pytest.approx(-0.5, abs=0.03)
    assert found["estimate"][0] == pytest.approx(5.625 + 0.02, abs=1e-12)  # the night's latest run
    until = drift_of_lake(root, rubrics, until=FIRST + timedelta(9))
    assert until.equals(found.head(10))


def test_the_latest_run_of_a_night_says_which_publication_counts(lake):
    root, _ = lake
    chosen = nightly_publications(root, "nightly")
    assert [publication.publication_id[0] for publication in chosen] == ["0"] * N_NIGHTS
    assert nightly_publications(root, "another") == []


def test_anchors_judged_by_another_rubric_digest_are_left_out(lake):
    root, _ = lake
    found = drift_of_lake(root, {})
    assert found["anchor_estimate"].null_count() == N_NIGHTS
    assert (found["verdict"][-1], found["reason"][-1]) == ("unknown", "no_anchor")


def _kept(root):
    return root / "series" / "nightly.parquet"


def _forget_judgements(root):
    for folder in ("judgements", "scores", "complete"):
        shutil.rmtree(root / folder)


def test_a_night_is_derived_once(lake):
    """What a night said is kept: its partitions are not opened again, and a later night is derived alone."""
    root, rubrics = lake
    found = drift_of_lake(root, rubrics)
    _forget_judgements(root)
    assert drift_of_lake(root, rubrics).equals(found)
    assert drift_of_lake(root, rubrics, until=FIRST + timedelta(9)).equals(found.head(10))
    assert pl.read_parquet(_kept(root)).height == N_NIGHTS
    _kept(root).unlink()
    bare = drift_of_lake(root, rubrics)
    assert bare["estimate"].equals(found["estimate"])
    assert bare["anchor_estimate"].null_count() == N_NIGHTS
    assert not _kept(root).exists()  # a night without its judgements is derived again: they may be put back


def test_a_night_that_is_added_is_derived_and_the_others_are_not(lake, make_frames):
    root, rubrics = lake
    found = drift_of_lake(root, rubrics)
    _forget_judgements(root)
    publish_night(root, make_frames, rubrics["plain"], N_NIGHTS, rows_of(N_NIGHTS, shift=-0.5))
    longer = drift_of_lake(root, rubrics)
    assert longer.head(N_NIGHTS).equals(found)
    assert longer["anchor_estimate"].null_count() == 0
    assert pl.read_parquet(_kept(root)).height == N_NIGHTS + 1


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda path: path.unlink(), id="gone"),
        pytest.param(lambda path: path.write_bytes(b""), id="empty"),
        pytest.param(lambda path: path.write_bytes(path.read_bytes()[:-100]), id="cut"),
        pytest.param(lambda path: path.write_bytes(b"PAR1 no table PAR1"), id="no Parquet"),
        pytest.param(lambda path: pl.DataFrame({"night": ["x"]}).write_parquet(path), id="of another Salon"),
        pytest.param(
            lambda path: pl.read_parquet(path).with_columns(night=pl.lit("0" * 64)).write_parquet(path), id="by other code"
        ),
    ],
)
def test_kept_nights_that_cannot_be_used_are_derived_again(lake, spoil):
    root, rubrics = lake
    found = drift_of_lake(root, rubrics)
    before = pl.read_parquet(_kept(root))
    spoil(_kept(root))
    assert drift_of_lake(root, rubrics).equals(found)
    assert pl.read_parquet(_kept(root)).equals(before)


def test_kept_nights_are_of_their_rubrics_and_their_note(lake):
    """A note that names other checkpoints, or a rubric of another digest, makes other cells of the same publication."""
    root, rubrics = lake
    found = drift_of_lake(root, rubrics)
    assert drift_of_lake(root, {})["anchor_estimate"].null_count() == N_NIGHTS
    assert drift_of_lake(root, rubrics).equals(found)
    for publication in nightly_publications(root, "nightly"):
        day = date.fromisoformat(publication.run_date)
        note_night(root, "nightly", Night({"m": "none"}), day, publication.publication_id, is_whole=True)
    assert drift_of_lake(root, rubrics).is_empty()


@pytest.mark.parametrize(
    ("point", "event"), [("fsync", "c_call"), ("replace", "c_call"), ("replace", "c_return")], ids=lambda value: value
)
def test_a_kill_while_nights_are_kept_leaves_the_old_file_or_the_new(lake, make_frames, point, event):
    root, rubrics = lake
    found = drift_of_lake(root, {})
    publish_night(root, make_frames, rubrics["plain"], N_NIGHTS, rows_of(N_NIGHTS))
    old = _kept(root).read_bytes()
    killed = subprocess.run([sys.executable, "-c", KILLED, str(root), point, event], check=False, cwd=REPOSITORY)
    assert killed.returncode == -signal.SIGKILL
    assert (_kept(root).read_bytes() == old) is (event == "c_call")
    again = drift_of_lake(root, {})
    assert again.head(N_NIGHTS).equals(found)
    assert again.height == N_NIGHTS + 1
    assert pl.read_parquet(_kept(root)).height == N_NIGHTS + 1
