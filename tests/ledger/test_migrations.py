"""A ledger of an earlier version is carried forward when it is opened: whole or not at all, once, with every reply it holds."""

import sqlite3
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext
from sqlalchemy import create_engine, text

from rubrics.model import Rubric
from schemas.benchmark import Judge, Limits
from schemas.errors import StoreError
from tasks.judge.budget.budget import leased_usd
from tasks.lake.reading import Lake
from tasks.ledger import tables
from tasks.ledger.ledger import Ledger
from tasks.ledger.migrations.upgrading import scripts
from tasks.ledger.tables import EARLIER_VERSIONS, METADATA, VERSION
from tasks.plan.rows import plan_part
from tests.ledger.earlier_tables import HISTORY, blob
from tests.support.asking import ask_shard
from tests.support.postgres import at_once

KEYS = [f"{index:064x}" for index in range(3)]


@pytest.fixture
def address(each_address: str) -> str:
    return each_address


def execute(address: str, *statements: str) -> list[tuple[Any, ...]]:
    engine = create_engine(address)
    try:
        with engine.begin() as connection:
            found = [connection.execute(text(statement)) for statement in statements][-1]
            return [tuple(row) for row in found] if found.returns_rows else []
    finally:
        engine.dispose()


def written_by(address: str, name: str, keys: list[str] = KEYS) -> None:
    """A ledger as that Salon made it, with a reply to each key but the last, whose attempt failed."""
    kind = "postgresql" if address.startswith("postgresql") else "sqlite"
    statements = HISTORY[name].ddl(kind)
    for index, key in enumerate(keys):
        is_last = index == len(keys) - 1
        statements.append(
            "insert into attempts (attempt_id, request_key, ask_index, judge_model, started_at_us, ended_at_us, status) "
            f"values ('{index:032x}', '{key}', 0, 'judge', 1, 2, '{'server_error' if is_last else 'answered'}')"
        )
        if not is_last:
            statements.append(
                "insert into replies "
                "(request_key, ask_index, status, reply_text, judge_model, n_attempts, received_at_us, origin)"
                f" values ('{key}', 0, 'answered', {blob(kind, f'Score: {index}')}, 'judge', 1, 5, 'asked')"
            )
    execute(address, *statements)


def version_of(address: str) -> str:
    return str(execute(address, "select value from ledger_meta where name = 'version'")[0][0])


def differences(address: str) -> list[Any]:
    engine = create_engine(address)
    with engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        found = compare_metadata(context, METADATA)
    engine.dispose()
    return found


@pytest.mark.parametrize("name", HISTORY)
def test_every_reply_and_attempt_of_an_earlier_ledger_is_kept(address: str, name: str) -> None:
    written_by(address, name)
    with Ledger(address) as ledger:
        assert ledger.known(KEYS) == set(KEYS[:2])
        found = ledger.replies(KEYS).sort("request_key")
        assert found.select("reply_text", "n_attempts", "n_cached_tokens", "logprobs_json").rows() == [
            ("Score: 0", 1, None, None),
            ("Score: 1", 1, None, None),
        ]
        assert ledger.last_failures(KEYS).rows() == [(KEYS[2], 0, "server_error", None, 1)]
        assert ledger.state() is not None
    assert version_of(address) == VERSION
    assert execute(address, "select count(*) from attempts") == [(3,)]
    assert differences(address) == []


def test_what_was_spent_of_a_budget_stays_spent(address: str) -> None:
    written_by(address, "2, before attempts were counted")
    execute(address, "insert into budgets (budget_id, max_nusd, leased_nusd) values ('run', 2000000000, 500000000)")
    with Ledger(address) as ledger:
        assert leased_usd(ledger, "run") == 0.5


def test_a_new_ledger_is_what_the_scripts_lead_to(address: str) -> None:
    with Ledger(address) as ledger:
        ledger.known([])
    assert version_of(address) == VERSION
    assert differences(address) == []


def test_tables_without_row_ids_stay_so(tmp_path: Path) -> None:
    old, new = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    written_by(old, "1")
    shapes = []
    for address in (old, new):
        with Ledger(address) as ledger:
            ledger.known([])
        shapes.append(execute(address, "select name, wr from pragma_table_list where schema = 'main' order by name"))
    assert shapes[0] == shapes[1]
    assert sum(wr for _, wr in shapes[0]) == 3


