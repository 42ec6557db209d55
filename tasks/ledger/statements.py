"""Statements that databases spell differently, and by whose clock a ledger goes. Tables are tables.py, questions queries.py."""

from functools import cache
from typing import Any

from sqlalchemy import Table, bindparam, literal_column, select
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.sql.expression import Executable

from tasks.ledger.process_identity import HERE, Machine


def insert_where_absent(engine: Engine, table: Table) -> Executable:
    """INSERT … ON CONFLICT DO NOTHING: the first row stored under a key stays."""
    return _insert_where_absent(table, is_on_server=engine.dialect.name == "postgresql")


@cache
def _insert_where_absent(table: Table, *, is_on_server: bool) -> Executable:
    statement: Executable = _insert(table, is_on_server=is_on_server).on_conflict_do_nothing()
    return statement


def upsert(engine: Engine, table: Table, *, is_where_written: bool = False) -> Executable:
    """INSERT … ON CONFLICT DO UPDATE of every column that is not of the key: the last row stored stays.

    `is_where_written`: by a transaction that changed a row before, which PostgreSQL gives a number then (and also when it locks
    a row): it decides by itself, without being waited for. SQLite's callers know how many rows were changed.
    """
    is_on_server = engine.dialect.name == "postgresql"
    return _upsert(table, is_on_server=is_on_server, is_where_written=is_where_written and is_on_server)


@cache
def _upsert(table: Table, *, is_on_server: bool, is_where_written: bool) -> Executable:
    made = _insert(table, is_on_server=is_on_server)
    if is_where_written:
        has_number = literal_column("pg_current_xact_id_if_assigned()").is_not(None)
        row = select(*(bindparam(column.name, type_=column.type) for column in table.columns)).where(has_number)
        made = made.from_select(table.columns.keys(), row)
    changed = {column.name: made.excluded[column.name] for column in table.columns if not column.primary_key}
    statement: Executable = made.on_conflict_do_update(index_elements=list(table.primary_key), set_=changed)
    return statement


def _insert(table: Table, *, is_on_server: bool) -> Any:
    """INSERT in one database's dialect, and no other's is imported."""
    if is_on_server:
        from sqlalchemy.dialects import postgresql

        return postgresql.insert(table)
    from sqlalchemy.dialects import sqlite

    return sqlite.insert(table)


def state_row(word: str) -> dict[str, str]:
    """The row of LEDGER_META each writing transaction puts anew, with a word nobody has seen: equal states, equal contents."""
    return {"name": "state", "value": word}


def now_us(connection: Connection) -> int:
    """The moment by the clock all processes of the ledger share: the server's, or for a file the machine's."""
    if connection.dialect.name == "postgresql":
        return int(connection.exec_driver_sql("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint").scalar_one())
    return machine_of(connection).time_ns() // 1000


def ahead_s(connection: Connection) -> float | None:
    """Seconds by which this machine's clock is ahead of the server's, below 0 behind; None for a ledger that is a file."""
    if connection.dialect.name == "sqlite":
        return None
    machine = machine_of(connection)
    now_us(connection)  # what opens a transaction is not to be in what is timed
    before_us = machine.time_ns() // 1000
    there_us = now_us(connection)
    return ((before_us + machine.time_ns() // 1000) / 2 - there_us) / 1e6


def machine_of(connection: Connection) -> Machine:
    """The machine of the process whose connection this is."""
    machine: Machine = connection.get_execution_options().get("machine", HERE)
    return machine
