"""The plan of a dataset: every rubric with every judge, rendered and written in one pass. What one sample is asked is rows.py.

A plan is found again by what it is made from: `planned/<digest of that>.json` in the lake names it and its parts, so that an
unchanged run plans nothing. The note can be deleted at any time; then the plan is made again, and is the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from hashlib import sha256
from itertools import groupby
from pathlib import Path

import orjson
import polars as pl

from schemas.benchmark.exam import OCCASION as EXAM_OCCASION
from schemas.errors import NothingToJudgeError
from schemas.identities import canonical_json
from schemas.records import UNKNOWN, Plan, PlannedPart
from schemas.tables.stored import JUDGEMENTS, REQUESTS, SAMPLES
from tasks.context import StageContext
from tasks.lake.atomic_files import write_bytes
from tasks.lake.reading import Lake
from tasks.lake.writing import Staging, stage
from tasks.plan.checks import SeenRequests, check_something_to_ask, keep_first, plan_id, summarise
from tasks.plan.choices import choices_of
from tasks.plan.pairs import pair_rows, paired, part_size
from tasks.plan.rows import Planned, Planner
from tasks.plan.samples import first_unusable, scanned, with_first_row
from tasks.regular_files import content_of
from tasks.stopping import check_not_stopped

ROWS_AT_ONCE = 50_000
"""Samples planned together, whole parts at a time: some 200 MB."""

_NOT_ASKED = {"base_url", "api_key_env", "price", "on_model_change", "accept_models"}  # of a judge: what no question depends on

_PLACE = ["part", "samples_part", "round", "about"]
"""Of a row to plan: its part of requests, the part of samples that its picture stands in, its round, if any, and about whom."""


@dataclass(frozen=True, slots=True)
class PlanShard:
    """One rubric with one judge, over the samples of some sources, on one occasion; written into the two stagings.

    Parts of requests are those of samples, numbered from `first_index` on.
    """

    rubric_id: str
    judge_model: str
    sources: tuple[str, ...]
    judgements: Staging
    requests: Staging
    first_index: int = 0
    occasion: str = ""
    pairs: pl.DataFrame | None = None  # of a rubric for pairs: paired()'s rows, all, since any two may be one request


def plan_shards(context: StageContext, judgements: Staging, requests: Staging) -> list[PlanShard]:
    """The shards of the context's dataset, in an order that is the plan's own: parts are found again by their number.

    Anchors in the dataset come behind them, asked on the occasion of the run date, and last the twins of an exam, on its own;
    judges that are only recorded are asked neither.
    """
    n_parts = context.lake.n_parts(SAMPLES, context.ids.dataset_id)
    shards: list[PlanShard] = []
    first_index = 0
    for rubric_id, choices in groupby(choices_of(context), key=lambda choice: choice[0]):
        rubric = context.rubrics[rubric_id]
        pairs = paired(context, rubric) if rubric.is_of_pairs else None
        for _, judge, sources, occasion in choices:
            shards.append(PlanShard(rubric_id, judge, tuple(sources), judgements, requests, first_index, occasion, pairs))
            if pairs is not None:
                first_index += pairs["part"].n_unique()
            else:
                first_index += _n_parts_in_looks(context) if _looks(context, rubric_id, judge, occasion) else n_parts
    return shards


def plan_shard(context: StageContext, shard: PlanShard) -> list[PlannedPart]:
    """Plan one shard: judgements and requests, the latter rendered. Judgements are written many parts together.

    A question that several samples ask stands in `requests` once, in the first part that asks it. Raises StoppedError.
    """
    rubric, judge = context.rubrics[shard.rubric_id], context.judge(shard.judge_model)
    seen = SeenRequests()
    found: list[PlannedPart] = []
    planner = Planner(rubric, judge, shard.occasion, looks=_looks(context, rubric.id, judge.id, shard.occasion))
    is_of_pairs = shard.pairs is not None
    for places, planned in _planned_pairs(context, planner, shard) if is_of_pairs else _planned(context, planner, shard.sources):
        # not "part", which is of `asked` the question about a sample's items
        asked = keep_first(planned.asked.with_columns(plan_part=places["part"].gather(planned.asked["sample"])), seen)
        by_part = asked.partition_by("plan_part", as_dict=True)
        shard.judgements.write_part(shard.first_index + len(found), planned.judgements)
        for number, samples_part, *in_rounds in places.unique("part").sort("part").iter_rows():
            check_not_stopped()
            mine = by_part.get((number,), asked[:0])
            part = PlannedPart(shard.first_index + len(found), samples_part, rubric.id, judge.id, mine.height, *in_rounds)
            shard.requests.write_part(part.index, planned.requests(mine))
            found.append(part)
    return found


def commit_plan(context: StageContext, judgements: Staging, requests: Staging, parts: Sequence[PlannedPart]) -> Plan:
    """Check what was staged, make it the lake's, and note it. Raises NothingToJudgeError where a rubric can ask nothing."""
    staged = _staged(judgements)
    summary = summarise(staged)
    if summary.is_empty():
        _check_share_draws(context)
    for rubric in context.rubrics.values():
        mine = summary.filter(summary["rubric_id"] == rubric.id)
        if summary.is_empty() or not mine.is_empty():  # of some checkpoints alone, a rubric may have no sample
            sources = context.sources_for(rubric.id)
            first_bad = partial(first_unusable, context, sources)
            check_something_to_ask(mine, context.rubrics, with_first_row(context, sources), first_bad)
    staging = context.lake.root / "staging"
    looks, rubrics, pairs = context.benchmark.statistics.stopping.looks, context.rubrics.values(), context.benchmark.pairs
    a_round = pairs.prompts_a_round * pairs.adaptive if any(rubric.is_of_pairs for rubric in rubrics) else None
    key = plan_id(staged, rubrics, dataset_id=context.ids.dataset_id, folder=staging, looks=looks, prompts_a_round=a_round)
    plan = Plan(key, tuple(parts))
    requests.commit(plan.plan_id, [part.index for part in parts])
    judgements.commit(plan.plan_id)
    write_bytes(orjson.dumps(asdict(plan)), _note(context), staging)
    return plan


