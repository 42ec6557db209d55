"""The campaign's ledger on a PostgreSQL server: one database, filled anew from a template. In SQLite it is a file of the lake."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg

from tests.support.servers.postgres import running_postgres, why_not

__all__ = ["ServerLedger", "server_ledger", "why_not"]

NAME = "ledger"
LEFT_LIMIT_S = 30.0


@dataclass(frozen=True)
class ServerLedger:
    """The database that every lake of a worker has its ledger in, one lake at a time."""

    port: int

    @property
    def url(self) -> str:
        """What the benchmark file says."""
        return f"postgresql+psycopg://salon@127.0.0.1:{self.port}/{NAME}"

    def fill(self, template: str | None) -> None:
        """Make the database anew: empty, or a copy of what was kept."""
        with self._connected("postgres") as connection:
            connection.execute(f"DROP DATABASE IF EXISTS {NAME} WITH (FORCE)")
            connection.execute(f"CREATE DATABASE {NAME} TEMPLATE {template or 'template0'}")

    def keep(self, template: str) -> None:
        """Keep a copy of it."""
        self._wait_until_left()
        with self._connected("postgres") as connection:
            connection.execute(f"CREATE DATABASE {template} TEMPLATE {NAME}")

    def read(self, statement: str) -> list[Any]:
        """The rows of a statement, none where a table is missing; once what dead clients had sent is done."""
        self._wait_until_left()
        with self._connected(NAME) as connection:
            try:
                return connection.execute(statement).fetchall()
            except psycopg.errors.UndefinedTable:  # killed before the tables were made
                return []

    def _wait_until_left(self) -> None:
        """The server finishes what a killed client had sent, and then notices that it is gone."""
        until_s = time.monotonic() + LEFT_LIMIT_S
        with self._connected("postgres") as connection:
            while connection.execute("SELECT 1 FROM pg_stat_activity WHERE datname = %s", [NAME]).fetchone():
                assert time.monotonic() < until_s, "the server still serves a client that was killed"
                time.sleep(0.01)

    @contextmanager
    def _connected(self, name: str) -> "Iterator[psycopg.Connection[Any]]":
        with psycopg.connect(host="127.0.0.1", port=self.port, user="salon", dbname=name, autocommit=True) as connection:
            yield connection


@contextmanager
def server_ledger() -> Iterator[ServerLedger]:
    """A server of its own for as long as the block lasts."""
    with running_postgres() as server:
        yield ServerLedger(server.port)
