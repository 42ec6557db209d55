"""Tables of ratings: every form they come in, what becomes of every cell, and which sample is meant."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from schemas.benchmark.ratings import Ratings
from schemas.errors import InputError, SourceError
from schemas.metrics import dimension_names
from schemas.statuses.people import RatingStatus
from tasks.ingest.rating_matching import match_ratings
from tasks.ingest.ratings import read_ratings
from tasks.ingest.ratings_left_out import check_some_count, examples

SAMPLES = pl.DataFrame(
    [
        {
            "sample_id": d * 64, "item_id": item, "source_key": f"s.jsonl#{d}", "model": model, "checkpoint": "1", "seed": seed,
            "image": item and f"birds/{model}/{item}.png",
        }
        for d, item, model, seed in (
            ("a", "one", "sd", 0), ("b", "one", "flux", 0), ("c", "two", "sd", None), ("d", None, "sd", 7)
        )
    ]
)  # fmt: skip
LONG = [
    {"item_id": "one", "model": "sd", "rater": "ann", "dimension": "look", "rating": 4},
    {"item_id": "one", "model": "flux", "rater": "ann", "dimension": "look", "rating": 5},
    {"item_id": "two", "model": "sd", "rater": "bob", "dimension": "look", "rating": None},
]


@pytest.fixture
def take(tmp_path: Path) -> Callable[..., pl.DataFrame]:
    """Rows, as a file of some form, and [ratings] to the `ratings` table."""

    def run(rows: Any, name: str = "people.jsonl", **how: Any) -> pl.DataFrame:
        path = tmp_path / name
        if isinstance(rows, str):
            path.write_text(rows, encoding="utf-8")
        elif path.suffix == ".parquet":
            pl.DataFrame(rows).write_parquet(path)
        elif path.suffix == ".csv":
            pl.DataFrame(rows).write_csv(path)
        elif path.suffix == ".tsv":
            pl.DataFrame(rows).write_csv(path, separator="\t")
        elif path.suffix == ".json":
            path.write_text(json.dumps(rows))
        else:
            path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        return match_ratings(read_ratings([path], Ratings.model_validate(how)), SAMPLES)

    return run


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.csv", "r.tsv", "r.parquet"])
def test_a_long_table_says_the_same_in_every_form(take: Callable[..., pl.DataFrame], name: str) -> None:
    found = take(LONG, name)
    assert found.select("rater", "dimension", "rating", "status").rows() == [
        ("ann", "look", 4.0, "ok"), ("ann", "look", 5.0, "ok"), ("bob", "look", None, "missing"),
    ]  # fmt: skip
    assert [sample[0] for sample in found["sample_id"]] == ["a", "b", "c"]


def test_a_wide_table_with_lists_in_its_cells(take: Callable[..., pl.DataFrame]) -> None:
    """VIEScore's form: a column for each model, a list of two aspects in it, the file is the rater."""
    values = [
        {"at": f"{model}[{place}]", "model": model, "dimension": dimension}
        for model in ("sd", "flux") for place, dimension in enumerate(("text", "look"))
    ]  # fmt: skip
    found = take("uid\tsd\tflux\none\t[0.5 , 1]\t[0,0.5]\n", "rater1.tsv", columns={"item_id": "uid"}, values=values)
    assert set(found.select("sample_id", "dimension", "rating", "rater").rows()) == {
        ("a" * 64, "text", 0.5, "rater1"), ("a" * 64, "look", 1.0, "rater1"),
        ("b" * 64, "text", 0.0, "rater1"), ("b" * 64, "look", 0.5, "rater1"),
    }  # fmt: skip
    assert found["rating_key"].n_unique() == 4


