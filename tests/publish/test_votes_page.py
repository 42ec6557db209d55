"""How votes on pairs read beside the judges: who stands in which row. The figures are tests/aggregate/agreement/test_votes.py."""

import polars as pl

from schemas.records import PEOPLE
from schemas.tables.agreement import AGREEMENT
from tasks.publish.votes_page import vote_boards
from tests.aggregate.preferences.conftest import said, tables, verdicts


def test_people_who_saw_one_model_stand_in_the_rows_of_judges_who_saw_two() -> None:
    voted, judged_alone = said("painter/2", "painter/1", "a a a b a ="), said("other/v1", "painter/1", "a b a a")
    rows = pl.concat([verdicts(voted + judged_alone, "eye"), verdicts(voted, PEOPLE)])
    of_votes = dict.fromkeys(AGREEMENT.columns) | {
        "rubric_id": "pairs", "dimension": "better", "subject_kind": "judge", "subject": "eye", "against": "__raters_majority__",
        "model": "__all__", "category": "__micro__", "metric": "vote_accuracy", "n_items": 6, "reason": "too_few_items",
    }  # fmt: skip
    agreement = pl.DataFrame([of_votes], schema=AGREEMENT.empty().schema)
    (board,) = vote_boards(tables(rows, baseline="painter/1") | {AGREEMENT: agreement})
    rated, won = ({name: cells for name, *cells in lines} for _, lines in board.beside)
    assert rated.keys() == {"painter / 1", "painter / 2", "other / v1"}
    assert won.keys() == {"painter / 2 against painter / 1", "other / v1 against painter / 1"}
    assert all(won["painter / 2 against painter / 1"])
