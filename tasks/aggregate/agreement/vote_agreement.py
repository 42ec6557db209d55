"""Rows of `agreement` on pairs of pictures: judges against people's votes, people against each other. Votes are votes.py."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from schemas.statuses.people import Against, AgreementMetric, AgreementReason, Assessor, held_by_name
from schemas.statuses.rows import PairOutcome
from schemas.tables.table import Row
from tasks.aggregate.agreement.agreement import Figure, figure_of
from tasks.aggregate.agreement.pairs import ALL, Mask, scopes
from tasks.aggregate.intervals import LEVEL, Counts, Floats

BOARD = ("rubric_id", "rubric_version", "dimension")
TIE = 0.5
LABELS = np.array([0.0, TIE, 1.0])
_WORTH = {
    PairOutcome.WIN_A.value: 1.0, PairOutcome.WIN_B.value: 0.0, PairOutcome.TIE.value: TIE,
    PairOutcome.ORDER_DEPENDENT.value: TIE, PairOutcome.UNJUDGED.value: None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Panel:
    """The votes of one dimension. `pairs`, a row for each pair of pictures; `pair`, `rater`, `worth`, shape (votes,)."""

    pairs: pl.DataFrame  # sample_a, sample_b, prompt_id, category, model, checkpoint
    raters: tuple[str, ...]
    pair: Counts
    rater: Counts
    worth: Floats

    @classmethod
    def of(cls, people: pl.DataFrame) -> "Panel":
        """The panel of the verdicts of people under one rubric and dimension."""
        pairs = (
            people.select("sample_a", "sample_b", "prompt_id", "category")
            .unique(["sample_a", "sample_b"])
            .sort("sample_a", "sample_b")
        )
        place = people.join(pairs.with_row_index("pair"), on=["sample_a", "sample_b"], how="left", maintain_order="left")["pair"]
        raters = people["rater"].unique().sort()
        rater = people["rater"].cast(pl.Enum(raters)).to_physical().to_numpy().astype(np.int64)
        unsplit = pairs.with_columns(model=pl.lit(ALL), checkpoint=pl.lit(ALL))
        return cls(unsplit, tuple(raters), place.to_numpy().astype(np.int64), rater, people["first"].to_numpy())

    @property
    def named(self) -> list[tuple[int, str]]:
        """Who is held against others by name, with the number."""
        return [(self.raters.index(name), name) for name in held_by_name(self.raters)]

    def of_rater(self, number: int) -> Floats:
        """One rater's votes, NaN where there is none; shape (pairs,)."""
        found, mine = np.full(self.pairs.height, np.nan), self.rater == number
        found[self.pair[mine]] = self.worth[mine]
        return found

    def counted(self) -> Counts:
        """How many votes each pair has for each of LABELS, shape (pairs, 3)."""
        found = np.zeros((self.pairs.height, len(LABELS)), dtype=np.int64)
        np.add.at(found, (self.pair, (self.worth * 2).astype(np.int64)), 1)
        return found

    def of_others(self) -> Floats:
        """Beside each vote the majority of the other raters of its pair, NaN where there is none; shape (votes,)."""
        others = self.counted()[self.pair]
        others[np.arange(len(others)), (self.worth * 2).astype(np.int64)] -= 1
        return majority(others)


def majority(counts: Counts) -> Floats:
    """The label most votes are for, a tie where two lead, NaN without votes; shape (n, 3) of LABELS in, (n,) out."""
    most = counts.max(axis=1, initial=0)
    is_alone = (counts == most[:, None]).sum(axis=1) == 1
    return np.where(most == 0, np.nan, np.where(is_alone, LABELS[counts.argmax(axis=1)], TIE))


def vote_rows(said: pl.DataFrame, people: pl.DataFrame) -> Iterator[Row]:
    """The rows of `agreement` that votes make: judges against people, people against each other."""
    for board, votes in people.group_by(*BOARD, maintain_order=True):
        named = dict(zip(BOARD, board, strict=True))
        panel, mine = Panel.of(votes), said.filter(rubric_id=named["rubric_id"], dimension=named["dimension"])
        judges = {str(judge): rows for (judge,), rows in mine.group_by("judge_model", maintain_order=True)}
        for row in [*_of_judges(panel, judges), *_of_raters(panel)]:
            yield named | row


