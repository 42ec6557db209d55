"""S3 servers for the tests: moto's always, and a real one where its address is given or Ceph's programs are installed."""

import logging
import os
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import uuid4

import boto3
import pytest

from tasks.lake.reading import Lake
from tests.lake.object_store import ceph_server as ceph


@dataclass(frozen=True)
class Served:
    """A request that moto answered, and the length of its answer's body."""

    verb: str
    name: str
    n_bytes: int


_served: list[Served] = []


def _counted(environ: Any, start_response: Any) -> list[bytes]:
    """moto's own application, with a list of what it answered."""
    body = b"".join(_application()(environ, start_response))
    _served.append(Served(environ["REQUEST_METHOD"], environ["PATH_INFO"], len(body)))
    return [body]


@cache
def _application() -> Any:
    from moto.server import DomainDispatcherApplication, create_backend_app

    return DomainDispatcherApplication(create_backend_app)


def _moto() -> Iterator[str]:
    from werkzeug.serving import make_server

    server = make_server("127.0.0.1", 0, _counted, threaded=True)
    logging.getLogger("werkzeug").setLevel(logging.WARNING)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()


@pytest.fixture
def served(endpoint: str, request: pytest.FixtureRequest) -> list[Served]:
    """What moto answers from now on; a test that asks for it is left out with another server."""
    if request.node.callspec.params["endpoint"] != "moto":
        pytest.skip("bytes are counted at moto")
    _served.clear()
    return _served


@pytest.fixture(scope="session", params=["moto", "real"])
def endpoint(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an S3 server that has the bucket `lake`."""
    given = os.environ.get("SALON_S3_TEST_URL")
    if request.param == "moto":
        for url in _moto():
            _client(url).create_bucket(Bucket=ceph.BUCKET)
            yield url
    elif given:
        yield given
    elif ceph.is_installed():
        with ceph.running(tmp_path_factory.mktemp("ceph")) as url:
            yield url
    else:
        pytest.skip("no real S3 server: set SALON_S3_TEST_URL, or install radosgw, ceph-mon and ceph-osd")


def _client(url: str) -> Any:
    key, secret = os.environ.get("AWS_ACCESS_KEY_ID", ceph.KEY), os.environ.get("AWS_SECRET_ACCESS_KEY", ceph.SECRET)
    return boto3.client(
        "s3", endpoint_url=url, aws_access_key_id=key, aws_secret_access_key=secret, region_name="us-east-1"
    )  # fmt: skip


class Objects:
    """What is below a lake's prefix, as another program sees it."""

    def __init__(self, url: str, prefix: str) -> None:
        self.client, self.prefix = _client(url), prefix

    def __getitem__(self, name: str) -> bytes:
        return bytes(self.client.get_object(Bucket=ceph.BUCKET, Key=f"{self.prefix}/{name}")["Body"].read())

    def __setitem__(self, name: str, content: bytes) -> None:
        self.client.put_object(Bucket=ceph.BUCKET, Key=f"{self.prefix}/{name}", Body=content)

    def __delitem__(self, name: str) -> None:
        self.client.delete_object(Bucket=ceph.BUCKET, Key=f"{self.prefix}/{name}")

    def names(self, below: str = "") -> list[str]:
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=ceph.BUCKET, Prefix=f"{self.prefix}/{below}")
        return [one["Key"].removeprefix(f"{self.prefix}/") for page in pages for one in page.get("Contents", [])]


@pytest.fixture
def url(endpoint: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The address of a new, empty lake; the environment is set as a user sets it."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", os.environ.get("AWS_ACCESS_KEY_ID", ceph.KEY))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", os.environ.get("AWS_SECRET_ACCESS_KEY", ceph.SECRET))
    monkeypatch.setenv("SALON_CACHE", str(tmp_path / "cache"))
    return f"s3://{ceph.BUCKET}/{uuid4().hex}"


@pytest.fixture
def objects(endpoint: str, url: str) -> Objects:
    """What the lake's bucket holds."""
    return Objects(endpoint, url.rpartition("/")[2])


@pytest.fixture
def machine(url: str, tmp_path: Path) -> Callable[[str], Lake]:
    """The lake as it is worked in on the machine of this name."""
    return lambda name: Lake(tmp_path / name / quote(url, safe=""))
