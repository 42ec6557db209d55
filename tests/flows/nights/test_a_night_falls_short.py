"""The morning after a night that is published and fell short: --check, the doctor and the table say so and what to do."""

from collections import deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.night_opening import open_night
from flows.nightly import run_night
from flows.nights.index import rewrite_index
from flows.nights.record import Night, note_night, notes
from flows.run.context import RunContext
from schemas.errors import ProviderError
from tasks.publish.reading import publications
from tests.flows.flow_support import Said, findings
from tests.support.night_world import MODEL, World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

pytestmark = pytest.mark.filterwarnings("error")
GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
REFUSAL = Play(body=completion("I'm sorry, but I can't assist with that request."))
DOWN, NO_KEY = Play(503, b"upstream connect error"), Play(401, b'{"error": {"message": "no such key"}}')
NOW = datetime.now(UTC)
DUE = (NOW if NOW.hour >= 2 else NOW - timedelta(days=1)).date()  # the world's nights come at two
BEFORE = DUE - timedelta(days=1)


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    world = World(tmp_path)
    world.make(1)
    return world


def _nights(world: World, provider: Provider, *, is_after_a_good_one: bool, plays: list[Play], then: Play) -> tuple[str, str]:
    """Run the night that is due, which the provider plays so; the ids of it and of a good one before, if there is to be one."""
    file = write_benchmark(world.folder, provider.url, limits="attempts_per_request = 1\nrequests_per_minute = 60000")
    if is_after_a_good_one:
        provider.then = GOOD
        run_night(RunContext.of(open_night(file, BEFORE)))
        world.make(2)
    provider.script, provider.then = deque(plays), then
    run_night(RunContext.of(open_night(file, DUE)))
    noted = notes(world.folder / "lake", "nights")
    return noted[DUE.isoformat()].publication_id[:12], noted[min(noted)].publication_id[:12]


def _asked(salon: Callable[..., Said], file: Path) -> tuple[Said, Said, Said]:
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        return salon("nightly", file, "--check"), salon("doctor", file), salon("table", "--lake", file.parent / "lake")


@pytest.mark.parametrize(
    ("is_after_a_good_one", "plays", "then", "says"),
    [
        (True, [GOOD] * 17 + [DOWN] * 7, GOOD,
         "({0}) and did not become current: "),
        (False, [], REFUSAL, "({0}) and did not become current: none of its cells has an estimate; nothing is current yet"),
        (True, [], REFUSAL, "({0}) and current, and 1 of 2 cells of its headline is blocked (refusal)"),
    ],
    ids=["not current", "nothing is current", "current and blocked"],
)  # fmt: skip
def test_a_night_that_fell_short_is_no_good_news(
    world: World,
    provider: Provider,
    salon: Callable[..., Said],
    *,
    is_after_a_good_one: bool,
    plays: list[Play],
    then: Play,
    says: str,
) -> None:
    night, good = _nights(world, provider, is_after_a_good_one=is_after_a_good_one, plays=plays, then=then)
    check, doctor, table = _asked(salon, world.folder / "b.toml")
    said = f"the night of {DUE} is published {says.format(night)}"
    assert (check.code, doctor.code, table.code) == (1, 3, 0)
    assert said in check.err
    assert f"salon table --publication {night} shows what each cell lacks" in check.err
    assert (f"salon nightly FILE --run-date {DUE} asks again" in check.err) is (DOWN in plays)
    assert findings(doctor.out)["last night"].startswith(f"wrong: {said}")
    is_current = "and current" in says
    assert (said in " ".join(table.out.split())) is not is_current
    index = world.folder / "lake/publish/v1/index.html"
    assert index.read_text().count("did not become current") == (not is_current)
    (world.folder / "lake/nights/nights/2026-01-01.json").write_text('{"x":')
    rewrite_index(world.folder / "lake")
    assert "whether the newest night is the current one is unknown: " in index.read_text()
    if DOWN in plays:
        assert "cells lack replies, and none of the current one's " in check.err
        assert f"{good} of {BEFORE} stays current" in check.err
        by_name = salon("table", "--lake", world.folder / "lake", "--publication", good)
        assert "did not become" not in by_name.out, "it was asked for by its name"


def test_a_night_whose_place_a_later_run_took_is_good_news(world: World, provider: Provider, salon: Callable[..., Said]) -> None:
    _nights(world, provider, is_after_a_good_one=True, plays=[], then=GOOD)
    file = world.folder / "b.toml"
    file.write_text(file.read_text() + "[gate]\nmin_coverage = 0.7\n")
    assert salon("run", file, "--run-date", str(DUE)).code == 0
    check, doctor, table = _asked(salon, file)
    assert len(publications(world.folder / "lake")) == 3
    assert (check.code, check.err) == (0, "")
    assert findings(doctor.out)["last night"] == f"ok: the night of {DUE} is published"
    assert "did not become current" not in table.out


def test_a_later_run_of_another_checkpoint_makes_no_good_news_of_a_blocked_night(
    world: World, provider: Provider, salon: Callable[..., Said]
) -> None:
    night, _ = _nights(world, provider, is_after_a_good_one=True, plays=[], then=REFUSAL)
    file = world.folder / "b.toml"
    one = world.folder / "one.toml"
    of_one = 'step-1"\ncheckpoint = "step-1"'
    one.write_text(file.read_text().replace('{checkpoint}"', of_one))
    assert salon("run", one, "--run-date", str(DUE)).code == 0
    check, doctor, _ = _asked(salon, file)
    said = f"the night of {DUE} is published ({night}), and 1 of 2 cells of its headline is blocked (refusal); "
    assert (check.code, doctor.code) == (1, 3)
    assert "is current and does not show these. Next: salon table --publication" in check.err
    assert said in check.err
    assert findings(doctor.out)["last night"].startswith(f"wrong: {said}")