def _check_share_draws(context: StageContext) -> None:
    """Raise NothingToJudgeError where nothing is asked because the judges' shares hold no prompt of the samples there are."""
    shares = [f"{judge.share:g} of {judge.id}" for judge in context.benchmark.judges if judge.share is not None]
    sources = {source for rubric_id in context.rubrics for source in context.sources_for(rubric_id)}
    is_asked = pl.col("source").is_in(list(sources)) & (pl.col("model") != UNKNOWN)
    samples = context.lake.scan(SAMPLES, context.ids.dataset_id).filter(is_asked)
    n_samples, n_prompts = samples.select(pl.len(), pl.col("prompt").n_unique().alias("n")).collect().row(0)
    if (
        len(shares) == len(context.benchmark.judges)
        and n_samples
        and not any(rubric.is_of_pairs for rubric in context.rubrics.values())
    ):
        raise NothingToJudgeError(
            f"share ({', '.join(shares)}) draws none of the {n_prompts:,} prompts of {n_samples:,} samples; raise it"
        )


def known_plan(context: StageContext) -> Plan | None:
    """The plan made before from the same dataset, rubrics, judges and code, where it stands in the lake."""
    try:
        said = orjson.loads(content_of(_note(context)))
        plan = Plan(str(said["plan_id"]), tuple(PlannedPart(**part) for part in said["parts"]))
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None
    is_there = all(context.lake.is_complete(table, plan.plan_id) for table in (JUDGEMENTS, REQUESTS))
    return plan if is_there else None


def new_stagings(lake: Lake) -> tuple[Staging, Staging]:
    """Places for a plan's judgements and requests."""
    return stage(lake, JUDGEMENTS), stage(lake, REQUESTS)


