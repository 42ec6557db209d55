"""The order of a model's checkpoints, and which is directly before which: one order for comparisons, gate and drawings.

Natural order of the names, unless the table of checkpoints says otherwise or one of them is not in the publication. Where the
order comes from is flows/nights/checkpoints.py; it is kept in provenance.json.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from typing import Self

import polars as pl

from schemas.metrics import natural_key

Checkpoint = tuple[str, str]
"""Model and checkpoint."""


def natural_order(one: Checkpoint) -> tuple[object, ...]:
    """Sorts checkpoints by model, then in natural order of their names."""
    return one[0], natural_key(one[1]), one[1]


@dataclass(frozen=True, slots=True)
class Lineage:
    """Checkpoints by model, oldest first; no model whose names in natural order, each in the publication, say the same.

    Beside those of the publication each one stands that is directly before one of them, so that no older one is taken for it;
    not before the oldest of them, unless that is the newest too.
    """

    by_model: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, ordered: Sequence[Checkpoint], shown: Iterable[Checkpoint]) -> Self:
        """Of all known checkpoints, model by model and oldest first, what those that are `shown` need."""
        there, found = set(shown), dict[str, tuple[str, ...]]()
        for model, several in groupby(ordered, key=lambda one: one[0]):
            mine = list(several)
            held = [one for one in mine if one in there]
            kept = {*held, *(one for one, after in pairwise(mine) if after in held[1:] or after in held[-1:])}
            if (names := [one for one in mine if one in kept]) != sorted(held, key=natural_order):
                found[model] = tuple(name for _, name in names)
        return cls(found)

    @classmethod
    def read(cls, said: Mapping[str, Sequence[str]]) -> Self:
        """As `said` was written."""
        return cls({model: tuple(names) for model, names in said.items()})

    @property
    def said(self) -> dict[str, list[str]]:
        """As provenance.json has it."""
        return {model: list(names) for model, names in self.by_model.items()}

    def key(self, one: Checkpoint) -> tuple[object, ...]:
        """Sorts checkpoints by model, then oldest first."""
        names = self.by_model.get(one[0], ())
        return one[0], names.index(one[1]) if one[1] in names else -1, natural_key(one[1]), one[1]

    def before(self, known: Iterable[Checkpoint]) -> dict[Checkpoint, Checkpoint]:
        """The one directly before each of `known`, which may be none of them; the first of a model has none."""
        everyone = {*known, *((model, name) for model, names in self.by_model.items() for name in names)}
        ordered = sorted(everyone, key=self.key)
        return {later: one for one, later in pairwise(ordered) if one[0] == later[0]}

    def place(self, one: Checkpoint) -> int | None:
        """Its place among its model's checkpoints, from 1; None where natural order of the names says the same."""
        names = self.by_model.get(one[0], ())
        if one[1] not in names or list(names) == sorted(names, key=lambda name: (natural_key(name), name)):
            return None
        return names.index(one[1]) + 1


def newest_in(standings: pl.DataFrame) -> dict[str, str]:
    """The newest checkpoint of each model among published standings."""
    return dict(placed_in(standings))


def placed_in(standings: pl.DataFrame) -> list[Checkpoint]:
    """All that stand in published standings, by model, oldest first; `place` is not there in older publications."""
    rows = standings.select([name for name in ("model", "checkpoint", "place") if name in standings.columns]).unique()
    return [(row["model"], row["checkpoint"]) for row in sorted(rows.iter_rows(named=True), key=oldest_first)]


def oldest_first(row: Mapping[str, object]) -> tuple[object, ...]:
    """Sorts rows of published standings by model, then oldest first."""
    return row["model"], row.get("place") or 0, natural_key(str(row["checkpoint"])), row["checkpoint"]
