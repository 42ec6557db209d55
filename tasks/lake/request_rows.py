"""Rows beside those that have the same request, as a stream. What is made of them is the stages' that read them.

Keys are texts of 64 characters: two 64-bit hashes stand in for them here. Rows are looked up by the first in a sorted array, 20
bytes a request of a judgement, and kept where the second agrees too; of the table that is streamed only a batch is in memory.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import polars as pl

from rubrics.model import Rubric

_BATCH_ROWS = 500_000
HASHES = {"key": pl.col("request_key").hash(1), "check": pl.col("request_key").hash(2)}
"""The two columns that stand for a request_key, in one process."""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Keys:
    """Which `row` (a number of the caller's) has which request, sorted by `key`. A request may have several rows."""

    key: Array
    check: Array
    row: Array

    @classmethod
    def of(cls, hashes: pl.DataFrame, row: Array) -> Self:
        """The rows of these HASHES."""
        key = hashes["key"].to_numpy()
        order = np.argsort(key, kind="stable")
        return cls(key[order], hashes["check"].to_numpy()[order], row[order])

    @property
    def has_twins(self) -> bool:
        """Whether a request has several rows."""
        return bool((self.key[1:] == self.key[:-1]).any())

    def find(self, key: Array, check: Array) -> tuple[Array, Array]:
        """(place among those given, row) of every row that has one of these requests, by place and row."""
        order = np.argsort(key)  # neighbours are looked up together: several times quicker than here and there
        low, high = np.empty(len(key), np.int64), np.empty(len(key), np.int64)
        low[order] = np.searchsorted(self.key, key[order])
        high[order] = np.searchsorted(self.key, key[order], side="right")
        n_rows = high - low
        place = np.repeat(np.arange(len(key)), n_rows)
        at = np.repeat(low - (np.cumsum(n_rows) - n_rows), n_rows) + np.arange(len(place))
        is_same = self.check[at] == check[place]
        return place[is_same], self.row[at[is_same]]


def joined(rows: pl.LazyFrame, keys: Keys) -> Iterator[pl.DataFrame]:
    """Batches of `rows` (with `request_key`, which is dropped) beside `row` of `keys`, once for each; others are left out.

    The rows of one request stand together in most tables, so one row of each run is looked up, not all; where they do not,
    runs are shorter and the result is the same.
    """
    hashed = rows.with_columns(**HASHES).drop("request_key")
    for batch in hashed.collect_batches(chunk_size=_BATCH_ROWS, maintain_order=True, engine="streaming"):
        key, check = (batch[name].to_numpy() for name in HASHES)
        is_start = np.ones(batch.height, bool)
        is_start[1:] = (key[1:] != key[:-1]) | (check[1:] != check[:-1])
        starts = np.flatnonzero(is_start)
        run, row = keys.find(key[starts], check[starts])
        n_rows, of_run = np.bincount(run, minlength=len(starts)), np.cumsum(is_start) - 1
        first = np.cumsum(n_rows) - n_rows
        yield _beside(batch.drop(*HASHES), row, first[of_run], n_rows[of_run])


def _beside(batch: pl.DataFrame, rows: Array, first: Array, n_rows: Array) -> pl.DataFrame:
    """Each row of the batch n_rows times, beside rows[first], rows[first + 1] and so on."""
    if (n_rows == 1).all():
        return batch.with_columns(row=pl.Series(rows[first]))
    place = np.repeat(np.arange(batch.height), n_rows)
    within = np.arange(len(place)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    return batch[place].with_columns(row=pl.Series(rows[first[place] + within]))


def each_request(judgements: pl.LazyFrame, rubrics: Mapping[str, Rubric]) -> pl.LazyFrame:
    """A row for each request of a judgement: of one about items, or made of several requests, theirs in place of the list's key.

    A judgement's `request_key` is then that of no request and in no ledger: what is asked and answered is counted by these.
    """
    of_lists = [name for name, rubric in rubrics.items() if rubric.is_of_lists]
    if not of_lists:
        return judgements
    is_of_lists = pl.col("rubric_id").is_in(of_lists).fill_null(value=True)  # a row without one is the data checks' to report
    is_list = is_of_lists & pl.col("items_json").is_not_null() & pl.col("request_key").is_not_null()
    listed = pl.col("items_json").str.json_decode(pl.List(pl.Struct({"request_key": pl.String})))
    keys = listed.list.eval(pl.element().struct.field("request_key")).list.unique()  # items asked together have one
    each = judgements.filter(is_list).with_columns(request_key=keys).explode("request_key")
    return pl.concat([judgements.filter(~is_list), each])


def items_not_asked(judgements: pl.DataFrame, kind: str) -> pl.DataFrame:
    """A row for each item of a kind that these judgements without a request have, with its id in `item` (null before).

    Where the list of items is missing, or nobody could read it, there may be some of every kind: one row, its `item` empty.
    """
    listed = pl.col("items_json").str.json_decode(pl.List(pl.Struct({"id": pl.String, "kinds": pl.List(pl.String)})))
    is_known = pl.col("items_json").is_not_null()
    each = judgements.filter(is_known).with_columns(one=listed).explode("one")
    mine = each.filter(pl.col("one").struct.field("kinds").list.contains(kind))
    mine = mine.with_columns(item=pl.col("one").struct.field("id")).drop("one")
    return pl.concat([mine, judgements.filter(~is_known).with_columns(item=pl.lit("")).select(mine.columns)])


def number_of(digest: str) -> pl.Expr:
    """A 64-bit number for the digest in a column, in the order of the digests; for what is no digest a hash of it."""
    first = pl.col(digest).str.head(16).str.decode("hex", strict=False)
    is_whole = first.bin.size() == 8
    return pl.coalesce(pl.when(is_whole).then(first).bin.reinterpret(dtype=pl.UInt64, endianness="big"), pl.col(digest).hash(1))
