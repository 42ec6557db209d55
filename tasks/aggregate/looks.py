"""How far checkpoints were asked that are asked look by look, and what was said by then. What looks are worth: sequential.py."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import polars as pl

from rubrics.model import Rubric
from schemas.metrics import CELL
from schemas.records import UNKNOWN
from schemas.statuses.rows import JudgementStatus, ReplyStatus
from tasks.aggregate.judged import CATEGORY, NOT_KNOWN, Array, Judged, is_of_cells
from tasks.aggregate.outcomes import Outcomes
from tasks.aggregate.scales import has_prompt, is_asked
from tasks.aggregate.sequential import WHOLE, Look

Cell = tuple[str, ...]
Left = Callable[[str], Mapping[str, int]]
"""By a judge's name, the checkpoints that it was asked no more about, as "model/checkpoint", and the looks after which."""
_JUDGE = CELL.index("judge_model")
_LEAST = 0.001
"""Of the information: a first look has seen some, or the rules of a look divide by nothing."""


@dataclass(frozen=True, slots=True)
class Reached:
    """How far a checkpoint was asked: the number of its last look, from 1, and by category the prompts planned up to each."""

    look: int
    n_prompts: Mapping[str, Sequence[int]]

    def at(self, number: int, categories: Sequence[str], floor: int, *, is_pooled: bool = False) -> Look | None:
        """The look of this number at a mean over these categories, each of the same weight, or over all their prompts at once.

        Looks with fewer than `floor` prompts planned in one of them are none: nothing is tested there. None where this is one.
        """
        planned = [self.n_prompts[name] for name in categories if name in self.n_prompts]
        if not planned:  # nobody knows of which category its samples are
            return None
        counts = [[each[place] for each in planned] for place in range(len(planned[0]))]
        fewest = [min(now) for now in counts]
        counts = [[sum(now)] for now in counts] if is_pooled else counts
        whole = sum(1 / n for n in counts[-1])
        shares = {
            place + 1: max(_LEAST, round(whole / sum(1 / n for n in now), 3))
            for place, now in enumerate(counts)
            if fewest[place] >= max(1, floor) or place == len(counts) - 1
        }
        if number not in shares:
            return None
        before = dict.fromkeys(share for place, share in shares.items() if place <= number)  # equal ones are one look
        return Look(tuple(before), tuple(dict.fromkeys(s for s in shares.values() if s > shares[number])))


@dataclass(frozen=True, slots=True)
class Asked:
    """How far each cell was asked that has looks; by dimension, the categories with prompts that a cell was not asked."""

    reached: Mapping[Cell, Reached] = field(default_factory=dict)
    to_come: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PlannedPrompts:
    """All that is planned of one rubric in looks, asked or not: by judge and category, the prompts up to each look.

    `asked_in`: by dimension, the categories of its mean, those that the rubric has a prompt for.
    """

    up_to: Mapping[str, Mapping[str, Sequence[int]]]
    asked_in: Mapping[str, frozenset[str]]

    def asked(self, last: Mapping[Cell, int]) -> Asked:
        """How far these cells were asked, each with its last look."""
        reached = {cell: Reached(look, self.up_to[cell[_JUDGE]]) for cell, look in last.items() if cell[_JUDGE] in self.up_to}
        looks = {judge: [one.look for cell, one in reached.items() if cell[_JUDGE] == judge] for judge in self.up_to}
        first = {judge: min(numbers, default=0) for judge, numbers in looks.items()}
        each = [(first[judge], name, n) for judge, of in self.up_to.items() for name, n in of.items()]
        rest = {name for look, name, n in each if n[-1] > (n[look - 1] if look else 0)}
        return Asked(reached, {key: names & rest for key, names in self.asked_in.items()})

    def are_enough(self, judge: str, dimensions: Sequence[str], look: int, floor: int) -> bool:
        """Whether a look holds that many prompts of each category the judge is asked these in: else it decides nothing."""
        names = frozenset[str]().union(*(self.asked_in.get(key, frozenset()) for key in dimensions))
        return all(n[look - 1] >= max(1, floor) for name, n in self.up_to.get(judge, {}).items() if name in names)


