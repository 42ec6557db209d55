"""The contract with users and with checks outside this repository: commands, tables, `salon parse`, a ledger of release 0.1.0.

What fails here changes what others call or read: it wants a line in CHANGELOG.md. Then `SALON_REWRITE=1 pytest tests/contract`
writes the files under golden/ anew, for a person to read the difference; the ledger file alone is never written anew. What the
demo publishes is held in test_demo_run.py.
"""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import polars as pl
import pytest

from flows.cli import run
from flows.commands.app import app
from rubrics.golden import read_replies
from rubrics.loading import SHIPPED, load_rubric
from schemas.statuses.rows import ReplyStatus
from schemas.tables.catalogue import TABLES
from tasks.ledger.ledger import Ledger

GOLDEN = Path(__file__).parent / "golden"
WIDE = {"COLUMNS": "100", "TERMINAL_WIDTH": "100", "NO_COLOR": "1"}


def hold(name: str, found: str) -> None:
    """The golden file is what was found."""
    path = GOLDEN / name
    if os.environ.get("SALON_REWRITE"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(found, encoding="utf-8", newline="\n")
    assert found.splitlines() == path.read_text(encoding="utf-8").splitlines(), (
        f"the contract changed: {path.name}; if that is meant, SALON_REWRITE=1 pytest tests/contract writes it anew"
    )


def words_of(command: Any, *before: str) -> Iterator[tuple[str, ...]]:
    yield before
    for name, below in getattr(command, "commands", {}).items():
        yield from words_of(below, *before, name)


def test_the_help_of_every_command(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name, value in WIDE.items():
        monkeypatch.setenv(name, value)
    shown = []
    for words in words_of(app):
        assert run([*words, "--help"]) == 0, words
        shown.append("\n".join(line.rstrip() for line in capsys.readouterr().out.splitlines()))
    hold("help.txt", "\n".join(shown))


def test_the_schema_of_every_table() -> None:
    lines = []
    for table in TABLES.values():
        lines.append(f"{table.name}: key {', '.join(table.key)}")
        lines += [f"    {field.name}: {field.type}{'' if field.nullable else ' not null'}" for field in table.schema]
    hold("tables.txt", "\n".join(lines))


@pytest.mark.parametrize("rubric_id", ["interleaved", "image_aspects", "caption", "composition", "alignment"])
def test_salon_parse_on_the_golden_replies(rubric_id: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replies = [reply for reply in read_replies(load_rubric(SHIPPED / rubric_id).folder) if isinstance(reply["raw"], str)]
    categories = list(dict.fromkeys(reply["context"].get("category") for reply in replies))
    found: list[str] = []
    for category in categories:
        mine = [reply for reply in replies if reply["context"].get("category") == category]
        (tmp_path / "replies.jsonl").write_bytes(b"\n".join(map(orjson.dumps, mine)))
        called = f"{rubric_id}:{category}" if category else rubric_id
        assert run(["parse", "--rubric", called, "--jsonl", str(tmp_path / "replies.jsonl")]) == 0
        found += [called, *capsys.readouterr().out.splitlines()]
    hold(f"parse/{rubric_id}.txt", "\n".join(found))


def test_a_ledger_of_release_0_1_0_is_opened_with_all_it_holds(tmp_path: Path) -> None:
    """75 questions of the demo's captions; test_demo_run.py shows that the same are found there under the same keys."""
    shutil.copyfile(GOLDEN / "ledger-0.1.0.db", tmp_path / "ledger.db")
    keys = (GOLDEN / "ledger-0.1.0.keys.txt").read_text().split()
    with Ledger(f"sqlite:///{tmp_path}/ledger.db") as ledger:
        assert set(ledger.known(keys)) == set(keys)
        replies = ledger.replies(keys)
    assert replies.height == len(keys) == 75
    assert set(replies["status"]) == {ReplyStatus.ANSWERED.value}
    told = replies.select(pl.col("n_input_tokens", "n_output_tokens").sum(), pl.col("reply_text").str.len_bytes().sum())
    assert told.row(0) == (92_173, 3_242, 12_884)
