"""What a plan asks and leaves unasked, counted from its judgements: by rubric, judge, checkpoint and category. Words: printed/.

Whether a cell will be blocked, or a mean over categories missing, is foretold by the rules of tasks/aggregate: what is not asked
has no score.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import chain

import numpy as np
import numpy.typing as npt
import polars as pl

from rubrics.model import Rubric
from schemas.metrics import natural_key
from schemas.records import UNKNOWN
from schemas.statuses.cells import Total
from schemas.statuses.rows import JudgementStatus
from schemas.tables.stored import JUDGEMENTS, SAMPLES
from tasks.aggregate.judged import CATEGORY, NOT_KNOWN, is_of_cells
from tasks.aggregate.scales import has_prompt, total_reason
from tasks.context import StageContext

_BY = ["rubric_id", "judge_model", "model", "checkpoint", "category", "status", "reason"]
_OF_SAMPLE = (JudgementStatus.UNUSABLE_SAMPLE.value, JudgementStatus.PLANNED.value)

Checkpoint = tuple[str, str]
"""Model and checkpoint."""


@dataclass(frozen=True, slots=True)
class Unasked:
    """Usable samples that a rubric asks nothing about, for one reason."""

    rubric_id: str
    reason: str
    n_samples: int
    n_of: int  # samples that the rubric is for
    source: str
    source_key: str  # of one of them
    categories: Sequence[str]  # that the rubric has no prompt for


@dataclass(frozen=True, slots=True)
class Blocked:
    """A checkpoint too few of whose samples can be asked, or, with a category, of whose samples there none can."""

    rubric_id: str
    judge_model: str
    model: str
    checkpoint: str
    n_asked: int
    n_samples: int
    category: str | None = None


@dataclass(frozen=True, slots=True)
class WithoutTotal:
    """A checkpoint that will have no mean over categories: it has no sample of these, which others have."""

    rubric_id: str
    judge_model: str
    model: str
    checkpoint: str
    categories: Sequence[str]
    n_unread: int = 0  # rows of it that say no category and could not be used


@dataclass(frozen=True, slots=True)
class CategorySize:
    """How many prompts of a category a judge is asked about by a rubric, by whichever checkpoint."""

    rubric_id: str
    judge_model: str
    category: str
    n_prompts: int


@dataclass(frozen=True, slots=True)
class Asked:
    """What can be known of a run's cells before anybody is asked."""

    min_coverage: float = 0.0
    n_prompts_needed: int = 0  # in each category, for a comparison
    n_checkpoints: int = 0
    unasked: Sequence[Unasked] = ()
    blocked: Sequence[Blocked] = ()
    without_total: Sequence[WithoutTotal] = ()
    sizes: Sequence[CategorySize] = ()  # smallest first under each rubric and judge


@dataclass(slots=True)
class _Cell:
    """One rubric, judge and checkpoint: its samples by category, and those of them that are asked."""

    samples: Counter[str]
    asked: Counter[str]


def asked_in(run: StageContext) -> Asked:
    """What the run's plan asks of samples one by one; pairs, anchors and an exam's twins are left out.

    One pass, some parts at a time. What is held grows with the cells, and by 8 bytes a prompt under each rubric.
    """
    rubrics = {one.id: one for one in run.rubrics.values() if not one.is_of_pairs}
    counts, prompts = _counted(run, rubrics)
    named = {one: counts.filter(rubric_id=one).with_columns(category=CATEGORY) for one in rubrics}
    cells: dict[tuple[str, str, Checkpoint], _Cell] = {}
    for rubric_id, judge, model, checkpoint, category, status, _, n, _ in chain(*(one.iter_rows() for one in named.values())):
        cell = cells.setdefault((rubric_id, judge, (model, checkpoint)), _Cell(Counter(), Counter()))
        cell.samples[category] += n
        cell.asked[category] += n if status == JudgementStatus.PLANNED else 0
    floor = run.benchmark.gate.min_coverage
    expected = {one: _expected(rubric, named[one]) for one, rubric in rubrics.items()}
    sizes = [CategorySize(*key, len(found)) for key, found in prompts.items()]
    ordered = sorted(cells, key=lambda one: (one[:2], one[2][0], natural_key(one[2][1]), one[2][1]))
    with_total = [key for key in ordered if not all(total_reason(rubrics[key[0]], d.key) for d in rubrics[key[0]].dimensions)]
    return Asked(
        floor,
        run.benchmark.statistics.min_paired_prompts,
        len({who for _, _, who in cells}),
        list(_unasked(run, counts)),
        [one for key in with_total if (one := _blocked(key, cells[key], expected[key[0]], floor))],
        [
            WithoutTotal(key[0], key[1], *key[2], sorted(absent), cells[key].samples[UNKNOWN])
            for key in with_total
            if (absent := expected[key[0]] - cells[key].samples.keys())
        ],
        sorted(sizes, key=lambda one: (one.rubric_id, one.judge_model, one.n_prompts, one.category)),
    )


