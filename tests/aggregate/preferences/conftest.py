"""Verdicts of pairs written down in short, and the tables of them."""

from collections.abc import Iterable
from datetime import date

import polars as pl

from schemas.benchmark.file import Statistics
from schemas.statuses.cells import Total
from schemas.tables.published import PREFERENCES
from schemas.tables.table import Table
from tasks.aggregate.preferences.evidence import Plan
from tasks.aggregate.preferences.tables import preference_tables
from tasks.aggregate.tables import Settings

ORDERS = {"a": (1.0, 1.0), "b": (0.0, 0.0), "=": (0.5, 0.5), "f": (1.0, 0.0), "s": (0.0, 1.0), "?": (None, None),
          "a?": (1.0, None), "?=": (None, 0.5), "b?": (0.0, None), "a=": (1.0, 0.5)}  # fmt: skip
"""By what both orders said: a or b wins, tie, the first or the second shown wins, nothing read, one order read, half agreed."""
SCHEMA = {
    **dict.fromkeys(
        (
            "rubric_id", "rubric_version", "judge_model", "dimension", "prompt_id", "category",
            "model_a", "checkpoint_a", "model_b", "checkpoint_b", "sample_a", "sample_b",
        ),
        pl.String,
    ), "first": pl.Float64, "second": pl.Float64, "outcome": pl.String,
}  # fmt: skip


def outcome(first: float | None, second: float | None) -> str:
    if first is None or second is None:
        return "unjudged"
    return "order_dependent" if first != second else {1.0: "win_a", 0.5: "tie", 0.0: "win_b"}[first]


def verdicts(rows: Iterable[tuple], judge: str = "eye") -> pl.DataFrame:
    """Of rows (a, b, prompt, what both orders said[, category]); a and b are checkpoints of model m, or model/checkpoint.

    Each row is a pair of pictures of its own; several words in it, such as "a ?", are its repeats.
    """
    found = []
    for number, (a, b, prompt, words, *category) in enumerate(rows):
        (model_a, checkpoint_a), (model_b, checkpoint_b) = (n.split("/") if "/" in n else ("m", n) for n in (a, b))
        reported = category[0] if category else None
        ends = model_a, checkpoint_a, model_b, checkpoint_b, f"{number} a", f"{number} b"
        for first, second in (ORDERS[word] for word in words.split()):
            found.append(("pairs", "1", judge, "better", str(prompt), reported, *ends, first, second, outcome(first, second)))
    return pl.DataFrame(found, schema=SCHEMA, orient="row")


def said(a: str, b: str, words: str, category: str | None = None) -> list[tuple]:
    """One pair a prompt: "a a = ?" are four prompts."""
    return [(a, b, f"p{n:03d}", word, category) for n, word in enumerate(words.split())]


def settings(baseline: str | None = "m/1", floor: float = 0.0, **statistics: object) -> Settings:
    return Settings("bench", "d" * 64, "f" * 64, date(2026, 1, 1), floor, Statistics(**statistics), baseline)


def tables(rows: Iterable[tuple] | pl.DataFrame, plan: Plan | None = None, **how: object) -> dict[Table, pl.DataFrame]:
    frame = rows if isinstance(rows, pl.DataFrame) else verdicts(rows)
    return preference_tables(
        frame, settings(**how), plan and dict.fromkeys(frame.select("rubric_id", "judge_model").iter_rows(), plan)
    )


def the_row(found: dict[Table, pl.DataFrame], category: str = Total.MACRO.value) -> dict[str, object]:
    """The one row of a category in preferences."""
    return found[PREFERENCES].filter(category=category).row(0, named=True)
