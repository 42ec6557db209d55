"""Many parts read from the ledger at once, and when a snapshot need not be taken again."""

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from sqlalchemy import Connection

from rubrics.model import Rubric
from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import JudgeReply, PlannedPart
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import REPLIES, REQUESTS
from tasks.context import StageContext
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage
from tasks.ledger import queries, snapshot
from tasks.ledger.ledger import Ledger
from tasks.ledger.mutex import heartbeat, in_use, mutex
from tasks.ledger.snapshot import (
    LastSnapshot,
    TakenPart,
    TakeShard,
    last_taken,
    note,
    part_digest,
    parts_to_ask,
    restore,
    snapshot_id,
    still_holds,
    take_parts,
)
from tests.support.asking import context_of
from tests.support.contexts import plan_part
from tests.support.ledgers import snapshot_part

PLAN = "9" * 64
JUDGE = Judge(model="m")


@pytest.fixture
def planned(tmp_path: Path, make_samples: Callable[..., pl.DataFrame], rubric: Rubric) -> tuple[Lake, list[pl.DataFrame]]:
    """A lake with a plan of 12 requests in three parts, the second one empty; and the parts."""
    requests = plan_part(make_samples(12), rubric, JUDGE)[1]
    lake, parts = Lake(tmp_path / "lake"), [requests[:5], requests[:0], requests[5:]]
    staging = stage(lake, REQUESTS)
    for index, part in enumerate(parts):
        staging.write_part(index, part)
    staging.commit(PLAN)
    return lake, parts


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/ledger.db"


def reply(key: str, text: str = '{"score": 3}', ask_index: int = 0) -> JudgeReply:
    return JudgeReply(key, ask_index, ReplyStatus.ANSWERED, "m", ReplyOrigin.ASKED, text=text)


def store(url: str, *replies: JudgeReply) -> None:
    with Ledger(url) as ledger:
        ledger.store(replies)


def context(lake: Lake, url: str = "sqlite://", plan_id: str = PLAN) -> StageContext:
    return context_of(lake, {}, JUDGE, url, RunIds(plan_id=plan_id))


def take(lake: Lake, url: str, staging: Staging | None = None) -> list[TakenPart]:
    return take_parts(context(lake, url), TakeShard((0, 1, 2), staging))


def to_ask(lake: Lake, url: str, parts: list[PlannedPart]) -> list[PlannedPart]:
    with Ledger(url) as ledger:
        return parts_to_ask(context(lake), parts, ledger)


def holds(lake: Lake, url: str, plan_id: str = PLAN) -> LastSnapshot | None:
    with Ledger(url) as ledger:
        return still_holds(context(lake, plan_id=plan_id), ledger.state())


def parts_of(parts: list[pl.DataFrame]) -> list[PlannedPart]:
    return [PlannedPart(index, index, "plain", "m", part.height) for index, part in enumerate(parts)]


def test_parts_taken_together_are_the_parts_taken_alone(planned: tuple[Lake, list[pl.DataFrame]], url: str) -> None:
    lake, parts = planned
    store(url, *(reply(key, str(n)) for n, key in enumerate(parts[2]["request_key"])), reply(parts[0]["request_key"][0]))
    staging = stage(lake, REPLIES)
    taken = take(lake, url, staging)
    key = staging.commit(snapshot_id(part.digest for part in taken))
    with Ledger(url) as ledger:
        for index, part in enumerate(parts):
            alone = snapshot_part(ledger, part)
            assert taken[index].digest == part_digest(alone)
            assert lake.read_part(REPLIES, key, index).equals(alone)
    assert [part.is_answered for part in taken] == [False, True, True]
    assert [part.height for part in (lake.read_part(REPLIES, key, n) for n in range(3))] == [5, 0, 7]


