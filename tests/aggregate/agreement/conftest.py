"""Judgements, scores and ratings of two models, and the agreement of them."""

from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any

import polars as pl
import pytest

from schemas.tables.agreement import AGREEMENT, RATINGS
from schemas.tables.table import conform
from tasks.aggregate.agreement.agreement import agreement_rows, rated_table
from tasks.aggregate.agreement.rated import rated_dimensions
from tasks.aggregate.tables import Settings
from tests.aggregate.agreement.noisy_raters import CATEGORIES, N


@pytest.fixture
def tables(make_rubric: Callable[..., Any], make_frames: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Judgements, scores and ratings of 24 prompts by two models; `rated` is a function of (prompt, model, rater) to a rating."""

    def build(
        rated: Callable[..., float | None], raters: tuple[str, ...] = ("ann", "bob"), step: float | None = 1,
        scale: tuple[float, float, float] | None = (1, 5, 1), judged: Callable[..., Any] = lambda p, m: float((p + 2 * m) % 6),
        kind: str = "rater", dimensions: tuple[str, ...] = ("overall",),
    ) -> dict[str, Any]:  # fmt: skip
        rubric = make_rubric({None: dimensions}, scale=(0, 10))
        dims = {key: _with_step(variant, step) for key, variant in rubric.variants.items()}
        rubric = replace(rubric, variants=dims)
        rows = [
            {
                "model": f"m{m}", "category": CATEGORIES[p % 2], "prompt": f"p{p}", "sample": f"{p}/{m}",
                "scores": {} if judged(p, m) is None else dict.fromkeys(dimensions, judged(p, m)),
            }
            for p, m in product(range(N), range(2))
        ]  # fmt: skip
        judgements, scores = make_frames([row for row in rows if row["scores"]] or rows, rubric)
        by_sample = dict(zip([row["sample"] for row in rows], judgements["sample_id"], strict=False))
        cells = [
            {
                "rating_key": f"r#{p}/{m}:{rater}:{key}", "sample_id": by_sample[f"{p}/{m}"], "item_id": None, "dimension": key,
                "rater": rater, "kind": kind, "rating": rated(p, m, rater), "scale_low": scale and scale[0],
                "scale_high": scale and scale[1], "scale_step": scale and scale[2],
                "status": "missing" if rated(p, m, rater) is None else "ok", "detail": None,
            }
            for p, m in product(range(N), range(2)) for rater in raters for key in dimensions
        ]  # fmt: skip
        ratings = pl.DataFrame(conform(pl.DataFrame(cells, schema=RATINGS.empty().schema), RATINGS))
        return {"judgements": judgements, "scores": scores, "ratings": ratings, "rubrics": {rubric.id: rubric}}

    return build


@pytest.fixture
def compare(run_arguments: dict[str, Any]) -> Callable[..., pl.DataFrame]:
    def compared(tables: dict[str, Any]) -> pl.DataFrame:
        found = rated_dimensions(tables["judgements"].lazy(), tables["scores"].lazy(), tables["ratings"], tables["rubrics"])
        return rated_table(AGREEMENT, found, Settings(**run_arguments, min_coverage=0.0), agreement_rows)

    return compared


def _with_step(variant: Any, step: float | None) -> Any:
    return replace(variant, dimensions=tuple(replace(one, step=step) for one in variant.dimensions))
