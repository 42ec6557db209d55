"""Over which samples a figure is made: all, each category's, each checkpoint's. What is computed from them is elsewhere."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from schemas.statuses import Total

ALL = "__all__"
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Scope:
    """Some samples (`rows`, over all items) and their prompts, sorted; `clusters` numbers each sample's prompt, shape (n,)."""

    model: str
    checkpoint: str
    category: str
    rows: Mask
    prompts: tuple[str, ...]
    clusters: npt.NDArray[np.int64]


def scopes(items: pl.DataFrame, wanted: Mask) -> Iterator[Scope]:
    """All wanted samples, always; then every category and every checkpoint that has some, where there is more than one.

    `items` needs prompt_id, category, model and checkpoint; a null category beside named ones is `__unnamed__`.
    """
    prompts = items["prompt_id"].to_numpy()
    yield _scope(ALL, ALL, Total.MICRO.value, wanted, prompts)
    if items["category"].null_count() < items.height:
        named = items["category"].fill_null(Total.UNNAMED.value)
        for category in named.unique().sort():
            rows = wanted & (named == category).to_numpy()
            if rows.any():
                yield _scope(ALL, ALL, category, rows, prompts)
    makers = items.select("model", "checkpoint").unique().sort("model", "checkpoint")
    for model, checkpoint in makers.iter_rows() if makers.height > 1 else ():
        rows = wanted & ((items["model"] == model) & (items["checkpoint"] == checkpoint)).to_numpy()
        if rows.any():
            yield _scope(model, checkpoint, Total.MICRO.value, rows, prompts)


def _scope(model: str, checkpoint: str, category: str, rows: Mask, prompts: npt.NDArray[np.object_]) -> Scope:
    names, clusters = np.unique(prompts[rows].astype(str), return_inverse=True)
    return Scope(model, checkpoint, category, rows, tuple(names.tolist()), clusters.astype(np.int64))
