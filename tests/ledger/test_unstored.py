"""Replies that the ledger could not take: kept in the lake, and taken in by who comes next, once and with what they are owed."""

import asyncio
from pathlib import Path

import pytest
from sqlalchemy import select

from schemas.errors import CorruptLakeError, RefusedLedgerError, StoreError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from tasks.ledger.ledger import Ledger
from tasks.ledger.tables import ATTEMPTS
from tasks.ledger.unstored import Unstored

KEYS = [f"{index:064x}" for index in range(3)]
SAID = 'äöü \x00 {"score": 3}\n'


def _reply(key: str, text: str = SAID) -> JudgeReply:
    return JudgeReply(
        key, 0, ReplyStatus.ANSWERED, "judge", ReplyOrigin.ASKED, text=text, n_input_tokens=7, cost_usd=0.25, error_detail="d"
    )


def test_what_was_kept_is_stored_as_it_came_with_the_reask_it_is_owed(each_address: str, tmp_path: Path) -> None:
    unstored = Unstored(tmp_path / "lake")
    with Ledger(each_address) as ledger:
        attempts = [asyncio.run(ledger.begin(key, 0, "judge")) for key in KEYS]
        assert unstored.keep(attempts[0], _reply(KEYS[0]), is_reasked=False)
        assert unstored.keep(attempts[1], _reply(KEYS[1], "none"), is_reasked=True)
        assert unstored.keep(attempts[2], _reply(KEYS[2], "late"), is_reasked=True)
        asyncio.run(ledger.finish(attempts[2], _reply(KEYS[2], "first")))  # by another process meanwhile
        kept = {path.name: path.read_bytes() for path in unstored.files}
        assert unstored.take_in(ledger) == 2
        assert unstored.files == []
        rows = {row["request_key"]: row for row in ledger.replies(KEYS).to_dicts()}
        assert [rows[key]["reply_text"] for key in KEYS] == [SAID, "none", "first"]
        assert (rows[KEYS[0]]["n_input_tokens"], rows[KEYS[0]]["cost_usd"], rows[KEYS[0]]["error_detail"]) == (7, 0.25, "d")
        assert ledger.reasks_due(KEYS) == {KEYS[1]}
        ended = ledger.read(lambda c: dict(list(c.execute(select(ATTEMPTS.c.attempt_id, ATTEMPTS.c.status)))))
        assert [ended[attempt_id] for attempt_id in attempts] == ["answered"] * 3
        for name, content in kept.items():  # the process was killed before it could take them away
            (unstored.root / "unstored" / name).write_bytes(content)
        assert unstored.take_in(ledger) == 0
        assert sum(ledger.n_attempts(KEYS).values()) == 4
        assert unstored.take_in(ledger) == 0


@pytest.mark.parametrize(
    ("raised", "n_kept", "says"),
    [
        pytest.param(StoreError("gone"), 2, "gone. 2 paid replies wait in ", id="kept"),
        pytest.param(StoreError("gone"), 0, "gone", id="nothing kept"),
        pytest.param(StoreError("gone. 1 paid replies wait in unstored"), 2, "gone. 1 paid", id="told by an earlier try"),
        pytest.param(RefusedLedgerError("no login"), 2, "no login. 2 paid replies wait in ", id="not let in any more"),
        pytest.param(CorruptLakeError("broken"), 2, "broken", id="another fault"),
    ],
)
def test_the_error_that_ends_a_run_says_how_many_wait(tmp_path: Path, raised: StoreError, n_kept: int, says: str) -> None:
    unstored = Unstored(tmp_path)
    for key in KEYS[:n_kept]:
        unstored.keep("a", _reply(key), is_reasked=False)
    with pytest.raises(type(raised)) as told, unstored.told():
        raise raised
    assert str(told.value).startswith(says)
    assert (str(told.value) == str(raised)) is not says.endswith("wait in ")


@pytest.mark.parametrize(
    ("written", "put", "why"),
    [
        pytest.param('"is_reasked": false', '"is_rea', "delimiter", id="half"),
        pytest.param('"request_key": "0', '"request_key": "f', "the reply to a different request", id="another's"),
        pytest.param(
            '"n_input_tokens": 7', '"n_input_tokens": "many"', "its content is something else", id="a word for a number"
        ),
        pytest.param('"judge_model": "judge", ', "", "its content is something else", id="without a judge"),
    ],
)
def test_a_spoiled_file_is_named_and_keeps_no_other_out(tmp_path: Path, written: str, put: str, why: str) -> None:
    unstored = Unstored(tmp_path / "lake")
    with Ledger(f"sqlite:///{tmp_path / 'ledger.sqlite'}") as ledger:
        for key in KEYS:
            unstored.keep("a", _reply(key), is_reasked=False)
        spoiled = unstored.files[0]
        assert written in spoiled.read_text()
        spoiled.write_text(spoiled.read_text().replace(written, put))
        for _ in range(2):
            with pytest.raises(CorruptLakeError, match=rf"{spoiled.name} is not a paid reply .*{why}"):
                unstored.take_in(ledger)
        assert ledger.known(KEYS) == set(KEYS[1:])
        assert unstored.files == [spoiled]


def test_what_is_lost_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "lake").write_bytes(b"a file: nothing can be written below it")
    unstored = Unstored(tmp_path / "lake")
    assert not unstored.keep("a", _reply(KEYS[0]), is_reasked=False)
    with pytest.raises(StoreError, match=r"^gone$"), unstored.told():
        raise StoreError("gone")
    assert [f"1 paid replies could be stored neither in the ledger nor in {tmp_path}/lake" in one for one in caplog.messages] == [
        True
    ]