def _planned_pairs(context: StageContext, planner: Planner, shard: PlanShard) -> Iterator[tuple[pl.DataFrame, Planned]]:
    """The same of a shard's pairs, some ROWS_AT_ONCE at a time, whole parts."""
    assert shard.pairs is not None
    n_rows = shard.pairs.group_by("part").len().sort("part")["len"]
    numbered = shard.pairs.with_columns(block=n_rows.cum_sum().gather(shard.pairs["part"]) // ROWS_AT_ONCE)
    for _, some in numbered.group_by("block", maintain_order=True):
        rows = planner.drawn(pair_rows(context, some.drop("block")))
        if not rows.is_empty():
            yield rows.rename({"comparison": "about"}).select(_PLACE), planner.plan(rows)


def _planned(context: StageContext, planner: Planner, sources: Sequence[str]) -> Iterator[tuple[pl.DataFrame, Planned]]:
    """(_PLACE of each row, the rows planned), some ROWS_AT_ONCE samples at a time. Parts are those of samples."""
    first = 0
    for paths in context.lake.parts_together(SAMPLES, context.ids.dataset_id, ROWS_AT_ONCE):
        of_sources = scanned(paths, first).filter(pl.col("source").is_in(list(sources)))
        first += len(paths)
        samples = planner.drawn(of_sources.drop("source").collect())
        if not samples.is_empty():
            planned = planner.plan(samples)
            yield _placed(samples, planned) if planner.looks else _as_samples(samples, planner.occasion), planned


def _as_samples(samples: pl.DataFrame, occasion: str) -> pl.DataFrame:
    """_PLACE of samples that are asked at once: in parts as they are."""
    about = pl.lit(occasion if occasion == EXAM_OCCASION else None, pl.String)
    return samples.select(part="samples_part", samples_part="samples_part", round=pl.lit(None, pl.Int64), about=about)


def _placed(samples: pl.DataFrame, planned: Planned) -> pl.DataFrame:
    """_PLACE of samples that are asked look by look: those of one part, one checkpoint and one look are a part of requests."""
    of = samples.select("samples_part", about=pl.col("model") + "/" + pl.col("checkpoint"))
    of = of.with_columns(round=planned.judgements["first_look"].gather_every(planned.judge.repeats) - 1)
    return of.with_columns(part=pl.struct("samples_part", "about", "round").rank("dense").cast(pl.Int64)).select(_PLACE)


def _looks(context: StageContext, rubric_id: str, judge_id: str, occasion: str) -> Sequence[float]:
    """The looks at what a judge is asked under a rubric: none at pairs, anchors, and what nobody is asked."""
    rubric = context.rubrics[rubric_id]
    is_asked = bool(rubric.messages) and not context.judge(judge_id).recorded
    return context.benchmark.statistics.stopping.looks if is_asked and not occasion and not rubric.is_of_pairs else ()


def _n_parts_in_looks(context: StageContext) -> int:
    """The most parts of requests there can be where they are cut by checkpoint and look."""
    paths = context.lake.parts_without_pictures(SAMPLES, context.ids.dataset_id)
    cut = scanned(paths, 0).select("samples_part", "model", "checkpoint").unique().select(pl.len())
    return int(cut.collect(engine="streaming").item()) * len(context.benchmark.statistics.stopping.looks)


def _staged(judgements: Staging) -> pl.LazyFrame:
    paths = list(judgements.part_paths())
    return pl.scan_parquet(paths) if paths else JUDGEMENTS.empty().lazy()


def _note(context: StageContext) -> Path:
    """Where the plan is noted, under the digest of all that it is made from."""
    judges = {judge.id: judge.model_dump(mode="json", exclude=_NOT_ASKED) for judge in context.benchmark.judges}
    digests = {rubric.id: rubric.digest for rubric in context.rubrics.values()}
    looks = context.benchmark.statistics.stopping.looks
    ids, choices = context.ids, choices_of(context)
    made_from = [ids.dataset_id, ids.code_version, digests, judges, choices, _of_pairs(context), looks]
    return context.lake.root / "planned" / f"{sha256(canonical_json(made_from)).hexdigest()}.json"


def _of_pairs(context: StageContext) -> list[object]:
    """What the pairs follow from beside the dataset; nothing where no rubric is for pairs."""
    if not any(rubric.is_of_pairs for rubric in context.rubrics.values()):
        return []
    benchmark = context.benchmark
    asked = benchmark.pairs.model_dump(mode="json")
    return [asked, benchmark.nightly.baseline, part_size(context), context.lineage.said]
