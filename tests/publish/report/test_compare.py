"""The pages beside the report: every judged sample is on one of them, with its scores, words, picture and what it equals."""

import html
import io
import json
import re
from collections import Counter
from dataclasses import replace

import polars as pl
import pytest
from PIL import Image

from schemas.identities import RunIds
from schemas.tables.published import STANDINGS
from schemas.tables.stored import JUDGEMENTS, SAMPLES, SCORES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.publish.report.compare import START, compare_pages, has_pages
from tests.publish.report.conftest import IDS

pytestmark = pytest.mark.slow


def pages_of(made, **options):
    return dict(compare_pages(made.lake, RunIds(**IDS), made.tables, {}, made.name, **options))


def texts(pages):
    return {name: content.decode() for name, content in pages.items() if name.endswith(".html")}


@pytest.mark.parametrize("world", ["small", "hostile"])
def test_every_judged_sample_is_reached_from_the_start(request, world):
    made = request.getfixturevalue(world)
    found = texts(pages_of(made))
    linked = set(re.findall(r'href="(pictures-[0-9]+\.html)#', found[START]))
    assert linked == set(found) - {START}
    judged = made.lake.scan(JUDGEMENTS, IDS["plan_id"]).select("sample_id").unique().collect()["sample_id"]
    shots = [one for page in linked for one in re.findall(r'id="s-([0-9a-f]{12})"', found[page])]
    assert sorted(shots) == sorted(one[:12] for one in judged)
    for page in linked:
        explained = re.findall(r"salon explain ([0-9a-f]{12}) ", found[page])
        assert sorted(explained) == sorted(re.findall(r'id="s-([0-9a-f]{12})"', found[page]))


def test_of_pairs_alone_there_are_no_pages_and_that_is_known_beforehand(small, tmp_path):
    ids = RunIds(**IDS)
    assert has_pages(small.lake, ids, 1)
    assert not has_pages(small.lake, ids, 0)
    pairs = small.lake.scan(JUDGEMENTS, IDS["plan_id"]).collect().with_columns(second_sample_id="sample_id")
    staging = stage(Lake(tmp_path), JUDGEMENTS)
    staging.write_part(0, pairs)
    staging.commit(IDS["plan_id"])
    assert not has_pages(Lake(tmp_path), ids, 1)
    assert pages_of(replace(small, lake=Lake(tmp_path))) == {}


def test_a_card_says_each_score_and_the_judge_s_words(small):
    found = "".join(texts(pages_of(small)).values())
    scores = small.lake.scan(SCORES, IDS["reading_id"]).collect()
    shown = re.findall(r'<span class="quiet">(overall score|accuracy)</span> <b>([0-9.]+)</b>', found)
    assert sorted(float(number) for _, number in shown) == sorted(scores["score"].to_list())
    assert found.count("It shows cube 3.") == 3


@pytest.mark.parametrize(
    ("became", "expected"),
    [
        pytest.param(lambda at: [2.0, 8.0][at.judge] + at.repeat, [8.5, 2.5], id="each over its repeats"),
        pytest.param(lambda at: "refusal" if at.judge else 4.0, [None, 4.0], id="without a score of one"),
    ],
)
def test_a_sample_has_a_mean_for_each_judge_and_none_across_them(made_of, became, expected):
    """Judges stand in order of their names; asked twice, none weighs more than the other."""
    made = made_of(n_prompts=2, judges=["eye", "ear"], n_repeats=2, became=became)
    start = texts(pages_of(made))[START]
    assert '<select name="judge"><option value="ear">ear</option><option value="eye">eye</option></select>' in start
    (index,) = re.findall(r'data-index="([^"]+)"', start)
    assert [scores for _, _, _, scores, _ in json.loads(html.unescape(index))["shots"]] == [expected] * 12