def test_parts_to_ask_are_those_with_a_gap_or_an_owed_re_ask(planned: tuple[Lake, list[pl.DataFrame]], url: str) -> None:
    lake, parts = planned
    every = parts_of(parts)
    assert to_ask(lake, url, every) == [every[0], every[2]]
    store(url, *(reply(key) for part in parts for key in part["request_key"]))
    assert to_ask(lake, url, every) == []
    # What a run leaves that was killed before a re-ask.
    with closing(sqlite3.connect(url.removeprefix("sqlite:///"))) as connection, connection:
        connection.execute(
            "INSERT INTO attempts (attempt_id, request_key, ask_index, judge_model, started_at_us) VALUES ('a', ?, 1, 'm', 1)",
            (parts[2]["request_key"][3],),
        )
    assert to_ask(lake, url, every) == [every[2]]
    assert [part.is_answered for part in take(lake, url)] == [True, True, False]


def test_a_re_ask_that_failed_makes_no_row_of_a_request_without_a_reply(url: str) -> None:
    """Files of results come in any order: a second ask may be known before the first."""

    async def fail_re_ask(ledger: Ledger) -> None:
        await ledger.fail(await ledger.begin("1" * 64, 1, "m"), ReplyStatus.SERVER_ERROR, "HTTP 500")

    with Ledger(url) as ledger:
        asyncio.run(fail_re_ask(ledger))
        rows = snapshot_part(ledger, pl.DataFrame({"request_key": ["1" * 64], "judge_model": ["m"]}))
    assert rows.select("ask_index", "status", "n_attempts").rows() == [(0, "not_asked", 0)]


@pytest.fixture
def noted(planned: tuple[Lake, list[pl.DataFrame]], url: str) -> tuple[Lake, LastSnapshot]:
    """A snapshot that was taken, stored and noted."""
    lake, parts = planned
    store(url, *(reply(key) for key in parts[0]["request_key"]))
    with Ledger(url) as ledger:
        state = ledger.state()
    assert state is not None
    staging = stage(lake, REPLIES)
    taken = take(lake, url, staging)
    found = LastSnapshot(staging.commit(snapshot_id(part.digest for part in taken)), state, is_answered=False)
    note(context(lake), found)
    return lake, found


REJECTED = {
    "a re-ask that was rejected stays": ((0, 1), (1,), 0, ["answered", "rejected"]),
    "a re-ask that was bought takes the place of its rejection": ((0, 1), (), 1, ["answered", "answered"]),
    "a first reply that was bought takes the place of its rejection": ((0,), (), 1, ["answered"]),
}


@pytest.mark.parametrize(("asks", "rejected_in_lake", "n_restored", "statuses"), REJECTED.values(), ids=REJECTED)
def test_the_lake_restores_what_was_bought_and_no_rejection_that_the_ledger_has(
    planned: tuple[Lake, list[pl.DataFrame]], url: str, tmp_path: Path,
    asks: tuple[int, ...], rejected_in_lake: tuple[int, ...], n_restored: int, statuses: list[str],
) -> None:  # fmt: skip
    lake, parts = planned
    key, elsewhere = parts[0]["request_key"][0], f"sqlite:///{tmp_path}/elsewhere.db"

    def replies(rejected: tuple[int, ...]) -> list[JudgeReply]:
        said = {n: ReplyStatus.REJECTED if n in rejected else ReplyStatus.ANSWERED for n in asks}
        return [JudgeReply(key, n, status, "m", ReplyOrigin.ASKED, error_detail="said") for n, status in said.items()]

    store(elsewhere, *replies(rejected_in_lake))
    store(url, *replies(asks[-1:]))
    staging = stage(lake, REPLIES)
    staging.commit(snapshot_id(part.digest for part in take(lake, elsewhere, staging)))
    with Ledger(url) as ledger:
        assert restore(lake, ledger) == n_restored
        assert ledger.replies([key]).sort("ask_index")["status"].to_list() == statuses


