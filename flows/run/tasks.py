"""What each stage of a run does with a shard, or once. The work is in tasks/, the order in stages.py and pipeline.py.

What only a run's end needs is imported there: shards in other processes import this file too.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from flows.executors.base import ShardCall, stage_task
from flows.executors.local import asking_executor
from schemas.benchmark.file import Limits
from schemas.records import PlannedPart
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, HEALTH
from schemas.tables.stored import JUDGEMENTS, REPLIES, REQUESTS, SCORES
from schemas.tables.table import Table
from tasks.context import StageContext
from tasks.ingest.parts import ShardResult
from tasks.ingest.samples import OpenShard, open_and_write_shard
from tasks.ingest.twins.exam import twins_in
from tasks.judge.batch.run import JudgeByBatch, judge_by_batch
from tasks.judge.outcome import Outcome
from tasks.judge.shard import JudgeShard, judge_shard
from tasks.lake.writing import Staging
from tasks.ledger.snapshot import check_replies, take_parts
from tasks.plan.dataset import plan_shard
from tasks.publish.folders import REPORT, PublicationName, Published
from tasks.publish.identity import provenance
from tasks.stopping import STOP, check_not_stopped
from tasks.validate.check_cache import checked
from tasks.validate.parse import REQUEST_COLUMNS, parse_part


@stage_task("open samples", "open samples, shard {shard.index}")
def open_samples(context: StageContext, shard: OpenShard) -> ShardResult:  # noqa: ARG001  # every stage is given both
    """Open a shard's pictures and write it."""
    return open_and_write_shard(shard)


plan_questions = stage_task("plan questions", "plan questions, {shard.rubric_id} for {shard.judge_model}")(plan_shard)
"""Write down what every sample is asked under a rubric."""


@stage_task("ask judge", "ask {shard.part.judge_model}, {shard.part.rubric_id}, shard {shard.part.index}")
def ask_judge(context: StageContext, shard: JudgeShard) -> Outcome:
    """Ask what the ledger lacks of a shard's requests."""
    return judge_shard(context, shard, stop=STOP)


@dataclass(frozen=True, slots=True)
class JudgeShards:
    """Parts of a plan for one judge that one worker process asks together, and the limits of that process."""

    parts: Sequence[PlannedPart]
    limits: Limits


@stage_task("ask judge", "ask {shard.parts[0].judge_model}, from shard {shard.parts[0].index} on")
def ask_judge_together(context: StageContext, shard: JudgeShards) -> Outcome:
    """Ask what the ledger lacks of several shards' requests; the next shard begins while the last replies of one are to come."""
    calls = (ShardCall(ask_judge, context, JudgeShard(part, shard.limits), spends_money=True) for part in shard.parts)
    with asking_executor(shard.limits) as executor:
        return sum(executor.run(calls), Outcome())


@stage_task("ask judge by batch", "ask {shard.judge_model} by batch")
def ask_by_batch(context: StageContext, shard: JudgeByBatch) -> Outcome:
    """Ask what the ledger lacks of all of a judge's requests through its provider's Batch API."""
    return judge_by_batch(context, shard, stop=STOP)


take_replies = stage_task("take replies", "take replies, from shard {shard.indices[0]} on")(take_parts)
"""Write some shards' replies as the ledger holds them now; return their digests."""


@dataclass(frozen=True, slots=True)
class ReadShard:
    """The parts of a plan whose replies are read together, and where their scores go."""

    indices: Sequence[int]
    staging: Staging


@stage_task("read replies", "read replies, from shard {shard.indices[0]} on")
def read_replies(context: StageContext, shard: ReadShard) -> int:
    """Write some shards' scores; return how many rows."""
    n_rows = 0
    for index in shard.indices:
        check_not_stopped()
        requests = context.lake.read_part(REQUESTS, context.ids.plan_id, index, REQUEST_COLUMNS)
        replies = context.lake.read_part(REPLIES, context.ids.snapshot_id, index)
        check_replies(
            replies, f"snapshot {context.ids.snapshot_id[:12]}", "delete its marker in the lake's complete/replies/ and run again"
        )
        n_rows += shard.staging.write_part(index, parse_part(requests, replies, context.rubrics))
    return n_rows


check_data = stage_task("check data")(checked)
"""Run the data checks over the stored tables of a run, unless they passed over the same bytes before."""


def _judged(context: StageContext) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    """The run's judgements of one sample each, and the scores."""
    judgements, scores = _judged_so_or_in_pairs(context)
    return judgements.filter(pl.col("second_sample_id").is_null()), scores


def _judged_so_or_in_pairs(context: StageContext) -> tuple[pl.LazyFrame, pl.LazyFrame]:
    return context.lake.scan(JUDGEMENTS, context.ids.plan_id), context.lake.scan(SCORES, context.ids.reading_id)


