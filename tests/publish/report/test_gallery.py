"""The gallery shows the extremes, says why, and traces each to its cell; it shows the same whenever it is asked."""

import json
import re

import polars as pl
import pytest

from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.stored import SCORES
from schemas.tables.table import conform
from tasks.lake.atomic_files import write_parquet
from tasks.publish.explain.cells import members_of
from tasks.publish.report.asks import MAX_WORDS, Ask, AskedItem, Scored
from tasks.publish.report.environment import asks_of
from tasks.publish.report.gallery import Card, Gallery
from tasks.publish.report.page import choices
from tests.support.markers import fit_marker

ONE = [("north", "step-1")]


def shelf(gallery, name):
    return [card for card in gallery.cards if name in card.shelves]


def number(card):
    """The sample's index in the world: its source key says it."""
    return int(card.source_key.removeprefix("set/").removesuffix(".png"))


def test_the_worst_and_the_best_of_every_checkpoint_are_there(made_of):
    made = made_of(became=lambda at: at.sample / 3, n_prompts=15)
    cards = made.gallery().cards
    assert {card.checkpoint for card in cards} == {"step-900", "step-1000", "base"}
    for checkpoint in ("step-900", "base"):
        mine = [card for card in cards if card.checkpoint == checkpoint]
        assert {number(card) for card in mine if "worst" in card.shelves} == set(range(12))
        assert {number(card) for card in mine if "best" in card.shelves} == set(range(18, 30))
    assert not [card for card in cards if {"disputed", "no_score"} & set(card.shelves)]


@pytest.mark.parametrize(
    ("levels", "best", "worst"),
    [
        ([5], [], []),
        ([5, 5, 5, 5], [], []),
        ([1, 2], [1], [0]),
        ([3, 1, 5], [2], [1]),
        ([4, 1, 2, 3, 5], [0, 4], [1, 2]),
        ([3, 3, 1, 3, 5], [4], [2]),
        ([2, 2, 2, 1, 2], 2, [3]),
        ([2, 2, 2, 3, 2], [3], 2),
        ([1, 5, 1, 5], [1, 3], [0, 2]),
        ([*range(10), 10, 10], [6, 7, 8, 9, 10, 11], [0, 1, 2, 3, 4, 5]),
        ([1] * 30 + [2] * 2, [30, 31], 12),
    ],
    ids=str,
)
def test_best_and_worst_share_no_card_and_hold_half_of_a_checkpoint_at_most(made_of, levels, best, worst):
    made = made_of(
        made_by=ONE, categories=(None,), n_prompts=len(levels), n_per_prompt=1, became=lambda at: float(levels[at.sample])
    )
    gallery = made.gallery()
    assert len(gallery.cards) >= min(len(levels), 12), "who is on no shelf has a card all the same"
    for name, wanted in (("best", best), ("worst", worst)):
        found = sorted(number(card) for card in shelf(gallery, name))
        assert (len(found) if isinstance(wanted, int) else found) == wanted
    assert not [card for card in gallery.cards if {"best", "worst"} <= {*card.shelves}]
    ends = {end: levels[number(card)] for _, card, end in gallery.first([])}
    assert ends == ({"best": max(levels), "worst": min(levels)} if len({*levels}) > 1 else {})


def test_the_picture_called_the_best_is_the_best(made_of):
    said = re.findall(rb'href="#card-(\d+)"><img.*?, (best|worst) of ', made_of(made_by=ONE, n_prompts=3).page(), re.DOTALL)
    cards = made_of(made_by=ONE, n_prompts=3).gallery().cards
    score = {end.decode(): cards[int(at)].asks[0].scores[1].score for at, end in said}
    every = [card.asks[0].scores[1].score for card in cards]
    assert score == {"best": max(every), "worst": min(every)}


@pytest.mark.parametrize(
    ("order", "shown"),
    [
        pytest.param([("north", "step-1000"), ("south", "base")], "step-1000", id="the leading one"),
        pytest.param([("nobody", "none"), ("south", "base"), ("north", "step-900")], "base", id="the first that has pictures"),
    ],
)
def test_the_first_pictures_are_of_the_checkpoint_on_top_of_the_table(made_of, order, shown):
    found = made_of().gallery().first(order)
    assert [(card.checkpoint, end) for _, card, end in found] == [(shown, "best"), (shown, "worst")]
    assert [card.places[card.shelves.index(end)] for _, card, end in found] == [0, 0]


def test_the_most_disputed_come_first_and_a_forbidden_score_is_one(made_of):
    def became(at):
        apart = {3: 4, 8: 7}.get(at.sample, 0)
        return ("rule", 9.0) if at.sample == 11 and at.repeat == 0 else 2.0 + apart * at.repeat

    made = made_of(made_by=ONE, n_repeats=2, became=became)
    disputed = shelf(made.gallery(), "disputed")
    assert {number(card) for card in disputed} == {3, 8, 11}
    first = made.gallery(n_cards=3)
    assert 11 in {number(card) for card in shelf(first, "disputed")}
    forbidden = next(card for card in disputed if number(card) == 11)
    assert [score.status for score in forbidden.asks[0].scores] == ["rule_violation"] * 2
    assert "no_score" in forbidden.shelves


