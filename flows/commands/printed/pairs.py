"""How pairs look in a terminal: the answer, who beat whom, the ratings. Means of scores are tables.py's."""

from collections.abc import Iterable

from rich.table import Table
from rich.text import Text

from flows.observability.terminal import Console, name_of, one_line
from schemas.records import ALL_JUDGES
from tasks.publish.standings.pair_answers import pair_answers, pair_answers_together
from tasks.publish.standings.pair_boards import OVER_CATEGORIES, PairBoard, decided, rating, received, verdict, win_rate
from tasks.publish.standings.wording import rank

_MARKS = {"higher": "green", "lower": "red"}
_ASIDE = {"n_order_dependent": "by\norder", "n_unjudged": "no\nverdict"}
"""Counts of pairs without a winner, by their column; each has one here where some comparison has such pairs."""


def print_pairs(console: Console, boards: Iterable[PairBoard], *, is_short: bool = True) -> None:
    """The boards of a publication's pairs: those of headlines alone, or all."""
    listed = list(boards)
    for rubric_id, told in pair_answers_together(listed).items():
        console.print(Text.assemble((one_line(rubric_id), "bold"), ", pairs in both orders, all judges"))
        for sentence in told:
            console.print(Text(one_line(f" {sentence}")))
        console.print()
    for board in listed:
        if is_short and not board.is_headline:
            continue
        whose = "all judges together" if board.judge_model == ALL_JUDGES else f"judged by {board.judge_model}"
        console.print(Text.assemble((one_line(board.rubric_id), "bold"), one_line(f", pairs in both orders, {whose}")))
        for sentence in pair_answers(board) if board.is_headline else ():
            console.print(Text(one_line(f" {sentence}")))
        over = OVER_CATEGORIES * board.has_categories
        console.print(
            Text(one_line(f" {board.dimension}: the win rate of the first against the second{over}; a tie counts half"))
        )
        console.print(_comparisons(board))
        console.print(_ratings(board))
        console.print()


def _comparisons(board: PairBoard) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    for name in ("first", "second"):
        table.add_column(name, overflow="fold", min_width=9)
    table.add_column("wins [95 %]", no_wrap=True)
    table.add_column("better?")
    table.add_column("won,\ntied,\nlost")
    aside = {name: head for name, head in _ASIDE.items() if any(row[name] for row in board.comparisons)}
    for head in aside.values():
        table.add_column(head, justify="right")
    table.add_column("pair", no_wrap=True)
    for row in board.comparisons:
        table.add_row(
            Text(one_line(board.name(row, "_a"))), Text(one_line(board.name(row, "_b"))), win_rate(row),
            Text(verdict(row), style=_MARKS.get(row["verdict"] or "", "dim")),
            decided(row) + received(row), *(str(row[name]) for name in aside), Text(row["pair_id"][:6], style="dim"),
        )  # fmt: skip
    return table


def _ratings(board: PairBoard) -> Table:
    table = Table(box=None, padding=(0, 1, 0, 0), header_style="dim")
    table.add_column("rank" if board.n_ranked is None else f"rank of {board.n_ranked}", justify="right", no_wrap=True)
    table.add_column("checkpoint", overflow="fold", min_width=10)
    being = "" if board.zero is None else f", {'the mean' if board.zero == '__mean__' else board.zero} being 0"
    table.add_column(name_of(f"rating [95 %, not corrected]{being}"))
    for row in board.ratings:
        style = "bold" if row["rank_high"] == 1 else ""
        table.add_row(rank(row), Text(one_line(board.name(row)), style=style), Text(rating(row), style=style))
    return table
