"""How far checkpoints were asked that are asked look by look, and what was said by then. What looks are worth: sequential.py."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from schemas.metrics import CELL
from schemas.statuses.cells import Total
from schemas.statuses.rows import ReplyStatus
from tasks.aggregate.judged import Array, Judged
from tasks.aggregate.outcomes import Outcomes
from tasks.aggregate.sequential import WHOLE, Look

PlannedPrompts = Mapping[str, Mapping[str, Sequence[int]]]
"""By judge and category, the prompts that are planned up to each look."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a checkpoint was asked: the number of its last look, from 1, and by category the prompts planned up to each."""

    look: int
    n_prompts: Mapping[str, Sequence[int]]

    def at(self, number: int, categories: Sequence[str], floor: int) -> Look | None:
        """The look of this number at a mean over these categories, each of the same weight.

        Looks with fewer than `floor` prompts planned in one of them are none: nothing is tested there. None where this is one.
        """
        planned = [self.n_prompts[name] for name in categories]
        counts = [[each[place] for each in planned] for place in range(len(planned[0]))]
        whole = sum(1 / n for n in counts[-1])
        shares = {
            place + 1: round(whole / sum(1 / n for n in now), 3)
            for place, now in enumerate(counts)
            if min(now) >= max(1, floor) or place == len(counts) - 1
        }
        if number not in shares:
            return None
        before = dict.fromkeys(share for place, share in shares.items() if place <= number)  # equal ones are one look
        return Look(tuple(before), tuple(dict.fromkeys(s for s in shares.values() if s > shares[number])))


def look_of(a: Reached | None, b: Reached | None, categories: Sequence[str], floor: int) -> Look | None:
    """The look at a comparison of two over these categories: the earlier of theirs; WHOLE where all was asked at once."""
    if a is None or b is None:
        return WHOLE
    return a.at(min(a.look, b.look), categories, floor)


def looked_at(*reached: Reached | None) -> dict[str, object]:
    """The columns look and n_looks of what rests on these."""
    known = [one for one in reached if one is not None]
    if not known:
        return {}
    return {"look": min(one.look for one in known), "n_looks": max(len(n) for one in known for n in one.n_prompts.values())}


def planned_prompts(judgements: pl.LazyFrame, rubric_id: str) -> PlannedPrompts:
    """Of one rubric's judgements, whatever became of them; nothing where all are asked at once."""
    mine = judgements.filter(pl.col("rubric_id") == rubric_id, pl.col("first_look").is_not_null())
    category = pl.col("category").fill_null(Total.UNNAMED.value)
    each = mine.select("judge_model", "prompt_id", "first_look", category=category).unique()
    counted = each.group_by("judge_model", "category", "first_look").len().collect(engine="streaming")
    n_looks = int(counted["first_look"].max() or 0)  # type: ignore[arg-type]
    found: dict[str, dict[str, Array]] = {}
    for judge, name, look, n in counted.iter_rows():
        found.setdefault(judge, {}).setdefault(name, np.zeros(n_looks, np.int64))[look - 1] = n
    return {judge: {name: np.cumsum(n).tolist() for name, n in of.items()} for judge, of in found.items()}


def up_to_last_look(judged: Judged, read: Mapping[str, Outcomes]) -> tuple[dict[str, Outcomes], dict[tuple[str, ...], int]]:
    """The outcomes without those that would have come after the last look of their cell, and that look, from 1, by cell.

    As they are, and nothing, where all are asked at once.
    """
    if judged.first_look is None:
        return dict(read), {}
    cells = judged.strata.select(CELL)
    number = cells.select(pl.struct(CELL).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    last = _last_looks(judged, _sent(judged, read), number)
    is_kept = judged.first_look <= last[judged.stratum[judged.prompt]]
    return {key: _kept(outcomes, is_kept) for key, outcomes in read.items()}, dict(zip(cells.rows(), last.tolist(), strict=True))


def _sent(judged: Judged, read: Mapping[str, Outcomes]) -> Array:
    """Whether each judgement was asked about at all."""
    is_sent = np.zeros(judged.frame.height, bool)
    for outcomes in read.values():
        is_sent[outcomes.row] = True
        is_sent[outcomes.failed_row[outcomes.reason != ReplyStatus.NOT_ASKED.value]] = True
        is_sent[outcomes.aside_row] = True
    return is_sent


def _last_looks(judged: Judged, is_sent: Array, cell: Array) -> Array:
    """By stratum, the last look half of whose planned judgements of the cell were sent; `cell` numbers the cell of each stratum.

    Half, and not any: samples that share their question with another checkpoint have replies that were not asked for them.
    """
    assert judged.first_look is not None
    n_looks, planned = int(judged.first_look.max(initial=1)) + 1, judged.keys.row
    place = cell[judged.stratum[judged.prompt[planned]]] * n_looks + judged.first_look[planned]
    n_planned = np.bincount(place, minlength=(int(cell.max(initial=0)) + 1) * n_looks).reshape(-1, n_looks)
    n_sent = np.bincount(place, is_sent[planned], n_planned.size).reshape(-1, n_looks)
    is_reached = (n_sent * 2 >= n_planned) & (n_planned > 0)
    return np.asarray(np.maximum(1, (is_reached * np.arange(n_looks)).max(axis=1))[cell])


def _kept(outcomes: Outcomes, is_kept: Array) -> Outcomes:
    row, failed = is_kept[outcomes.row], is_kept[outcomes.failed_row]
    low, high, reason, is_violation = (
        values[failed] for values in (outcomes.low, outcomes.high, outcomes.reason, outcomes.is_violation)
    )
    aside = outcomes.aside_row[is_kept[outcomes.aside_row]]
    kept = Outcomes(outcomes.row[row], outcomes.score[row], outcomes.failed_row[failed], low, high, reason, is_violation, aside)
    if outcomes.item is None or outcomes.failed_item is None:
        return kept
    return replace(kept, item=outcomes.item[row], failed_item=outcomes.failed_item[failed])
