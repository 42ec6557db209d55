"""`salon anchors bridge` holds both judges to the models of their nights, and one that fails takes the place of none."""

import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from flows.nights.drift import bridges_of
from schemas.tables.nights import DRIFT
from tasks.publish.living_tables import drift_rows, write_living_table
from tests.flows.flow_support import Said, runs_of
from tests.support.night_world import MODEL, N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

OLD, NEW = "eye-1", "eye-2"
USD = 900 * 2e-6 + 12 * 8e-6  # of a reply, as the provider reports it
Bridging = Callable[..., Said]


def _answers_as(provider: Provider, model: str) -> None:
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3", model=model))


@pytest.fixture
def bridging(
    salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., Said]:
    """A night by the old judge, answered as eye-of-march, and its anchors; then bridges on days of March."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    World(tmp_path).make(1)
    noon = datetime(2026, 3, 1, 12, tzinfo=UTC).timestamp()
    os.utime(tmp_path / "made" / MODEL / "step-1", (noon, noon))
    _answers_as(provider, "eye-of-march")
    assert salon("nightly", write_benchmark(tmp_path, provider.url, models=(OLD,)), "--run-date", "2026-03-01").code == 0
    assert salon("anchors", "freeze", "b.toml", "--n", str(N_SAMPLES)).code == 0

    def bridge(day: int, on_change: str = "alert", n_anchors: int | None = None, *, back: bool = False) -> Said:
        judge = f'on_model_change = "{on_change}"'
        file = write_benchmark(tmp_path, provider.url, "both.toml", models=(OLD, NEW), judge=judge)
        if n_anchors:
            assert salon("anchors", "freeze", file, "--n", str(n_anchors), "--anew").code == 0
        old, new = (NEW, OLD) if back else (OLD, NEW)
        return salon("anchors", "bridge", file, "--old", old, "--new", new, "--run-date", f"2026-03-{day:02d}")

    return bridge


def test_a_bridge_is_not_made_of_another_model_than_that_of_the_nights(
    bridging: Bridging, tmp_path: Path, provider: Provider
) -> None:
    _answers_as(provider, "eye-of-april")
    n = provider.n
    told = [bridging(2, "stop")]
    n_bought, n = provider.n - n, provider.n
    assert n_bought < 2 * N_SAMPLES
    told += [bridging(2, "stop") for _ in range(2)]
    assert provider.n == n, "each start would buy some more"
    for one in told:
        said = " ".join(one.err.split())
        assert one.code == 3, said
        assert "answered as eye-of-march on the nights before, and" in said
        assert "eye-of-april" in said
        assert 'on_model_change = "alert"' in said
    for one in told[1:]:
        assert "answered as eye-of-april when this bridge was last started" in " ".join(one.err.split())
    assert bridges_of(tmp_path / "lake", "nights") is None
    taken = bridging(2)
    assert taken.code == 0, taken.err
    said = " ".join((taken.out + taken.err).split())
    assert f"judge {OLD} answered as eye-of-march on the nights before, and as eye-of-april for this bridge" in said
    assert f"judge {NEW} answered" not in said, "it has had no night"
    stored = bridging(2, "stop")  # nothing is left to ask
    assert stored.code == 3, stored.out
    assert "for this bridge, so no bridge was made" in " ".join(stored.err.split())
    _answers_as(provider, "eye-of-march")
    again = bridging(3, "stop")
    assert (again.code, "answered as" in again.out + again.err) == (0, False), again.err


def test_replies_of_two_models_make_no_bridge(bridging: Bridging, tmp_path: Path, provider: Provider) -> None:
    n_before = provider.n
    provider.script.extend([provider.then] * 30)
    _answers_as(provider, "eye-of-april")
    assert bridging(2).code == 3
    provider.script.clear()
    n, said = provider.n, bridging(2)
    assert (said.code, provider.n) == (3, n), said.out
    assert "answered as eye-of-april and as eye-of-march for this bridge, so no bridge was made" in " ".join(said.err.split())
    assert bridges_of(tmp_path / "lake", "nights") is None
    bought = runs_of(tmp_path / "lake").filter(asked_by="anchors bridge").select("outcome", "n_asked", "cost_usd", "n_samples")
    assert bought.rows() == [("stopped", n - n_before, pytest.approx((n - n_before) * USD), N_SAMPLES)]


def test_what_a_bridge_bought_is_in_the_table_of_runs(bridging: Bridging, tmp_path: Path) -> None:
    said = [bridging(2), bridging(2)]
    assert [one.code for one in said] == [0, 0], said
    rows = runs_of(tmp_path / "lake").filter(asked_by="anchors bridge")
    bought = ("judged", None, 2 * N_SAMPLES, 0, 2 * N_SAMPLES, pytest.approx(2 * N_SAMPLES * USD))
    assert rows.select("outcome", "publication_id", "n_requests", "n_cached", "n_asked", "cost_usd").rows() == [bought]
    assert not list((tmp_path / "lake" / "asking").rglob("*.json"))


def test_a_bridge_that_fails_leaves_the_one_before_in_use(bridging: Bridging, tmp_path: Path) -> None:
    good = bridging(2)
    assert "1 of 1 series of eye-1 continues under eye-2 from the next night on; remove eye-1 from both.toml" in good.out
    before = bridges_of(tmp_path / "lake", "nights")
    assert before is not None
    for day in (2, 3):
        failed = bridging(day, n_anchors=8)
        said = " ".join(failed.out.split())
        assert failed.code == 1, said
        assert "0 of 1 series of eye-1 continue under eye-2" in said
        assert "1 could not be bridged anew and stay joined by the bridge made before, which stays in use" in said
        after = bridges_of(tmp_path / "lake", "nights")
        assert after is not None
        assert after.equals(before)


def test_a_bridge_that_one_back_has_undone_keeps_nothing_joined(bridging: Bridging) -> None:
    assert "eye-1 continues under eye-2" in bridging(2).out
    assert "eye-2 continues under eye-1" in bridging(3, back=True).out
    said = " ".join(bridging(4, n_anchors=8).out.split())
    assert "0 of 1 series of eye-1 continue under eye-2" in said
    assert "keep eye-1 in both.toml" in said
    assert "stay joined" not in said
    assert "remove eye-1" not in said


def test_where_a_bridge_fails_the_old_judge_is_to_stay(bridging: Bridging, tmp_path: Path) -> None:
    failed = bridging(2, n_anchors=8)
    said = " ".join(failed.out.split())
    assert failed.code == 1
    assert "keep eye-1 in both.toml: what no bridge joins ends on the night that eye-1 is taken out" in said
    assert "remove eye-1" not in said
    assert bridges_of(tmp_path / "lake", "nights") is None


def test_the_night_and_the_doctor_say_that_series_end_with_their_judge(
    salon: Callable[..., Said], tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    _answers_as(provider, "eye")
    world = World(tmp_path)

    def night(day: int, judge: str) -> str:
        world.make(day)
        noon = datetime(2026, 3, day, 12, tzinfo=UTC).timestamp()
        os.utime(tmp_path / "made" / MODEL / f"step-{day}", (noon, noon))
        said = salon("nightly", write_benchmark(tmp_path, provider.url, models=(judge,)), "--run-date", f"2026-03-{day:02d}")
        assert said.code == 0, said.err
        return " ".join((said.out + said.err).split())

    def doctor() -> str:
        return " ".join(salon("doctor", write_benchmark(tmp_path, provider.url, models=(NEW,))).out.split())

    night(1, OLD)
    assert salon("anchors", "freeze", "b.toml", "--n", str(N_SAMPLES)).code == 0
    assert "series of judge" not in night(2, OLD)
    lake = tmp_path / "lake"
    drift = drift_rows(lake, "nights")
    assert drift is not None
    alarming = drift.drop("changed_under").with_columns(is_alarm=True, changed_on=date(2026, 3, 1))
    write_living_table(lake, DRIFT, "nights", pl.DataFrame(alarming))
    ends = f"1 series of judge {OLD} ends with the night of 2026-03-02"
    after = f"{NEW} begins anew: no limits, and so no alarms, before 30 nights"
    bridge = f"salon anchors bridge FILE --old {OLD} --new {NEW}"
    assert f"{ends}, with 1 open alarm (since 2026-03-01). {after}" in doctor()
    write_living_table(lake, DRIFT, "nights", pl.DataFrame(drift.drop("changed_under")))
    first, second = night(3, NEW), night(4, NEW)
    assert f"{ends}. {after}" in first
    assert bridge in first
    assert ends not in second, "it is told once"
    assert ends in (told := doctor())
    assert bridge in told
    both = write_benchmark(tmp_path, provider.url, "both.toml", models=(OLD, NEW))
    assert salon("anchors", "bridge", both, "--old", OLD, "--new", NEW, "--run-date", "2026-03-05").code == 0
    assert ends not in doctor(), "before the next night has joined them"
