"""Tables joined by request key to the judgements they answer for, scores as a stream. What is made of them is outcomes.py.

Keys are texts of 64 characters, and joining them cost more than all statistics: two 64-bit hashes stand in for them here. Rows
are matched by the first and kept where the second agrees too.
"""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import polars as pl

_BATCH_ROWS = 500_000
HASHES = {"key": pl.col("request_key").hash(1), "check": pl.col("request_key").hash(2)}
"""The two columns that stand for a request_key, in one process."""


def matched(rows: pl.DataFrame, keys: pl.DataFrame) -> pl.DataFrame:
    """The rows beside those of `keys` that have the same request; both hold the columns of HASHES, which are dropped."""
    both = rows.join(keys, on="key", how="inner", suffix="_right")
    return both.filter(pl.col("check") == pl.col("check_right")).drop("key", "check", "check_right")


def joined(scores: pl.LazyFrame, keys: pl.DataFrame) -> Iterator[pl.DataFrame]:
    """Batches of `scores` (with `request_key`) beside `row` of `keys`, once for each judgement of a request; others left out.

    The rows of one request stand together in a table of scores, so one row of each run is looked up, not all; where they do
    not, runs are shorter and the result is the same.
    """
    runs = scores.select(**HASHES).with_row_index("start").map_batches(_first_of_runs, streamable=True)
    begun: pl.DataFrame = runs.collect(engine="streaming").sort("start")
    found = matched(begun.select("key", "check", run=pl.int_range(pl.len())), keys).sort("run", "row")
    run, rows = found["run"].to_numpy(), found["row"].to_numpy()
    n_rows = np.bincount(run, minlength=begun.height)
    starts, first, seen = begun["start"].to_numpy(), np.cumsum(n_rows) - n_rows, 0
    batches = scores.drop("request_key").collect_batches(chunk_size=_BATCH_ROWS, maintain_order=True, engine="streaming")
    for batch in batches:
        low, high = np.searchsorted(starts, (seen, seen + batch.height))
        is_start = np.zeros(batch.height, np.int64)
        is_start[starts[low:high] - seen] = 1
        of_run = low - 1 + np.cumsum(is_start)
        yield _beside(batch, rows, first[of_run], n_rows[of_run])
        seen += batch.height


_Ints = npt.NDArray[np.int64]


def _beside(batch: pl.DataFrame, rows: _Ints, first: _Ints, n_rows: _Ints) -> pl.DataFrame:
    """Each row of the batch n_rows times, beside rows[first], rows[first + 1] and so on."""
    if (n_rows == 1).all():
        return batch.with_columns(row=pl.Series(rows[first]))
    place = np.repeat(np.arange(batch.height), n_rows)
    within = np.arange(len(place)) - np.repeat(np.cumsum(n_rows) - n_rows, n_rows)
    return batch[place].with_columns(row=pl.Series(rows[first[place] + within]))


def _first_of_runs(batch: pl.DataFrame) -> pl.DataFrame:
    is_new = pl.any_horizontal(pl.col(name) != pl.col(name).shift() for name in HASHES)
    return batch.filter(is_new.fill_null(value=True))
