"""A benchmark into a bucket by its file's setting alone, and read back on a machine that never saw it."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from demo.running import running_judge
from flows.cli import run as salon
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from schemas.errors import InputError
from tasks.lake.markers import FOOTER, WITHOUT_PICTURES
from tasks.publish.machine_tables import runs
from tests.support.night_world import World, write_benchmark
from tests.support.servers.dask_cluster import ROOT
from tests.support.servers.provider import Play, completion

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def judged(tmp_path_factory):
    """A benchmark judged into a local lake, its ledger apart: another lake asks nobody anything."""
    folder = tmp_path_factory.mktemp("judged")
    World(folder).make(1)
    with running_judge() as judge:
        file = write_benchmark(folder, judge)
        file.write_text(f'lake = "lake"\nledger = "sqlite:///{folder}/ledger.db"\n' + file.read_text())
        run = open_run(file)
        yield file, run, run_pipeline(RunContext.of(run))


def test_a_lake_in_a_bucket_is_a_setting(judged, url, objects, tmp_path, monkeypatch, capsys):
    file, local, published = judged
    there = file.with_name("there.toml")
    there.write_text(file.read_text().replace('lake = "lake"', f'lake = "{url}"'))
    run = open_run(there, local.run_date)
    summary = run_pipeline(RunContext.of(run))
    assert summary.published.publication_id == published.published.publication_id
    assert (summary.asked.n_asked, summary.published.is_new, summary.published.is_current) == (0, True, True)
    home = local.lake.root / "publish"
    living = {"index.html", "salon.duckdb"}
    sealed = [path for path in home.rglob("*") if path.is_file() and path.name not in living and "/tables/runs/" not in str(path)]
    assert sealed
    for path in sealed:
        assert objects[path.relative_to(local.lake.root).as_posix()] == path.read_bytes(), path
    for name in ("samples", "judgements", "requests", "replies", "scores"):
        (marker,) = objects.names(f"complete/{name}/")
        here = json.loads((local.lake.root / marker).read_bytes())["parts"]
        of_whole_files = [{k: v for k, v in one.items() if k not in {FOOTER, WITHOUT_PICTURES}} for one in here]
        assert json.loads(objects[marker])["parts"] == of_whole_files
    assert objects.names("staging/") == []
    assert list((run.lake.root / "tiles").iterdir()), "kept where they were made"
    assert objects.names("tiles/") == []

    shutil.rmtree(run.lake.root)
    monkeypatch.setenv("SALON_CACHE", str(tmp_path / "second"))
    name = published.published.publication_id
    cell = summary.cells.filter(category="__macro__")["cell_id"][0]
    capsys.readouterr()
    for arguments, told in (
        (["table", "--format", "csv"], cell),
        (["explain", cell, "--limit", "1"], "agrees"),
        (["open"], str(tmp_path / "second")),
        (["open", "--index"], "index.html"),
        (["verify"], "every published number follows from the stored replies"),
        (["verify", name[:8]], "every published number follows from the stored replies"),
    ):
        assert salon([*arguments, "--lake", url]) == 0, arguments
        assert told in capsys.readouterr().out
    assert runs(run.lake).height == 1
    last = run_pipeline(RunContext.of(open_run(there, local.run_date)))  # a new machine goes on where others were
    assert last.published.is_new is False
    damaged = next(one for one in objects.names("replies/"))
    objects[damaged] = objects[damaged][:-1] + b"x"
    assert salon(["verify", name[:8], "--lake", url]) == 1  # though this machine kept the sound one
    assert "published sha256" in capsys.readouterr().out


def test_a_lake_in_a_bucket_wants_a_ledger_elsewhere(tmp_path: Path, url):
    file = write_benchmark(tmp_path, "http://127.0.0.1:9/v1")
    file.write_text(f'lake = "{url}"\n' + file.read_text())
    with pytest.raises(InputError, match=r'Add ledger = "postgresql\+psycopg://'):
        open_run(file)


def test_another_machine_records_what_a_killed_night_bought(tmp_path: Path, url, objects, provider, monkeypatch, capsys):
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-nobody")
    provider.then = Play(body=completion("Reasoning: plain.\nScore: 3"))
    World(tmp_path).make(0)
    file = write_benchmark(tmp_path, provider.url)
    file.write_text(f'lake = "{url}"\nledger = "sqlite:///{tmp_path}/ledger.db"\n' + file.read_text())
    command, environment = [sys.executable, "-m", "flows", "nightly", str(file)], os.environ | {"PYTHONPATH": str(ROOT)}
    night = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    provider.on_request = lambda: night.kill() if provider.n == 7 else None
    night.wait(120)
    n_killed = provider.n
    assert len(objects.names("asking/")) == 1
    monkeypatch.setenv("SALON_CACHE", str(tmp_path / "second"))
    assert salon(["nightly", str(file)]) == 0
    said = capsys.readouterr()
    assert "was killed, or could not record what it bought; that is in the table runs now: " in " ".join(said.err.split())
    assert "2 runs of the night of " in " ".join((said.out + said.err).split())
    rows = runs(open_run(file).lake)
    assert rows["outcome"].to_list() == ["stopped", "published"]
    assert rows["n_asked"][0] >= n_killed
    assert objects.names("asking/") == []
