"""Which samples of a dataset meet under a rubric for pairs, in both orders, and as which rows. Asking is rows.py's.

A pair is two samples of one prompt by two checkpoints: every text the rubric reads is the same, and every picture but the judged
ones. It is asked twice, each sample being shown first once, so that a judge's liking for a place shows.
"""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from itertools import combinations

import polars as pl

from rubrics.model import FIRST, SECOND, Rubric
from schemas.benchmark.rounds import Pairs
from schemas.errors import NothingToJudgeError
from schemas.lineage import Checkpoint, Lineage
from schemas.records import IMAGE, SAMPLE_TEXTS, UNKNOWN
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.lake.pictures import with_pictures
from tasks.plan.samples import PAIR_COLUMNS, scanned

_KEY = ["key", "check"]
_PAIRED = {"sample_id": pl.String, "second_sample_id": pl.String, "part": pl.Int64, "round": pl.Int64, "comparison": pl.String}
_SECOND = {"sample_id": "second_sample_id", "model": "second_model", "checkpoint": "second_checkpoint"}
_HELD = ["sample_id", "model", "checkpoint", "seed", "image_sha256", "pictures", "status"]


def meetings(
    checkpoints: Sequence[Checkpoint], pairs: Pairs, baseline: str | None, lineage: Lineage
) -> list[tuple[Checkpoint, Checkpoint]]:
    """Which checkpoints meet, each two once, the later one first; oldest first."""
    ordered = sorted(set(checkpoints), key=lineage.key)
    found: dict[frozenset[Checkpoint], tuple[Checkpoint, Checkpoint]] = {}
    wanted: list[tuple[Checkpoint, Checkpoint]] = []
    if "baseline" in pairs.meet:
        held = [one for one in ordered if "/".join(one) == baseline]
        wanted += [(one, other) for other in held for one in ordered if one != other]
    if "predecessor" in pairs.meet:
        before = lineage.before(ordered)
        wanted += [(one, before[one]) for one in ordered if before.get(one) in ordered]
    if "each_other" in pairs.meet:
        wanted += [(after, before) for before, after in combinations(ordered, 2)]
    for one, other in wanted:
        found.setdefault(frozenset((one, other)), (one, other))
    return list(found.values())


def named(one: Checkpoint, other: Checkpoint) -> str:
    """Two checkpoints in one text, whichever is said first."""
    return " ".join("/".join(each) for each in sorted((one, other)))


def paired(context: StageContext, rubric: Rubric) -> pl.DataFrame:
    """The dataset's pairs in the plan's order: sample_id, second_sample_id, `part`, from 0; if adaptive `round`, `comparison`.

    Pairs whose two pictures are the same bytes are none: there is nothing to tell apart. Raises NothingToJudgeError.
    """
    pairs = context.benchmark.pairs
    samples = _samples(context, rubric)
    names = samples.select("model", "checkpoint").unique().rows()
    met = meetings(names, pairs, context.benchmark.nightly.baseline, context.lineage)
    if not met and (len(names) < 2 or context.lineage.by_model):  # a first night; a backfill's one; the one before is not here
        return pl.DataFrame(schema=_PAIRED)
    if not met:
        raise NothingToJudgeError(_nobody_meets(context, rubric, samples))
    columns = {"model": pl.String, "checkpoint": pl.String, "second_model": pl.String, "second_checkpoint": pl.String}
    compared = pl.DataFrame([(*one, *other) for one, other in met], schema=columns, orient="row")
    compared = compared.with_columns(comparison=pl.Series([named(one, other) for one, other in met]))
    seconds = samples.rename(_SECOND).select(*PAIR_COLUMNS, *_KEY, "place", second_shown="shown")
    both = samples.join(compared, on=["model", "checkpoint"]).join(
        seconds, on=["second_model", "second_checkpoint", *_KEY, "place"]
    )
    both = both.filter((pl.col("shown") != pl.col("second_shown")) | (pl.col("shown") == ""))
    if both.is_empty():
        raise NothingToJudgeError(
            f"rubric {rubric.id} compares two pictures of one prompt, but no two checkpoints to be compared share "
            f"{', '.join([*rubric.columns, *rubric.shared_roles])}; fix the sources' columns, or [pairs] meet"
        )
    forth = both.select("comparison", "prompt", "turn", "place", "sample_id", "second_sample_id", order=pl.lit(0))
    back = forth.with_columns(sample_id="second_sample_id", second_sample_id="sample_id", order=pl.lit(1))
    asked = pl.concat([forth, back])
    return _cut(asked, pairs, part_size(context)).select("sample_id", "second_sample_id", "part", "round", "comparison")


