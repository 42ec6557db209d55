"""Rows found by their request, and ids as numbers: against a plain dictionary and plain sorting."""

from hashlib import sha256

import numpy as np
import polars as pl

from tasks.lake.request_rows import HASHES, Keys, joined, number_of


def _digests(n: int) -> list[str]:
    return [sha256(str(number).encode()).hexdigest() for number in range(n)]


def test_each_row_stands_beside_every_row_of_its_request() -> None:
    asked = pl.DataFrame({"request_key": [_digests(40)[number % 30] for number in range(40)]})  # ten are asked twice
    keys = Keys.of(asked.select(**HASHES), np.arange(40, dtype=np.int32))
    assert keys.has_twins
    scored = pl.DataFrame({"request_key": [key for key in _digests(35) for _ in "ab"], "score": range(70)})
    found = pl.concat(joined(scored.lazy(), keys))
    rows_of = {key: [row for row in range(40) if asked["request_key"][row] == key] for key in _digests(35)}
    assert found.rows() == [(score, row) for key, score in scored.iter_rows() for row in rows_of[key]]


def test_another_request_of_the_same_hash_is_not_taken_for_it() -> None:
    keys = Keys(np.array([7, 7], np.uint64), np.array([1, 2], np.uint64), np.array([10, 20]))
    place, row = keys.find(np.array([7, 8], np.uint64), np.array([2, 1], np.uint64))
    assert (place.tolist(), row.tolist()) == ([0], [20])


def test_numbers_have_the_order_of_the_digests_they_stand_for() -> None:
    ids = pl.DataFrame({"id": [*_digests(500), "no digest", "f" * 15 + "x" * 49]})
    numbered = ids.with_columns(number=number_of("id"))
    assert numbered["number"].n_unique() == ids.height
    assert numbered["number"].null_count() == 0
    assert numbered.head(500).sort("number")["id"].to_list() == sorted(_digests(500))