def test_it_holds_while_nothing_is_written(noted: tuple[Lake, LastSnapshot], url: str) -> None:
    lake, taken = noted
    assert holds(lake, url) == taken
    with Ledger(url) as ledger:
        ledger.known(["1" * 64])  # reading is no writing
    assert holds(lake, url) == taken
    with Ledger(url) as ledger, heartbeat(ledger, "a run"), mutex(ledger, "a night"), in_use(ledger, "a lake"):
        assert holds(lake, url) == taken  # who is there is nothing of a snapshot's
    assert holds(lake, url) == taken
    assert holds(lake, url, "8" * 64) is None


def attempted(url: str) -> None:
    async def begin() -> None:
        with Ledger(url) as ledger:
            await ledger.begin("1" * 64, 0, "m")

    asyncio.run(begin())


def _claim(connection: Connection) -> None:
    """What runs as the only writer, and writes."""
    connection.exec_driver_sql("INSERT INTO claims VALUES ('k', 'o')")


WRITES: dict[str, Callable[[str], object]] = {
    "a reply": lambda url: store(url, reply("1" * 64)),
    "a reply it had already": lambda url: store(url, reply("2" * 64), reply("2" * 64, "other")),
    "an attempt": attempted,
    "what processes share": lambda url: Ledger(url).alone_now(_claim),
}


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
def test_any_write_ends_it(noted: tuple[Lake, LastSnapshot], url: str, write: Callable[[str], object]) -> None:
    write(url)
    assert holds(noted[0], url) is None


def test_another_ledger_is_not_taken_for_it(noted: tuple[Lake, LastSnapshot], planned: Any, url: str, tmp_path: Path) -> None:
    """A ledger that was restored from a copy and went another way holds as many rows under the same keys."""
    path = Path(url.removeprefix("sqlite:///"))
    lake, parts = planned
    shutil.copy(path, tmp_path / "copy.db")
    assert holds(lake, f"sqlite:///{tmp_path}/copy.db") is not None  # an exact copy holds the same
    keys = parts[2]["request_key"]
    store(url, *(reply(key, "one") for key in keys))
    with Ledger(url) as ledger:
        note(context(lake), replace(noted[1], ledger_state=ledger.state() or ""))
    store(f"sqlite:///{tmp_path}/copy.db", *(reply(key, "two") for key in keys))
    assert holds(lake, f"sqlite:///{tmp_path}/copy.db") is None
    store(f"sqlite:///{tmp_path}/new.db", *(reply(key, "one") for key in keys))
    assert holds(lake, f"sqlite:///{tmp_path}/new.db") is None


def test_a_note_that_is_not_whole_or_whose_snapshot_is_gone_is_no_note(noted: tuple[Lake, LastSnapshot], url: str) -> None:
    lake, taken = noted
    path = lake.root / "taken" / f"{PLAN}.json"
    whole = path.read_text()
    for text in ("", "{", "[]", '{"snapshot_id": 1}', "null"):
        path.write_text(text)
        assert last_taken(context(lake)) is None
    path.write_text(whole)
    lake.marker(REPLIES, taken.snapshot_id).unlink()
    assert holds(lake, url) is None


def test_keys_are_looked_up_whatever_their_number(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queries, "KEYS_PER_QUERY", 7)
    keys = [f"{number:064x}" for number in range(50)]
    store(url, *(reply(key) for key in keys[::2]))
    with Ledger(url) as ledger:
        assert ledger.known(keys) == set(keys[::2])
        assert ledger.known(['"]', "'; DROP TABLE replies; --", keys[0]]) == {keys[0]}
        assert ledger.replies([*keys, *keys])["request_key"].to_list() == keys[::2]


def test_parts_go_together_up_to_a_number_of_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(snapshot, "REQUESTS_AT_ONCE", 10)
    parts = [PlannedPart(index, index, "r", "m", n) for index, n in enumerate([4, 4, 4, 0, 30, 1])]
    assert [[part.index for part in run] for run in snapshot.grouped(parts)] == [[0, 1, 2], [3, 4], [5]]
