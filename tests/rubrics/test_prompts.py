"""The ten prompt texts are the published ones, byte for byte: their digests stand here as literals."""

import re
from hashlib import sha256

import pytest

from rubrics.loading import SHIPPED
from rubrics.model import Rubric

PINNED = {
    "interleaved/prompt.txt": "4791772464e4ba095530c8e37dcc4cc5b777ac5ff4b02149a4bbcec8580b5574",
    "image_aspects/prompt.txt": "db1fe44549127339f32bab8d3f42cfd72b542961d9cf554c175c3dd4ffae0143",
    "caption/prompt.txt": "8e326eb5950bdc96ae6075c791a589854af278ca6e72ed20e2f81495c2d18ef9",
    "alignment/prompt.txt": "df21143e377e78d7c3a973c3cb73b7e40130bfc2009268f36e211fcc1a5fad11",
    "composition/single_object.txt": "28f734d1d71969faeeed302b94a517d3440ccfcce26bb8bebea06a65fdabb198",
    "composition/two_object.txt": "6df2e714ff795fdd57d27f926ca95a8e64f6a917543c903facee7c52d1352805",
    "composition/counting.txt": "8df57bdc02e705d50b17abdf9afd887a430d3e9ad392f100925f0437bd2dbf89",
    "composition/colors.txt": "89b6776c15e4872e626bea8369493b30a3a1c61fd57d3fb8f1ce1fada5f3ca1f",
    "composition/position.txt": "927dfff3e46eb4a202f567b9f0e9f72805ea76c0604aaacfa9000f46758b838c",
    "composition/color_attr.txt": "1c68d83dc9a9cb0fa2ef99dba4c89f7c7f10d28ae077c458796366dfdf8d6961",
}  # fmt: skip


def prompts(shipped: dict[str, Rubric]) -> dict[str, str]:
    return {f"{r.id}/{v.prompt_file}": v.prompt or "" for r in shipped.values() for v in r.variants.values()}


@pytest.mark.parametrize("name", PINNED)
def test_prompt_bytes_are_pinned(name: str) -> None:
    assert sha256((SHIPPED / name).read_bytes()).hexdigest() == PINNED[name]


def test_every_prompt_loaded_is_pinned_and_decoded_without_loss(shipped: dict[str, Rubric]) -> None:
    loaded = prompts(shipped)
    assert set(loaded) == set(PINNED)
    assert {name: sha256(text.encode()).hexdigest() for name, text in loaded.items()} == PINNED


OWN = {"preference/prompt.txt", "edit_preference/prompt.txt"}
"""Written by Salon, and held by their golden requests."""


def test_every_prompt_file_that_ships_is_pinned_or_salons_own() -> None:
    texts = {str(path.relative_to(SHIPPED)) for path in SHIPPED.rglob("*.txt")}
    shipped = {text for text in texts if not text.startswith("starters/")}
    assert shipped == set(PINNED) | OWN, "name a new prompt in OWN; one that is no longer used is deleted"


def test_ends_that_matter(shipped: dict[str, Rubric]) -> None:
    loaded = prompts(shipped)
    assert loaded["alignment/prompt.txt"].endswith("\n\nUser prompt: ")
    assert loaded["image_aspects/prompt.txt"][0] == "\n"
    assert loaded["interleaved/prompt.txt"].endswith("other dimensions.):\n")
    assert loaded["caption/prompt.txt"].endswith("do not add any other content.")


def test_keys_are_those_the_composition_prompts_list(shipped: dict[str, Rubric]) -> None:
    for variant in shipped["composition"].variants.values():
        listed = re.search(r"The keys in the JSON object should be: (.*?)\. Below", variant.prompt or "")
        assert listed is not None
        assert tuple(re.findall(r"`(\w+)`", listed[1])) == variant.keys


def test_scales_and_keys(shipped: dict[str, Rubric]) -> None:
    scales = {
        "interleaved": (0, 5, 1), "image_aspects": (0, 10, None), "caption": (0, 4, 1), "composition": (0, 10, None),
        "alignment": (1, 5, 1),
    }  # fmt: skip
    for name, scale in scales.items():
        assert {(d.minimum, d.maximum, d.step) for d in shipped[name].dimensions} == {scale}
    assert shipped["caption"].variants[None].keys == shipped["alignment"].variants[None].keys == ("score",)
    assert shipped["image_aspects"].variants[None].keys == (
        "accuracy_to_prompt", "creativity_and_originality", "visual_quality_and_realism", "consistency_and_cohesion",
        "emotional_or_thematic_resonance", "overall_score",
    )  # fmt: skip
    assert {d.key: d.labels for d in shipped["interleaved"].dimensions} == {
        "text_response_quality": ("Text Response Quality",),
        "image_response_quality": ("Image Response Quality", "Image Content Quality"),
        "image_aesthetic_quality": ("Image Aesthetic Quality",),
        "text_image_synergy": ("Text-Image Synergy",),
    }


def test_only_overall_score_is_asked_in_every_composition_category(shipped: dict[str, Rubric]) -> None:
    assert shipped["composition"].keys_in_every_variant == {"overall_score"}
    assert list(shipped["composition"].variants) == [
        "single_object", "two_object", "counting", "colors", "position", "color_attr",
    ]  # fmt: skip