def test_judges_who_differ_make_a_sample_disputed(made_of):
    made = made_of(made_by=ONE, judges=["eye", "lens"], became=lambda at: 5.0 + (at.judge * 4 if at.sample == 6 else 0))
    [card] = shelf(made.gallery(), "disputed")
    assert number(card) == 6
    assert [(ask.judge_model, ask.scores[1].score) for ask in card.asks] == [("eye", 5.0), ("lens", 9.0)]


def test_a_judgement_without_a_score_is_shown_with_its_reason(made_of):
    made = made_of(made_by=ONE, became=lambda at: "refusal" if at.sample == 4 else 5.0)
    [card] = shelf(made.gallery(), "no_score")
    assert number(card) == 4
    assert {(score.score, score.reason) for score in card.asks[0].scores} == {(None, "refusal")}
    assert card.shelves == ("no_score",)


def test_anchors_are_left_out(made_of):
    gallery = made_of(made_by=ONE, occasion=lambda index: "2026-11-03" if index < 10 else "").gallery()
    assert gallery.n_judgements == 14
    assert min(number(card) for card in gallery.cards) == 10


@pytest.mark.parametrize(("n_cards", "n_checkpoints"), [(1, 1), (6, 3), (7, 3), (30, 3)])
def test_few_cards_are_spread_over_the_checkpoints(made_of, n_cards, n_checkpoints):
    cards = made_of().gallery(n_cards=n_cards).cards
    assert len(cards) == n_cards
    assert len({card.checkpoint for card in cards}) == n_checkpoints


@pytest.mark.parametrize("categories", [("colors", "counting"), (None,), ("colors", None)], ids=str)
def test_the_cell_of_a_card_holds_its_sample(made_of, categories):
    made = made_of(categories=categories)
    cells = made.tables[BENCHMARK_LONG]
    for card in made.gallery().cards:
        [cell] = cells.filter(cell_id=card.cell_id).to_dicts()
        members = members_of(made.lake, made.provenance["identities"], cell, cells)
        assert card.sample_id in members["sample_id"].to_list()
        assert cell["dimension"] == "overall_score"


def test_long_words_are_cut_and_say_how_long_they_were(made_of):
    made = made_of(made_by=ONE, n_repeats=3, words=lambda _index: "ab " * 1000, prompt=lambda index: f"{index} " + "long " * 500)
    card = made.gallery().cards[0]
    assert [ask.n_letters for ask in card.asks] == [3000] * 3
    assert all(len(ask.words) <= 2 * MAX_WORDS // 3 + 2 for ask in card.asks)
    assert len(card.texts["prompt"]) < 410


def test_it_is_the_same_gallery_in_any_order_of_the_rows(made_of):
    """Levels that are equal on paper must not differ by the order in which their parts were added."""
    thirds = [0.1, 0.2, 0.3, 0.7, 1.1, 2.3]
    made = made_of(made_by=ONE, n_prompts=60, n_repeats=6, became=lambda at: thirds[(at.repeat * 5 + at.sample) % 6])
    first = made.gallery()
    assert [card.shelves for card in first.cards] == [("disputed",)] * 12
    folder = made.lake.partition(SCORES, made.provenance["identities"]["reading_id"])
    part = folder / "part-00000.parquet"
    for seed in range(5):
        rows = pl.read_parquet(part).sample(fraction=1, shuffle=True, seed=seed)
        write_parquet(conform(rows, SCORES), part, made.lake.root / "staging")
        fit_marker(made.lake, SCORES, made.provenance["identities"]["reading_id"])
        assert made.gallery() == first


def test_the_filter_offers_what_the_items_of_a_sample_became():
    unread = AskedItem("a cat?", None, (Scored("objects", None, "parse_error", "not_found"),))
    ask = Ask("eye", 0, "ok", None, None, 0, (), (unread,))
    card = Card("r", "s", "m", "c", None, "k", (), (), {}, None, None, (ask,))
    assert choices(Gallery((card,), 1), [])["status"] == json.loads(asks_of(card))[0]["statuses"] == ["not_found"]


def test_a_checkpoint_is_chosen_by_its_whole_name(made_of, tmp_path):
    """A browser folds the blanks of an option's text, and not those of its value."""
    names = {"step  1", "step 1"}
    made = made_of(made_by=[("north", name) for name in sorted(names)], n_prompts=4, categories=(None,))
    page, beside = made.page().decode(), made.beside(tmp_path).read_text()
    whole = {f"north / {name}" for name in names}
    assert whole == set(re.findall(r'data-model="([^"]*)"', page))
    for text, choice, offered in ((page, "model", whole), (beside, "a", names), (beside, "b", names)):
        options = text.partition(f'<select name="{choice}">')[2].partition("</select>")[0]
        assert offered == set(re.findall(r'value="([^"]+)"', options))
