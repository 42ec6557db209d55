"""Planted faults: what each does to a prompt or a picture, where it does not apply, and how many twins a night has."""

import io

import numpy as np
import polars as pl
import pytest
from PIL import Image

from demo.drawing import draw_png
from demo.sight import look
from demo.world import Scene, Thing
from schemas.benchmark.exam import EXAM, FAULTS, PlantedFault
from tasks.ingest.twins import picture_faults, text_faults
from tasks.ingest.twins.exam import PROMPTS, Prompts, chosen, twins, usable

F = PlantedFault
PICTURE_FAULTS = [fault for fault in FAULTS if fault in picture_faults._CHANGES]


@pytest.mark.parametrize(
    ("prompt", "seed", "told"),
    [
        pytest.param("two red cubes", 0, "three red cubes", id="never one: the noun is in the plural"),
        pytest.param("Five cats and two dogs", 0, "Four cats and two dogs", id="the first number, its capital kept"),
        pytest.param("FIVE cats", 1, "SIX cats", id="capitals kept"),
        pytest.param("a row of 12 cups", 0, "a row of 11 cups", id="numeral"),
        pytest.param("9 cups", 1, "10 cups", id="numeral, one more"),
        pytest.param("twelve cups", 1, "eleven cups", id="there is no word for one more"),
        pytest.param("a two-story house", 0, None, id="part of a word"),
        pytest.param("a cat, 4k, 16:9, f/2.8, 35mm, in 1995", 0, None, id="sizes, ratios and years"),
        pytest.param("the one and only cat", 0, None, id="one is no count"),
        pytest.param("$20 bills for 3 cats", 1, "$20 bills for 4 cats", id="a price is no count"),
        pytest.param("", 0, None, id="empty"),
    ],
)
def test_wrong_count(prompt, seed, told):
    assert text_faults.with_fault(prompt, F.WRONG_COUNT, seed) == told


@pytest.mark.parametrize(
    ("prompt", "seed", "told"),
    [
        pytest.param('a sign that says "OPEN"', 0, 'a sign that says "POEN"', id="two letters change places"),
        pytest.param('a sign that says "OPEN"', 2, 'a sign that says "OPNE"', id="the seed says which"),
        pytest.param("a mug with “Tea”", 1, "a mug with “Tae”", id="typographic quotes"),
        pytest.param("it's a dog's 'BARK'", 0, "it's a dog's 'ABRK'", id="an apostrophe quotes nothing"),
        pytest.param('the letters "AAA"', 0, 'the letters "EAA"', id="equal letters: another one"),
        pytest.param('the number "42", then "GO"', 0, 'the number "42", then "OG"', id="what has no letters is passed over"),
        pytest.param("a sign", 0, None, id="quotes nothing"),
        pytest.param('an inch is 1"', 0, None, id="a quote that does not end"),
    ],
)
def test_misspelt_text(prompt, seed, told):
    assert text_faults.with_fault(prompt, F.MISSPELT_TEXT, seed) == told


@pytest.mark.parametrize(
    ("fault", "text", "is_one"),
    [
        pytest.param(F.RECOLOURED, "a Red bench", True, id="a colour"),
        pytest.param(F.RECOLOURED, "a black cat on white snow", False, id="what has no hue stays as it is"),
        pytest.param(F.RECOLOURED, "a greenhouse", False, id="part of a word"),
        pytest.param(F.MIRRORED, "a bench left of a bear", True, id="a side"),
        pytest.param(F.MIRRORED, "a dog, facing right", True, id="a direction"),
        pytest.param(F.MIRRORED, "a lamp in the upper left", True, id="a corner"),
        pytest.param(F.MIRRORED, "the right moment to have left", False, id="neither is a side"),
        pytest.param(F.BLURRED, "", True, id="no word is needed"),
    ],
)
def test_a_fault_of_pixels_goes_against_what_is_said(fault, text, is_one):
    assert text_faults.contradicts(fault, [None, "", text]) is is_one


