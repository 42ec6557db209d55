"""A backfill of a benchmark whose only rubric is one of pairs: nothing is asked of a checkpoint alone, the pairs at the end."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from schemas.tables.published import PREFERENCES
from tasks.publish.reading import current
from tests.flows.flow_support import Said, runs_of
from tests.flows.nights.backfills.test_pairs import _VERDICT, USD
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

N_PAIRS = 2 * N_PROMPTS  # of two checkpoints, in both orders


@pytest.fixture
def file(tmp_path: Path, scoring: Provider) -> Path:
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name)
    scoring.then = Play(body=completion(_VERDICT))
    return write_file(tmp_path, scoring.url, rubrics=("preference",))


def met(home: Path) -> set[tuple[str, str]]:
    won = pl.read_parquet(current(home / "lake").folder / f"{PREFERENCES.name}.parquet")
    return set(won.select("checkpoint_a", "checkpoint_b").iter_rows())


def test_pairs_are_asked_once_and_published(tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    seen = salon("backfill", file, "--all", "--dry-run")
    said = " ".join(seen.out.split())
    assert (seen.code, scoring.n) == (0, 0), seen.err
    assert "2 checkpoints, 0 partitions, 0 already done" in said
    assert "pairs not counted above: requests of preference may come on top" in said
    done = salon("backfill", file, "--all")
    assert (done.code, scoring.n, f"0 stored already, {N_PAIRS} sent" in done.out) == (0, N_PAIRS, True), done.out + done.err
    assert met(tmp_path) == {("step-2", "step-1")}
    again = salon("backfill", file, "--all", "--run-date", "2027-01-01")
    assert (again.code, scoring.n, "nothing to do" in again.out) == (0, N_PAIRS, True), again.out + again.err
    assert runs_of(tmp_path / "lake").select("asked_by", "n_asked").rows() == [("backfill", N_PAIRS)]
    listed = salon("backfill", file, "--list")
    assert "no partitions: every rubric is one of pairs" in " ".join(listed.out.split())
    assert json.loads(salon("backfill", file, "--list", "--json").out)["partitions"] == []


def test_one_more_meets_those_that_stand(tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    """And one whose pictures are others is asked again; one that was neither named nor published is not bought."""
    assert salon("backfill", file, "--all").code == 0
    make_folder(tmp_path, "step-3")
    make_folder(tmp_path, "step-4")
    more = salon("backfill", file, "--checkpoints", "step-3")
    assert (more.code, scoring.n) == (0, 2 * N_PAIRS), more.err
    assert met(tmp_path) == {("step-2", "step-1"), ("step-3", "step-2")}
    for path in (tmp_path / "out" / "m" / "step-3").iterdir():
        path.unlink()
    (tmp_path / "out" / "m" / "step-3").rmdir()
    make_folder(tmp_path, "step-3", seed=1)
    assert (salon("backfill", file, "--checkpoints", "step-3").code, scoring.n) == (0, 3 * N_PAIRS)


def test_one_without_a_usable_picture_is_named(tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    """The others are published; it stands in no table, and is no checkpoint that is done."""
    for path in make_folder(tmp_path, "step-3").glob("*.png"):
        path.write_bytes(b"no picture")
    for n_sent in (N_PAIRS, 0):
        said = salon("backfill", file, "--all")
        told = " ".join((said.out + said.err).split())
        assert (said.code, f"none of its {N_PROMPTS} samples can be used ({N_PROMPTS} not_an_image)" in told) == (2, True), told
        assert (scoring.n, met(tmp_path)) == (N_PAIRS, {("step-2", "step-1")}), n_sent


def test_what_money_left_is_asked_later(tmp_path: Path, file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    short = salon("backfill", file, "--all", "--max-usd", "0.03")
    assert (short.code, 0 < scoring.n < N_PAIRS, scoring.n * USD <= 0.03) == (3, True, True), short.err
    assert f"Remaining: {N_PAIRS - scoring.n} requests about pairs" in " ".join(short.err.split())
    assert (salon("backfill", file, "--all", "--max-usd", "1").code, scoring.n) == (0, N_PAIRS)


def test_one_alone_has_no_opponent(file: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    said = salon("backfill", file, "--checkpoints", "step-2")
    assert (said.code, scoring.n, "one checkpoint alone has no opponent" in " ".join(said.err.split())) == (2, 0, True), said.err
