"""A run whose flow and workers share nothing but addresses: each has a working folder of its own before the bucket."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import boto3
import pytest

from schemas.tables.stored import SAMPLES
from tasks.lake.reading import open_lake
from tasks.publish.reading import current, load_cells
from tests.support.night_world import N_SAMPLES, World, n_billed, write_benchmark
from tests.support.servers.dask_cluster import ROOT, running_cluster

N_WORKERS, PART = 2, 6
LIMIT_S = 900.0


@pytest.fixture
def url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a new lake in a bucket of moto's; the environment is set as a user sets it."""
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name, value in (("ENDPOINT_URL", f"http://{host}:{port}"), ("ACCESS_KEY_ID", "key"), ("SECRET_ACCESS_KEY", "secret")):
        monkeypatch.setenv(f"AWS_{name}", value)
    boto3.client("s3", region_name="us-east-1").create_bucket(Bucket="lake")
    yield "s3://lake/apart"
    server.stop()


def test_a_flow_and_its_workers_meet_in_the_bucket_alone(
    url: str, judge_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    World(tmp_path).make(1)
    caches = {name: tmp_path / name for name in ("flow", "worker-0", "worker-1", "reader")}
    billed_before = n_billed(judge_url)
    with running_cluster(tmp_path, N_WORKERS, lambda n: {"SALON_CACHE": str(caches[f"worker-{n}"])}) as cluster:
        file = write_benchmark(tmp_path, judge_url, limits=f"shard_size = {PART}")
        places = f'lake = "{url}"\nledger = "sqlite:///{tmp_path}/ledger.db"\nrunner = "dask"\n'
        file.write_text(places + f'workers = {{ address = "{cluster.address}" }}\n' + file.read_text())
        own = {"SALON_CACHE": str(caches["flow"]), "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-m", "flows", "run", str(file)]
        said = subprocess.run(command, env=os.environ | own, capture_output=True, text=True, timeout=LIMIT_S, check=False)
    assert said.returncode == 0, said.stderr
    assert n_billed(judge_url) - billed_before == N_SAMPLES
    monkeypatch.setenv("SALON_CACHE", str(caches["reader"]))
    lake = open_lake(url)
    assert load_cells(current(lake.root))["n_scored"].max() == N_SAMPLES
    (dataset,) = lake.keys(SAMPLES)
    assert lake.n_parts(SAMPLES, dataset) == N_SAMPLES // PART
    assert not list(caches["flow"].glob("*/*/samples/*/part-*.parquet")), "the flow's machine fetched pictures"
    assert all(list(caches[f"worker-{n}"].rglob("part-*.parquet")) for n in range(N_WORKERS)), "each worker did some of it"
