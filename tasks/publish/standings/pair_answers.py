"""The answer of pairs in sentences: which may be the best, what the newest brought, what is missing, how the judge leans."""

from collections.abc import Sequence
from itertools import groupby

from schemas.statuses.cells import CellStatus, ComparisonVerdict
from tasks.publish.standings.answers import best_of, how_sure, listed
from tasks.publish.standings.between_judges import best_by_each, found_by_each
from tasks.publish.standings.pair_boards import VERDICTS, PairBoard, Row, too_few_verdicts, verdict, win_rate
from tasks.publish.standings.wording import counted, percent


def pair_answers(board: PairBoard) -> list[str]:
    """What the pairs say: which may be the best, each model's newest against others, what is missing, how the judge leans."""
    compared = [_sentence(board, row) for row in _told(board) or board.comparisons[:1]]
    return [*_best(board), *compared, _unjudged([board]), *_of_judge(board)]


def pair_answers_together(boards: Sequence[PairBoard]) -> dict[str, list[str]]:
    """By rubric, where several judges compared its pairs, what all of them find; each judge's own answer is pair_answers()."""
    found = {}
    for rubric_id, of_rubric in groupby((board for board in boards if board.is_headline), key=lambda board: board.rubric_id):
        mine = list(of_rubric)
        if len(mine) > 1 and len({board.dimension for board in mine}) == 1:
            rows = ((board, row) for board in mine for row in _told(board))
            claims = ((one.name(row, "_a"), one.name(row, "_b"), row["verdict"], one.judge_model) for one, row in rows)
            found[rubric_id] = [*_best_together(mine), *found_by_each(claims), _unjudged(mine)]
    return found


def _best_together(boards: Sequence[PairBoard]) -> list[str]:
    """The same of several judges, where each ranked three or more; without verdicts they may still say nothing of the newest."""
    if any((board.n_ranked or 0) <= 2 for board in boards):
        return []
    ranked = {one.judge_model: [one.name(row) for row in one.ratings if row["rank_low"] is not None] for one in boards}
    return best_by_each(ranked, {one.judge_model: _first(one) for one in boards})


def _first(board: PairBoard) -> list[str]:
    """Those that no other is above."""
    return [board.name(row) for row in board.ratings if row["rank_low"] == 1]


def _best(board: PairBoard) -> list[str]:
    """Which of three or more no other is above; of two, their comparison says it."""
    if (n := board.n_ranked) is None or n <= 2:
        return []
    first = _first(board)
    if len(first) == n:
        return [f"These pairs cannot tell which of {listed(first)} is best."]
    return [f"{best_of(first, n)}."]


def _told(board: PairBoard) -> list[Row]:
    """Each model's newest checkpoint against its predecessor and the baseline."""
    before = {(row["model_b"], row["checkpoint_b"]) for row in board.comparisons if row["is_to_predecessor"]}
    newest = (row for row in board.comparisons if (row["model_a"], row["checkpoint_a"]) not in before)
    return [row for row in newest if row["is_to_predecessor"] or row["is_to_baseline"]]


def _unjudged(boards: Sequence[PairBoard]) -> str:
    """How many pairs lack a verdict, said where none does, too."""
    n = sum(row["n_unjudged"] for board in boards for row in board.comparisons)
    n_pairs, lack = sum(board.n_pairs for board in boards), "lacks" if n == 1 else "lack"
    return f"{n:,} of {counted(n_pairs, 'pair')} {lack} a verdict." if n else "No pair lacks a verdict."


def _sentence(board: PairBoard, row: Row) -> str:
    a, b = board.name(row, "_a"), board.name(row, "_b")
    if row["win_rate"] is None:
        is_blocked = row["status"] == CellStatus.BLOCKED and row.get("coverage_floor") is not None  # older publications have none
        return f"{a} against {b}: {verdict(row) or 'no figure'}{f', {too_few_verdicts(row)}' if is_blocked else ''}."
    sure, is_decided = how_sure(row), row["verdict"] in (ComparisonVerdict.HIGHER, ComparisonVerdict.LOWER)
    if row["verdict"] == ComparisonVerdict.FAILURES_COULD_TURN_IT:
        told = (
            f"Because of missing verdicts, {a} cannot be told from {b}: it wins {win_rate(row)} on "
            f"{counted(row['n_prompts'], 'prompt')} ({sure})"
        )
        n_asked, n_said = row.get("n_verdicts_asked"), row.get("n_verdicts")  # as older publications have none
        return told + (f", but {n_asked - n_said:,} of {n_asked:,} verdicts are missing." if n_asked and n_said else ".")
    told = f"{a} is {VERDICTS[row['verdict']]} than {b}" if is_decided else f"These pairs cannot tell {a} from {b}"
    behind = f"({sure})" if row["verdict"] is not None else f"({verdict(row)})"
    return f"{told}: it wins {win_rate(row)} on {counted(row['n_prompts'], 'prompt')} {behind}."


def _of_judge(board: PairBoard) -> list[str]:
    bias = board.bias
    if bias is None:
        return []
    if bias["status"] == CellStatus.BLOCKED:
        few = f"{bias['n_both_orders']:,} of {counted(bias['n_pairs'], 'pair')} {'has' if bias['n_both_orders'] == 1 else 'have'}"
        return [f"{few} verdicts in both orders: too few to detect a position bias."]
    if bias["first_wins"] is None:
        return []
    likes = f"picture shown first won {percent(bias['first_wins'], 0)} of the verdicts (a tie counts as half)"
    split, pairs = percent(bias["order_dependent"], 0), counted(bias["n_both_orders"], "pair")
    if board.has_repeats:
        return [f"On average over {pairs}, the {likes}, and the two orders disagree in {split} of the repeats."]
    return [f"The {likes}; in {split} of {pairs} the two orders disagree."]
