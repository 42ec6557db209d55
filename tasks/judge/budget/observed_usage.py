"""What earlier replies were billed, kept in the ledger by rubric and judge; it corrects estimates, which are cost.py's."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import partial
from typing import TypeAlias

from sqlalchemy import BindParameter, Float, bindparam, case, select, update
from sqlalchemy.engine import Connection

from tasks.ledger.ledger import Ledger
from tasks.ledger.pipelining import later
from tasks.ledger.statements import insert_where_absent
from tasks.ledger.tables import OBSERVED

N_PRIOR = 2
"""So many replies exactly as estimated are added to the observed ones: a few odd replies do not turn an estimate over."""
LEAST_MARGIN = 1.25
"""A provider that once counted more than the bound may count still more: the raised bound leaves this much room."""

AboutKey: TypeAlias = tuple[str, str, str]
"""(rubric_id, rubric_version, judge_model)"""

MOST_OF_BOUND = 1_000.0
"""A reply that passed its bound by more was counted before such were left out: sums that hold it tell nothing."""
MOST_OUTPUT_EACH = 1_000_000
"""Nor do those whose replies are longer on average."""


@dataclass(slots=True)
class Observed:
    """Sums over replies whose tokens were reported, of one rubric and judge. Input is as estimated before any correction."""

    n_replies: int = 0
    n_input_estimated: int = 0
    n_input_reported: int = 0
    n_cached_reported: int = 0
    n_output_reported: int = 0
    most_of_bound: float = 0.0

    def add(self, n_estimated: int, n_most: int, n_input: int | None, n_cached: int | None, n_output: int | None) -> None:
        """Count one reply. One that does not report its tokens says nothing."""
        if n_input is None or n_output is None:
            return
        self.n_replies += 1
        self.n_input_estimated += n_estimated
        self.n_input_reported += n_input
        self.n_cached_reported += n_cached or 0
        self.n_output_reported += n_output
        self.most_of_bound = max(self.most_of_bound, n_input / max(1, n_most))

    def __add__(self, other: "Observed") -> "Observed":
        """Both together."""
        sums = {f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        return Observed(**sums | {"most_of_bound": max(self.most_of_bound, other.most_of_bound)})

    @property
    def can_be(self) -> bool:
        """Whether no reply among them reported what no reply can have."""
        return self.most_of_bound <= MOST_OF_BOUND and self.n_output_reported <= MOST_OUTPUT_EACH * self.n_replies

    @property
    def input_ratio(self) -> float:
        """What estimates of input tokens are multiplied by."""
        if not self.n_replies or not self.n_input_estimated:
            return 1.0
        prior = N_PRIOR * self.n_input_estimated / self.n_replies
        return (self.n_input_reported + prior) / (self.n_input_estimated + prior)

    @property
    def bound_ratio(self) -> float:
        """What bounds of input tokens are multiplied by: 1 for as long as no reply passed its bound."""
        return self.most_of_bound * LEAST_MARGIN if self.most_of_bound > 1 else 1.0

    @property
    def cached_share(self) -> float:
        """Of the input tokens, those billed at the price for repeated beginnings."""
        return self.n_cached_reported / self.n_input_reported if self.n_input_reported else 0.0

    def n_output_tokens(self, n_declared: int) -> float:
        """Output tokens to expect of a reply, where the rubric declares so many."""
        return (self.n_output_reported + N_PRIOR * n_declared) / (self.n_replies + N_PRIOR)


_ABOUT = ("rubric_id", "rubric_version", "judge_model")
_MOST: BindParameter[float] = bindparam("seen_most_of_bound", type_=Float)
_ALL = select(OBSERVED)
_ADD = (
    update(OBSERVED)
    .where(*(OBSERVED.c[name] == bindparam(f"of_{name}") for name in _ABOUT))
    .values(
        {f.name: OBSERVED.c[f.name] + bindparam(f"seen_{f.name}") for f in fields(Observed) if f.name != "most_of_bound"}
        | {"most_of_bound": case((OBSERVED.c.most_of_bound < _MOST, _MOST), else_=OBSERVED.c.most_of_bound)}
    )
)
_FORGET_ABSURD = (
    update(OBSERVED)
    .where(*(OBSERVED.c[name] == bindparam(f"of_{name}") for name in _ABOUT))
    .where((OBSERVED.c.most_of_bound > MOST_OF_BOUND) | (OBSERVED.c.n_output_reported > MOST_OUTPUT_EACH * OBSERVED.c.n_replies))
    .values({f.name: 0 for f in fields(Observed)})
)


async def store_observed(ledger: Ledger, about: AboutKey, observed: Observed) -> None:
    """Add what a shard saw to what the ledger knows."""
    if observed.n_replies:
        await ledger.alone(partial(_store, about=about, observed=observed))


def load_observed(ledger: Ledger) -> Mapping[AboutKey, Observed]:
    """All that the ledger knows, by rubric, its version and judge; sums that cannot be are as none."""
    return ledger.read(_load)


def _store(connection: Connection, about: AboutKey, observed: Observed) -> None:
    key = dict(zip(_ABOUT, about, strict=True))
    nothing = {f.name: getattr(Observed(), f.name) for f in fields(Observed)}
    connection.execute(insert_where_absent(connection.engine, OBSERVED), [key | nothing])
    seen = {f"seen_{f.name}": getattr(observed, f.name) for f in fields(Observed)}
    later(connection, _FORGET_ABSURD, {f"of_{name}": value for name, value in key.items()})
    later(connection, _ADD, {f"of_{name}": value for name, value in key.items()} | seen)


def _load(connection: Connection) -> dict[AboutKey, Observed]:
    rows = connection.execute(_ALL).all()
    return {(row[0], row[1], row[2]): seen for row in rows if (seen := Observed(*row[3:])).can_be}
