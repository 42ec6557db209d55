"""What is made of published rows before they are given: narrowed, turned round, marked with what their judge is blind to."""

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from salon.errors import SalonError

if TYPE_CHECKING:
    import polars as pl

BOARD = ["rubric_id", "judge_model", "dimension"]
_ENDS = [(name.format("low"), name.format("high")) for name in ("ci_{}", "ci_{}_adjusted", "delta_bound_{}", "delta_bound_ci_{}")]
_SIGNED = ("delta", *(name for ends in _ENDS for name in ends))
_NUMBER = re.compile(r"([0-9]+)")
_TURNED = {"higher": "lower", "lower": "higher"}


def given(**named: str | None) -> dict[str, str]:
    """The names that have a value."""
    return {name: value for name, value in named.items() if value is not None}


def narrowed(rows: "pl.DataFrame", **named: str | None) -> "pl.DataFrame":
    """The rows with these values. Raises SalonError for a value that no row has, or none beside the values before it."""
    wanted = given(**named)
    for name, value in wanted.items():  # first each by itself: a value that is there is not called missing because of another
        if value not in rows[name]:
            raise SalonError(f"there is no {name} {value!r} here; available: {_values(rows, name)}")
    of: list[str] = []
    for name, value in wanted.items():
        if value not in rows[name]:
            raise SalonError(f"there is no {name} {value!r} of {', '.join(of)} here; available: {_values(rows, name)}")
        of.append(f"{name} {value!r}")
        rows = rows.filter(**{name: value})
    return rows


def headlines(rows: "pl.DataFrame", of_rubric: "pl.DataFrame") -> "pl.DataFrame":
    """Those of the headline rankings. Raises SalonError where other rankings alone were asked for."""
    found = rows.filter("is_headline")
    if not found.is_empty():
        return found
    there = of_rubric.filter("is_headline")
    if there.is_empty():
        raise SalonError("none of these rankings is a headline; use is_all=True to show them")
    raise SalonError(f"the headline rankings have {_values(there, 'category')} alone; is_all=True shows the categories")


def _values(rows: "pl.DataFrame", name: str) -> str:
    return ", ".join(in_order(rows[name].drop_nulls().unique())) or "none"


def in_order(names: Iterable[str]) -> list[str]:
    """Sorted, numbers inside names as numbers: step-900 before step-1000."""
    return sorted(
        names, key=lambda name: [(one.isdecimal(), int(one) if one.isdecimal() else one) for one in _NUMBER.split(name)]
    )


def is_of(columns: tuple[str, ...], values: tuple[str, ...]) -> "pl.Expr":
    """Whether a row has these values in these columns."""
    import polars as pl

    return pl.all_horizontal(pl.col(name) == value for name, value in zip(columns, values, strict=True))


def turned_round(rows: "pl.DataFrame") -> "pl.DataFrame":
    """The same comparisons seen from b: sides change places, differences their sign, ends and words theirs."""
    import polars as pl

    pairs = [(name, f"{name[:-2]}_b") for name in rows.columns if name.endswith("_a")] + [("win", "loss"), *_ENDS]
    other = {name: partner for one, two in pairs for name, partner in ((one, two), (two, one)) if one in rows.columns}
    turned = rows.select(pl.col(other.get(name, name)).alias(name) for name in rows.columns)
    signed = [name for name in _SIGNED if name in rows.columns]
    turned = turned.with_columns(pl.when(pl.col(name) == 0).then(0.0).otherwise(-pl.col(name)).alias(name) for name in signed)
    return turned.with_columns(pl.col("verdict").replace(_TURNED)) if "verdict" in rows.columns else turned


def sides(rows: "pl.DataFrame") -> set[tuple[str, str]]:
    """The (model, checkpoint) of both sides of comparisons."""
    return {pair for end in "ab" for pair in rows.select(f"model_{end}", f"checkpoint_{end}").iter_rows()}


def with_blindness(rows: "pl.DataFrame", exam: "pl.DataFrame") -> "pl.DataFrame":
    """The rows with a column `blind_to`: the planted faults that their judge's exam found it blind to; null where none."""
    import polars as pl

    is_blind = (pl.col("verdict") == "blind") & pl.col("is_meant").ne_missing(False)
    named = (
        pl.col("fault")
        .replace("swapped_prompt", "another prompt")
        .str.replace_all("_", " ")
        .sort()
        .str.join(", ")
        .alias("blind_to")
    )
    return rows.join(exam.filter(is_blind).group_by(BOARD).agg(named), on=BOARD, how="left", maintain_order="left")
