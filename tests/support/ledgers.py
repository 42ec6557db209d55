"""Fixtures of empty ledgers: in SQLite, on a PostgreSQL server of the tests' own, in each. No tests here."""

from collections.abc import Iterator
from pathlib import Path

import polars as pl
import pytest

from schemas.tables.stored import REPLIES
from tasks.ledger.ledger import Ledger
from tasks.ledger.snapshot import replies_to
from tests.support.servers.postgres import PostgresServer, running_postgres, why_not


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    reason = why_not()
    if reason is not None:
        pytest.skip(reason)
    with running_postgres() as server:
        yield server


@pytest.fixture
def address(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture(params=["sqlite", "postgresql"])
def each_address(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a ledger that is not there yet, in each kind of database."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/ledger.db"
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.new_database()


@pytest.fixture
def each_ledger(each_address: str) -> Iterator[Ledger]:
    with Ledger(each_address) as ledger:
        yield ledger


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[Ledger]:
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        yield ledger


def snapshot_part(ledger: Ledger, requests: pl.DataFrame) -> pl.DataFrame:
    """REPLIES rows of these requests alone."""
    return replies_to(ledger, requests.select("request_key", "judge_model")).select(REPLIES.columns)
