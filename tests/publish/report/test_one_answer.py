"""Thirty checkpoints in twenty categories: page, terminal, Markdown, LaTeX and DuckDB say of each what `standings` says."""

import io
import random
import re
from dataclasses import replace

import duckdb
import polars as pl
import pytest

import salon
from flows.commands.tables import print_leaderboard, print_rows
from flows.observability.terminal import Console
from schemas.tables.nights import JURY
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, STANDINGS
from tasks.publish.duckdb_file import write_duckdb
from tasks.publish.exports import escape_markdown
from tasks.publish.latex import escape_latex, leaderboard_tex
from tasks.publish.leaderboard import answers_of, leaderboard_page, leaderboard_rows
from tasks.publish.reading import find_publication, load_cells
from tasks.publish.report import formats
from tasks.publish.report.boards import boards
from tasks.publish.report.gallery import Gallery
from tasks.publish.report.page import jury_told
from tasks.publish.standings.categories import weights
from tasks.publish.standings.placed_cells import placed
from tasks.publish.standings.wording import difference, rank
from tests.support.one_answer import contradictions
from tests.support.standing_rows import OPEN
from tests.support.standing_rows import row as standing

pytestmark = pytest.mark.slow

N_CHECKPOINTS, N_CATEGORIES, N_PROMPTS = 30, 20, 100


def became(at):
    """A checkpoint's level and the prompt's, and noise; some replies are refused, and of checkpoints 7 and 8 half.

    Of every second model the second checkpoint is much better than the first.
    """
    draw = random.Random(f"{at.sample} {at.made}")
    if draw.random() < (0.5 if at.made in (7, 8) else 0.04):
        return "refusal"
    return min(9.0, max(0.0, round(1 + at.made / 8 + 3 * (at.made % 4 == 1) + at.sample % 3 + draw.gauss(0, 0.5))))


