"""A number traced back: its judgements, the messages, the replies, the hashes, and the mean taken again."""

import json

import polars as pl
import pytest

from flows.commands.explaining import _explained, _print_cell
from flows.observability.terminal import result_console
from schemas.errors import CorruptLakeError, InputError, StoreError
from schemas.tables.nights import EXAM
from schemas.tables.published import BENCHMARK_LONG, PREFERENCES
from tasks.lake.reading import Lake
from tasks.publish.explain.cells import Explanation, explain, explain_sample, find_cell, find_row
from tasks.publish.explain.exam import unnoticed_first
from tasks.publish.reading import current
from tests.support.small_lake import filled_row, table_of


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, ""),
        ({"metric": "share_at_least_4"}, "figure      share at least 4 for prompts like these\n"),
        ({"estimand": "these_prompts"}, "figure      mean for these prompts\n"),
    ],
    ids=["the mean", "a share", "of these prompts alone"],
)
def test_which_of_several_figures_it_is_stands_before_its_number(changes, said, capsys):
    cell = filled_row(BENCHMARK_LONG, metric="mean", estimand="prompts_like_these", estimate=0.8, status="ok") | changes
    _print_cell(result_console(), Explanation("f" * 64, cell | {"failures": []}, {}, 0, (), 0.8, is_reproduced=True))
    assert f"\n{said}published   0.8000" in capsys.readouterr().out.replace("judged by", "").partition("cell")[2]


@pytest.fixture
def explained(small_lake, put):
    """Explains one cell of the published small lake, by its path below the model."""
    put(small_lake.lake.root, small_lake.cells)

    def run(path, limit=None):
        publication = current(small_lake.lake.root)
        return explain(small_lake.lake, publication, find_cell(small_lake.cells, f"lab/north/1|a/small/{path}"), limit)

    return run


def test_every_cell_is_reproduced_from_its_listed_scores(small_lake, put, explained):
    n_estimates = 0
    for cell in small_lake.cells.iter_rows(named=True):
        found = explained(f"{cell['dimension']}/{cell['category']}")
        assert found.is_reproduced, cell
        assert found.n_judgements == cell["n_judgements"]
        if cell["estimate"] is not None:
            n_estimates += 1
            assert found.recomputed == pytest.approx(cell["estimate"], abs=1e-12)
    assert n_estimates == 6  # overall_score in two categories and two totals, an accuracy in each category


def test_the_way_back_to_the_reply_is_whole(explained, name_digest):
    found = explained("overall_score")
    by_source = {(j.sample["source_key"], j.repeat): j for j in found.judgements}
    twice = by_source["d.png", 1]
    assert [ask.reply_text for ask in twice.asks] == ["garbled", '{"overall_score": 10.0}']
    assert json.loads(twice.messages_json)[1] == {"role": "user", "content": "two cubes"}
    assert twice.sample["prompt"] == "two cubes"
    assert twice.sample["image_sha256"] == name_digest("d")
    assert twice.rubric_digest == name_digest("rubric")
    assert (twice.score, twice.status, twice.reason) == (10.0, "scored", None)
    assert twice.sentence == ('{"overall_score": ', "10.0", "}")
    broken = by_source["h.png", 0]
    assert (broken.request_key, broken.messages_json, broken.asks) == (None, None, ())
    assert (broken.status, broken.reason, broken.sentence) == ("unusable_sample", "broken_image", None)
    assert found.identities["snapshot_id"] == name_digest("snapshot")
    assert found.identities["code_version"] == name_digest("code")


def test_failures_come_first_then_the_lowest_scores_and_the_limit_cuts_the_list_alone(explained):
    whole = explained("overall_score/counting")
    assert [j.score for j in whole.judgements] == [None, None, 5.0, 6.5, 9.0, 10.0]
    cut = explained("overall_score/counting", limit=3)
    assert cut.judgements == whole.judgements[:3]
    assert (cut.n_judgements, cut.recomputed, cut.is_reproduced) == (6, whole.recomputed, True)
    assert explained("overall_score/counting", limit=0).judgements == ()


def test_a_sample_is_explained_alone_or_not_at_all(small_lake, put, explained):
    """What the ids of several begin with names none: their judgements together would be shown as one's."""
    put(small_lake.lake.root, small_lake.cells)
    publication, ids = current(small_lake.lake.root), {one.sample_id for one in explained("overall_score").judgements}
    assert len(ids) > 1
    for sample_id in ids:
        assert explain_sample(small_lake.lake, publication, sample_id).sample_id == sample_id
    assert explain_sample(small_lake.lake, publication, "") is None
    assert explain_sample(small_lake.lake, publication, "none begins so") is None


def test_a_number_that_was_changed_is_not_reproduced(small_lake, put):
    changed = small_lake.cells.with_columns(estimate=pl.col("estimate") + 1e-6, n_failed=pl.col("n_failed"))
    put(small_lake.lake.root, changed)
    publication = current(small_lake.lake.root)
    assert not explain(small_lake.lake, publication, find_cell(changed, "lab/north/1|a/small/overall_score")).is_reproduced
    lost = dict(find_cell(small_lake.cells, "lab/north/1|a/small/overall_score"), n_failed=0)
    assert not explain(small_lake.lake, publication, lost).is_reproduced