def test_the_start_goes_by_the_primary_dimension_and_the_order_of_checkpoints_that_the_file_declares(small):
    standings = small.tables[STANDINGS].with_columns(
        is_headline=pl.col("dimension") == "accuracy",
        place=pl.col("checkpoint").replace_strict({"step-1000": 1, "step-900": 2, "base": None}, return_dtype=pl.Int64),
    )
    start = texts(pages_of(replace(small, tables=small.tables | {STANDINGS: standings})))[START]
    assert "small: accuracy" in start
    assert re.findall(r">(north / step-[0-9]+|south / base)</option>", start)[:3] == [
        "north / step-1000", "north / step-900", "south / base"
    ]  # fmt: skip
    (index,) = re.findall(r'data-index="([^"]+)"', start)
    accuracy = small.lake.scan(SCORES, IDS["reading_id"]).filter(dimension="accuracy").collect()["score"].to_list()
    shown = [score for _, _, _, (score,), _ in json.loads(html.unescape(index))["shots"]]
    assert sorted(shown) == sorted(accuracy)


def test_a_prompt_of_two_categories_is_shown_and_compared_in_each(made_of):
    made = made_of(n_prompts=2, categories=["colors", "counting"], prompt=lambda _: "two red cars")
    found = texts(pages_of(made))
    (index,) = (json.loads(html.unescape(one)) for one in re.findall(r'data-index="([^"]+)"', found[START]))
    assert [category for _, category, _, _ in index["prompts"]] == [1, 2]
    assert Counter(prompt for prompt, *_ in index["shots"]) == {0: 6, 1: 6}
    anchors = [anchor for *_, anchor in index["prompts"]]
    assert len(set(anchors)) == 2
    assert [found["pictures-001.html"].count(f'id="{anchor}"') for anchor in anchors] == [1, 1]


def test_of_one_judge_there_is_no_choice_of_judge(small):
    assert 'name="judge"' not in texts(pages_of(small))[START]


def test_each_picture_stands_where_the_page_says(made_of):
    made = made_of(n_prompts=35, made_by=[("north", "step-1")])
    pages = pages_of(made)
    samples = made.lake.scan(SAMPLES, IDS["dataset_id"]).collect()
    stored = {row["sample_id"][:12]: row["image"]["bytes"] for row in samples.to_dicts()}
    n = 0
    for name, text in texts(pages).items():
        place = (
            r'id="s-([0-9a-f]{12})">\n.*?<svg width="(\d+)" height="(\d+)" viewBox="(\d+) (\d+) \d+ \d+"><image href="([^"]+)"'
        )
        for sample, width, height, x, y, sheet in re.findall(place, text):
            own = Image.open(io.BytesIO(stored[sample])).convert("RGB")
            assert own.size == (int(width), int(height))
            shown = Image.open(io.BytesIO(pages[sheet])).getpixel((int(x) + 32, int(y) + 32))
            assert all(abs(one - other) < 12 for one, other in zip(shown, own.getpixel((32, 32)), strict=True)), (name, sample)
            n += 1
    assert n == 70


def test_a_picture_that_another_sample_has_too_names_that_one(made_of):
    """The second checkpoint drew what the first did, byte for byte."""
    made = made_of(n_prompts=2, made_by=[("north", "step-1"), ("north", "step-2")])
    found = "".join(texts(pages_of(made)).values())
    first = made.lake.scan(SAMPLES, IDS["dataset_id"]).collect().filter(checkpoint="step-1")
    said = re.findall(r"the same picture as north / step-1, (set/[0-9].png) \(sample ([0-9a-f]{12})\)", found)
    assert sorted(said) == sorted((key, sample[:12]) for key, sample in first.select("source_key", "sample_id").iter_rows())


def test_what_does_not_fit_is_counted_and_every_prompt_keeps_its_first(small):
    found = texts(pages_of(small, max_samples=30))
    assert "42 more samples are not on these pages" in html.unescape(found[START])
    shots = [one for text in found.values() for one in re.findall(r'class="card shot" id="s-([0-9a-f]{12})"', text)]
    assert len(shots) == 30
    assert pages_of(small, max_samples=0) == {}


def test_the_same_lake_gives_the_same_bytes(small):
    assert pages_of(small) == pages_of(small)


def test_twenty_thousand_judgements_start_from_a_page_under_three_megabytes(large):
    """5,000 samples; the pages of 600 are made, and the start page grows with them alone."""
    n_bytes = {name: len(content) for name, content in pages_of(large, max_samples=600).items()}
    assert n_bytes[START] * 5_000 / 600 < 3_000_000
    assert max(n_bytes.values()) < 3_000_000