def test_prompts_of_a_megabyte_are_looked_through_once():
    for text in ('"' * 500_000 + "a", "two-" * 250_000, "2" * 1_000_000, "'a" * 500_000, "“" * 1_000_000):
        for fault in (F.WRONG_COUNT, F.MISSPELT_TEXT):
            text_faults.with_fault(text, fault, 0)  # quadratic would take hours
    for text in ("left " * 200_000, "on the " * 150_000, "on" + " " * 1_000_000, "re" * 500_000):
        assert not any(text_faults.contradicts(fault, [text]) for fault in FAULTS if fault in (F.MIRRORED, F.RECOLOURED))


def _pixels(*things: Thing, is_plain: bool = True) -> np.ndarray:
    return picture_faults.opened(draw_png(Scene(things, is_plain)))


def _seen(pixels: np.ndarray) -> Scene:
    return look(picture_faults.as_png(pixels))


HEART = Thing("heart", "red", 60, 70, 44)


def test_a_mirrored_thing_stands_on_the_other_side():
    (thing,) = _seen(picture_faults.with_fault(_pixels(HEART), F.MIRRORED)).things
    assert (thing.shape, abs(thing.x_px - (256 - 60)) <= 1, abs(thing.y_px - 70) <= 2) == ("heart", True, True)


def test_an_erased_thing_is_gone_and_nothing_is_left_of_it():
    assert _seen(picture_faults.with_fault(_pixels(HEART), F.ERASED)).things == ()


def test_a_doubled_thing_stands_there_twice():
    shown = _seen(picture_faults.with_fault(_pixels(HEART), F.DOUBLED)).things
    assert [(thing.shape, thing.color) for thing in shown] == [("heart", "red")] * 2


def test_a_recoloured_picture_has_every_hue_a_third_further_on():
    red = np.zeros((40, 40, 3), np.uint8) + np.array([200, 30, 10], np.uint8)
    assert (picture_faults.with_fault(red, F.RECOLOURED) == [10, 200, 30]).all()


def test_a_blurred_picture_has_softer_edges_and_the_same_mean():
    sharp = _pixels(HEART, is_plain=False)
    blurred = picture_faults.with_fault(sharp, F.BLURRED)
    steepest = [np.abs(np.diff(picture[20:-20, 20:-20].astype(int), axis=1)).max() for picture in (sharp, blurred)]
    assert steepest[1] < steepest[0] / 3
    assert abs(float(sharp.mean()) - float(blurred.mean())) < 1


@pytest.mark.parametrize("fault", PICTURE_FAULTS)
def test_in_an_even_picture_nothing_can_be_planted(fault):
    assert picture_faults.with_fault(np.full((300, 200, 3), 128, np.uint8), fault) is None


@pytest.mark.parametrize("size", [(1, 1), (2, 50), (13, 7), (700, 11)])
@pytest.mark.parametrize("fault", PICTURE_FAULTS)
def test_pictures_of_any_size_are_changed_or_left(fault, size):
    pixels = np.random.default_rng(1).integers(0, 256, (*size, 3), dtype=np.uint8)
    changed = picture_faults.with_fault(pixels, fault)
    assert changed is None or (changed.shape == pixels.shape and (changed != pixels).any())


def _samples(n: int, checkpoint: str = "1") -> list[dict[str, object]]:
    shown = draw_png(Scene((HEART,), is_plain=True))
    assert shown
    texts = dict.fromkeys(("category", "question", "text", "reference", "caption_type", "output", "texts_json", "seed"))
    return [
        texts | {"sample_id": f"{hash_of(number, checkpoint)}", "source": "s", "source_key": str(number), "model": "m",
         "checkpoint": checkpoint, "item_id": None, "prompt": f'two red cups left of "CUP {number}"', "image_sha256": "p",
         "pictures": [{"role": "image", "sha256": "p", "path": None}]}
        for number in range(n)
    ]  # fmt: skip


def hash_of(number: int, checkpoint: str) -> str:
    return f"{(number * 7919 + int(checkpoint) * 104729) * 2654435761 % 2**60:015x}".ljust(64, "0")


def _twins(rows: list[dict[str, object]], share: float) -> list[dict[str, object]]:
    frame = pl.DataFrame(rows).select("sample_id", "source", "model", "checkpoint", "category", *PROMPTS).sort("sample_id")
    budgets = chosen(frame, share)
    shown = {"image": {"bytes": draw_png(Scene((HEART,), is_plain=True)), "path": None}, "image_sha256": "p"}
    mine = [row for row in rows if row["sample_id"] in budgets]
    return [twin.row for twin in twins(mine, FAULTS, budgets, Prompts.of(frame), lambda _: shown)]