def test_a_lake_without_the_replies_says_so(small_lake, put, tmp_path):
    put(tmp_path / "other", small_lake.cells)
    with pytest.raises(StoreError, match="is not in the lake"):
        explain(Lake(tmp_path / "other"), current(tmp_path / "other"), small_lake.cells.row(0, named=True))


def test_a_cell_is_found_by_id_or_path(small_cells):
    wanted = small_cells.filter(dimension="overall_score", category="counting").row(0, named=True)
    assert find_cell(small_cells, wanted["cell_id"]) == wanted
    assert find_cell(small_cells, wanted["cell_id"][:4]) == wanted
    assert find_cell(small_cells, "lab/north/1|a/small/overall_score/counting") == wanted
    assert find_cell(small_cells, "lab/north/1|a/small/overall_score")["category"] == "__macro__"


def test_an_address_that_is_no_cell_or_several_lists_them(small_cells):
    with pytest.raises(
        InputError, match=r"(?s)there is no cell 'lab/north/1/small/overall_score' in .*lab/north/1\|a/small/overall_score/"
    ):
        find_cell(small_cells, "lab/north/1/small/overall_score")
    for short in (small_cells["cell_id"][0][:3], ""):
        with pytest.raises(InputError, match="there is no cell"):
            find_cell(small_cells, short)
    two_judges = pl.concat([small_cells, small_cells.with_columns(judge_model=pl.lit("owl"), cell_id=pl.lit("abcdabcdabcd"))])
    with pytest.raises(InputError, match=r"(?s)matches 2 cells; write the id of one.*judge eye.*judge owl"):
        find_cell(two_judges, "lab/north/1|a/small/overall_score/colors")
    with pytest.raises(InputError, match="'abcd' matches"):
        find_cell(two_judges, "abcd")


def test_of_an_exam_the_faults_least_noticed_come_first_and_what_lacks_a_score_last():
    scores = {
        "lost": ([None], [4.0]),
        "fell": ([4.0], [1.0]),
        "not": ([4.0, 2.0], [3.0, 3.0]),
        "rose": ([2.0], [3.0]),
        "alone": ([4.0], []),
    }
    rows = [(of, place, score) for of, both in scores.items() for place, some in zip((0, 2), both, strict=True) for score in some]
    members = pl.DataFrame(rows, schema={"of": pl.String, "place": pl.Int64, "score": pl.Float64}, orient="row")
    assert unnoticed_first(members) == ["rose", "not", "fell", "lost"]


def test_a_row_of_another_table_is_found_by_four_letters_of_its_id_where_they_are_of_one(tmp_path, put, small_cells):
    """And a table that is damaged is told as such."""
    rows = [filled_row(EXAM, exam_id=f"{begins:x<12}") for begins in ("abcd1", "abcd2", "12345")]
    put(tmp_path, small_cells, further={EXAM: table_of(EXAM, rows)})
    publication = current(tmp_path)

    def found(address):
        row = find_row(publication, EXAM, "exam_id", address)
        return row and row["exam_id"]

    addresses = ("1234", "123", "", "abcd", "abcd2")
    assert [found(address) for address in addresses] == ["12345xxxxxxx", None, None, None, "abcd2xxxxxxx"]
    assert find_row(publication, PREFERENCES, "pair_id", "1234") is None
    (publication.folder / f"{EXAM.name}.parquet").write_bytes(b"PAR1")
    with pytest.raises(CorruptLakeError, match=r"exam.parquet is not the file that was published; restore it"):
        found("1234")


def test_a_damaged_table_of_pairs_keeps_no_cell_from_being_explained(small_lake, put):
    """Only an id that is no cell's may be in it."""
    put(small_lake.lake.root, small_lake.cells, further={PREFERENCES: PREFERENCES.empty()})
    publication, cell_id = current(small_lake.lake.root), small_lake.cells["cell_id"][0]
    (publication.folder / f"{PREFERENCES.name}.parquet").write_bytes(b"PAR1")
    for address in (cell_id, cell_id[:4], "lab/north/1|a/small/overall_score"):
        assert _explained(small_lake.lake, publication, address, None).is_reproduced
    with pytest.raises(CorruptLakeError, match=r"preferences.parquet is not the file"):
        _explained(small_lake.lake, publication, "0000", None)


def test_names_that_hold_slashes_are_compared_as_one_text(small_cells):
    other = small_cells.with_columns(model=pl.lit("lab"), checkpoint=pl.lit("north/1|a"), cell_id=pl.lit("0" * 12))
    with pytest.raises(InputError, match="matches 2 cells"):
        find_cell(pl.concat([small_cells, other]), "lab/north/1|a/small/overall_score/colors")