@stage_task("compute tables")
def compute_tables(context: StageContext) -> dict[Table, pl.DataFrame]:
    """Every table a run publishes, from its judgements, scores and replies."""
    from tasks.aggregate.tables import Settings, aggregated

    replies, settings = context.lake.scan(REPLIES, context.ids.snapshot_id), Settings.of(context)
    tables = aggregated(*_judged(context), replies, context.rubrics, settings)
    if any(rubric.is_of_pairs for rubric in context.rubrics.values()):
        from tasks.aggregate.health import health_of_pairs
        from tasks.aggregate.preferences.adaptive import plans_of
        from tasks.aggregate.preferences.tables import preference_tables
        from tasks.aggregate.preferences.verdicts import verdicts

        judgements, scores = _judged_so_or_in_pairs(context)
        said, is_adaptive = verdicts(judgements, scores, context.rubrics), context.benchmark.pairs.adaptive
        tables |= (
            preference_tables(said.filter("is_asked"), settings, plans_of(said))
            if is_adaptive
            else preference_tables(said, settings)
        )
        rows = health_of_pairs(judgements, scores, replies, context.rubrics.values(), only_asked=is_adaptive)
        of_pairs = HEALTH.frame([settings.named | row for row in rows])
        tables[HEALTH] = pl.concat([tables[HEALTH], of_pairs]).sort(HEALTH.key)
    if context.benchmark.exam is not None:
        from tasks.aggregate.exam import exam_table

        links = twins_in(context.dataset)
        tables[EXAM] = exam_table(*_judged(context), links, context.rubrics, settings, context.benchmark.exam)
    return tables


@stage_task("weigh judges")
def weigh_judges(context: StageContext) -> dict[Table, pl.DataFrame]:
    """The judges' own noise and agreement, from repeats and from several judges."""
    from tasks.aggregate.reliability.reliability import judge_tables  # with scipy.stats, a second to import

    return judge_tables(*_judged(context))


@stage_task("pool judges")
def pool_judges(context: StageContext, cells: pl.DataFrame) -> pl.DataFrame:
    """Several judges' scores of the same samples as one figure; `cells` is benchmark_long."""
    from tasks.aggregate.pooled import pooled
    from tasks.aggregate.tables import Settings

    whole = [judge.id for judge in context.benchmark.judges if judge.share is None]  # of a share there are not all scores
    judgements, scores = _judged(context)
    judged = {name: rubric for name, rubric in context.rubrics.items() if not rubric.program}  # a program is alone in its rubric
    mine = judgements.filter(pl.col("judge_model").is_in(whole), pl.col("rubric_id").is_in(list(judged)))
    return pooled(mine, scores, judged, Settings.of(context), cells)


@dataclass(frozen=True, slots=True)
class RunTables:
    """Every table of a run; of a publication that `is_there` already its cells, which say if it may become the current one.

    `is_proof`: its pages are made of the stored pictures alone, and nothing is taken from what the lake keeps to save work.
    """

    by_table: Mapping[Table, pl.DataFrame]
    is_there: bool = False
    is_proof: bool = False


@stage_task("publish tables")
def publish_tables(context: StageContext, tables: RunTables) -> Published:
    """Write the publication's folder with its report, then move the pointer."""
    from tasks.publish.publication import Draft, publish
    from tasks.publish.report.compare import compare_pages, has_pages
    from tasks.publish.report.gallery import gallery_of
    from tasks.publish.report.page import report_page
    from tasks.publish.report.pairs import pair_cards
    from tasks.publish.report.sheets import kept_tiles
    from tasks.publish.standings.pair_boards import pair_boards

    name = PublicationName(context.benchmark.name, context.ids.publication_id, context.run_date)
    said = provenance(context)
    if tables.is_there:
        return publish(context.lake.root, Draft(name, tables.by_table, said, is_there=True))
    cells = tables.by_table[BENCHMARK_LONG]
    n_pictured = context.benchmark.report.max_pictured
    gallery = gallery_of(context.lake, context.ids, cells, context.rubrics)
    headlines = {board.rubric_id: board.dimension for board in reversed(pair_boards(tables.by_table)) if board.is_headline}
    cards = pair_cards(context.lake, context.ids, headlines)
    is_pictured = has_pages(context.lake, context.ids, n_pictured)
    kinds = {(rubric.id, kind) for rubric in context.rubrics.values() for kind in rubric.kinds}
    page = report_page(name, tables.by_table, said, gallery, is_pictured=is_pictured, cards=cards, kinds=kinds)
    pages = {REPORT: page}
    cache = None if tables.is_proof else kept_tiles(context)
    further = compare_pages(context.lake, context.ids, tables.by_table, context.rubrics, name, n_pictured, cache)
    return publish(context.lake.root, Draft(name, tables.by_table, said, pages, further=further))
