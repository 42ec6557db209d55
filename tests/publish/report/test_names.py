"""Names on a page: none turns round the sentence it stands in, whatever it is written in; their numbers order them."""

import html
import re
from dataclasses import replace

import polars as pl
import pytest

from salon.rows import in_order
from schemas.tables.published import COMPARISONS, HEALTH, STANDINGS
from tasks.publish.report.boards import boards, rows_of
from tasks.publish.report.figures import figures
from tasks.publish.report.formats import isolated, isolates, number, with_isolated
from tasks.publish.report.gallery import Gallery
from tests.aggregate.preferences.conftest import said
from tests.aggregate.preferences.conftest import tables as pair_tables

HEBREW, ARABIC = "\u05e9\u05dc\u05d5\u05dd-2", "\u0646\u0645\u0648\u0630\u062c"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        pytest.param("step-1000", "step-1000", id="Latin"),
        pytest.param("\u96ea \U0001f3a8", "\u96ea \U0001f3a8", id="neither runs from right to left"),
        pytest.param(HEBREW, f"<bdi>{HEBREW}</bdi>", id="Hebrew"),
        pytest.param(f"v1 {ARABIC}", f"<bdi>v1 {ARABIC}</bdi>", id="Arabic behind Latin"),
        pytest.param("\u0661\u0662", "<bdi>\u0661\u0662</bdi>", id="Arabic digits alone"),
        pytest.param("a\u202eb", "ab", id="a control"),
        pytest.param(f"\u2069{HEBREW}\u2068", f"<bdi>{HEBREW}</bdi>", id="the marks themselves"),
        pytest.param(f"<b>{HEBREW}</bdi>", f"<bdi>&lt;b&gt;{HEBREW}&lt;/bdi&gt;</bdi>", id="markup"),
    ],
)
def test_a_name_that_runs_from_right_to_left_is_an_element_of_its_own(name, shown):
    assert isolates(f"{isolated(name)}: +0.4 <i>") == f"{shown}: +0.4 &lt;i&gt;"


def test_all_names_of_a_row_are_marked_and_nothing_else():
    row = {"checkpoint_a": HEBREW, "predecessor": None, "judge_model": "eye", "reason": ARABIC, "n": 3}
    assert with_isolated(row) == row | {"checkpoint_a": f"\u2068{HEBREW}\u2069"}


def test_every_name_in_a_sentence_of_the_page_is_isolated(made_of):
    """Answers, captions of pictures, and why a row is without a rank."""
    made = made_of(
        made_by=[("north", HEBREW), ("north", ARABIC)], judges=[f"{ARABIC}-1", f"{ARABIC}-2"], categories=["all", HEBREW],
        n_prompts=3,
    )  # fmt: skip
    page = made.page(made.gallery()).decode()
    sentences = re.findall(r'<p class="(?:answer|why)">(.*?)</p>', page, re.DOTALL)
    captions = re.findall(r"small, (?:best|worst) of (.*?)</span></li>", page)
    assert captions
    assert any("prompt, " in one for one in sentences), "a category is named"
    for text in sentences + captions:
        bare = re.sub(r'<bdi>[^<]*</bdi>|<span class="(?:checkpoint|model)">[^<]*</span>', "", text)
        assert not re.search("[\u0590-\u06ff\u2066-\u2069]", html.unescape(bare)), text


def test_names_in_the_words_beside_a_table_are_isolated_and_all_checkpoints_are_counted(small):
    """Whose rating is 0, and the predecessor that is not there; those of the means and those of pairs alone."""
    rows = said(f"m/{HEBREW}", "m/2", "a a a = a a") + said("m/2", "m/1", "a b a = a a")
    missing = pl.col("checkpoint") == "step-900"
    standings = small.tables[STANDINGS].with_columns(
        predecessor=pl.when(missing).then(pl.lit(HEBREW)).otherwise("predecessor"),
        reason_predecessor=pl.when(missing).then(pl.lit("predecessor_missing")).otherwise("reason_predecessor"),
        delta_predecessor=pl.when(~missing).then("delta_predecessor"),
    )
    tables = small.tables | {STANDINGS: standings} | pair_tables(rows, baseline=f"m/{HEBREW}")
    page = replace(small, tables=tables).page(Gallery((), 24)).decode()
    assert f" <bdi>m/{HEBREW}</bdi> has 0." in page
    assert f'<span class="none"><bdi>{HEBREW}</bdi> is not in this table</span>' in page
    assert "<dt>Checkpoints</dt><dd>6</dd>" in page


def test_an_answer_without_such_names_is_plain_text(small):
    page = small.page(Gallery((), 24)).decode()
    assert re.search(r'<p class="answer"><b>A small rubric</b>: [^<]+</p>', page)


def test_no_name_turns_the_writing_round_in_a_sentence_it_stands_in(hostile):
    page = hostile.kept_page().decode()
    (answer,) = re.findall(r'<p class="answer">(.*?)</p>', page, re.DOTALL)
    captions = re.findall(r'<span class="quiet">small, [^\n]*</span></li>', page)
    assert "ab" in answer + "".join(captions), "the checkpoint is named"
    assert "\u202e" not in answer + "".join(captions)
    assert "\u202e" in page, "where a name stands alone it is isolated (style.css), and what it is"


def test_checkpoints_stand_in_the_order_of_their_numbers(made_of):
    made = made_of(made_by=[("north", f"step-{n}") for n in (900, 1000, 3000, 2000)])
    steps = [f"step-{n}" for n in (900, 1000, 2000, 3000)]
    compared = [row for row in rows_of(made.tables, COMPARISONS) if row["comparison"] == "predecessor"]
    assert list(dict.fromkeys(row["checkpoint_a"] for row in compared)) == steps[1:]
    assert list(dict.fromkeys(row["checkpoint"] for row in rows_of(made.tables, HEALTH))) == steps
    page = made.page(Gallery((), 48)).decode()
    differences = page.split("<h4>Differences over all categories</h4>")[1].partition("</table>")[0]
    assert re.findall(r'<th scope="row"><span class="checkpoint">([^<]*)', differences) == [*steps[1:], *steps[1:]]
    assert in_order(["step-1000", "a", "step-900", "2", "step-900b"]) == ["2", "a", "step-900", "step-900b", "step-1000"]


def test_a_category_s_mean_says_on_how_many_prompts_it_stands(made_of):
    """Twelve prompts in two categories, with two pictures each, judged twice: six prompts, 24 scores."""
    page = made_of(n_repeats=2).page(Gallery((), 144)).decode()
    found = re.findall(r'<span data-col="n_prompts">6</span> prompts, <span data-col="n_scored">24</span> scores', page)
    assert len(found) == 2 * 3 * 2


def test_the_chart_of_categories_has_the_digits_of_its_table(small):
    board = next(board for board in boards(small.tables) if board.is_headline)
    (chart,) = [one.svg for one in figures(board) if one.title == "Mean by category"]
    means = {number(cell["estimate"]) for key, cell in board.cells.items() if key[2] in board.categories}
    assert means <= set(re.findall(">([0-9.]+)<", chart))