@pytest.fixture(scope="module")
def published(made_in, publish_one, tmp_path_factory):
    made_by = [(f"model-{n:02}", step) for n in range(N_CHECKPOINTS // 2) for step in ("step-1", "step-2")]
    categories = [f"c{n:02}" for n in range(N_CATEGORIES)]
    root = tmp_path_factory.mktemp("thirty")
    made = made_in(
        root, made_by=made_by, categories=categories, n_prompts=N_PROMPTS, n_per_prompt=1, became=became, picture=lambda _: None
    )
    return made, publish_one(root, made, 1)


@pytest.fixture(scope="module")
def standings(published):
    """The rows as they were published, by (dimension, model, checkpoint)."""
    rows = pl.read_parquet(published[1].folder / "standings.parquet").to_dicts()
    assert len(rows) == N_CHECKPOINTS * 2
    assert {row["state"] for row in rows} == {"ranked", "blocked"}
    assert {row["verdict_predecessor"] for row in rows} >= {"higher", "open", None}
    return {(row["dimension"], row["model"], row["checkpoint"]): row for row in rows}


def test_rank_colour_words_and_p_never_contradict(published):
    assert published[0].tables[COMPARISONS].filter(comparison="each_other", category="__macro__").height > 700
    assert contradictions(published[1].folder, published[0].page(Gallery((), 48)).decode()) == []


def test_terminal_markdown_latex_and_duckdb_say_the_same(published, standings):
    lake_root, folder = published[0].lake.root, published[1].folder
    cells = load_cells(find_publication(lake_root, folder.name))
    rows = leaderboard_rows(cells, is_headline_only=False)
    assert {row.rubric_version for row in rows} == {row["rubric_version"] for row in standings.values()} != {None}
    out = io.StringIO()
    print_rows(Console(file=out, width=160, no_color=True), rows, answers_of(cells))
    terminal, markdown, latex = out.getvalue(), (folder / "leaderboard.md").read_text(), (folder / "leaderboard.tex").read_text()
    with duckdb.connect(str(write_duckdb(lake_root, "nightly")), read_only=True) as database:
        view = database.sql("SELECT * FROM leaderboard").pl()
    assert {(row.dimension, row.model, row.checkpoint) for row in rows} == set(standings)
    told = weights([row for row in standings.values() if row["is_headline"]])
    assert told.startswith(f"{N_CATEGORIES} categories weigh the same, 1/{N_CATEGORIES} each: the smallest has ")
    assert [told in text for text in (terminal, markdown, latex.replace("{}", ""))] == [True] * 3
    notebook = salon.open(lake_root)._repr_html_()
    assert f"<p>{N_CATEGORIES} categories weigh the same; the smallest has " in notebook
    assert ["vs. predecessor" in text for text in (terminal, markdown, latex, notebook)] == [True] * 4
    for key, row in standings.items():
        dimension, model, checkpoint = key
        placed, text = rank(row), difference(row, "predecessor")
        (line,) = [found for found in terminal.splitlines() if row["cell_id"][:8] in found]
        assert line.split()[0] == placed
        assert text in line
        (found,) = view.filter(dimension=dimension, model=model, checkpoint=checkpoint).to_dicts()
        named = (
            "rank_low",
            "rank_high",
            "n_ranked",
            "estimate",
            "p_predecessor",
            "verdict_predecessor",
            "state",
            "cell_id",
            "rubric_version",
        )
        assert {name: found[name] for name in named} == {name: row[name] for name in named}
        if row["is_headline"]:
            assert f"| {placed} | {model} | {checkpoint} | " in markdown
            assert f" | {escape_markdown(text)} | " in markdown
            assert f"{{}}{escape_latex(placed)} & {model} & {checkpoint} & " in latex
            assert f" & {escape_latex(text)} & " in latex


def test_the_page_says_the_same_and_its_answers_word_for_word(published, standings):
    page = published[0].page(Gallery((), 48)).decode()
    assert weights([row for row in standings.values() if row["is_headline"]]) in page
    assert ">vs. predecessor</th>" in page
    for sentences in answers_of(load_cells(find_publication(published[0].lake.root, published[1].folder.name))).values():
        for sentence in sentences:
            assert sentence in page.replace("&#39;", "'").replace("\n", " ")
    assert published[0].tables[BENCHMARK_LONG].height > N_CHECKPOINTS * N_CATEGORIES
    assert STANDINGS in published[0].tables


def test_run_page_and_markdown_say_what_all_images_show_where_categories_are_too_small(made_in, publish_one, tmp_path):
    """Twelve categories of one prompt each."""
    made = made_in(
        tmp_path, made_by=[("north", "step-1"), ("north", "step-2")], categories=[f"c{n:02}" for n in range(12)], n_prompts=12,
        n_per_prompt=1, became=lambda at: 2.0 + at.made * 3 + at.sample % 3 + at.made * (at.sample % 2),
    )  # fmt: skip
    folder, out = publish_one(tmp_path, made, 1).folder, io.StringIO()
    print_leaderboard(Console(file=out, width=300, no_color=True), folder)
    for text in (out.getvalue(), (folder / "leaderboard.md").read_text().replace("\\", ""), made.page(Gallery((), 48)).decode()):
        assert "all 12 categories have fewer than the 2 prompts needed (statistics.min_paired_prompts)" in text
        assert (
            "Over all images, whatever their category (exploratory; salon table --category __micro__): step-2 is better" in text
        )


def test_whoever_the_sentence_says_may_be_the_best_is_blue(made_of):
    """Of three the first is above the last, and the second, at once very good and very bad, could be anywhere."""
    made = made_of(categories=["all"], became=lambda at: [6.0, 9.0 * (at.sample // 2 % 2), 3.0][at.made] + at.sample // 2 % 3 / 2)
    ranked = made.tables[STANDINGS].filter(dimension="overall_score", category="__macro__")
    assert sorted(ranked.select("rank_low", "rank_high").iter_rows()) == [(1, 2), (1, 3), (2, 3)]
    page = made.page(Gallery((), 48)).decode()
    assert "north / step-900 and north / step-1000 may each be the best of 3" in page
    blue = set(re.findall(r'data-key="(\w+)"><b data-col="estimate" class="first">', page))
    assert blue == set(ranked.filter(rank_low=1)["cell_id"])


@pytest.mark.parametrize("n_checkpoints", [1, 2], ids=["one checkpoint", "two"])
def test_ranks_and_colours_are_explained_where_there_are_ranks(made_of, n_checkpoints):
    made = made_of(made_by=[("north", f"step-{n}") for n in range(n_checkpoints)], categories=["all"])
    page = made.page(Gallery((), 48)).decode()
    assert ("Means with their ranks" in page, "None has a rank: the sentences above say why." in page) == (
        n_checkpoints == 2, n_checkpoints == 1,
    )  # fmt: skip
    assert "ategories weigh the same" not in page, "there is one"
    tables = placed(made.tables)
    tex = [
        leaderboard_tex(
            tables.with_columns(n_categories=pl.lit(n), n_prompts_smallest_category=9, n_prompts_largest_category=9), made.name
        )
        for n in (None, 2)
    ]
    assert ["categories weigh the same" in one for one in tex] == [False, True]


@pytest.mark.parametrize(
    ("of", "said"),
    [
        ([("looks", "1"), ("text", "1")], "0.04 to 0.95, by dimension ("),
        ([("looks", "1"), ("looks", "2")], "0.04 to 0.95, by checkpoint ("),
        ([("looks", "1"), ("text", "2")], "0.04 to 0.95, by dimension and checkpoint ("),
    ],
)
def test_how_far_judges_agree_is_said_by_what_it_differs_by(small, of, said):
    board = next(board for board in boards(small.tables) if board.is_headline)
    jury = {"model": "north", "metric": "krippendorff_alpha", "judge_a": "__jury__", "judge_b": "__jury__"}
    rows = [
        jury | {"rubric_id": board.rubric_id, "dimension": dimension, "checkpoint": checkpoint, "estimate": estimate}
        for (dimension, checkpoint), estimate in zip(of, (0.946, 0.038), strict=True)
    ]
    (told,) = jury_told(rows, [replace(board, dimension=name) for name in ("looks", "text")]).values()
    assert said in told


def test_what_all_judges_say_stands_before_what_each_says(made_of):
    """On page, in the terminal and in Markdown; of three judges only the first finds the newest better."""
    made = made_of(
        made_by=[("north", "step-1"), ("north", "step-2")], judges=["a", "b", "c"], categories=["all"],
        became=lambda at: 3.0 + at.sample % 3 + at.made * (3 if at.judge == 0 else (at.sample // 2 % 3) - 1),
    )  # fmt: skip
    alpha = {
        "rubric_id": "small",
        "dimension": "overall_score",
        "model": "north",
        "checkpoint": "step-1",
        "metric": "krippendorff_alpha",
    }
    others = [
        {"judge_b": "b", "estimate": 0.1},
        {"metric": "spearman", "estimate": 0.2},
        {"dimension": "accuracy", "estimate": 0.3},
    ]
    steps = [{"checkpoint": "step-1", "estimate": 0.7}, {"checkpoint": "step-2", "estimate": 0.812}]
    jury = [alpha | dict.fromkeys(("judge_a", "judge_b"), "__jury__") | {"n_items": 24} | changes for changes in others + steps]
    made.tables[JURY] = pl.DataFrame(jury, schema=JURY.empty().schema)
    cells = placed(made.tables)
    only = "Only a finds step-2 better than step-1; b and c cannot tell."
    page = made.page(Gallery((), 48)).decode()
    shown, folded = page.partition("What each judge says")[::2]
    assert only in shown
    assert "judged by a</span>" in folded
    assert "judged by a</span>" not in shown
    assert "On single samples they agree with Krippendorff&#39;s alpha 0.70 to 0.81, by checkpoint (" in shown
    made.tables[JURY] = made.tables[JURY].with_columns(estimate=pl.lit(0.701))
    assert "On single samples they agree with Krippendorff&#39;s alpha 0.70 (" in made.page(Gallery((), 48)).decode()
    is_blocked = (pl.col("judge_model") == "c") & (pl.col("category") == "__macro__")
    made.tables[BENCHMARK_LONG] = made.tables[BENCHMARK_LONG].with_columns(
        status=pl.when(is_blocked).then(pl.lit("blocked")).otherwise("status"),
        n_failed=pl.when(is_blocked).then(20).otherwise("n_failed"),
    )
    rests = "0: no more than by chance). It rests on the 104 of 144 scores there are, those of blocked means too."
    assert ("It rests on" in page, rests in made.page(Gallery((), 48)).decode()) == (False, True)
    for text in (leaderboard_page(cells, made.name), _printed(cells)):
        before, after = text.replace("\\", "").split("judged by a", 1)
        assert only in before
        assert only not in after
    assert only not in _printed(cells.filter(judge_model="a"))


def _printed(cells):
    out = io.StringIO()
    print_rows(Console(file=out, width=160, no_color=True), leaderboard_rows(cells), answers_of(cells))
    return out.getvalue()


@pytest.mark.parametrize(
    ("low", "said"),
    [(-0.0021, "-0.002"), (0.004, "+0.004"), (0.0049, "+0.005"), (-0.00004, "0.00"), (0.0, "0.00"), (-0.005001, "-0.01")],
)
def test_an_end_of_an_interval_keeps_its_side_of_0_on_page_and_in_words(low, said):
    assert (
        difference(standing("3", **OPEN | {"delta_predecessor_low": low}), "predecessor") == f"+0.10 [{said}, +0.40] can't tell"
    )
    assert formats.signed(low) == said.replace("-", formats.MINUS)
