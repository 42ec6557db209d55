"""`salon export --to … --push` against doubles of the receivers' servers: success is said of what they hold, nothing else."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import polars as pl
import pytest

from schemas.errors import StoreError
from schemas.tables.published import BENCHMARK_LONG, FAILURES
from tasks.publish.exporters.exporting import export_publication
from tasks.publish.exporters.figures import read_figures
from tasks.publish.exporters.wandb_runs import WandbRuns
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tasks.publish.reading import current
from tests.flows.commands.printed.test_table_command import DAY, cell, table_of, tables_of
from tests.support.servers.receivers import Receiver, running
from tests.support.small_lake import filled_row

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[4]
KEY = "0123456789abcdef0123456789abcdef01234567"
TOKEN = "hf_x0123456789abcdefgh"
EARLIER, LATER = "e" * 64, "f" * 64


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Two publications: the earlier one has failures, the later none."""
    for publication, values in ((EARLIER, (1.0, 2.0)), (LATER, (1 / 3, 5e-324))):
        cells = [cell("painter", value, checkpoint=f"step-{n}", cell_id=f"{n:012}", se=0.1) for n, value in enumerate(values)]
        tables = tables_of(cells)
        if publication == EARLIER:
            failed = filled_row(FAILURES, cell_id=f"{0:012}", publication_id=EARLIER, run_date=DAY, benchmark="nightly")
            tables[FAILURES] = table_of(FAILURES, [failed])
        publish(tmp_path / "lake", Draft(PublicationName("nightly", publication, DAY), tables, {"rubrics": {}}))
    return tmp_path / "lake"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running(Receiver()) as one:
        yield one


Push = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def push(lake: Path, receiver: Receiver) -> Push:
    """`salon export PUBLICATION --to … --push` in a process of its own: clients read their addresses once."""

    def pushed(to: str, name: str, publication: str = LATER, **more: str) -> "subprocess.CompletedProcess[str]":
        own = {"HOME": str(lake.parent), "WANDB_BASE_URL": receiver.address, "WANDB_API_KEY": KEY, "HF_TOKEN": TOKEN}
        own |= {"HF_ENDPOINT": receiver.address, "PYTHONPATH": str(ROOT)} | more
        own |= {"HF_HUB_OFFLINE": "0"}  # other tests of this process set it
        command = ["export", publication[:8], "--to", to, "--out", f"out-{to}-{publication[0]}", "--name", name, "--push"]
        words = [sys.executable, "-m", "flows", *command]
        return subprocess.run(words, env=os.environ | own, cwd=lake.parent, capture_output=True, text=True, check=False)

    return pushed


def figures(lake: Path) -> list[dict[str, float]]:
    return [dict(one.numbers()) for one in read_figures(current(lake)).contestants]


def test_what_wandb_holds_is_what_was_sent(lake: Path, receiver: Receiver, push: Push) -> None:
    done = push("wandb", "team/p")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip().endswith("sent        project p: 2 runs, read back")
    held = [sorted((name, value) for name, value in run.items() if "/" in name) for run in receiver.runs.values()]
    assert sorted(held) == sorted(sorted(one.items()) for one in figures(lake))
    assert push("wandb", "p", EARLIER).returncode == 0, "the login's own entity"
    assert not (lake.parent / "wandb").exists(), "no logs in the working directory"


@pytest.mark.parametrize(
    ("refused", "status", "says"),
    [
        ("/graphql", 401, "returned error 401"),
        ("/graphql", 400, "returned error 400"),
        ("/file_stream", 403, "Fatal error while uploading"),
    ],
)
def test_what_wandb_refuses_was_not_sent(
    refused: str, status: int, says: str, receiver: Receiver, push: Push, tmp_path: Path
) -> None:
    receiver.refuses = {refused: status}
    done = push("wandb", "team/p")
    assert done.returncode == 3, done.stdout
    assert "sent  " not in done.stdout
    said = " ".join(done.stderr.split())
    assert f"W&B at {receiver.address} did not take the runs" in said
    assert says in said
    assert "check WANDB_API_KEY" in said
    assert "out-wandb-f is complete: send it by hand" in said
    assert KEY not in done.stdout + done.stderr
    assert not list(tmp_path.glob("out-*/**/*.synced"))


def test_a_figure_that_wandb_does_not_keep_is_told(
    lake: Path, receiver: Receiver, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    receiver.loses = next(iter(figures(lake)[0]))
    for name, value in {"WANDB_BASE_URL": receiver.address, "WANDB_API_KEY": KEY, "HOME": str(tmp_path)}.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(StoreError, match=rf"does not hold what was sent: {receiver.loses}; .*send it by hand"):
        export_publication(current(lake), WandbRuns(patience_s=0.1), tmp_path / "out", "team/p", is_push=True)


def test_a_second_push_to_the_hub_replaces_the_first(lake: Path, receiver: Receiver, push: Push, tmp_path: Path) -> None:
    """In one commit, so that no reader sees tables of two; what else is in the repository stays."""
    others = {"data/mine.parquet": b"1", ".gitattributes": b"2", "failures.parquet": b"3", "other/data/failures.parquet": b"4"}
    receiver.files |= others
    assert push("huggingface", "acme/nightly", EARLIER).returncode == 0
    assert "data/failures.parquet" in receiver.files
    done = push("huggingface", "acme/nightly")
    assert done.returncode == 0, done.stderr
    of = tmp_path / "out-huggingface-f" / "dataset"
    mine = {path.relative_to(of).as_posix(): path.read_bytes() for path in of.rglob("*") if path.is_file()}
    assert receiver.files == others | mine
    assert "data/failures.parquet" not in mine
    assert receiver.commits == [receiver.commits[0], mine.keys() | {"data/failures.parquet"}]
    held = pl.read_parquet(receiver.files[f"data/{BENCHMARK_LONG.name}.parquet"])
    assert held["estimate"].to_list() == [1 / 3, 5e-324]


@pytest.mark.parametrize("status", [400, 401, 403, 500])
def test_what_the_hub_refuses_was_not_sent(status: int, receiver: Receiver, push: Push) -> None:
    receiver.refuses = {"/api/": status}
    done = push("huggingface", "acme/nightly")
    said = " ".join(done.stderr.split())
    assert done.returncode == 3, said
    assert "Hugging Face did not take it" in said
    assert "check that HF_TOKEN may write to datasets/acme/nightly" in said
    assert "out-huggingface-f is complete" in said
    assert TOKEN not in done.stdout + done.stderr


def test_a_login_in_mlflows_address_is_sent_by_its_client(receiver: Receiver, push: Push) -> None:
    """Nobody of that name would be found if it were taken for the host."""
    receiver.refuses = {"/api/": 401}
    address = receiver.address.replace("//", "//bob:secret-pw@")
    done = push("mlflow", "nightly", MLFLOW_TRACKING_URI=address, MLFLOW_HTTP_REQUEST_MAX_RETRIES="0")
    said = " ".join(done.stderr.split())
    assert done.returncode == 3
    assert "does not answer" not in said
    assert "bad credentials" in said
    assert "Basic Ym9iOnNlY3JldC1wdw==" in receiver.logins
    assert "secret-pw" not in said
