"""`salon exam`: samples judged beside twins with planted faults, and how many of the faults each dimension notices.

The same as a benchmark's [exam] does in its nights, without a publication. What is planted is tasks/ingest/twins.
"""

import uuid

import polars as pl

from flows.executors.lake_use import lake_in_use
from flows.run import stages
from flows.run.context import RunContext
from flows.run.judging import judge
from schemas.benchmark.exam import Exam
from schemas.errors import InputError
from schemas.tables.stored import JUDGEMENTS, SCORES
from tasks.aggregate.exam import exam_table
from tasks.aggregate.tables import Settings
from tasks.ingest.twins.dataset import exam_of
from tasks.ingest.twins.exam import twins_in


def examine(run: RunContext, exam: Exam, n_samples: int) -> pl.DataFrame:
    """Judge `n_samples` of each source and all their twins, and make the table `exam` of them.

    Only what the ledger lacks is asked, under the benchmark's limits. Raises InputError where nothing can be planted.
    """
    with lake_in_use(run):
        run = run.having(dataset_id=stages.ingest(run).dataset_id, run_id=uuid.uuid4().hex, publication_id="0" * 64)
        key = exam_of(run, exam, n_samples)
        if not key:
            raise InputError(
                "no usable sample of this benchmark can be given one of the faults "
                f"{', '.join(exam.faults)}: they need a picture, or a prompt; choose other --faults"
            )
        run = run.having(dataset_id=key)
        planned = stages.plan(run)
        run = run.having(plan_id=planned.plan_id)
        judge(run, planned.parts)
        run = run.having(snapshot_id=stages.take_snapshot(run, planned))
        judged = run.lake.scan(JUDGEMENTS, planned.plan_id)
        scores = run.lake.scan(SCORES, stages.read(run, planned))
        return exam_table(judged, scores, twins_in(run.dataset), run.rubrics, Settings.of(run), exam)