def look_of(
    a: Reached | None, b: Reached | None, categories: Sequence[str], floor: int, *, is_pooled: bool = False
) -> Look | None:
    """The look at a comparison of two over these, as at() has it: the earlier of theirs; WHOLE where all was asked at once."""
    if a is None or b is None:
        return WHOLE
    return a.at(min(a.look, b.look), categories, floor, is_pooled=is_pooled)


def looked_at(*reached: Reached | None) -> dict[str, object]:
    """The columns look and n_looks of what rests on these."""
    known = [one for one in reached if one is not None]
    if not known:
        return {}
    return {"look": min(one.look for one in known), "n_looks": max(len(n) for one in known for n in one.n_prompts.values())}


def planned_prompts(judgements: pl.LazyFrame, rubric: Rubric) -> PlannedPrompts:
    """Of one rubric's judgements, whatever became of them; nothing where all are asked at once."""
    kinds = sorted(rubric.kinds)
    mine = judgements.filter(is_of_cells(rubric), pl.col("first_look").is_not_null())
    counted = (
        mine.with_columns(category=CATEGORY)
        .filter(pl.col("category") != UNKNOWN)
        .group_by("judge_model", "first_look", "category")
        .agg(
            n=pl.col("prompt_id").n_unique(),
            is_asked=(pl.col("status") == JudgementStatus.PLANNED.value).any(),
            may_be=(~pl.col("status").is_in(NOT_KNOWN)).any(),
            kinds=pl.concat_list(_has_items(kind).any() for kind in kinds) if kinds else pl.lit(None),
        )
        .collect(engine="streaming")
    )
    n_looks = int(counted["first_look"].max() or 0)  # type: ignore[arg-type]
    found: dict[str, dict[str, Array]] = {}
    asked_in: dict[str, set[str]] = {dimension.key: set() for dimension in rubric.dimensions}
    for judge, look, name, n, is_planned, may_be, has_kinds in counted.iter_rows():
        found.setdefault(judge, {}).setdefault(name, np.zeros(n_looks, np.int64))[look - 1] = n
        if is_planned or (may_be and has_prompt(rubric, name)):
            absent = {kind for kind, has_some in zip(kinds, has_kinds or (), strict=True) if not has_some}
            for key in asked_in.keys() - absent:
                asked_in[key] |= {name} if is_asked(rubric, name, key) else set()
    up_to = {judge: {name: np.cumsum(n).tolist() for name, n in of.items()} for judge, of in found.items()}
    return PlannedPrompts(up_to, {key: frozenset(names) for key, names in asked_in.items()})


def _has_items(kind: str) -> pl.Expr:
    """Whether a judgement's list, canonical JSON, has an item of the kind: in a text within it a quotation mark is escaped."""
    return pl.col("items_json").str.contains(rf'"kinds":\[[^\]]*"{kind}"').fill_null(value=False)


def up_to_last_look(
    judged: Judged, read: Mapping[str, Outcomes], left: Left | None = None
) -> tuple[dict[str, Outcomes], dict[Cell, int]]:
    """The outcomes without those that would have come after the last look of their cell, and that look, from 1, by cell.

    As they are, and nothing, where all are asked at once. `left`: who of a judge's was left, where not everybody is asked on.
    """
    if judged.first_look is None:
        return dict(read), {}
    cells = judged.strata.select(CELL)
    number = cells.select(pl.struct(CELL).rank("dense").cast(pl.Int64) - 1).to_series().to_numpy()
    names = cells.unique().sort(CELL).rows()
    last = _last_looks(_sent_of(judged, _sent(judged, read), number), names, left)
    is_kept = judged.first_look <= last[number][judged.stratum[judged.prompt]]
    return {key: _kept(outcomes, is_kept) for key, outcomes in read.items()}, dict(zip(names, last.tolist(), strict=True))


