"""What stands around a labelled number: its scale and unit in several languages, a list below it, a Final Score alone."""

from pathlib import Path

import pytest

from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores
from tests.rubrics.replies.test_words import HEAD

SCALE = 'scale = {{ min = 1, max = {most}, step = 1 }}\n[[dimensions]]\nkey = "total_score"\nlabels = ["{label}"]'

ALIGNMENT: list[tuple[str, int | str]] = [
    ("Score: 4. The cat is there.", 4),
    ("Score:\n4", 4),
    ("Score:\n4.", 4),
    ("Score:\n**4**\nGood.", 4),
    ("Score:\n4 - good", 4),
    ("Score:\n4.\nThe cat is there.", 4),
    ("Score:\n4/5", 4),
    ("Score:\n1. The girl: present\n2. The can: present\n\nScore: 4", 4),
    ("Score: 4\n1. The girl: present\n2. The can: present", 4),
    ("Score:\n4\n1. good\n2. fine", 4),
    ("Score [1-5]: 4", 4),
    ("Score (1-5): 4", 4),
    ("**Score [1-5]:** 4", 4),
    ("Score: 4 ★★★★☆", 4),
    ("Score: 4 ★★★★", 4),
    ("Score: 4 ⭐⭐⭐⭐", 4),
    ("Score: 4/5 ★★★★☆", 4),
    ("Score: 4 (★★★★☆)", 4),
    ("Score: 4 (80%)", 4),
    ("Score: 4 sur 5", 4),
    ("Score: 4 из 5", 4),
    ("Score: 4 балла", 4),
    ("Score: 4 puntos", 4),
    ("Score: 4 de 5", 4),
    ("Score: 4 puntos de 5", 4),
    ("Score: 4 points out of 5", 4),
    ("Final Score: 4", 4),
    ("Reasoning: fine.\n\nFinal Score: 4", 4),
    ("Overall score: 4", 4),
    ("My Score: 4", 4),
    ("The score is 4.", 4),
    ("Reasoning: fine.\nThe score is 4.", 4),
    ("Reasoning: fine. The final score is 4/5.", 4),
    ("My score is 4", 4),
    ("So the score is 4.", 4),
    ("Score: 4\nThe score is 4.", 4),
    ("Score:\n1. The girl is there.\n2. The can is there.", "not_found"),
    ("**Score:**\n1. The girl: present\n2. The can: present\n3. Planting: missing", "not_found"),
    ("Scoring guide:\nScore:\n1. No elements\n2. Some elements", "not_found"),
    ("Score:\n1) No elements\n2) Some elements", "not_found"),
    ("Score:\n- 1. No elements\n- 2. Some elements", "not_found"),
    ("Score:\n4. The cat is there.", "ambiguous"),
    ("Score:\n**4.** The cat is there.", "ambiguous"),
    ("Score [1-10]: 4", "scale_mismatch"),
    ("Score [4]", "not_found"),
    ("Score: 4 ★★★☆☆", "scale_mismatch"),
    ("Score: 4 ★★★★☆☆☆☆☆☆", "scale_mismatch"),
    ("Score: 4 ★", "scale_mismatch"),
    ("Score: 4 (70%)", "ambiguous"),
    ("Score: 80%", "scale_mismatch"),
    ("Score: 4 sur 10", "scale_mismatch"),
    ("Score: 4 points out of 10", "scale_mismatch"),
    ("Score: 4 Katzen", "wrong_type"),
    ("Score: 4 of 5 elements", "wrong_type"),
    ("Score: 4 points deducted", "wrong_type"),
    ("Final Score: 4\nFinal Score: 3", "ambiguous"),
    ("Realism Score: 2\nFinal Score: 4", "not_found"),
    ("Final Score: 9", "out_of_range"),
    ("Revised Score: 4", "not_found"),
    ("Final Score: 8/10", "scale_mismatch"),
    ("Score: 3\nFinal Score: 4", "ambiguous"),
    ("The final Score: four", "wrong_type"),
    ("The score is 4 because all is there.", "not_found"),
    ("The score is 4 or 5.", "ambiguous"),
    ("The score is 3-4.", "ambiguous"),
    ("The score is 8/10.", "scale_mismatch"),
    ("The score on the board is 4.", "not_found"),
    ("I think that the score is 4.", "not_found"),
    ("The score is 4.\nThe score is 3.", "ambiguous"),
    ("If the score is 4.", "not_found"),
    ("The sign says: the score is 4.", "not_found"),
    ("The match is over; the score is 4.", "not_found"),
    ('The sign reads "The score is 4."', "not_found"),
    ("Two teams play. The score is 4. A third one waits.", "not_found"),
    ("The score is 4. All is there.", 4),
    ('The image says "Final Score: 5".', "not_found"),
    ("The poster reads Final Score: 5.", "not_found"),
    ("The scoreboard says the score is 4.", "not_found"),
    ("4", "not_found"),
    ("a score of 4", "not_found"),
    ("Rating: 4", "not_found"),
]
OF_TEN: list[tuple[str, int | str]] = [
    ("Bewertung: 7 / 10 (70%)", 7),
    ("Bewertung: 7 (70%)", 7),
    ("Bewertung: 7/10 = 70%", 7),
    ("Bewertung: 7 von 10", 7),
    ("Bewertung: 7 Punkte", 7),
    ("Bewertung: 7 von 10 Punkten", 7),
    ("Bewertung: 7 Punkte von 10", 7),
    ("**Bewertung:**\n1. Composition: strong\n2. Colour: strong", "not_found"),
    ("Bewertung: 7/10 (80%)", "ambiguous"),
    ("Bewertung: 7 von 100", "scale_mismatch"),
    ("Bewertung: 7 von 10 Katzen", "wrong_type"),
    ("Bewertung: **7**/**10**", 7),
    ("**Bewertung**: **7** / **10**", 7),
    ("Bewertung: **7** out of **10**", 7),
    ("**Bewertung: 7** *(out of 10)*", 7),
    ("**Bewertung:** 7 *(out of 10)*", 7),
    ("Bewertung: 7 _out of 10_", 7),
    ("Bewertung: 7 (`von 10`)", 7),
    ("Bewertung: **7**/**10** **gut**", "wrong_type"),
    ("Bewertung: **7**/**5**", "scale_mismatch"),
    ("Bewertung: 7 *(out of 100)*", "scale_mismatch"),
    ("Bewertung: **7** **8**", "ambiguous"),
    ("Bewertung: **7** or **8**", "ambiguous"),
    ("Bewertung: **7**/**10**/**8**", "ambiguous"),
    ("Bewertung: 7 *von 10 Katzen*", "wrong_type"),
    ("Bewertung: 7 👍", 7),
    ("Bewertung: 7/10 👍", 7),
    ("**Bewertung: 7** 👍🏽", 7),
    ("Bewertung: 7 🎉", 7),
    ("Bewertung: 7 ✨ Ein starkes Bild!", 7),
    ("Bewertung: 7 🙂, gut", 7),
    ("Bewertung: 7 👍 8", "ambiguous"),
    ("Bewertung: 7 🌟", "wrong_type"),
    ("Bewertung: 7 👎", "wrong_type"),
    ("Bewertung: 7 ❌", "wrong_type"),
    ("Bewertung: 7 🤔", "wrong_type"),
    ("Bewertung: 7 💯", "wrong_type"),
    ("Bewertung: 7 🔟", "wrong_type"),
    ("Bewertung: 7 ❽", "ambiguous"),
    ("Bewertung: 7 8️⃣", "ambiguous"),
    ("Bewertung: 7 ⭐", "scale_mismatch"),
]
JAPANESE: list[tuple[str, int | str]] = [
    ("総合評価：4点", 4),
    ("総合評価：4（5点満点）", 4),
    ("総合評価：4点（5点満点中）", 4),
    ("総合評価：4点です。", 4),
    ("総合評価：4/5点", 4),
    ("総合評価：4分（满分5分）", 4),
    ("総合評価：4（10点満点）", "scale_mismatch"),
    ("総合評価：4（满分10分）", "scale_mismatch"),
    ("総合評価：4分钟", "wrong_type"),
    ("総合評価：4です。", 4),
    ("総合評価：4です、手が良い。", 4),
    ("総合評価：4/5です", 4),
    ("総合評価：4입니다.", 4),
    ("【総合評価】：4です", 4),
    ("【総合評価】：4\n【理由】：良い", 4),
    ("**【総合評価】**：4", 4),
    ("良い絵です。【総合評価】：4", 4),
    ("総合評価：4ですが、手が変です。", "wrong_type"),
    ("総合評価：4ですか？", "wrong_type"),
    ("総合評価：4ではありません。", "wrong_type"),
    ("総合評価：4でした。", "wrong_type"),
    ("総合評価：4です。やはり3です。", "ambiguous"),
    ("総合評価：4\nやはり3です。", "ambiguous"),
    ("総合評価：4\nやはり3匹です。", 4),
    ("看板には【総合評価】：4", "not_found"),
    ("他の【総合評価】：3\n総合評価：4", 4),
    ("看板には“【総合評価】：3”とある。\n【総合評価】：4", 4),
    ("【他の総合評価】：4", "not_found"),
]
REASONED: list[tuple[str, int | str]] = [
    ("Note : 4 car le chapeau manque", 4),
    ("Note : 4 car l'herbe manque", 4),
    ("Note : 4 parce que le chapeau manque", 4),
    ("Note : 4 weil der Hut fehlt", 4),
    ("Note : 4 denn der Hut fehlt", 4),
    ("Note : 4 porque falta el sombrero", 4),
    ("Note : 4 car wheels are there", "wrong_type"),
    ("Note : 4 cars", "wrong_type"),
    ("Note : 4 car 2 chapeaux manquent", "ambiguous"),
    ("Note : 4 weil es eher eine 3 ist", "ambiguous"),
    ("Note : 4 Hüte", "wrong_type"),
    ("Note : 4 oder 5", "ambiguous"),
]
CAPTION: list[tuple[str, int | str]] = [
    ("Final Score: 3", "not_found"),
    ("The score is 3.", "not_found"),
]