def part_size(context: StageContext) -> int:
    """Pairs in a part: as many as the dataset's shards had samples, whatever the file says now, so that a plan stays the same.

    An earlier release did not say so of a dataset: there the file's.
    """
    return context.lake.shard_size(SAMPLES, context.ids.dataset_id) or context.benchmark.limits.shard_size


def _cut(asked: pl.DataFrame, pairs: Pairs, shard_size: int) -> pl.DataFrame:
    """In parts: prompts in the sources' order, or, to be left at any time, those of one comparison in an order of their own."""
    if not pairs.adaptive:
        asked = asked.sort("prompt", "comparison", "place", "order")
        whole = pl.int_range(pl.len()) // shard_size
        return asked.with_columns(part=whole, round=pl.lit(None, pl.Int64), comparison=pl.lit(None, pl.String))
    asked = asked.sort("comparison", "turn", "place", "order")
    nth = (pl.col("turn").rank("dense").over("comparison") - 1).cast(pl.Int64)
    asked = asked.with_columns(round=nth // pairs.prompts_a_round)
    return asked.with_columns(part=(pl.struct("comparison", "round").rle_id()).cast(pl.Int64))


def _samples(context: StageContext, rubric: Rubric) -> pl.DataFrame:
    """The samples that can meet, by prompt (two hashes of what must be the same) and `place` among its checkpoint's own there."""
    lake, dataset_id, sources = context.lake, context.ids.dataset_id, context.sources_for(rubric.id)
    found: list[pl.DataFrame] = []
    turns: dict[tuple[int, int], bytes] = {}
    texts = [_text(name) for name in rubric.columns]
    for rows in lake.scans(SAMPLES, dataset_id):
        is_known = pl.col("model") != UNKNOWN
        # a twin may be in a source that the rubric is not for; where it is not, it comes first, and is kept below
        is_one = (pl.col("status") != SampleStatus.DUPLICATE.value) | pl.col("duplicate_of_sample_id").is_not_null()
        mine = rows.filter(pl.col("source").is_in(sources), is_one, is_known)
        frame = with_pictures(mine.select(*_HELD, *texts).collect())
        shared = [_digests(role).alias(f"role {role}") for role in rubric.shared_roles]
        frame = frame.with_columns(*shared, shown=_digests(IMAGE))
        same = [*rubric.columns, *(f"role {role}" for role in rubric.shared_roles)]
        # a struct's own hash takes neighbouring nulls and empty texts for one another; of JSON nothing is
        frame = frame.with_columns(said=pl.struct(same).struct.json_encode())
        frame = frame.with_columns(key=pl.col("said").hash(1), check=pl.col("said").hash(2))
        for key, check, said in frame.unique(_KEY, keep="first", maintain_order=True).select(*_KEY, "said").iter_rows():
            turns.setdefault((key, check), sha256(f"salon pairs {said}".encode()).digest())
        found.append(frame.select("sample_id", "model", "checkpoint", "seed", "shown", *_KEY))
    samples = pl.concat(found)
    by_prompt = {"key": pl.UInt64, "check": pl.UInt64, "turn": pl.Binary}
    prompts = pl.DataFrame([(*key, turn) for key, turn in turns.items()], schema=by_prompt, orient="row").with_row_index("prompt")
    samples = samples.join(prompts, on=_KEY, maintain_order="left")
    own = ["model", "checkpoint", *_KEY]
    seen = pl.when(pl.col("shown") == "").then("sample_id").otherwise("shown")  # a picture twice is asked about once
    samples = samples.unique([*own, seen], keep="first", maintain_order=True).sort("seed", "sample_id", nulls_last=True)
    samples = samples.with_columns(place=pl.int_range(pl.len()).over(own))
    return samples.filter(pl.col("place") < context.benchmark.pairs.per_prompt)


def _text(name: str) -> pl.Expr:
    """A text of a sample, in a column of its own or among those its rubrics alone know."""
    return pl.col(name) if name in SAMPLE_TEXTS else pl.col("texts_json").str.json_path_match(f"$.{name}").alias(name)


def _nobody_meets(context: StageContext, rubric: Rubric, samples: pl.DataFrame) -> str:
    names = sorted("/".join(one) for one in samples.select("model", "checkpoint").unique().iter_rows())
    baseline = context.benchmark.nightly.baseline
    return (
        f"rubric {rubric.id} compares checkpoints, but no two of {', '.join(names[:20])} are compared under [pairs] meet = "
        f"{context.benchmark.pairs.meet} with [nightly] baseline = {baseline!r}; name one of them as baseline, or write "
        'meet = ["each_other"]'
    )


def _digests(role: str) -> pl.Expr:
    """The digests of a sample's pictures in a role, joined; empty where it has none."""
    mine = pl.element().filter(pl.element().struct.field("role") == role).struct.field("sha256")
    return pl.col("pictures").list.eval(mine).list.join(",")


def pair_rows(context: StageContext, asked: pl.DataFrame) -> pl.DataFrame:
    """These pairs as rows to plan: those of the samples shown first, with both samples' pictures by FIRST and SECOND.

    Beside PLAN_COLUMNS stand PAIR_COLUMNS, `part`, and `samples_part`, the part of the sample shown first.
    """
    rows = pl.concat(list(_rows_of(context, pl.concat([asked["sample_id"], asked["second_sample_id"]]).unique())))
    is_again = (pl.col("status") == SampleStatus.DUPLICATE.value) & pl.col("duplicate_of_sample_id").is_not_null()
    rows = with_pictures(rows).with_columns(
        status=pl.when(is_again).then(pl.lit(SampleStatus.OK.value)).otherwise("status"),
        duplicate_of_sample_id=pl.lit(None, pl.String),  # a pair is the duplicate of none
    )
    second = rows.select(
        second_sample_id="sample_id", second_model="model", second_checkpoint="checkpoint",
        second_status="status", second_pictures="pictures",
    )  # fmt: skip
    both = asked.join(rows, on="sample_id", how="left", maintain_order="left")
    both = both.join(second, on="second_sample_id", how="left", maintain_order="left")
    role = pl.element().struct.field("role")
    rest = pl.col("pictures").list.eval(pl.element().filter(role != IMAGE))
    is_ok = pl.col("status") == SampleStatus.OK.value
    return both.with_columns(
        status=pl.when(is_ok).then("second_status").otherwise("status"),
        image_sha256=pl.lit(None, pl.String),
        pictures=pl.concat_list(rest, _judged_as(FIRST, "pictures"), _judged_as(SECOND, "second_pictures")),
    ).drop("second_pictures", "second_status")


def _judged_as(role: str, column: str) -> pl.Expr:
    """The judged pictures of a sample, by the role they have in a pair."""
    mine = pl.element().filter(pl.element().struct.field("role") == IMAGE)
    return pl.col(column).list.eval(mine.struct.with_fields(role=pl.lit(role)))


def _rows_of(context: StageContext, sample_ids: pl.Series) -> Iterator[pl.DataFrame]:
    wanted = sample_ids.rename("sample_id").to_frame().lazy()
    first = 0
    for paths in context.lake.parts_together(SAMPLES, context.ids.dataset_id):
        rows = scanned(paths, first).drop("source")
        first += len(paths)
        yield rows.join(wanted, on="sample_id", how="semi").collect()
