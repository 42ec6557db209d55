"""The benchmark file's [exam], the faults it plants, and what an exam says of a dimension. Planting is tasks/ingest/twins."""

from enum import StrEnum

from pydantic import Field, model_validator

from schemas.benchmark.lines import Section

EXAM = "__exam__"
"""The model of every twin, and what its source begins with; no model or source of a benchmark file is called so."""

OCCASION = "exam"
"""On which twins are asked: a question of its own, so that the harmless twin of a sample is not answered from the cache."""


class PlantedFault(StrEnum):
    """What is wrong with a twin."""

    HARMLESS = "harmless"  # no fault: the same sample, its picture changed by what nobody sees, asked once more
    SWAPPED_PROMPT = "swapped_prompt"  # the prompt of another sample
    MISSPELT_TEXT = "misspelt_text"  # two letters are swapped in the text that the prompt quotes
    WRONG_COUNT = "wrong_count"  # the prompt's number is one more or one less
    MIRRORED = "mirrored"  # left and right are swapped, if a text says a side
    RECOLOURED = "recoloured"  # every hue is shifted by a third of the circle, if a text says a color
    ERASED = "erased"  # the most conspicuous region is filled in from around it
    DOUBLED = "doubled"  # the most conspicuous region is repeated in another place
    BLURRED = "blurred"  # fine detail is lost


FAULTS: tuple[PlantedFault, ...] = tuple(fault for fault in PlantedFault if fault is not PlantedFault.HARMLESS)
IN_PROMPTS = frozenset({PlantedFault.SWAPPED_PROMPT, PlantedFault.MISSPELT_TEXT, PlantedFault.WRONG_COUNT})
"""Faults of the prompt; all others are of the picture."""


class Sight(StrEnum):
    """What an exam says about a dimension and a fault, after correction for the family."""

    SEES = "sees"  # it notices at least the floor's share
    BLIND = "blind"  # it notices less than the floor's share
    CANNOT_TELL = "cannot_tell"  # the twins leave both open


class ExamReason(StrEnum):
    """Why a row of `exam` has no verdict, if CellReason does not say it."""

    NO_TWINS = "no_twins"  # no sample has all three scores: untouched, harmless, faulted
    NO_ROOM = "no_room"  # every untouched score is at the scale's lowest end, so none can fall


class Exam(Section):
    """Faults planted in the benchmark's own samples, and how many of them a judge is to notice."""

    share: float = Field(
        default=0.05, gt=0, le=1, description="Twins asked, at most so many for each usable sample of a checkpoint and source."
    )
    faults: list[PlantedFault] = Field(default_factory=lambda: list(FAULTS), min_length=1)
    floor: float = Field(
        default=0.3,
        gt=0,
        lt=1,
        description="A dimension that certainly notices a smaller share of a fault is marked blind to it.",
    )
    meant: dict[str, list[PlantedFault]] = Field(
        default_factory=dict,
        description="dimension or rubric.dimension -> faults it is to notice; of others it is never called blind.",
    )

    @model_validator(mode="after")
    def _plants_faults(self) -> "Exam":
        listed = [("faults", self.faults), *((f"meant.{name}", faults) for name, faults in self.meant.items())]
        for key, faults in listed:
            if PlantedFault.HARMLESS in faults:
                raise ValueError(f"{key}: a harmless twin is always asked and is not a fault; available: {', '.join(FAULTS)}")
            if len(set(faults)) < len(faults):
                raise ValueError(f"{key}: name each fault once")
        return self


def exam_source(source: str, fault: PlantedFault) -> str:
    """The source of twins of a source's samples: by what is changed, so that a rubric is asked only what it is shown."""
    if fault is PlantedFault.HARMLESS:
        return f"{EXAM}/{source}"
    return f"{EXAM}{'prompt' if fault in IN_PROMPTS else 'picture'}/{source}"
