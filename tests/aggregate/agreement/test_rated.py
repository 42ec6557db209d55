"""Who, and whose rubric, ratings are of: raters whom nobody names, and dimensions that several rubrics have."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

from schemas.errors import InputError
from tasks.aggregate.agreement.rated import rated_dimensions, ratings_of
from tests.aggregate.agreement.noisy_raters import noisy, pick


def test_who_is_not_named_is_held_against_nobody_and_counts_in_means_and_alpha(
    tables: Callable[..., Any], compare: Callable[..., Any]
) -> None:
    slots = ("__unnamed_1__", "__unnamed_2__", "__unnamed_3__")

    def dealt(turn: int) -> dict[str, Any]:
        """The same three ratings of each sample, in another order under the three names."""
        return tables(
            lambda p, m, r: noisy(p, m, "abc"[(slots.index(r) + turn * p) % 3]), raters=slots, dimensions=("look", "text")
        )

    table, named = compare(dealt(0)), compare(tables(lambda p, m, r: noisy(p, m, r[0]), raters=("a", "b", "c")))
    assert set(table.select("subject", "against").iter_rows()) == {
        ("eye", "__raters_mean__"), ("__each_other__", "__each_other__"), ("__raters_mean__", "__raters_mean__"),
    }  # fmt: skip
    assert table.equals(compare(dealt(1))), "who stands under which number says nothing"
    for address in ({"subject": "eye", "metric": "bias"}, {"subject": "__each_other__", "metric": "krippendorff_alpha"}):
        of_all = {"against": "__raters_mean__"} if address["subject"] == "eye" else {}
        mine, theirs = (pick(one, **address, **of_all, **more) for one, more in ((table, {"dimension": "look"}), (named, {})))
        assert [mine[name] for name in ("estimate", "ci_low", "ci_high", "n_raters")] == [
            theirs[name] for name in ("estimate", "ci_low", "ci_high", "n_raters")
        ]
    alone = compare(tables(lambda p, m, r: noisy(p, m, r) - 1, raters=slots[:1], scale=(0, 5, 1)))
    assert pick(alone, subject="eye", against="__raters_mean__", metric="quadratic_kappa")["status"] == "ok"


def test_rare_labels_are_not_asked_of_each_unnamed_rater(tables: Callable[..., Any], compare: Callable[..., Any]) -> None:
    """The third rating that some samples have is all of the commonest label: a person so sparing would forbid the interval."""

    def rated(p: int, m: int, rater: str) -> float | None:
        return (None if p % 4 else 1.0) if rater.endswith(("3__", "cy")) else float(1 + (p + m + p * (rater[-3] == "2")) % 3 % 2)

    for two, third, status in (
        ("__unnamed_", "__unnamed_3__", "ok"), ("x", "cy", "no_interval"), ("x", "__unnamed_3__", "ok"),
    ):  # fmt: skip
        table = compare(tables(rated, raters=(f"{two}1__", f"{two}2__", third)))
        assert pick(table, subject="__each_other__", metric="krippendorff_alpha")["status"] == status


def test_of_a_rater_who_names_the_rubric_and_does_not_the_named_rating_counts(tables: Callable[..., Any]) -> None:
    made = tables(noisy, raters=("ann",))
    (rubric,) = made["rubrics"].values()
    twin = replace(rubric, id="twin")
    named = made["ratings"].head(1).with_columns(dimension=pl.lit("twin.overall"), rating=pl.lit(5.0), rating_key=pl.lit("z"))
    ratings = pl.concat([named, made["ratings"].with_columns(rating=pl.lit(1.0))])
    frames = [made[name].with_columns(rubric_id=pl.lit("twin")) for name in ("judgements", "scores")]
    judgements, scores = (pl.concat([made[name], one]) for name, one in zip(("judgements", "scores"), frames, strict=True))
    rubrics = {one.id: one for one in (rubric, twin)}
    found = rated_dimensions(judgements.lazy(), scores.lazy(), ratings, rubrics)
    assert {one.id: sorted(set(rated.raters[0].values)) for one, (rated,) in found} == {"plain": [0.0], "twin": [0.0, 10.0]}
    lost = ratings.with_columns(dimension=pl.lit("x"))
    with pytest.raises(InputError, match=r"available: overall, plain\.overall, twin\.overall"):
        list(rated_dimensions(judgements.lazy(), scores.lazy(), lost, rubrics))


def test_of_raters_who_are_not_named_each_counts_whichever_name_of_the_dimension_the_row_has(tables: Callable[..., Any]) -> None:
    made = tables(noisy, raters=("__unnamed_1__", "__unnamed_2__"))
    (rubric,) = made["rubrics"].values()
    head = made["ratings"].head(2).sort("rater")
    named = head.head(1).with_columns(dimension=pl.lit("plain.overall"), rating_key=pl.lit("z"))
    found = ratings_of(pl.concat([head, named]), rubric, "overall")
    assert sorted(found.select("rater", "rating_key").rows()) == [
        ("__unnamed_1__", "z"), *zip(("__unnamed_2__", "__unnamed_3__"), head["rating_key"], strict=True),
    ]  # fmt: skip