def test_nested_values_and_metrics_of_a_json_object(take: Callable[..., pl.DataFrame]) -> None:
    """TIFA's form: an object of rows, two ratings in a list, metrics beside them; a metric has no scale but its own."""
    rows = {"two": {"scores": [4, 2], "clip": 31.5}, "nobody": {"scores": [1, 1], "clip": 2}}
    values = [{"at": "scores[0]", "rater": "ann"}, {"at": "scores[1]", "rater": "bob"}, {"at": "clip", "metric": "clip"}]
    scale = {"min": 1, "max": 5, "step": 1}
    found = take(rows, "t.json", columns={"item_id": "__key__"}, values=values, dimension="look", scale=scale)
    assert found.filter(status="ok").select("rater", "kind", "rating", "scale_low").rows() == [
        ("clip", "metric", 31.5, None), ("ann", "rater", 4.0, 1.0), ("bob", "rater", 2.0, 1.0),
    ]  # fmt: skip
    assert found.filter(status="unmatched").height == 3


@pytest.mark.parametrize(
    ("value", "status", "rating"),
    [
        (3, "ok", 3), ("3", "ok", 3), (" 4.0 ", "ok", 4), ("1e0", "ok", 1), (None, "missing", None), ("", "missing", None),
        (float("nan"), "missing", None), (0, "out_of_range", 0), (5.5, "out_of_range", 5.5), (2.5, "off_step", 2.5),
        ("four", "bad_value", None), (True, "bad_value", None), ([4], "bad_value", None), ("1_0", "bad_value", None),
        ("4/5", "bad_value", None), ("Infinity", "bad_value", None), ("nan", "bad_value", None), ("٣", "bad_value", None),
        (10**400, "bad_value", None),
    ],
    ids=repr,
)  # fmt: skip
def test_a_cell_is_a_number_on_the_scale_or_says_why_not(
    take: Callable[..., pl.DataFrame], value: object, status: str, rating: float | None
) -> None:
    row = {"item_id": "two", "rater": "ann", "dimension": "look", "rating": value}
    found = take([row], scale={"min": 1, "max": 5, "step": 1})
    assert found.select("status", "rating").row(0) == (status, rating)
    assert status in set(RatingStatus)
    assert (found["detail"][0] is None) == (status in {"ok", "missing"})


def test_steps_of_a_tenth_are_steps(take: Callable[..., pl.DataFrame]) -> None:
    rows = [{"item_id": "two", "rater": f"r{n}", "dimension": "look", "rating": n / 10} for n in range(11)]
    assert set(take(rows, scale={"min": 0, "max": 1, "step": 0.1})["status"]) == {"ok"}


@pytest.mark.parametrize(
    ("names", "status", "sample"),
    [
        ({"item_id": "two"}, "ok", "c"), ({"item_id": "one"}, "ambiguous", None),
        ({"item_id": "one", "model": "flux"}, "ok", "b"),
        ({"item_id": "two", "model": "flux"}, "unmatched", None), ({"item_id": "three"}, "unmatched", None),
        ({"sample_id": "d" * 64}, "ok", "d"), ({"image": "s.jsonl#d"}, "ok", "d"), ({"image": "s.jsonl#d", "seed": 7}, "ok", "d"),
        ({"item_id": "two", "seed": 0}, "unmatched", None), ({"sample_id": "a" * 64, "item_id": "two"}, "ok", "a"),
        ({"image": "birds/flux/one.png"}, "ok", "b"), ({"image": "./flux/one.png"}, "ok", "b"), ({"image": "two.png"}, "ok", "c"),
        ({"image": "/data/birds/sd/one.png"}, "ok", "a"), ({"image": "D:\\birds\\sd\\one.png"}, "ok", "a"),
        ({"image": "one.png"}, "ambiguous", None), ({"image": "one.png", "model": "flux"}, "ok", "b"),
        ({"image": "x/flux/one.png"}, "unmatched", None), ({"image": "ne.png"}, "unmatched", None),
    ],
    ids=str,
)  # fmt: skip
def test_which_sample_is_meant(take: Callable[..., pl.DataFrame], names: dict[str, Any], status: str, sample: str | None) -> None:
    row = {"rater": "ann", "dimension": "look", "rating": 3} | names
    found = take([row, LONG[0] | {"rater": "someone else"}])
    first = found.filter(rater="ann").row(0, named=True)
    assert (first["status"], first["sample_id"]) == (status, sample and sample * 64)


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
    assert take(rows).filter(rating_key="people.jsonl#9:rating:look")["detail"].item() == "the row names no sample"