def test_a_night_whose_folder_is_gone_is_not_called_published(
    world: World, provider: Provider, salon: Callable[..., Said]
) -> None:
    file, lake = write_benchmark(world.folder, provider.url), world.folder / "lake"
    note_night(lake, "nights", Night({MODEL: "step-1"}), DUE, "f" * 64, is_whole=True)
    gone = f"{lake / 'publish/v1/nights' / ('f' * 64)}, the night of {DUE}, is gone"
    what_to_do = f"restore it from a backup, or delete {lake / 'nights/nights'}/{DUE}.json and run that night again"
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        check, night, dry = (salon("nightly", file, *more) for more in (["--check"], [], ["--dry-run"]))
        doctor = salon("doctor", file)
    assert (check.code, night.code, dry.code, len(provider.seen)) == (1, 3, 3, 0)
    assert f"{gone}. Next: {what_to_do}" in check.err
    assert all(f"{gone}; {what_to_do}" in " ".join(said.err.split()) for said in (night, dry)), night.err
    assert gone in findings(doctor.out)["last night"]


def test_a_lost_pointer_is_told_and_made_again_by_the_next_start(
    world: World, provider: Provider, salon: Callable[..., Said]
) -> None:
    night, _ = _nights(world, provider, is_after_a_good_one=True, plays=[], then=GOOD)
    file, home = world.folder / "b.toml", world.folder / "lake/publish/v1/nights"
    whole, n_asked = {name: (home / name).read_bytes() for name in ("latest.json", "latest_good.json")}, len(provider.seen)
    (home / "latest.json").write_bytes(b"")
    doctor = _asked(salon, file)[1]
    assert doctor.out.count("is not a pointer that Salon wrote") == 2, "of the night and of the publications once each"
    assert "move its folder out" not in doctor.out
    for name in whole:
        (home / name).unlink()
    check, doctor, _ = _asked(salon, file)
    assert (check.code, doctor.code) == (1, 3)
    assert f"the night of {DUE} is published ({night}), and nothing is current: " in check.err
    assert "nothing is current: " in findings(doctor.out)["last night"]
    assert "nothing is current: " in findings(doctor.out)["publications"]
    again = salon("nightly", file)
    assert (again.code, len(provider.seen)) == (0, n_asked), again.err
    assert f"latest.json was gone and is made again: {night}, of {DUE}, is current" in " ".join(again.err.split())
    assert {name: (home / name).read_bytes() for name in whole} == whole
    assert salon("nightly", file, "--check").code == 0


@pytest.mark.parametrize(
    ("rubric", "reply"),
    [
        ("alignment", GOOD),
        ("preference", Play(body=completion('{"overall": "first", "alignment": "first", "quality": "tie"}'))),
    ],
)
def test_a_night_that_its_budget_ended_is_told_how_to_go_on(
    world: World, provider: Provider, salon: Callable[..., Said], rubric: str, reply: Play
) -> None:
    world.make(2)
    provider.then = reply
    file = write_benchmark(world.folder, provider.url, rubrics=(rubric,), limits="max_usd = 0.000001", nightly="n_earlier = 1")
    run_night(RunContext.of(open_night(file, DUE)))
    check, doctor, _ = _asked(salon, file)
    advice = (
        "max_usd = 1e-06 does not suffice for all starts of this night: raise it under [limits], then salon nightly FILE "
        f"--run-date {DUE} asks again for missing replies; "
    )
    assert (check.code, f"Next: {advice}" in check.err) == (1, True), check.err
    assert f"-> {advice}" in doctor.out
    file.write_text(file.read_text().replace("0.000001", "10"))
    assert (salon("nightly", file).code, salon("nightly", file, "--check").code) == (0, 0)


def test_a_first_night_that_failed_is_no_night_that_never_was(
    world: World, provider: Provider, salon: Callable[..., Said]
) -> None:
    provider.then = NO_KEY
    with pytest.raises(ProviderError):
        _nights(world, provider, is_after_a_good_one=False, plays=[GOOD], then=NO_KEY)
    check, doctor, _ = _asked(salon, world.folder / "b.toml")
    assert (check.code, doctor.code) == (1, 3)
    said = f"none is yet: 1 run sent requests and ended without a publication, the last for the night of {DUE}"
    assert findings(doctor.out)["last night"].endswith(said)


@pytest.mark.parametrize(
    ("n_lost", "says"),
    [
        (0, None),
        (1, "anchors     1 of 24 without a score under alignment, judged by salon-demo-judge\n"),
        (20, "judged by salon-demo-judge: no mean of score, so whether the judge drifted is unknown this night\n"),
    ],
)
def test_a_night_tells_of_the_anchors_it_lost(
    world: World, provider: Provider, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch, n_lost: int, says: str | None
) -> None:
    """No score of its table is missing: no checkpoint is new."""
    monkeypatch.setenv("COLUMNS", "300")
    provider.then = GOOD
    file = write_benchmark(world.folder, provider.url, limits="requests_per_minute = 60000\n[gate]\nmin_coverage = 0.5")
    run_night(RunContext.of(open_night(file, BEFORE)))
    assert salon("anchors", "freeze", file, "--n", "24").code == 0
    provider.script = deque([REFUSAL] * n_lost)
    night = salon("nightly", file)
    assert (night.code, "No score is missing." in night.out) == (0, True), night.out
    assert ("anchors     " in night.out, says is None or says in night.out) == (says is not None, True), night.out
    assert says is None or says in salon("nightly", file).out, "as when it is found published"
