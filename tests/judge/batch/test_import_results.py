"""Results of exported requests read into a PostgreSQL ledger that a run writes to meanwhile."""

import json
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event

from schemas.benchmark.judges import Judge
from schemas.identities import RunIds
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import REQUESTS
from tasks.judge.batch.folders import BatchResults
from tasks.judge.batch.import_results import import_results
from tasks.ledger.ledger import Ledger
from tests.judge.batch.batch_bench import DATASET, JUDGED, N_REQUESTS, PLAN, RUBRICS, plan_scenes
from tests.support.asking import context_of

pytestmark = pytest.mark.slow


def test_a_reply_that_a_run_stores_meanwhile_stays_and_the_others_are_imported(tmp_path: Path, address: str) -> None:
    lake, parts = plan_scenes(tmp_path, Judge(**JUDGED))
    keys = sorted({key for part in parts for key in lake.read_part(REQUESTS, PLAN, part.index)["request_key"]})
    body = {"model": JUDGED["model"], "choices": [{"message": {"content": '{"score": 3}'}, "finish_reason": "stop"}]}
    lines = [{"custom_id": key, "response": {"status_code": 200, "body": body}} for key in keys]
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    meanwhile = JudgeReply(keys[0], 0, ReplyStatus.ANSWERED, JUDGED["model"], ReplyOrigin.ASKED, text="Score: 2")
    inserts = list[str]()
    context = context_of(lake, RUBRICS, Judge(**JUDGED), address, RunIds(dataset_id=DATASET, plan_id=PLAN))
    with Ledger(address) as ledger, Ledger(address) as run:

        def store(_connection: object, _cursor: object, statement: str, *_: Any) -> None:
            if statement.startswith("INSERT INTO replies"):
                inserts.append(statement)
                run.store([meanwhile])

        ledger.known([])  # connects
        event.listen(ledger._engine, "before_cursor_execute", store)
        found, _ = import_results(context, ledger, parts, BatchResults(tmp_path / "results"))
        stored = ledger.replies(keys).filter(ask_index=0)
    assert (found.n_rows, stored.height, len(inserts)) == (N_REQUESTS, N_REQUESTS, 1), "nothing is undone"
    assert stored.filter(request_key=keys[0])["reply_text"].to_list() == ["Score: 2"]