def _sent(judged: Judged, read: Mapping[str, Outcomes]) -> Array:
    """Whether each judgement was asked about at all."""
    is_sent = np.zeros(judged.frame.height, bool)
    for outcomes in read.values():
        is_sent[outcomes.row] = True
        is_sent[outcomes.failed_row[outcomes.reason != ReplyStatus.NOT_ASKED.value]] = True
        is_sent[outcomes.aside_row] = True
    return is_sent


@dataclass(frozen=True, slots=True)
class _SentOf:
    """By cell and look, from 0: whether all that is planned was asked, so up to it, some of it, and some for the cell itself.

    `alone`: some that no other cell asks.
    """

    all: Array
    all_so_far: Array
    some: Array
    own: Array
    alone: Array


def _sent_of(judged: Judged, is_sent: Array, cell: Array) -> _SentOf:
    """`cell` numbers the cell of each stratum.

    Not for itself: a question that is also one of another look that was asked whole, as checkpoints share pictures.
    """
    assert judged.first_look is not None
    n_looks, keys = int(judged.first_look.max(initial=1)), judged.keys
    place = cell[judged.stratum[judged.prompt[keys.row]]] * n_looks + judged.first_look[keys.row] - 1
    n_places, sent = (int(cell.max(initial=0)) + 1) * n_looks, is_sent[keys.row]
    n_planned, n_sent = np.bincount(place, minlength=n_places), np.bincount(place, sent, n_places)
    lacks, is_whole = n_sent < n_planned, (n_sent == n_planned) & (n_planned > 0)
    question = np.cumsum(np.diff(keys.key, prepend=keys.key[:1]) != 0)
    is_of_whole = np.bincount(question, is_whole[place])[question] > 0
    n_own = np.bincount(place, sent & ~is_of_whole, n_places)
    first = place[np.flatnonzero(np.diff(question, prepend=-1))][question]
    is_shared = np.bincount(question, place // n_looks != first // n_looks)[question] > 0
    n_alone = np.bincount(place, sent & ~is_shared, n_places)
    all_so_far = ~np.logical_or.accumulate(lacks.reshape(-1, n_looks), axis=1)
    return _SentOf(
        is_whole.reshape(-1, n_looks),
        all_so_far,
        *(one.reshape(-1, n_looks) for one in ((n_sent > 0) & lacks, n_own > 0, n_alone > 0)),
    )


def _last_looks(sent: _SentOf, cells: Sequence[Cell], left: Left | None) -> Array:
    """The last look of each cell.

    Of one that was left, that one, or a later one if all up to it was asked, or anything for it alone, in whichever run. Of
    others the last at which something was asked for them; where a judge's asking ended amid a look, that look, as all that it
    lacks is missing.
    """
    number = np.arange(1, sent.all.shape[1] + 1)
    further = ((sent.all & sent.all_so_far) | sent.alone) * number
    last = ((sent.all | sent.own) * number).max(axis=1, initial=0)
    for judge in {cell[_JUDGE] for cell in cells}:
        mine = np.array([place for place, cell in enumerate(cells) if cell[_JUDGE] == judge])
        if left is None or not sent.some[mine].any():  # nothing to tell apart: each look was asked whole, or not at all
            continue
        ended = left(judge)
        after = np.array([ended.get("/".join(cells[place][_JUDGE + 1 :]), 0) for place in mine])
        is_left = (after > 0) & (after <= last[mine])
        open_ones = mine[~is_left]
        cut = {int(last[one]) for one in open_ones if last[one] and not sent.all[one, last[one] - 1]}
        last[open_ones] += np.isin(last[open_ones] + 1, list(cut))
        last[mine[is_left]] = np.maximum(after[is_left], further[mine[is_left]].max(axis=1))
    return np.asarray(np.maximum(1, last))


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