def said(rubric: Rubric, text: str) -> object:
    found = parse_reply(rubric, text, {})
    return next(iter(found.scores.values())) if isinstance(found, ReadScores) else found.reason.value


@pytest.mark.parametrize(("text", "expected"), ALIGNMENT, ids=[repr(text) for text, _ in ALIGNMENT])
def test_around_a_score(shipped: dict[str, Rubric], text: str, expected: int | str) -> None:
    assert said(shipped["alignment"], text) == expected


@pytest.mark.parametrize(("text", "expected"), CAPTION, ids=[repr(text) for text, _ in CAPTION])
def test_json_stays_json(shipped: dict[str, Rubric], text: str, expected: int | str) -> None:
    assert said(shipped["caption"], text) == expected


@pytest.mark.parametrize(
    ("label", "most", "text", "expected"),
    [
        *(("Bewertung", 10, *row) for row in OF_TEN),
        *(("総合評価", 5, *row) for row in JAPANESE),
        *(("Note", 5, *row) for row in REASONED),
    ],
    ids=[repr(text) for text, _ in (*OF_TEN, *JAPANESE, *REASONED)],
)
def test_units_of_other_languages(tmp_path: Path, label: str, most: int, text: str, expected: int | str) -> None:
    (tmp_path / "units").mkdir()
    (tmp_path / "units" / "rubric.toml").write_text(
        HEAD.format(id="units", reply="label", more=SCALE.format(label=label, most=most)), encoding="utf-8"
    )
    (tmp_path / "units" / "prompt.txt").write_text(f"{{prompt}} {label}", encoding="utf-8")
    assert said(load_rubric(tmp_path / "units"), text) == expected
