"""Which twins of the exam a judge is asked about, and by which rubric. How they are made is tasks/ingest/twins."""

from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from rubrics.model import Rubric
from schemas.benchmark.exam import FAULTS, IN_PROMPTS, OCCASION, PlantedFault, exam_source
from schemas.benchmark.judges import Judge
from schemas.records import IMAGE
from tasks.context import StageContext

Choice = tuple[str, str, list[str], str]
"""Rubric, judge, sources, occasion."""


def exam_choices(context: StageContext, pairs: Sequence[tuple[str, Judge]], present: AbstractSet[str]) -> list[Choice]:
    """Of each rubric and judge the twins in which something is changed that the judge is shown.

    `present` are the dataset's sources. Pairs are not examined, nor is a judge whose replies are recorded.
    """
    found: list[Choice] = []
    for rubric_id, judge in pairs:
        rubric, sources = context.rubrics[rubric_id], context.sources_for(rubric_id)
        faults = [fault for fault in FAULTS if is_shown(rubric, fault)]
        names = list(dict.fromkeys(exam_source(name, fault) for fault in faults for name in sources))
        is_asked = bool(rubric.messages) and not (judge.recorded or rubric.is_of_pairs or rubric.program)
        if is_asked and not present.isdisjoint(names):
            harmless = [exam_source(name, PlantedFault.HARMLESS) for name in sources]
            found.append((rubric_id, judge.id, [*harmless, *names], OCCASION))
    return found


def is_shown(rubric: Rubric, fault: PlantedFault) -> bool:
    """Whether a judge that is asked by the rubric is shown what the fault changes."""
    if fault in IN_PROMPTS:
        return not {"prompt", "question"}.isdisjoint(rubric.columns)
    return IMAGE in rubric.roles
