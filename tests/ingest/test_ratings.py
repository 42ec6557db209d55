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
from tests.ingest.rated_tables import LONG, SAMPLES


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
        ({"image": "000/0.png"}, "ambiguous", None), ({"image": "000/0.png", "checkpoint": "20"}, "ok", "f"),
        ({"image": "out/20/000/0.png"}, "ok", "f"), ({"image": "/home/out/20/000/0.png"}, "ok", "f"),
        ({"image": "20/000/0.png"}, "ok", "f"), ({"image": "20\\000\\0.png"}, "ok", "f"),
        ({"image": "0/000/0.png"}, "ambiguous", None),
        ({"image": "x/flux/one.png"}, "unmatched", None), ({"image": "ne.png"}, "unmatched", None),
    ],
    ids=str,
)  # fmt: skip
def test_which_sample_is_meant(take: Callable[..., pl.DataFrame], names: dict[str, Any], status: str, sample: str | None) -> None:
    row = {"rater": "ann", "dimension": "look", "rating": 3} | names
    found = take([row, LONG[0] | {"rater": "someone else"}])
    first = found.filter(rater="ann").row(0, named=True)
    assert (first["status"], first["sample_id"]) == (status, sample and sample * 64)


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
        pytest.param([{"rating": 1, "dimension": "x"}], {}, r"row 1 does not name a sample: map one of sample_id", id="no name"),
        pytest.param([{"item_id": "one"}], {}, r'has no column "rating"', id="no rating"),
        pytest.param([{"item_id": "two", "rating": 1}], {}, r"does not say its dimension; write dimension", id="no dimension"),
        pytest.param("[1]\n", {}, r"row 1 is a JSON list, not an object", id="not a row"),
        pytest.param("", {}, r"contain no ratings", id="empty"),
        pytest.param(
            [LONG[0] | {"item_id": "zzz"}],
            {},
            r"none of the 1 ratings matches a sample.*people.jsonl#1.*item_id 'zzz', while the samples have values such as 'one'",
            id="no match",
        ),
        pytest.param(
            [{"item_id": "one", "rater": "ann", "dimension": "look", "rating": 3}],
            {},
            r"item_id 'one': 2 samples that differ in model\); give the ratings a column model, or map it under",
            id="two models",
        ),
        pytest.param(
            [{"image": "one.png", "seed": 0, "rating": 3}, {"item_id": "zzz", "rating": 3}],
            {"dimension": "look"},
            r"none of the 2 ratings matches exactly one sample: 1 match several "
            r"\(the first: people.jsonl#1.* seed '0'.* in model",
            id="two pictures of a name",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_said(take: Callable[..., pl.DataFrame], rows: Any, how: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        take(rows, **how)


def test_a_folder_is_its_files_and_names_its_raters(tmp_path: Path) -> None:
    for rater in ("ann", "bob"):
        (tmp_path / f"{rater}.csv").write_text("item_id,rating\ntwo,3\n")
    found = match_ratings(read_ratings([tmp_path], Ratings(dimension="look")), SAMPLES)
    assert found["rater"].to_list() == ["ann", "bob"]
    with pytest.raises(SourceError, match="is not a table of ratings"):
        list(read_ratings([tmp_path / "absent.csv"], Ratings()))


def test_a_rating_is_of_a_rater_or_a_metric() -> None:
    with pytest.raises(ValueError, match="keep one of them"):
        Ratings.model_validate({"values": [{"at": "x", "rater": "ann", "metric": "clip"}]})
    with pytest.raises(ValueError, match="min = 5 is not below max = 1"):
        Ratings.model_validate({"scale": {"min": 5, "max": 1}})