def _of_judges(panel: Panel, judges: Mapping[str, pl.DataFrame]) -> Iterator[Row]:
    n = len(panel.raters)
    people = [(name, panel.of_rater(k), 1) for k, name in panel.named]
    if n > 1 or not people:
        people.insert(0, (Against.RATERS_MAJORITY.value, majority(panel.counted()), n))
    for judge, rows in sorted(judges.items()):
        asked = panel.pairs.join(_labelled(rows), on=["sample_a", "sample_b"], how="left", maintain_order="left")
        x = asked["label"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        flags = {
            name: asked[name].cast(pl.Float64).fill_null(np.nan).to_numpy() for name in ("is_order_dependent", "is_unjudged")
        }
        for against, y, n_raters in people:
            names: Row = {"subject_kind": Assessor.JUDGE.value, "subject": judge, "against": against, "n_raters": n_raters}
            yield from (names | row for row in _compared(panel.pairs, x, y))
            voted, is_judged = ~np.isnan(y), ~np.isnan(x)
            is_asked = ~np.isnan(flags["is_unjudged"])
            split, lost = flags["is_order_dependent"], flags["is_unjudged"]
            for metric, flag, mask in (
                (AgreementMetric.ORDER_DEPENDENT, split, voted & is_judged), (AgreementMetric.UNJUDGED, lost, voted & is_asked),
            ):  # fmt: skip
                share = AgreementMetric.VOTE_ACCURACY, flag, np.ones_like(flag)
                yield from (names | row | {"metric": metric.value} for row in _rows(panel.pairs, *share, mask))


def _labelled(rows: pl.DataFrame) -> pl.DataFrame:
    """One judge's label of each pair: both orders joined, those that disagree a tie; of repeats the side of their mean.

    A pair with a side is not order dependent, as in `preferences`, though the orders of a repeat disagree.
    """
    worth = pl.col("outcome").replace_strict(_WORTH, return_dtype=pl.Float64)
    mean, is_split = worth.mean(), pl.col("outcome") == PairOutcome.ORDER_DEPENDENT.value
    label = pl.when(mean > TIE).then(1.0).when(mean < TIE).then(0.0).when(mean == TIE).then(TIE)
    return rows.group_by("sample_a", "sample_b").agg(
        label=label, is_order_dependent=is_split.any() & (mean == TIE), is_unjudged=worth.is_null().all()
    )


def _of_raters(panel: Panel) -> Iterator[Row]:
    n = len(panel.raters)
    if n < 2:
        return
    others = panel.of_others()
    for place, (k, rater) in enumerate(panel.named):
        own: Row = {"subject_kind": Assessor.RATER.value, "subject": rater}
        mine = panel.of_rater(k)
        for other, name in panel.named[place + 1 :]:
            found = own | {"against": name, "n_raters": 2}
            yield from (found | row for row in _compared(panel.pairs, mine, panel.of_rater(other)))
        if n > 2:
            rest, is_mine = np.full(len(mine), np.nan), panel.rater == k
            rest[panel.pair[is_mine]] = others[is_mine]
            found = own | {"against": Against.OTHER_RATERS_MAJORITY.value, "n_raters": n}
            yield from (found | row for row in _compared(panel.pairs, mine, rest))
    every: Row = {
        "subject_kind": Assessor.RATERS.value, "subject": Against.EACH_RATER.value,
        "against": Against.OTHER_RATERS_MAJORITY.value, "n_raters": n,
    }  # fmt: skip
    yield from (every | row for row in _compared(panel.pairs[panel.pair], panel.worth, others))


def _compared(items: pl.DataFrame, x: Floats, y: Floats) -> Iterator[Row]:
    both = ~np.isnan(x) & ~np.isnan(y)
    yield from _rows(items, AgreementMetric.VOTE_ACCURACY, x, y, both)
    yield from _rows(items, AgreementMetric.COHEN_KAPPA, x, y, both)
    untied = both & (x != TIE) & (y != TIE)
    for row in _rows(items, AgreementMetric.VOTE_ACCURACY, x, y, untied):
        yield row | {"metric": AgreementMetric.VOTE_ACCURACY_WITHOUT_TIES.value}


def _rows(items: pl.DataFrame, metric: AgreementMetric, x: Floats, y: Floats, used: Mask) -> Iterator[Row]:
    """A row over all items used and one for each category."""
    for scope in scopes(items, used):
        n = int(scope.rows.sum())
        few = AgreementReason.NO_SCORES if np.isnan(x).all() else AgreementReason.TOO_FEW_ITEMS
        figure = Figure(reason=few) if n < 2 else figure_of(metric, x[scope.rows], y[scope.rows], scope)
        yield figure.row(metric) | {
            "ci_level": LEVEL, "model": ALL, "checkpoint": ALL, "category": scope.category, "n_items": n,
            "n_prompts": len(scope.prompts),
        }  # fmt: skip
