"""How it is told that a judge moved between two checkpoints that are compared: table, gate and a night's last lines."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import polars as pl

from flows.nights.judge_between import Compared, JudgeMove, judge_moves
from flows.observability.log_lines import complain
from flows.observability.terminal import one_line
from schemas.errors import SalonError
from schemas.statuses.cells import Total
from tasks.publish.leaderboard import LeaderboardRow
from tasks.publish.standings.wording import signed

if TYPE_CHECKING:
    from tasks.aggregate.drift.between import Change

_Row = TypeVar("_Row")
_N_TOLD = 3  # sentences under a rubric and judge: the rows have all

Said = Mapping[tuple[str, str], Sequence[str]]
"""What is answered of each rubric and judge."""


def unless_spoiled(read: Callable[[], list[_Row]], what: str) -> list[_Row]:
    """What is read of nights; nothing, and a word on standard error, where their files are spoiled: a table stands without."""
    try:
        return read()
    except (SalonError, OSError, pl.exceptions.PolarsError) as error:
        complain(f"{what} is unknown: {one_line(str(error))}")
        return []


def moves_of(shown: Path, compared: Sequence[Compared]) -> list[JudgeMove]:
    """Those of `compared` that a judge moved between. `shown`: the folder of the publication that compares them."""
    found = partial(judge_moves, shown.parents[3], shown.parent.name, compared, shown)
    return unless_spoiled(found, "whether a judge moved between two nights")


def sentence(move: JudgeMove) -> str:
    """The whole of it: by how much the anchors changed, between which nights, and what is left of the difference."""
    from tasks.aggregate.drift.between import LEVEL

    after, before = ("/".join(one) for one in (move.candidate, move.reference))
    level = f"{100 * LEVEL:g} %, not corrected for the number of comparisons"
    said = (
        f"The judge moved too: between the nights of {before} ({move.night_before}) and {after} ({move.night}) the same "
        f"{move.n_anchors} anchors changed by {_figure(move.anchors)} in {move.dimension}"
    )
    left = f"Subtracting that, {after} differs by {_figure(move.left)}"
    if move.left.low is not None:
        return f"{said}. {left} (both intervals: {level})."
    why = "That has no interval, as the comparison was no t test (few prompts, equal differences or several looks)"
    return f"{said} (interval: {level}). {left}. {why}."


def with_moves(
    said: Said, moves: Sequence[JudgeMove], headlines: Collection[tuple[str, str]]
) -> dict[tuple[str, str], list[str]]:
    """What is said, and behind it a sentence for each newest checkpoint that a leading dimension (`headlines`) compares."""
    told = {key: list(sentences) for key, sentences in said.items()}
    older = {move.reference for move in moves}
    for (rubric_id, judge_model), sentences in told.items():
        mine = [move for move in moves if (move.rubric_id, move.judge_model) == (rubric_id, judge_model)]
        newest = [move for move in mine if (rubric_id, move.dimension) in headlines and move.candidate not in older]
        sentences += [sentence(move) for move in newest[:_N_TOLD]]
    return told


def marked(rows: Sequence[LeaderboardRow], moves: Sequence[JudgeMove]) -> list[LeaderboardRow]:
    """The rows; those whose difference to the predecessor is the judge's too say so, and by how much its anchors changed."""
    by_row = {(move.rubric_id, move.judge_model, move.dimension, *move.candidate): move for move in moves}
    found = []
    for row in rows:
        move = by_row.get((row.rubric_id, row.judge_model, row.dimension, row.model, row.checkpoint))
        if move is None or row.category != Total.MACRO:
            found.append(row)
            continue
        mark = f"the judge moved too, its anchors by {signed(move.anchors.delta)} since the night of {move.reference[1]}"
        found.append(
            replace(
                row,
                why="; ".join(part for part in (row.why, mark) if part),
                anchors_delta_predecessor=move.anchors.delta,
                anchors_delta_predecessor_low=move.anchors.low,
                anchors_delta_predecessor_high=move.anchors.high,
            )
        )
    return found


def _figure(change: "Change") -> str:
    interval = "" if change.low is None or change.high is None else f" [{signed(change.low)}, {signed(change.high)}]"
    return signed(change.delta) + interval