def test_twins_are_a_share_of_the_samples_and_each_sample_has_a_harmless_one():
    made = _twins(_samples(200), 0.05)
    assert 2 <= len(made) <= 10
    first = made[0]
    assert (first["model"], first["checkpoint"], first["source"]) == (EXAM, "harmless", f"{EXAM}/s")
    by_sample = {row["item_id"] for row in made}
    assert all(any(row["item_id"] == one and row["checkpoint"] == "harmless" for row in made) for one in by_sample)
    assert len({row["sample_id"] for row in made}) == len(made)


def test_a_checkpoint_has_its_twins_whatever_stands_beside_it():
    alone = {row["sample_id"] for row in _twins(_samples(60, "1"), 0.3)}
    both = {row["sample_id"] for row in _twins([*_samples(60, "1"), *_samples(40, "2")], 0.3)}
    assert alone < both


def test_every_fault_is_planted_and_a_swapped_prompt_is_anothers():
    rows = _samples(80)
    made = _twins(rows, 0.5)
    assert {row["checkpoint"] for row in made} == {"harmless", *FAULTS}
    own = {row["sample_id"]: row["prompt"] for row in rows}
    swapped = [row for row in made if row["checkpoint"] == F.SWAPPED_PROMPT]
    assert swapped
    assert all(row["prompt"] in set(own.values()) - {own[row["item_id"]]} for row in swapped)


def test_neither_anchors_nor_twins_have_twins():
    rows = [*_samples(4), *(row | {"source": f"{where}/s", "sample_id": "f" * 63 + end} for row, where, end in (
        (_samples(1)[0], "__anchors__", "1"), (_samples(1)[0], EXAM, "2")
    ))]  # fmt: skip
    frame = pl.DataFrame(rows).with_columns(status=pl.lit("ok"))
    assert usable(frame.lazy())["source"].to_list() == ["s"] * 4
    assert usable(frame.with_columns(status=pl.lit("duplicate")).lazy()).is_empty()


def test_a_share_too_small_for_two_twins_has_none():
    assert _twins(_samples(30), 0.05) == []


def test_the_harmless_twin_looks_the_same_and_is_another_picture():
    """Also where the stored bytes are those that encoding its pixels would give; so is the twin with a fault of the prompt."""
    pixels = picture_faults.opened(draw_png(Scene((HEART,), is_plain=True)))
    shown = {"image": {"bytes": picture_faults.as_png(pixels), "path": None}, "image_sha256": "p"}
    rows = _samples(2)
    budgets = {str(row["sample_id"]): 3 for row in rows}
    made = list(twins(rows, [F.SWAPPED_PROMPT], budgets, Prompts.of(pl.DataFrame(rows)), lambda _: shown))
    pictures = {twin.row["checkpoint"]: twin.picture for twin in made if twin.picture}
    assert {*pictures} == {F.HARMLESS, F.SWAPPED_PROMPT}
    for picture in pictures.values():
        with Image.open(io.BytesIO(picture["image"]["bytes"])) as image:
            difference = np.abs(pixels.astype(int) - np.asarray(image))
        assert difference.min(axis=(0, 1)).tolist() == difference.max(axis=(0, 1)).tolist() == [0, 0, 1]


@pytest.mark.parametrize("fault", PICTURE_FAULTS)
@pytest.mark.parametrize("size", [(1, 1), (2, 9), (8, 8), (11, 11), (3, 40), (40, 11), (12, 12), (13, 17), (24, 12)])
def test_no_picture_is_too_small_to_be_looked_at(size, fault):
    """Pictures of noise, so that any region is conspicuous; what is too small for a region has none planted."""
    for seed in range(20):
        pixels = np.random.default_rng(seed).integers(0, 256, (*size, 3), np.uint8)
        planted = picture_faults.with_fault(pixels, fault)
        assert planted is None or planted.shape == pixels.shape
        assert planted is None or fault not in (F.ERASED, F.DOUBLED) or min(size) >= 12
