"""The leaderboard: a row per model and checkpoint, under each rubric, judge and headline dimension; and as leaderboard.md."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from operator import attrgetter

import polars as pl

from schemas.metrics import BOARD, headlines, means_for_prompts_like_these
from schemas.records import ALL_JUDGES
from schemas.statuses.cells import CellStatus, Total
from schemas.tables.published import BENCHMARK_LONG, STANDINGS
from tasks.publish.exports import escape_markdown, to_markdown
from tasks.publish.folders import PublicationName
from tasks.publish.standings.answers import answers
from tasks.publish.standings.between_judges import between_judges
from tasks.publish.standings.categories import blocked_in_totals, over_all_images, weights, worse_categories
from tasks.publish.standings.pair_answers import pair_answers, pair_answers_together
from tasks.publish.standings.pair_boards import PAIR_HEADERS, PairBoard, pair_lines, pair_notes
from tasks.publish.standings.wording import DASH, best_first, difference, number, percent, rank, why

_HEADERS = ("rank", "model", "checkpoint", "mean and 95 % interval", "vs. predecessor", "prompts", "images", "coverage", "cell")
_NOTES = """\
{means}; the interval is for prompts like these, with prompts as the independent
unit. Ranks and differences are paired by prompt and corrected together for all comparisons of their family: a rank
range holds the ranks these prompts leave open. A failure is counted and never averaged in. Coverage is the share of judgements
with a score that counts. `salon explain CELL` shows what a number is made of.
"""

UNEQUAL = "fails unequally: on more prompts than another, or where the other's scores are low"


@dataclass(frozen=True, slots=True)
class LeaderboardRow:
    """One line of the leaderboard: a cell and its standing. `rank`, `score`, `predecessor`, `baseline` and `why` are texts."""

    rubric_id: str
    judge_model: str
    dimension: str
    category: str
    model: str
    checkpoint: str
    rank: str
    score: str
    predecessor: str
    why: str
    state: str | None
    rank_low: int | None
    rank_high: int | None
    n_ranked: int | None
    estimate: float | None
    ci_low: float | None
    ci_high: float | None
    status: str
    reason: str | None
    n_prompts: int
    n_categories: int | None
    n_prompts_smallest_category: int | None
    n_prompts_largest_category: int | None
    n_images: int
    n_judgements: int
    n_failed: int
    coverage: float | None
    n_shared_prompts: int | None
    shared_estimate: float | None
    delta_predecessor: float | None
    delta_predecessor_low: float | None
    delta_predecessor_high: float | None
    p_predecessor: float | None
    verdict_predecessor: str | None
    delta_baseline: float | None
    delta_baseline_low: float | None
    delta_baseline_high: float | None
    p_baseline: float | None
    verdict_baseline: str | None
    cell_id: str
    blind_to: str | None = None  # faults that the judge does not notice in the dimension, of those it is to notice
    # where the judge moved between the two nights: by how much its anchors changed, with an interval of 99 %
    anchors_delta_predecessor: float | None = None
    anchors_delta_predecessor_low: float | None = None
    anchors_delta_predecessor_high: float | None = None
    has_unequal_failures: bool | None = None  # it fails on more prompts than another, or where the other's scores are low
    n_not_applicable: int | None = None  # in no other count
    drift_alarm: str | None = None  # the verdict of its series' alarm, of the checkpoint that the night was about
    rubric_version: str | None = None  # rows of two versions are not compared
    baseline: str = ""

    @property
    def blind(self) -> str:
        """The mark beside the dimension's numbers; empty without one."""
        return f"blind to {self.blind_to}" if self.blind_to else ""


def leaderboard_rows(
    cells: pl.DataFrame, *, category: str = Total.MACRO.value, is_headline_only: bool = True
) -> list[LeaderboardRow]:  # fmt: skip
    """The rows of one category (default: the mean over categories), best first within rubric, judge and dimension.

    `cells` are `standings.placed`. With `is_headline_only` the primary dimensions alone: what the benchmark file declares, else
    the `overall_score` of a rubric that has one and all dimensions of one that has none.
    """
    return [_row(cell) for cell in leading(cells, category=category, is_headline_only=is_headline_only)]


