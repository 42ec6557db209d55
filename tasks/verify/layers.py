"""The five layers from a picture to a statistic: of each, how much was derived again, what could not be, and what differs."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from schemas.tables.stored import JUDGEMENTS, PICTURES, REPLIES, REQUESTS, SAMPLES, SCORES
from tasks.publish.folders import MANIFEST, PROVENANCE
from tasks.verify.publication import read_json
from tasks.verify.rows import MAX_LISTED, Difference, n_rows_of


class Layer(StrEnum):
    """What a published number stands on, from the bottom."""

    PICTURE = "picture"
    REQUEST = "request"
    REPLY = "reply"
    READING = "reading"
    STATISTICS = "statistics"


RUBRIC = "rubrics"
_BY_PLACE = {
    PICTURES.name: Layer.PICTURE, SAMPLES.name: Layer.REQUEST, JUDGEMENTS.name: Layer.REQUEST, REQUESTS.name: Layer.REQUEST,
    "plan": Layer.REQUEST, RUBRIC: Layer.REQUEST, REPLIES.name: Layer.REPLY, SCORES.name: Layer.READING,
}  # fmt: skip
_BY_IDENTITY = {
    "dataset_id": Layer.REQUEST, "plan_id": Layer.REQUEST, "snapshot_id": Layer.REPLY, "reading_id": Layer.READING,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Tally:
    """What there is of a layer: how many of what, and how many of them could not be derived again, and why."""

    layer: Layer
    n: int
    what: str
    n_missing: int = 0
    why: str | None = None


@dataclass(frozen=True, slots=True)
class LayerResult:
    """One layer's result: n = n_derived + n_missing + those that differ. A layer without a tally could not be made at all."""

    layer: Layer
    n: int | None
    what: str
    n_derived: int
    n_missing: int
    why: str | None
    n_differences: int

    @property
    def is_whole(self) -> bool:
        """Whether all of it was derived again and is the same."""
        return self.n is not None and self.why is None and not self.n_differences


def layer_of(difference: Difference) -> Layer:
    """The layer that a difference arose in."""
    if difference.place == PROVENANCE:
        of_rubric = Layer.REQUEST if difference.column.startswith(RUBRIC) else Layer.STATISTICS
        return _BY_IDENTITY.get(difference.column, of_rubric)
    return _BY_PLACE.get(difference.place, Layer.STATISTICS)


def layer_results(tallies: Iterable[Tally], differences: Iterable[Difference]) -> list[LayerResult]:
    """Every layer's result, from the pictures up. Past MAX_LISTED differences no row counts as derived."""
    mine: dict[Layer, list[Difference]] = {layer: [] for layer in Layer}
    for one in differences:
        mine[layer_of(one)].append(one)
    of = {tally.layer: tally for tally in tallies}
    return [_result(layer, of.get(layer), found) for layer, found in mine.items()]


def _result(layer: Layer, tally: Tally | None, found: list[Difference]) -> LayerResult:
    if tally is None:
        return LayerResult(layer, None, "", 0, 0, None, len(found))
    n_rows = len({(one.place, one.row) for one in found if one.row})
    n_left = tally.n - tally.n_missing
    n_derived = 0 if len(found) >= MAX_LISTED else max(0, n_left - n_rows)
    return LayerResult(layer, tally.n, tally.what, n_derived, tally.n_missing, tally.why, len(found))


def tally_of_tables(published: Path, leave_out: tuple[str, ...]) -> Tally:
    """The published tables' rows, and, for people, the pages that cannot be made again from what is there."""
    n_rows = sum(n_rows_of(path) for path in published.glob("*.parquet"))
    n_pages = sum(name.endswith(leave_out) for name in (read_json(published / MANIFEST) or {}).get("files", {}))
    why = f"{n_pages} pages with pictures" if n_pages else None
    return Tally(Layer.STATISTICS, n_rows, "rows of tables", 0, why)
