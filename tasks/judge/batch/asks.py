"""The requests of planned parts, as batches need them: which there are, their rows in order, and what reads their replies."""

from collections import defaultdict
from collections.abc import Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, field

import polars as pl

from rubrics.model import Rubric
from schemas.records import PlannedPart
from schemas.tables import REQUESTS, SAMPLES
from tasks.judge.shard import PartPictures
from tasks.judge.work_queue import ASKED_COLUMNS
from tasks.lake.reading import Lake

BLOCK = 250
"""Requests that are claimed in one commit."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What it takes to tell whether a reply can be read."""

    rubric: Rubric
    variant: str | None
    facts_json: str


@dataclass(slots=True)
class PlannedAsks:
    """The distinct requests of parts of one plan and judge. `part_of`: the part each stands in, by its place in `parts`."""

    lake: Lake
    dataset_id: str
    plan_id: str
    parts: Sequence[PlannedPart]
    rubrics: Mapping[str, Rubric]
    part_of: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        self.part_of = {}
        for place in range(len(self.parts)):
            for key in self._read(place, ["request_key"])["request_key"]:
                self.part_of.setdefault(key, place)

    def blocks(self, keys: Collection[str]) -> Generator[tuple[pl.DataFrame, PartPictures], None, None]:
        """The rows of these requests in the order of the plan, some at a time, and where their pictures are."""
        by_part = self._by_part(keys)
        for place in sorted(by_part):
            rows = self._read(place, ASKED_COLUMNS).unique("request_key", keep="first", maintain_order=True)
            rows = rows.filter(pl.col("request_key").is_in(list(by_part[place])))
            pictures = PartPictures(self.lake.part(SAMPLES, self.dataset_id, self.parts[place].samples_part))
            try:
                for block in rows.iter_slices(BLOCK):
                    yield block, pictures
            finally:
                pictures.close()

    def readings(self, keys: Collection[str]) -> dict[str, Reading]:
        """What reads the replies to these requests, by request key."""
        found: dict[str, Reading] = {}
        for place, of_part in self._by_part(keys).items():
            rubric = self.rubrics[self.parts[place].rubric_id]
            rows = self._read(place, ["request_key", "variant", "facts_json"]).filter(pl.col("request_key").is_in(list(of_part)))
            found |= {key: Reading(rubric, variant, facts_json) for key, variant, facts_json in rows.iter_rows()}
        return found

    def _by_part(self, keys: Collection[str]) -> dict[int, set[str]]:
        by_part: dict[int, set[str]] = defaultdict(set)
        for key in keys:
            by_part[self.part_of[key]].add(key)
        return by_part

    def _read(self, place: int, columns: Sequence[str]) -> pl.DataFrame:
        return self.lake.read_part(REQUESTS, self.plan_id, self.parts[place].index, list(columns))