def leading(cells: pl.DataFrame, *, category: str = Total.MACRO.value, is_headline_only: bool = True) -> list[dict[str, object]]:
    """The cells that the rows of the leaderboard are made of, in its order: by rank, then by mean."""
    chosen = means_for_prompts_like_these(cells).filter(pl.col("category") == category).to_dicts()
    if is_headline_only:
        leading_ones = headlines(cells)
        chosen = [row for row in chosen if (row["rubric_id"], row["dimension"]) in leading_ones]
    return sorted(chosen, key=lambda row: (*(row[name] for name in BOARD), *best_first(row)))


def leaderboard(rows: Sequence[LeaderboardRow]) -> pl.DataFrame:
    """Leaderboard rows as a frame, numbers in full precision."""
    known = BENCHMARK_LONG.empty().schema | STANDINGS.empty().schema
    anchors = {field.name: pl.Float64() for field in fields(LeaderboardRow) if field.name.startswith("anchors_")}
    schema = {field.name: (known | anchors).get(field.name, pl.String()) for field in fields(LeaderboardRow)}
    return pl.DataFrame([asdict(row) for row in rows], schema=schema)


def format_estimate(estimate: float | None, ci_low: float | None, ci_high: float | None, n_digits: int = 2) -> str:
    """Such as "7.42 [6.91, 7.93]"; the number alone where there is no interval; a dash where there is no number."""
    if estimate is None:
        return DASH
    mean = number(estimate, n_digits)
    if ci_low is None or ci_high is None:
        return mean
    return f"{mean} [{number(ci_low, n_digits)}, {number(ci_high, n_digits)}]"


def _row(cell: dict[str, object]) -> LeaderboardRow:
    names = {field.name for field in fields(LeaderboardRow)}
    told = "; ".join(part for part in (why(cell), UNEQUAL if cell.get("has_unequal_failures") else "") if part)
    against = {other: difference(cell, other) for other in ("predecessor", "baseline")}
    texts = {"rank": rank(cell), "score": _score(cell), "why": told} | against
    return LeaderboardRow(**{name: value for name, value in cell.items() if name in names} | texts)  # type: ignore[arg-type]


def _score(cell: dict[str, object]) -> str:
    estimate, low, high = (cell[name] for name in ("estimate", "ci_low", "ci_high"))
    text = format_estimate(estimate, low, high)  # type: ignore[arg-type]
    if cell["status"] == CellStatus.OK:
        return text
    shown = f"{cell['status']}: {cell['reason']}" if cell["status"] == CellStatus.BLOCKED else f"{cell['reason']}"
    return f"{text} ({shown})"


def leaderboard_page(
    cells: pl.DataFrame, name: PublicationName, pairs: Sequence[PairBoard] = (), comparisons: pl.DataFrame | None = None
) -> str:
    """The page: the answer in sentences and a table for each rubric, judge and dimension, best first. `cells` are placed.

    Categories that got worse are named where `comparisons` are given.
    """
    title = f"# {escape_markdown(name.benchmark)}, {name.run_date.isoformat()}\n"
    said = [
        f"- **{escape_markdown(rubric_id)}**, {escape_markdown(judged_by(judge))}: {escape_markdown(' '.join(sentences))}\n"
        for (rubric_id, judge), sentences in answers_of(cells, comparisons).items()
    ]
    rows = leaderboard_rows(cells)
    fell = None if comparisons is None else worse_categories(comparisons)
    said += [f"- {escape_markdown(fell[0])}\n"] if fell else []
    has_categories = bool(set(cells["category"]) - {*Total})
    what = "Means over categories, all with the same weight" if has_categories else "Means"
    means = [markdown_tables(rows), _NOTES.format(means=what)] if rows or not pairs else []
    notes = [pair_notes(pairs)] if pairs else []
    return "\n".join([title, *_of_pairs(pairs), *said, *means, *notes, f"Publication {name.publication_id}.\n"])


