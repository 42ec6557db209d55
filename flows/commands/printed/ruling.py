"""What `salon gate` says: in the terminal, in a pull request's comment, as JSON. One line of it is ruling_words.py."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

import orjson
from rich.table import Table as Grid
from rich.text import Text

from flows.commands.printed.judge_moves import sentence
from flows.commands.printed.ruling_words import HEADERS, line, not_applicable
from flows.nights.judge_between import JudgeMove
from flows.observability.terminal import Console, name_of, one_line
from schemas.statuses.cells import CellReason, ComparisonReason
from tasks.aggregate.comparisons.families import ALPHA as TABLES_ALPHA
from tasks.aggregate.gate import prompts_needed
from tasks.aggregate.ruling import (
    NOT_SHOWN,
    ORDER_HIDES,
    RISE_TURNED,
    STOPPED_EARLY,
    TOO_FEW,
    TURNED,
    Outcome,
    Ruling,
    summary,
)
from tasks.publish.caveats import Caveats
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.reading import Publication
from tasks.publish.standings.wording import counted

_WOULD_FIND = "; 'would find': the drop found in 80 % of cases."
_OF_PAIRS = " In percent: how often the candidate's picture wins, of pairs; 50 % is no change."
_OUT_OF_REACH = " 'would find' is left out where so many pairs go by order alone that no win rate can be so low."
_REST = (
    f" Asking stopped early by the tables' {100 * TABLES_ALPHA:g} %, not by this --alpha. To ask the rest, {{}}, and run again: "
    "nothing is bought twice."
)
_ASK_ALL = {False: "take [statistics.stopping] out of the benchmark file", True: "set adaptive = false under [pairs]"}
_STYLES = {Outcome.REGRESSION: "red", Outcome.IMPROVED: "green", Outcome.NO_REGRESSION: "", Outcome.UNKNOWN: "yellow"}
_NOT_RULED = {
    ComparisonReason.DATASET_DIFFERS: "no shared prompts",
    NOT_SHOWN: "never shown side by side",
    CellReason.NOT_APPLICABLE: "no question applies to either",
}


@dataclass(frozen=True, slots=True)
class Told:
    """A publication's rulings, and what there is to know about them. `judges`: those looked at alone, empty where all are.

    `n_categories`: single ones that were compared, and are not ruled on. `blind`: what judges are blind to,
    as their exam found: rubric_id, judge_model, dimension, blind_to. `apart`: by rubric and judge of pairs, candidates that were
    not shown beside what they are held against: rubric_id, judge_model, candidate, reference. `unruled`: the two on which nothing
    at all is ruled: candidate, reference, reason. `blocked`: of the categories that are blocked on their own within a mean.
    """

    found: Publication
    ruled: Sequence[Ruling]
    alpha: float
    n_again: int
    blind: Sequence[Mapping[str, Any]]
    judges: Sequence[str]
    moves: Sequence[JudgeMove]
    n_categories: int
    caveats: Caveats
    apart: Sequence[Mapping[str, Any]] = ()
    unruled: Sequence[Mapping[str, Any]] = ()
    blocked: Sequence[str] = ()

    @property
    def verdict(self) -> Outcome:
        """The whole in a word.

        Nothing is ruled out where a newer publication, which may hold a drop, was not looked at, or where none is current; and
        nothing at all is ruled by numbers that were taken back.
        """
        ruled, caveats = summary(self.ruled), self.caveats
        is_open = caveats.withdrawn or ((caveats.newer or caveats.none_current) and ruled is not Outcome.REGRESSION)
        return Outcome.UNKNOWN if is_open else ruled

    @property
    def outcome(self) -> str:
        """The whole in a sentence."""
        newer, none_current = self.caveats.newer, self.caveats.none_current
        if self.caveats.withdrawn is not None:
            return f"Undecided: {self.caveats.withdrawn.told}. Nothing is ruled by it; name another publication."
        if newer is not None and self.verdict is not Outcome.REGRESSION:
            was = "was not" if newer.is_read else "may not have been"
            return f"Undecided: the newest publication {was} looked at, {self._not_looked_at}"
        if none_current is not None and self.verdict is not Outcome.REGRESSION:
            return f"Undecided: {none_current}, ruled on below. Name it to go by that."
        n_of = {one: sum(ruling.outcome is one for ruling in self.ruled) for one in Outcome}
        n_open, n_all = n_of[Outcome.UNKNOWN], counted(len(self.ruled), "comparison")
        return {
            Outcome.REGRESSION: f"Regression: worse in {n_of[Outcome.REGRESSION]} of {n_all}."
            + ("" if newer is None else f" Not looked at: {self._not_looked_at}")
            + ("" if none_current is None else f" But {none_current}."),
            Outcome.UNKNOWN: f"Undecided: {n_open} of {n_all} {'is' if n_open == 1 else 'are'} inconclusive."
            if self.ruled
            else " ".join(["Undecided: nothing was compared.", *map(_unruled, self.unruled)]),
            Outcome.NO_REGRESSION: f"No regression found in {n_all}.",
        }[self.verdict]

    @property
    def _not_looked_at(self) -> str:
        newer, found = self.caveats.newer, self.found
        return (
            "" if newer is None else f"{newer.told}. What is ruled on below is {found.publication_id[:12]} of {found.run_date}."
        )

    @property
    def judge_moved(self) -> list[str]:
        """A sentence for each comparison behind which the judge moved. The ruling stays: it is of what was published."""
        several = len({move.rubric_id for move in self.moves}) > 1 or len({move.judge_model for move in self.moves}) > 1
        return [(f"{move.rubric_id}, {move.judge_model}: " if several else "") + sentence(move) for move in self.moves]

    @property
    def notes(self) -> str:
        """Of which publication, how it is tested, what was left out."""
        found, n_needed = self.found, prompts_needed(self.ruled, self.alpha)
        return (
            f"{found.benchmark}, {found.run_date}, publication {found.publication_id[:16]}. Paired by prompt, two-sided at "
            f"{self.alpha:g} for all comparisons together"
            + ("." if all(one.smallest_drop is None for one in self.ruled) else _WOULD_FIND)
            + (f" Only the rankings of {', '.join(self.judges)} are considered." if self.judges else "")
            + (f" Judgements taken from an earlier identical sample: {self.n_again:,}." if self.n_again else "")
            + (
                f" At least {n_needed} shared prompts are needed to rule on a difference at that level."
                if any(ruling.reason == TOO_FEW for ruling in self.ruled)
                else ""
            )
            + (
                " A verdict that failures could reverse is not claimed: `salon table` shows how many scores are missing, and why."
                if any(ruling.reason in (TURNED, RISE_TURNED) for ruling in self.ruled)
                else ""
            )
            + (
                f" Single categories ({self.n_categories}) are not considered: `salon table` names the clearest fall."
                if self.n_categories
                else ""
            )
            + (_OF_PAIRS if any(ruling.is_win_rate for ruling in self.ruled) else "")
            + (_OUT_OF_REACH if any(ruling.reason == ORDER_HIDES for ruling in self.ruled) else "")
            + _ask_the_rest(self.ruled)
            + "".join(f" {said}" for said in self.blocked)
            + "".join(map(not_applicable, self.ruled))
            + "".join(f" Not compared: {_unruled(row)}" for row in self.unruled if self.ruled and row["reason"] != NOT_SHOWN)
            + "".join(
                f" Not compared in pairs, and not ruled on under {row['rubric_id']} by {row['judge_model']}: "
                f"{'/'.join(row['candidate'])} with {'/'.join(row['reference'])}."
                for row in self.apart
            )
            + "".join(
                f" In {row['rubric_id']}, {row['dimension']}, {row['judge_model']} is blind to {row['blind_to']}."
                for row in self.blind
            )
        )


def _ask_the_rest(ruled: Sequence[Ruling]) -> str:
    """How, where asking stopped too early for a ruling."""
    ways = {ruling.is_win_rate for ruling in ruled if ruling.reason == STOPPED_EARLY}
    return _REST.format(" and ".join(_ASK_ALL[one] for one in sorted(ways))) if ways else ""


def _unruled(row: Mapping[str, Any]) -> str:
    return f"{'/'.join(row['candidate'])} with {'/'.join(row['reference'])}: {_NOT_RULED[row['reason']]}."


def print_ruling(console: Console, told: Told) -> None:
    """Sentences, and a table for each two checkpoints and judge."""
    for said in (told.outcome, *told.judge_moved, told.notes):
        console.print(name_of(said))
    by_pair = sorted(told.ruled, key=lambda one: (one.candidate, one.reference, one.judge_model))
    for (candidate, reference, judge), some in groupby(by_pair, lambda one: (one.candidate, one.reference, one.judge_model)):
        console.print()
        console.print(name_of(f"{'/'.join(candidate)} against {'/'.join(reference)}, judged by {judge}", "bold"))
        grid = Grid(box=None, padding=(0, 2, 0, 0), header_style="dim")
        for header in ("rubric, dimension", *HEADERS[3:]):
            grid.add_column(header, justify="right" if header in HEADERS[3:6] else "left", overflow="fold")
        for ruling in some:
            *numbers, word = line(ruling)[3:]
            asked = name_of(f"{ruling.rubric_id}, {ruling.dimension}")
            grid.add_row(asked, *map(Text, numbers), Text(one_line(word), style=_STYLES[ruling.outcome]))
        console.print(grid)


def as_json(told: Told, judges: Sequence[str]) -> str:
    """For another program, every digit. `judges`: all that were looked at."""
    said = {
        "publication_id": told.found.publication_id,
        "benchmark": told.found.benchmark,
        "alpha": told.alpha,
        "judges": judges,
        "is_current": told.found.is_current,
        "withdrawn": None if told.caveats.withdrawn is None else asdict(told.caveats.withdrawn),
        "not_looked_at": None if told.caveats.newer is None else asdict(told.caveats.newer),
        "outcome": told.verdict,
        "n_again": told.n_again,
        "blind": told.blind,
        "apart": told.apart,
        "unruled": told.unruled,
        "blocked": told.blocked,
        "judge_moved": [asdict(one) for one in told.moves],
        "rulings": [asdict(one) for one in told.ruled],
    }
    return orjson.dumps(said, option=orjson.OPT_INDENT_2).decode() + "\n"


def as_markdown(told: Told) -> str:
    """A pull request's comment."""
    rows = [(*cells[:3], *cells[6:], *cells[3:6]) for cells in map(line, told.ruled)]
    headers = (*HEADERS[:3], HEADERS[6], *HEADERS[3:6])
    benchmark = told.found.benchmark
    mark = hashlib.sha256(benchmark.encode()).hexdigest()[:8]  # an earlier push's comment on this benchmark is found by it
    moved = "".join(f"{escape_markdown(sentence)}\n\n" for sentence in told.judge_moved)
    told_so = f"**{escape_markdown(told.outcome)}**\n\n{moved}{to_markdown(headers, rows, 4)}\n{escape_markdown(told.notes)}\n"
    return f"<!-- salon gate {mark} -->\n{told_so}"
