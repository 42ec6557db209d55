"""What a run's last lines say of asks without a reply: the provider's words, and the remedy."""

from collections.abc import Sequence
from pathlib import Path

import polars as pl
import pytest

from flows.commands.printed.failures import print_failed
from flows.observability.terminal import result_console
from schemas.benchmark.judges import Judge
from tasks.judge.batch.collect import NEVER_CAME

ONE, RECORDED = Judge(model="[b]one[/b]"), Judge(model="[b]one[/b]", recorded=True)
BY_BATCH = Judge(model="[b]one[/b]", mode="batch")
NAME = "[b]one[/b]"
Row = tuple[str, str, str, float]
LONG = "HTTP 400: This model's maximum context length is 4096 tokens."

CASES: dict[str, tuple[Judge, list[Row], list[str]]] = {
    "rejected": (
        ONE,
        [(NAME, "n_replies", "rejected", 11.0), (NAME, "n_replies", "answered", 29.0), (NAME, "n_said", LONG, 11.0)],
        [f"requests to {NAME} without a reply: rejected 11; ", f'"{LONG}" ×11', "with --retry rejected"],
    ),
    "over checkpoints, and the commonest words first": (
        ONE,
        [(NAME, "n_replies", "bad_response", 2.0)] * 2 + [(NAME, "n_said", "rare", 1.0), (NAME, "n_said", "often\nnote:", 3.0)],
        ["bad_response 4", 'most frequent messages: "often␊note:" ×3, "rare" ×1', "bad_response: check that base_url"],
    ),
    "two ways": (
        ONE,
        [(NAME, "n_replies", "server_error", 5.0), (NAME, "n_replies", "rejected", 1.0)],
        ["server_error 5, rejected 1", "server_error: check the provider's status", "rejected: fix what the message names"],
    ),
    "an empty account": (
        ONE, [(NAME, "n_replies", "no_credit", 2.0), (NAME, "n_said", "HTTP 400: Your credit balance is too low", 2.0)],
        ['"HTTP 400: Your credit balance is too low" ×2', "variable OPENAI_API_KEY has no credit left: top it up"],
    ),
    "a key": (ONE, [(NAME, "n_replies", "unauthorized", 1.0)], ["unauthorized: check the key in the environment variable"]),
    "the same words but for numbers": (
        ONE, [(NAME, "n_replies", "rejected", 3.0), *((NAME, "n_said", f"HTTP 400: {n} tokens", 1.0) for n in (7, 8, 9))],
        ['"HTTP 400: 7 tokens" ×3;'],
    ),
    "a page in place of words": (
        ONE, [(NAME, "n_replies", "server_error", 5.0), (NAME, "n_said", "x" * 5_000, 5.0)], ["x" * 199 + '…" ×5'],
    ),
    "no reply within the deadline": (
        ONE, [(NAME, "n_replies", "timed_out", 5.0), (NAME, "n_said", "no reply in 5 s", 5.0)], ["or raise limits.deadline_s"],
    ),
    "lines that a batch lacks": (
        BY_BATCH, [(NAME, "n_replies", "timed_out", 5.0), (NAME, "n_said", NEVER_CAME.detail or "", 5.0)],
        ["timed_out: its batches lack these lines: look in its console what became of them; run the same command again"],
    ),
    "none": (ONE, [(NAME, "n_replies", "answered", 40.0)], []),
    "another judge's": (ONE, [("other", "n_replies", "rejected", 40.0)], []),
    "a recorded judge's": (RECORDED, [(NAME, "n_replies", "rejected", 40.0)], []),
}  # fmt: skip


@pytest.mark.parametrize(("judge", "rows", "told"), CASES.values(), ids=CASES.keys())
def test_asks_without_a_reply_are_told_with_what_to_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], judge: Judge, rows: list[Row], told: Sequence[str]
) -> None:
    health = pl.DataFrame(rows, schema=["judge_model", "measure", "word", "value"], orient="row")
    health.write_parquet(tmp_path / "health.parquet")
    print_failed(result_console(), tmp_path, [judge])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == bool(told)
    assert all(one in lines[0] for one in told), lines
    assert not lines or ("deadline_s" in lines[0]) == any("deadline_s" in one for one in told)


def test_a_publication_without_such_a_table_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    print_failed(result_console(), tmp_path, [ONE])
    assert not capsys.readouterr().out