def _of_pairs(boards: Sequence[PairBoard]) -> Iterator[str]:
    """Of each headline board its answer in sentences, and who won how often; before them what all judges find."""
    for rubric_id, told in pair_answers_together(boards).items():
        yield f"- **{escape_markdown(rubric_id)}**, pairs, all judges: {escape_markdown(' '.join(told))}\n"
    for board in boards:
        if board.is_headline:
            yield (
                f"- **{escape_markdown(board.rubric_id)}**, pairs judged by {escape_markdown(board.judge_model)}: "
                f"{escape_markdown(' '.join(pair_answers(board)))}\n"
            )
            yield to_markdown(PAIR_HEADERS, pair_lines(board), n_text_columns=2)


def markdown_of_pairs(boards: Iterable[PairBoard]) -> str:
    """A table of win rates with its heading for each board."""
    return "\n".join(
        f"## {escape_markdown(board.rubric_id)}: {escape_markdown(board.dimension)}, pairs judged by "
        f"{escape_markdown(board.judge_model)}\n\n{to_markdown(PAIR_HEADERS, pair_lines(board), n_text_columns=2)}"
        for board in boards
    )


def answers_of(cells: pl.DataFrame, comparisons: pl.DataFrame | None = None) -> dict[tuple[str, str], list[str]]:
    """The answer of each rubric and judge in sentences, from the headline standings among placed cells.

    What several judges of a rubric say stands first, under ALL_JUDGES. `comparisons` answer where categories are too small.
    """
    headline = cells.filter(pl.col("is_headline")).sort("rubric_id", "judge_model").iter_rows(named=True)
    found, blocked = dict[tuple[str, str], list[str]](), blocked_in_totals(cells)
    for rubric_id, rows in groupby(headline, key=lambda row: row["rubric_id"]):
        mine = list(rows)
        if together := between_judges(mine):
            found[rubric_id, ALL_JUDGES] = together
        for judge, judged in groupby(mine, key=lambda row: row["judge_model"]):
            *told, last = answers(own := list(judged))
            told += over_all_images(own, cells, comparisons)
            found[rubric_id, judge] = [*told, last, *blocked.get((rubric_id, judge), ())]
    return found


def judged_by(judge: str) -> str:
    """Whose answer it is, as a heading says it."""
    return "all judges" if judge == ALL_JUDGES else f"judged by {judge}"


def tells_baseline(rows: Iterable[LeaderboardRow]) -> bool:
    """Whether there are differences to the baseline, and other ones than those to the predecessors."""
    return any(row.delta_baseline is not None and row.delta_baseline != row.delta_predecessor for row in rows)


def markdown_tables(rows: Iterable[LeaderboardRow]) -> str:
    """A table with its heading for each rubric, judge and dimension, in the rows' order, and below it what is missing and why."""
    parts = []
    for (rubric_id, judge_model, dimension), found in groupby(rows, key=attrgetter("rubric_id", "judge_model", "dimension")):
        mine = list(found)
        parts.append(f"## {escape_markdown(rubric_id)}: {escape_markdown(dimension)}, judged by {escape_markdown(judge_model)}\n")
        if mine[0].blind:
            parts.append(f"**{escape_markdown(mine[0].blind)}** (the judge's exam: planted faults it does not notice)\n")
        more = ["vs. baseline"] * tells_baseline(mine)
        parts.append(to_markdown([*_HEADERS[:5], *more, *_HEADERS[5:]], [_line(row, more) for row in mine], n_text_columns=3))
        parts += [f"- {escape_markdown(f'{row.model} / {row.checkpoint}: {row.why}')}\n" for row in mine if row.why]
        parts += [f"- {told}\n" for told in [weights([asdict(row) for row in mine])] if told]
    return "\n".join(parts)


def _line(row: LeaderboardRow, more: Sequence[str]) -> tuple[object, ...]:
    coverage, against = "" if row.coverage is None else percent(row.coverage), [row.predecessor, *(row.baseline for _ in more)]
    return row.rank, row.model, row.checkpoint, row.score, *against, row.n_prompts, row.n_images, coverage, row.cell_id
