"""Ratings that do not count: repeats, contradictions, raters whom nobody names, and what is said of what is left out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pydantic import ValidationError

from schemas.benchmark.ratings import Ratings
from schemas.errors import SourceError
from tasks.ingest.rating_matching import match_ratings
from tasks.ingest.ratings import read_ratings
from tasks.ingest.ratings_left_out import check_some_count, examples
from tests.ingest.rated_tables import SAMPLES


def test_repeated_ratings_count_once_and_contradictions_not_at_all(take: Callable[..., pl.DataFrame]) -> None:
    row = {"item_id": "two", "dimension": "look"}
    numbers = [("ann", 3), ("ann", 3), ("bob", 3), ("bob", 4), ("cy", 2), ("cy", None)]
    found = take([row | {"rater": rater, "rating": number} for rater, number in numbers])
    assert found["status"].to_list() == ["ok", "duplicate", "conflicting", "conflicting", "ok", "missing"]
    key = "people.jsonl#{}:rating:look"
    assert found["detail"].to_list() == [
        None, f"as {key.format(1)}", f"{key.format(4)} says 4", f"{key.format(3)} says 3", None, None,
    ]  # fmt: skip


CROWD = [{"item_id": "two", "dimension": "look", "rating": number} for number in (3, 4, None, 3)]


def test_a_file_that_names_no_rater_and_contradicts_itself_is_not_one_raters(take: Callable[..., pl.DataFrame]) -> None:
    said = (
        r"people.jsonl names no rater, .* 3 of its 4 ratings contradict another .*: people.jsonl#1:rating:look: \S+#2\S+ "
        r"says 4\)\. Map .* to rater under \[ratings\] columns; .* unnamed = true under \[ratings\]"
    )
    with pytest.raises(SourceError, match=said):
        take(CROWD)
    assert take([*CROWD[1:3], CROWD[1]])["status"].to_list() == ["ok", "missing", "duplicate"]
    assert set(take([row | {"rater": "ann"} for row in CROWD])["status"]) == {"conflicting", "missing"}
    with pytest.raises(SourceError, match="names no rater"):
        take(CROWD, values=[{"at": "rating"}])
    assert "conflicting" in set(take(CROWD, values=[{"at": "rating", "rater": "ann"}])["status"])


def test_files_whose_names_have_a_number_sign_are_told_apart(take: Callable[..., pl.DataFrame], tmp_path: Path) -> None:
    take(CROWD[:1], name="people#1.jsonl")
    with pytest.raises(SourceError, match=r"^people#2\.jsonl names no rater, .* 3 of its 4 ratings"):
        take(CROWD, name="people#2.jsonl")
    with pytest.raises(SourceError, match=r"^people#2\.jsonl names no rater, .* 3 of its 4 ratings"):
        match_ratings(read_ratings([tmp_path], Ratings()), SAMPLES)


def test_a_hidden_file_in_a_folder_of_ratings_is_none(take: Callable[..., pl.DataFrame], tmp_path: Path) -> None:
    take(CROWD[:1], name="ann.jsonl")
    (tmp_path / "._ann.jsonl").write_bytes(b"\0\5\26\7Mac OS X")
    assert [one.rater for one in read_ratings([tmp_path], Ratings())] == ["ann"]
    with pytest.raises(SourceError, match="row 1"):
        list(read_ratings([tmp_path / "._ann.jsonl"], Ratings()))


def test_unnamed_ratings_are_each_by_somebody(take: Callable[..., pl.DataFrame]) -> None:
    other = {"item_id": "one", "model": "sd", "dimension": "look", "rating": 5}
    found = take([*CROWD, other, *(other | {"rater": "ann"} for _ in "ab"), other | {"dimension": "text"}], unnamed=True)
    assert found.select("rater", "status").rows() == [
        ("__unnamed_1__", "ok"), ("__unnamed_2__", "ok"), ("__unnamed__", "missing"), ("__unnamed_3__", "ok"),
        ("__unnamed_1__", "ok"), ("ann", "ok"), ("ann", "duplicate"), ("__unnamed_1__", "ok"),
    ]  # fmt: skip
    wide = take(
        [{"item_id": "two", "s": [1, 2], "clip": 9}], dimension="look", unnamed=True,
        values=[{"at": "s[0]"}, {"at": "s[1]"}, {"at": "clip", "metric": "clip"}],
    )  # fmt: skip
    assert sorted(wide["rater"]) == ["__unnamed_1__", "__unnamed_2__", "clip"]


def test_what_the_table_calls_unnamed_raters_names_nobody_in_a_file_made_from_it(take: Callable[..., pl.DataFrame]) -> None:
    """Each is somebody, whatever the number: two of one number are two people."""
    row = {"item_id": "two", "dimension": "look"}
    names = ("__unnamed_7__", "__unnamed_7__", "__unnamed__", " __unnamed_1__ ", "ann", "__unnamed_seven")
    found = take([row | {"rater": name, "rating": number} for number, name in enumerate(names)])
    assert found.select("rater", "status").rows() == [
        *((f"__unnamed_{n}__", "ok") for n in range(1, 5)), ("ann", "ok"), ("__unnamed_seven", "ok"),
    ]  # fmt: skip


RESERVED = ("__raters_mean__", "__other_raters_mean__", "__each_other__", "__people__", "__unnamed_x__", "__all__")


@pytest.mark.parametrize("name", RESERVED)
def test_a_rater_called_as_salon_calls_its_own_rows_does_not_count(take: Callable[..., pl.DataFrame], name: str) -> None:
    row = {"item_id": "two", "dimension": "look", "rating": 3}
    found = take([row | {"rater": who} for who in ("ann", f" {name}")])
    assert found["status"].to_list() == ["ok", "reserved_name"]
    (told,) = examples(found)
    assert told == (
        f"people.jsonl#2:rating:look: reserved_name: the rater '{name}': names that begin and end with __ are Salon's own; "
        "rename this rater"
    )
    with pytest.raises(SourceError, match=r"none of the 1 ratings can be used: 1 reserved_name \(.*\); rename these raters$"):
        check_some_count(take([row | {"rater": name}]), "ratings")
    assert take([row], name=f"{name}.jsonl")["status"].to_list() == ["reserved_name"]


@pytest.mark.parametrize("key", ["rater", "metric"])
def test_nor_may_the_benchmark_file_call_a_rater_or_a_metric_so(take: Callable[..., pl.DataFrame], key: str) -> None:
    with pytest.raises(ValidationError, match=r"'__raters_mean__': names that begin and end with __ are Salon's own; wr"):
        take([{"item_id": "two", "a": 3}], dimension="look", values=[{"at": "a", key: "__raters_mean__"}])


def test_blanks_around_a_name_make_nobody_another_rater(take: Callable[..., pl.DataFrame]) -> None:
    row = {"item_id": "two", "dimension": "look", "rating": 3}
    found = take([row | {"rater": name} for name in ("Änne", " Änne ", "Änne\u00a0", "\t", None)])
    assert found["rater"].to_list() == ["Änne", "Änne", "Änne", "people", "people"]
    assert found["status"].to_list() == ["ok", "duplicate", "duplicate", "ok", "duplicate"]
    (wide,) = take([{"item_id": "two", "a": 3}], dimension="look", values=[{"at": "a", "rater": " Änne"}])["rater"]
    assert wide == "Änne"


def test_what_is_left_out_is_told_by_status_the_most_frequent_first(take: Callable[..., pl.DataFrame]) -> None:
    row = {"dimension": "look", "item_id": "two", "rater": "ann", "rating": 3}
    rows = [
        row, row, row | {"item_id": "zzz", "seed": 7}, row | {"item_id": "one"}, row | {"rater": "cy"},
        *(row | {"rater": "bob", "rating": number} for number in (1, 2.5, 1)), row | {"item_id": None}, row | {"rater": "dan"},
    ]  # fmt: skip
    assert examples(take(rows)) == [
        "people.jsonl#6:rating:look: conflicting: people.jsonl#7:rating:look says 2.5",
        "people.jsonl#3:rating:look: unmatched: no sample has item_id zzz, seed 7",
        "people.jsonl#2:rating:look: duplicate: as people.jsonl#1:rating:look",
        "people.jsonl#4:rating:look: ambiguous: 2 samples have item_id one",
    ]
    assert take(rows).filter(rating_key="people.jsonl#9:rating:look")["detail"].item() == "the row does not name a sample"


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (
            [60, 80],
            r"none of the 2 ratings can be used: 2 out_of_range \(the first: .*#1.*: 60 is not within 1 to 5\).*declare it under",
        ),
        ([2.5, None], r"1 off_step.*2.5 is not a multiple of 1 counted from 1"),
        (["3,5", "4,5", 9], r"2 bad_value, 1 out_of_range \(.*'3,5'.* is not a number\); .*decimal point"),
        ([None, None], r"none of the 2 ratings can be used: 2 missing; fill them in"),
        ([[3, 4]], r"2 conflicting.*names the rater"),
    ],
    ids=["another scale", "between steps", "decimal commas", "not filled in", "two of each"],
)
def test_ratings_of_which_none_counts_are_refused(take: Callable[..., pl.DataFrame], numbers: list[Any], said: str) -> None:
    row: dict[str, str | None] = {"item_id": "two", "dimension": "look"}
    each = [(f"r{n}", one) for n, some in enumerate(numbers) for one in (some if isinstance(some, list) else [some])]
    rows = [row | {"rater": rater, "rating": None if one is None else str(one)} for rater, one in each]
    scale = {"min": 1, "max": 5, "step": 1}
    with pytest.raises(SourceError, match=said):
        check_some_count(take(rows, scale=scale), "ratings")
    check_some_count(take([*rows, row | {"rater": "eve", "rating": "3"}], scale=scale), "ratings")