@pytest.mark.parametrize(
    ("said", "called"),
    [("look", "look"), ("plain.look", "look"), ("score", "score"), ("plain.score", "plain.score"), ("charm", "charm")],
)
def test_a_dimension_is_called_by_its_rubric_where_several_have_it(tmp_path: Path, said: str, called: str) -> None:
    names = dimension_names([("plain", "look"), ("plain", "score"), ("odd", "score")])
    (tmp_path / "r.jsonl").write_text(json.dumps({"item_id": "two", "rating": 1, "dimension": said}))
    for how in (Ratings(), Ratings(dimension=said), Ratings.model_validate({"values": [{"at": "rating", "dimension": said}]})):
        assert match_ratings(read_ratings([tmp_path / "r.jsonl"], how), SAMPLES, names)["dimension"].item() == called


def test_where_keeps_rows(take: Callable[..., pl.DataFrame]) -> None:
    assert take(LONG, where={"rater": "ann"}).height == 2


@pytest.mark.parametrize(
    ("rows", "how", "said"),
    [
        pytest.param(LONG, {"columns": {"who": "rater"}}, r"who is not a name Salon knows; allowed: .*rater", id="unknown name"),
        pytest.param(LONG, {"columns": {"item_id": "uid"}}, r"row 1 has no column 'uid'.*columns: item_id", id="no column"),
        pytest.param([{"rating": 1, "dimension": "x"}], {}, r"row 1 names no sample: map one of sample_id", id="no name"),
        pytest.param([{"item_id": "one"}], {}, r'has no column "rating"', id="no rating"),
        pytest.param([{"item_id": "two", "rating": 1}], {}, r"does not say its dimension; write dimension", id="no dimension"),
        pytest.param("[1]\n", {}, r"row 1 is a JSON list, not an object", id="not a row"),
        pytest.param("", {}, r"hold no rating", id="empty"),
        pytest.param(
            [LONG[0] | {"item_id": "zzz"}],
            {},
            r"none of the 1 ratings is of a sample.*people.jsonl#1.*item_id 'zzz', where the samples have such as 'one'",
            id="no match",
        ),
        pytest.param(
            [{"item_id": "one", "rater": "ann", "dimension": "look", "rating": 3}],
            {},
            r"item_id 'one': 2 samples, which differ in model\); give the ratings a column model, or map it under",
            id="two models",
        ),
        pytest.param(
            [{"image": "one.png", "seed": 0, "rating": 3}, {"item_id": "zzz", "rating": 3}],
            {"dimension": "look"},
            r"none of the 2 ratings is of one sample .*: 1 stand for several \(the first: people.jsonl#1.* seed '0'.* in model",
            id="two pictures of a name",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(take: Callable[..., pl.DataFrame], rows: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        take(rows, **how)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (
            [60, 80],
            r"none of the 2 ratings counts: 2 out_of_range \(the first: .*#1.*: 60 is not within 1 to 5\).*declare theirs",
        ),
        ([2.5, None], r"1 off_step.*2.5 is no step of 1 from 1"),
        (["3,5", "4,5", 9], r"2 bad_value, 1 out_of_range \(.*'3,5'.* is not a number\); .*decimal point"),
        ([None, None], r"none of the 2 ratings counts: 2 missing; fill them in"),
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


def test_a_folder_is_its_files_and_names_its_raters(tmp_path: Path) -> None:
    for rater in ("ann", "bob"):
        (tmp_path / f"{rater}.csv").write_text("item_id,rating\ntwo,3\n")
    found = match_ratings(read_ratings([tmp_path], Ratings(dimension="look")), SAMPLES)
    assert found["rater"].to_list() == ["ann", "bob"]
    with pytest.raises(SourceError, match="no table of ratings"):
        list(read_ratings([tmp_path / "absent.csv"], Ratings()))


def test_a_rating_is_of_a_rater_or_a_metric() -> None:
    with pytest.raises(ValueError, match="it is one of the two"):
        Ratings.model_validate({"values": [{"at": "x", "rater": "ann", "metric": "clip"}]})
    with pytest.raises(ValueError, match="min = 5 is not under max = 1"):
        Ratings.model_validate({"scale": {"min": 5, "max": 1}})
