"""A lake in which another user's folders, made under umask 022, lie among one's own: told before anything is bought."""

import os
import subprocess
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path

import pytest

from schemas.benchmark.file import load_benchmark
from tasks.lake.not_writable import barred_of_lake, told
from tests.flows.flow_support import Said, findings
from tests.support.night_world import World, n_billed, write_benchmark
from tests.support.rights import without_roots_rights
from tests.support.servers.dask_cluster import ROOT
from tests.support.servers.provider import Play, Provider, completion

OTHER = 12345


@pytest.fixture
def published(tmp_path: Path, salon: Callable[..., Said], judge_url: str) -> Path:
    """The file of a benchmark with a publication."""
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, judge_url)
    due = load_benchmark(file).nightly.newest_due(datetime.now(UTC)).date()  # today's date may be ahead of the night's
    assert salon("run", file, "--run-date", f"{due}").code == 0
    return file


def _without_rights(command: str, file: Path, *options: str) -> Said:
    asked, environment = [sys.executable, "-m", "flows", command, str(file), *options], os.environ | {"PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        asked, cwd=file.parent, env=environment,
        capture_output=True, text=True, check=False, preexec_fn=without_roots_rights,
    )  # fmt: skip
    return Said(ended.returncode, ended.stdout, " ".join(ended.stderr.split()))


@pytest.mark.parametrize("command", ["run", "exam", "probe-injection"])
def test_a_folder_of_another_user_is_named_before_anything_is_sent(published: Path, judge_url: str, command: str) -> None:
    lake, n_before = published.parent / "lake", n_billed(judge_url)
    folder = lake / "publish" / "v1" / "nights" / "drift"
    folder.mkdir(exist_ok=True)
    folder.chmod(0o755)
    os.chown(folder, OTHER, OTHER)
    World(published.parent).make(1)
    named = f"this user may not write {folder} (of user {OTHER}, drwxr-xr-x)"
    ran, doctor = _without_rights(command, published), _without_rights("doctor", published)
    assert ran.code == 3, ran.err
    assert named in ran.err
    assert f"this user is not in the group {OTHER}: to share the lake" in ran.err
    assert "Nothing is asked until then" in ran.err
    assert n_billed(judge_url) == n_before
    assert findings(doctor.out)["lake"].startswith("wrong: this user may not write")


def test_what_a_backfill_bought_is_published_though_a_folder_was_made_by_another_user_meanwhile(
    tmp_path: Path, provider: Provider
) -> None:
    if os.geteuid() != 0:
        pytest.skip("another user is needed")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    folder = tmp_path / "lake" / "nights" / "nights"  # only nights write there

    def bar() -> None:
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(0o755)
        os.chown(folder, OTHER, OTHER)

    provider.on_request = bar
    ran = _without_rights("backfill", write_benchmark(tmp_path, provider.url), "--checkpoints", "step-0")
    assert ran.code == 0, ran.err


def test_words_of_another_users_try_that_cannot_be_replaced_end_no_night(published: Path) -> None:
    due = load_benchmark(published).nightly.newest_due(datetime.now(UTC)).date()
    folder = published.parent / "lake" / "failed" / "nights"
    folder.mkdir(parents=True)
    (folder / f"{due}.json").write_text("{}")
    for path in (folder, folder.parent):
        path.chmod(0o755)
        os.chown(path, OTHER, OTHER)
    ran = _without_rights("nightly", published)
    assert ran.code == 0, ran.err
    assert (folder / f"{due}.json").exists()


@pytest.mark.parametrize(
    ("mode", "n", "does"),
    [(0o600, 1, "chmod u+rwX {path}"), (0o555, 5, "chmod -R u+rwX {root}")],
    ids=["may not be entered", "more than are named"],
)
def test_the_command_that_is_told_mends_it(tmp_path: Path, mode: int, n: int, does: str) -> None:
    paths = [tmp_path / str(number) for number in range(n)]
    for path in paths:
        path.mkdir()
        path.chmod(mode)
    found = {path: path.stat() for path in paths}
    said, advice = told(found, "the lake")
    assert advice == does.format(path=paths[0], root=tmp_path)
    assert said.endswith(f" and {n - 4} more") == (n > 4)
    subprocess.run(advice, shell=True, check=True)
    assert {path.stat().st_mode & 0o700 for path in paths} == {0o700}


@pytest.mark.parametrize(
    ("below", "is_told"),
    [
        ("runs", True),
        ("complete/samples", True),
        ("samples", True),
        ("locks/index.lock", True),
        ("publish/v1/tables/runs/benchmark_name=nights", True),
        ("lost+found", False),
        ("publish/v1/another", False),
        ("asking/another", False),
        ("locks/pointer-nights.lock", True),
        ("locks/asking-nights.lock", False),
        ("locks/pointer-our-nights.lock", False),
    ],
)
def test_what_no_night_of_the_benchmark_writes_bars_none(published: Path, below: str, is_told: bool) -> None:
    lake = published.parent / "lake"
    path = lake / below
    if not path.exists():
        path.mkdir(parents=True)
    path.chmod(0o555)
    os.chown(path, OTHER, OTHER)
    of = barred_of_lake
    asked = f"from pathlib import Path; from {of.__module__} import {of.__name__} as b; print(b(Path('{lake}'), 'nights'))"
    ended = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True, preexec_fn=without_roots_rights
    )
    assert (str(path) in ended.stdout) == is_told
    assert (ended.stdout == "None\n") == (not is_told)
