"""A night that asked and published nothing: its partitions, the page of them, the next night and the doctor know of it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
from prefect.settings import PREFECT_API_URL, temporary_settings

from flows.nights.failed import noted_where_it_fails, why_failed
from schemas.benchmark.file import load_benchmark
from schemas.errors import StoppedError
from tasks.lake.identity import lake_id
from tests.flows.flow_support import Said, findings
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

GOOD = Play(body=completion("Reasoning: plain.\nScore: 3"))
NO_CREDIT = Play(401, b'{"error": {"message": "no such key"}}')


@pytest.fixture
def file(tmp_path: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = GOOD
    make_folder(tmp_path, "s100")
    return write_file(tmp_path, provider.url)


@pytest.mark.parametrize("command", ["nightly", "run"])
def test_its_partitions_have_failed(salon: Callable[..., Said], file: Path, provider: Provider, command: str) -> None:
    assert salon("nightly", file).code == 0
    salon("withdraw", file, "--because", "it is asked again", *_newest(file))
    make_folder(file.parent, "s200")
    provider.then = NO_CREDIT
    assert salon(command, file).code == 3
    rows = [line.split() for line in salon("backfill", file, "--list").out.splitlines() if line.startswith("m/")]
    assert [(row[0], *row[5:9]) for row in rows] == [
        ("m/s100", "done", f"{N_PROMPTS}", "0", "nightly"),
        ("m/s200", "failed", f"{N_PROMPTS}", f"{N_PROMPTS}", command),
    ]
    assert "s200" in (file.parent / "lake/publish/v1/folders/partitions.html").read_text()
    provider.then = GOOD
    make_folder(file.parent, "s300")
    told = " ".join(salon("nightly", file).err.split())
    assert f"{N_PROMPTS} of its {N_PROMPTS} replies under alignment by judge-2026-01-01 are missing" in told


KEY = "sk-of-nobody-4711"


@pytest.mark.parametrize(
    ("play", "cause"),
    [
        (
            Play(401, json.dumps({"error": {"message": f"Incorrect API key provided: {KEY}"}}).encode()),
            "Incorrect API key provided",
        ),
        (Play(404, b'{"error": {"message": "The model `judge` does not exist"}}'), "does not exist"),
    ],
    ids=["its key was taken back", "its model is gone"],
)
def test_the_cause_is_told_without_its_log(
    salon: Callable[..., Said], file: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch, play: Play, cause: str
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider.then = play
    assert salon("nightly", file).code == 3
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        check, doctor = salon("nightly", file, "--check"), salon("doctor", file)
    assert (check.code, doctor.code) == (1, 3)
    for said in (check.err, findings(doctor.out)["last night"]):
        assert re.search(rf"a try at the night of [-0-9]+ ended at [-0-9]+ [0-9:]+ UTC: .*{cause}", " ".join(said.split())), said
    monkeypatch.delenv("OPENAI_API_KEY")  # who looks later does not know the key
    (note,) = (file.parent / "lake" / "failed" / "folders").iterdir()
    kept = note.read_text()
    assert KEY not in kept + check.err + doctor.out
    assert len(json.loads(kept)["cause"]) <= 600
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider.then = GOOD
    assert salon("nightly", file).code == 0
    assert "a try at" not in salon("nightly", file, "--check").err
    assert not note.exists()


def test_a_night_that_did_not_open_is_told_and_another_date_tells_nothing_of_it(
    salon: Callable[..., Said], file: Path, provider: Provider, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider.then = NO_CREDIT
    assert salon("nightly", file).code == 3
    monkeypatch.delenv("OPENAI_API_KEY")
    written = file.read_text()
    file.write_text(written.replace(provider.url, "https://judge.example/v1"))  # a local judge needs no key
    assert salon("nightly", file).code == 2
    file.write_text(written)
    said = " ".join(salon("nightly", file, "--check").err.split())
    assert re.search(r"a try at the night of .* UTC: .*OPENAI_API_KEY", said), said
    assert "no such key" not in said
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    provider.then = GOOD
    due = load_benchmark(file).nightly.newest_due(datetime.now(UTC)).date()
    earlier = str(due - timedelta(days=1))
    salon("nightly", file, "--run-date", earlier)
    assert "OPENAI_API_KEY" in salon("nightly", file, "--check").err
    assert "OPENAI_API_KEY" not in salon("nightly", file, "--check", "--run-date", earlier).err


@pytest.mark.parametrize("ended", [StoppedError("told to stop"), KeyboardInterrupt()], ids=["stopped", "interrupted"])
def test_a_try_that_was_ended_leaves_no_words_nor_those_of_the_try_before(tmp_path: Path, ended: BaseException) -> None:
    benchmark, root, night = load_benchmark(write_file(tmp_path, "http://127.0.0.1:9/v1")), tmp_path / "lake", date(2026, 3, 1)
    lake_id(root)
    with pytest.raises(ValueError, match="first"), noted_where_it_fails(benchmark, night, str):
        raise ValueError("first")
    assert str(why_failed(root, "folders", "2026-03-01")).endswith("UTC: first")
    with pytest.raises(type(ended)), noted_where_it_fails(benchmark, night, str):
        raise ended
    assert why_failed(root, "folders", "2026-03-01") is None


@pytest.mark.parametrize(
    ("note", "is_told"),
    [
        ('{"run_date": "2026-03-01", "ended_at": "2026-03-01 02:00", "cause": "why", "more": 1}', True),
        ("{", False),
        ("{}", False),
    ],
    ids=["of a later release", "cut off", "empty"],
)
def test_a_note_of_words_ends_no_check(tmp_path: Path, note: str, is_told: bool) -> None:
    path = tmp_path / "failed" / "folders" / "2026-03-01.json"
    path.parent.mkdir(parents=True)
    path.write_text(note)
    told = "a try at the night of 2026-03-01 ended at 2026-03-01 02:00 UTC: why" if is_told else None
    assert why_failed(tmp_path, "folders", "2026-03-01") == told


def _newest(file: Path) -> list[str]:
    home = file.parent / "lake" / "publish" / "v1" / "folders"
    return [path.parent.name for path in home.glob("*/manifest.json")]


def test_a_first_night_that_was_killed_began_and_did_not_end(salon: Callable[..., Said], file: Path, provider: Provider) -> None:
    provider.then = Play(body=GOOD.body, delay_s=600)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])}
    command = [sys.executable, "-m", "flows", "nightly", str(file)]
    night = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    provider.on_request = night.kill
    night.wait(120)
    with temporary_settings(restore_defaults={PREFECT_API_URL}):
        check, doctor = salon("nightly", file, "--check"), salon("doctor", file)
    assert (check.code, doctor.code) == (1, 3), doctor.out
    assert (
        "is not published; none is yet: 1 run began and did not end, the last for the night of "
        in (findings(doctor.out)["last night"])
    )
