r"""leaderboard.tex: the leaderboard as LaTeX tables (booktabs), for \input. Names come from outside: they are escaped."""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from itertools import groupby

import polars as pl

from tasks.publish.folders import PublicationName
from tasks.publish.leaderboard import LeaderboardRow, leaderboard_rows, tells_baseline
from tasks.publish.standings.categories import weights
from tasks.publish.standings.pair_boards import OVER_CATEGORIES, PAIR_HEADERS, PairBoard, pair_lines
from tasks.publish.standings.wording import percent

_COMMANDS = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#", "_": r"\_", "%": r"\%",
    "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "<": r"\textless{}", ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\salonquote{}", "`": r"\textasciigrave{}", "'": r"\textquotesingle{}", "–": r"\textendash{}", "—": r"\textemdash{}",
}  # fmt: skip
"""What TeX obeys, and what its fonts show as another sign."""

_JOINING = re.compile(r"(?<=[-,])(?=[-,])")
"""Between two of these nothing may be left out: fonts join -- and ,, into other signs."""

_SPACES = frozenset({"Cc", "Zl", "Zp", "Zs"})
_DROPPED = frozenset({"Cf", "Cs", "Cn", "Co"})
_ACCENTED = frozenset("ÀÁÂÃÄÅÇÈÉÊËÌÍÎÏÑÒÓÔÕÖØÙÚÛÜÝßàáâãäåæçèéêëìíîïñòóôõöøùúûüýÿÆŒœŠšŽž")
"""Letters beyond ASCII that every engine sets without a further package."""

_HEAD = r"""% {title}
% In the preamble: \usepackage{{booktabs,textcomp}}. Signs beyond accented letters need LuaTeX or XeTeX; pdfTeX shows their codes.
\providecommand{{\salonsign}}[1]{{\ifdefined\Umathchar\char"#1\relax\else\texttt{{U+#1}}\fi}}
\providecommand{{\salonquote}}{{\texttt{{\char34}}}}
"""
_NOTE = (
    r"Means with their 95\,\% intervals for prompts like these; {weighed}prompts are the independent unit. "
    r"Ranks and differences are corrected for all comparisons of their family. A failure is counted and never averaged in."
)
_NOTE_OF_PAIRS = (
    r"Win rates of the first against the second, with their 95\,\% intervals for prompts like these{over}, corrected for all "
    r"comparisons of their family; a tie counts half, and so does a pair whose two orders disagree. "
    r"Prompts are the independent unit."
)


def leaderboard_tex(cells: pl.DataFrame, name: PublicationName, pairs: Sequence[PairBoard] = ()) -> str:
    """A table for each rubric and judge, its dimensions one under the other, best first; then the headline win rates."""
    title = f"{name.benchmark}, {name.run_date.isoformat()}, publication {name.publication_id}"
    return latex_tables(leaderboard_rows(cells), [board for board in pairs if board.is_headline], title=title)


def latex_tables(rows: Iterable[LeaderboardRow], pairs: Iterable[PairBoard] = (), *, title: str) -> str:
    """The same of given rows and boards, in their order; `title` stands in a comment."""
    tables = groupby(rows, key=lambda row: (row.rubric_id, row.judge_model))
    found = [_table(index, *named, mine) for index, (named, mine) in enumerate(tables, start=1)]
    found += [_table_of_pairs(index, board) for index, board in enumerate(pairs, start=len(found) + 1)]
    return "\n".join([_HEAD.format(title=_comment(title)), *found])


def escape_latex(value: object) -> str:
    """A value as LaTeX text on one line: no command, comment, group, maths or alignment of its own, in any TeX engine."""
    if value is None:
        return ""
    text = "".join(_sign(character) for character in unicodedata.normalize("NFC", str(value)))
    return _JOINING.sub("{}", text).strip()


def _sign(character: str) -> str:
    if character in _COMMANDS:
        return _COMMANDS[character]
    if " " < character <= "~" or character in _ACCENTED:
        return character
    kind = unicodedata.category(character)
    if kind in _SPACES:
        return " "
    return "" if kind in _DROPPED else rf"\salonsign{{{ord(character):04X}}}"


def _comment(text: str) -> str:
    """A text for a comment: what is no plain character cannot end the line, whatever an engine takes for a line's end."""
    return "".join(character if " " <= character <= "~" else " " for character in text)


def _table(number: int, rubric_id: str, judge_model: str, rows: Iterable[LeaderboardRow]) -> str:
    shown = list(rows)
    note = _NOTE.format(weighed="categories weigh the same, " * any(row.n_categories for row in shown))
    caption = f"{escape_latex(rubric_id)}, judged by {escape_latex(judge_model)}. {note}"
    others = _others(shown)
    named, n = " & ".join(f"vs. {other}" for other in others), 6 + len(others)
    lines = [
        *_opened(number, caption, f"rll{'r' * (n - 3)}"),
        rf"rank & model & checkpoint & mean [95\,\%] & {named} & prompts & coverage \\",
    ]  # fmt: skip
    for dimension, found in groupby(shown, key=lambda row: row.dimension):
        mine = list(found)
        told = weights([asdict(row) for row in mine])
        title = rf"\textit{{{escape_latex(dimension)}}}" + (f" ({escape_latex(told)})" if told else "")
        title += rf" \textbf{{{escape_latex(mine[0].blind)}}}" if mine[0].blind else ""
        lines += [r"\midrule", rf"\multicolumn{{{n}}}{{l}}{{{title}}} \\", *_lines(mine, others)]
    return "\n".join([*lines, *_CLOSED])


def _others(rows: Sequence[LeaderboardRow]) -> list[str]:
    """What a table compares with: on paper there is no room for a column of nothing."""
    has_baseline = tells_baseline(rows)
    has_predecessor = not has_baseline or any(row.predecessor for row in rows)
    return ["predecessor"] * has_predecessor + ["baseline"] * has_baseline


def _table_of_pairs(number: int, board: PairBoard) -> str:
    named, over = f"{escape_latex(board.rubric_id)}, {escape_latex(board.dimension)}", OVER_CATEGORIES * board.has_categories
    caption = f"{named}, pairs in both orders, judged by {escape_latex(board.judge_model)}. {_NOTE_OF_PAIRS.format(over=over)}"
    lines = (rf"{{}}{' & '.join(map(escape_latex, cells))} \\" for cells in (PAIR_HEADERS, *pair_lines(board)))
    head = next(lines)
    return "\n".join([*_opened(number, caption, "llrlrrl"), head, r"\midrule", *lines, *_CLOSED])


_CLOSED = (r"\bottomrule", r"\end{tabular}", r"\end{table}", "")


def _opened(number: int, caption: str, columns: str) -> list[str]:
    return [
        r"\begin{table}[htbp]", r"\centering", rf"\caption{{{caption}}}\smallskip", rf"\label{{tab:salon-{number}}}",
        rf"\begin{{tabular}}{{{columns}}}", r"\toprule",
    ]  # fmt: skip


def _lines(rows: Iterable[LeaderboardRow], others: Sequence[str]) -> Iterator[str]:
    for row in rows:
        coverage = "" if row.coverage is None else percent(row.coverage).replace(" %", r"\,\%")
        against = (getattr(row, other) for other in others)
        shown = (row.rank, row.model, row.checkpoint, row.score, *against, row.n_prompts)
        cells = [escape_latex(value) for value in shown]
        unequal = ", fails unequally" if row.has_unequal_failures else ""
        yield rf"{{}}{' & '.join([*cells, coverage + unequal])} \\"
