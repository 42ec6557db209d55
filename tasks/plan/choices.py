"""Which judge is asked about which sources by which rubric: a benchmark's own, anchors, and the twins of an exam.

How twins are made is tasks/ingest/twins; what one sample is asked is rows.py.
"""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

import polars as pl

from rubrics.model import Rubric
from schemas.benchmark.exam import EXAM, FAULTS, IN_PROMPTS, OCCASION, Exam, PlantedFault, exam_source
from schemas.benchmark.judges import Judge
from schemas.records import IMAGE
from schemas.tables.stored import SAMPLES
from tasks.context import StageContext
from tasks.plan.anchors import ANCHORS, anchors_of

Choice = tuple[str, str, list[str], str]
"""Rubric, judge, sources, occasion."""


def choices_of(context: StageContext) -> list[Choice]:
    """What is asked of whom, in the plan's own order."""
    pairs = _pairs(context)
    choices = [(rubric_id, judge.id, context.sources_for(rubric_id), "") for rubric_id, judge in pairs]
    present = _further_sources(context)
    for rubric_id, judge in pairs if present else []:
        names = [anchors_of(name) for name in context.sources_for(rubric_id)]
        if present.intersection(names) and not judge.recorded and not context.rubrics[rubric_id].is_of_pairs:
            choices.append((rubric_id, judge.id, names, context.run_date.isoformat()))
    return choices + _of_exam(context, pairs, present)


def shown_exam(context: StageContext) -> Exam | None:
    """The benchmark's exam with those of its faults that some judge is shown; None where no twin would be asked about."""
    exam = context.benchmark.exam
    if exam is None:
        return None
    rubrics = [context.rubrics[name] for name, judge in _pairs(context) if _is_examined(context.rubrics[name], judge)]
    faults = [fault for fault in exam.faults if any(_is_shown(rubric, fault) for rubric in rubrics)]
    return exam.model_copy(update={"faults": faults}) if faults else None


def _pairs(context: StageContext) -> list[tuple[str, Judge]]:
    return [(rubric_id, judge) for rubric_id in sorted(context.rubrics) for judge in context.judges_for(rubric_id)]


def _further_sources(context: StageContext) -> frozenset[str]:
    """The sources of anchors and of the exam's twins that the dataset holds."""

    def sources(rows: pl.LazyFrame) -> pl.LazyFrame:
        is_further = pl.col("source").str.starts_with(f"{ANCHORS}/") | pl.col("source").str.starts_with(EXAM)
        return rows.filter(is_further).select("source").unique()

    return frozenset(context.lake.collect(SAMPLES, context.ids.dataset_id, sources)["source"])


def _of_exam(context: StageContext, pairs: Sequence[tuple[str, Judge]], present: AbstractSet[str]) -> list[Choice]:
    """Of each rubric and judge the twins in which something is changed that the judge is shown.

    `present` are the dataset's sources. Pairs are not examined, nor is a judge whose replies are recorded.
    """
    found: list[Choice] = []
    for rubric_id, judge in pairs:
        rubric, sources = context.rubrics[rubric_id], context.sources_for(rubric_id)
        faults = [fault for fault in FAULTS if _is_shown(rubric, fault)]
        names = list(dict.fromkeys(exam_source(name, fault) for fault in faults for name in sources))
        if _is_examined(rubric, judge) and not present.isdisjoint(names):
            harmless = [exam_source(name, PlantedFault.HARMLESS) for name in sources]
            found.append((rubric_id, judge.id, [*harmless, *names], OCCASION))
    return found


def _is_examined(rubric: Rubric, judge: Judge) -> bool:
    return bool(rubric.messages) and not (judge.recorded or rubric.is_of_pairs or rubric.program)


def _is_shown(rubric: Rubric, fault: PlantedFault) -> bool:
    """Whether a judge that is asked by the rubric is shown what the fault changes."""
    if fault in IN_PROMPTS:
        return not {"prompt", "question"}.isdisjoint(rubric.columns)
    return IMAGE in rubric.roles
