"""Raters who go with the judge, more or less, and how a row of an agreement is found. No tests here."""

from typing import Any

import polars as pl

N = 24
CATEGORIES = ("colors", "counting")


def noisy(p: int, m: int, rater: str) -> float:
    """A rating on 1 to 5 that goes with the judge's score of (p + 2 m) mod 6, more or less."""
    return float(min(5, max(1, (p + 2 * m) % 6 + (p * 7 + len(rater) + ord(rater[0])) % 3 - 1)))


def pick(table: pl.DataFrame, **address: str | None) -> dict[str, Any]:
    wanted = {"model": "__all__", "category": "__micro__", "against_dimension": None} | address
    return table.row(by_predicate=pl.all_horizontal(pl.col(k).eq_missing(v) for k, v in wanted.items()), named=True)