def test_the_scripts_are_one_line_that_ends_at_the_tables_of_today() -> None:
    revisions = [script.revision for script in scripts().walk_revisions()]
    assert revisions == [VERSION, *reversed(EARLIER_VERSIONS)]
    assert scripts().get_heads() == [VERSION]


def test_nothing_is_asked_again(
    address: str, provider: Any, judge: Judge, rubric: Rubric, make_samples: Callable[..., pl.DataFrame],
    store_samples: Callable[..., tuple[Lake, str]],
) -> None:  # fmt: skip
    samples = make_samples(6)
    lake, _ = store_samples(samples)
    requests = plan_part(samples, rubric, judge)[1]
    written_by(address, "1", sorted(requests["request_key"]))
    outcome = ask_shard(lake, requests, rubric, judge, address, Limits(deadline_s=5))
    assert (outcome.n_cached, outcome.n_answered, provider.n) == (5, 1, 1)  # the one whose attempt had failed


@pytest.mark.parametrize("version", ["4", "99", "2.5", ""])
def test_a_version_that_is_not_known_is_refused_and_left_alone(address: str, version: str) -> None:
    with Ledger(address) as ledger:
        ledger.known([])
    execute(address, f"update ledger_meta set value = '{version}' where name = 'version'")
    with pytest.raises(StoreError, match=rf"has version {version}, and this Salon knows versions up to {VERSION}"):
        Ledger(address).known([])
    assert version_of(address) == version


def test_eight_that_open_it_at_once_carry_it_forward_once(address: str) -> None:
    written_by(address, "1")

    def work() -> int:
        with Ledger(address) as ledger:
            return len(ledger.known(KEYS))

    assert at_once(*[work] * 8) == [2] * 8
    assert differences(address) == []


_KILLED = """
import os, signal, sys
from sqlalchemy import event
from sqlalchemy.engine import Engine
from tasks.ledger.ledger import Ledger
from tasks.ledger.migrations import upgrading  # loaded once, before the forks

address = sys.argv[1]

def open_and_die(nth):
    seen = 0
    def count(connection, cursor, statement, parameters, context, executemany):
        nonlocal seen
        if statement.lstrip()[:6].upper() in ("ALTER ", "CREATE", "UPDATE", "INSERT"):
            seen += 1
            if seen == nth:
                os.kill(os.getpid(), signal.SIGKILL)
    event.listen(Engine, "after_cursor_execute", count)
    with Ledger(address) as ledger:
        print(len(ledger.known(sys.argv[2:])), flush=True)

for nth in range(1, 60):
    child = os.fork()
    if child == 0:
        try:
            open_and_die(nth)
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    print("killed" if os.WIFSIGNALED(status) else "whole", nth, flush=True)
    if not os.WIFSIGNALED(status):
        break
"""


def test_a_kill_at_any_statement_leaves_the_earlier_version_whole(address: str) -> None:
    """After each kill the next process finds the ledger as it was: were a statement committed by itself, it would fail."""
    written_by(address, "1")
    command = [sys.executable, "-c", _KILLED, address, *KEYS]
    ended = subprocess.run(command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=120, check=True)
    lines = ended.stdout.split("\n")[:-1]
    n_killed = sum(line.startswith("killed") for line in lines)
    assert n_killed > 12, ended.stderr
    assert lines[n_killed:] == ["2", f"whole {n_killed + 1}"], ended.stderr
    assert version_of(address) == VERSION
    assert differences(address) == []


def test_what_stands_half_way_is_the_earlier_version(tmp_path: Path) -> None:
    """Seen by another while the upgrade is under way: no new column, the old number."""
    path = tmp_path / "ledger.db"
    address = f"sqlite:///{path}"
    written_by(address, "1")
    engine = create_engine(address)
    with engine.connect() as connection:
        tables.begin(connection, is_alone=True)
        connection.exec_driver_sql("ALTER TABLE replies ADD COLUMN n_cached_tokens BIGINT")
        other = sqlite3.connect(path)
        assert "n_cached_tokens" not in {row[1] for row in other.execute("pragma table_info(replies)")}
        other.close()
    engine.dispose()


def test_an_upgrade_waits_for_who_writes(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path}/ledger.db"
    written_by(address, "2, replies alone")
    holder = sqlite3.connect(tmp_path / "ledger.db", isolation_level=None)
    holder.execute("begin immediate")
    with pytest.raises(StoreError, match="another process holds it"):
        Ledger(address, busy_timeout_ms=50).known([])
    holder.execute("rollback")
    holder.close()
    with Ledger(address) as ledger:
        assert ledger.known(KEYS) == set(KEYS[:2])