def _counted(
    run: StageContext, rubrics: Mapping[str, Rubric]
) -> tuple[pl.DataFrame, dict[tuple[str, str, str], npt.NDArray[np.uint64]]]:
    """Samples by _BY, with the id of one of them; and the prompts asked about, hashed, by rubric, judge and category."""
    prompts: dict[tuple[str, str, str], npt.NDArray[np.uint64]] = {}
    found: list[pl.DataFrame] = []
    is_counted = pl.any_horizontal(pl.lit(value=False), *map(is_of_cells, rubrics.values()))
    for rows in chain([JUDGEMENTS.empty().lazy()], run.lake.scans(JUDGEMENTS, run.ids.plan_id)):
        mine = rows.filter(is_counted, pl.col("repeat") == 0)
        planned = mine.filter(pl.col("status") == JudgementStatus.PLANNED.value)
        counted, distinct = pl.collect_all(
            [
                mine.group_by(_BY, maintain_order=True).agg(n=pl.len().cast(pl.Int64), first=pl.col("sample_id").first()),
                planned.select(
                    "rubric_id",
                    "judge_model",
                    pl.col("category").fill_null(Total.UNNAMED.value),
                    prompt=pl.col("prompt_id").hash(),
                ).unique(),
            ],
            engine="streaming",
        )
        found.append(counted)
        for (rubric_id, judge, category), each in distinct.group_by("rubric_id", "judge_model", "category"):
            key = str(rubric_id), str(judge), str(category)
            prompts[key] = np.union1d(prompts.get(key, np.empty(0, np.uint64)), each["prompt"].to_numpy())
    both = pl.concat(found).group_by(_BY, maintain_order=True).agg(pl.col("n").sum(), pl.col("first").first())
    return both, prompts


def _expected(rubric: Rubric, counts: pl.DataFrame) -> AbstractSet[str]:
    """The categories that a mean over categories needs: those that somebody has and the rubric has a prompt for."""
    named = counts.filter(pl.col("category") != UNKNOWN).select("category", "status").unique()
    return {
        category
        for category, status in named.iter_rows()
        if status == JudgementStatus.PLANNED or (status not in NOT_KNOWN and has_prompt(rubric, category))
    }


def _blocked(key: tuple[str, str, Checkpoint], cell: _Cell, expected: AbstractSet[str], floor: float) -> Blocked | None:
    """That its total will be blocked; None where it need not be."""
    n_asked, n_samples = cell.asked.total(), cell.samples.total()
    named = (key[0], key[1], *key[2])
    if not n_asked or n_asked / n_samples < floor:
        return Blocked(*named, n_asked, n_samples)
    without = sorted(name for name in cell.samples if name in expected and not cell.asked[name])
    return Blocked(*named, 0, cell.samples[without[0]], without[0]) if without else None


def _unasked(run: StageContext, counts: pl.DataFrame) -> Iterator[Unasked]:
    """By rubric and reason, as the judge is asked who is asked about most. Rows of sources that are unusable are told by name."""
    sums = counts.group_by("rubric_id", "judge_model", maintain_order=True).agg(n_of=pl.col("n").sum())
    fullest = sums.sort("n_of", descending=True, maintain_order=True).unique("rubric_id", keep="first", maintain_order=True)
    mine = counts.join(fullest, on=["rubric_id", "judge_model"]).filter(~pl.col("status").is_in(_OF_SAMPLE))
    is_without_prompt = pl.col("status") == JudgementStatus.NO_PROMPT.value
    told = mine.group_by("rubric_id", "reason", "n_of", maintain_order=True).agg(
        pl.col("n").sum(), pl.col("first").first(), categories=pl.col("category").filter(is_without_prompt).drop_nulls().unique()
    )
    wanted = told["first"].unique().to_list()

    def places(rows: pl.LazyFrame) -> pl.LazyFrame:
        return rows.filter(pl.col("sample_id").is_in(wanted)).select("sample_id", "source", "source_key")

    found = run.lake.collect(SAMPLES, run.ids.dataset_id, places) if wanted else SAMPLES.empty()
    rows = {sample_id: (source, key) for sample_id, source, key in found.select("sample_id", "source", "source_key").iter_rows()}
    for one in told.sort("rubric_id", "n", descending=[False, True], maintain_order=True).iter_rows(named=True):
        yield Unasked(
            one["rubric_id"], one["reason"], one["n"], one["n_of"], *rows.get(one["first"], ("", "")), sorted(one["categories"])
        )
