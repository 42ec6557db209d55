"""A sample into messages: layouts, nulls, what is never substituted, golden requests, identity of prompts, speed."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rubrics.golden import as_golden, read_requests
from rubrics.loading import SHIPPED, find_rubrics, load_rubric
from rubrics.model import Rubric
from rubrics.rendering import _PLANS, MissingColumns, NoPrompt, UnknownValue, prompt_id, render, report_category
from schemas.errors import RubricError

Write = Callable[..., Path]
IMAGE = {"type": "image"}
ALL = find_rubrics(["interleaved", "image_aspects", "caption", "composition", "alignment"], [SHIPPED])
CATEGORIES = list(ALL["composition"].variants)
LOOKS_LIKE_TEMPLATE = ["{prompt}", "{0}", "%s", "$prompt", "{{", "\\1", "\\g<0>", "<chatend>", "null", "{{ prompt }}"]
TEXT = st.text(min_size=1, max_size=80).filter(lambda text: bool(text.strip()))


def text_of(rubric: Rubric, values: dict[str, str | None], *, has_image: bool = True) -> str:
    """All texts of the rendered messages, one after another."""
    contents: list[Any] = [message["content"] for message in render(rubric, values, has_image).messages]
    return "".join(
        part.get("text", "") for content in contents for part in ([{"text": content}] if isinstance(content, str) else content)
    )


@pytest.mark.parametrize("name", ["image_aspects", "composition"])
def test_prompt_as_system_then_the_bare_prompt_and_the_picture(name: str) -> None:
    rubric = ALL[name]
    rendered = render(rubric, {"prompt": " three clocks\n", "category": "counting"}, True)
    assert rendered.messages == (
        {"role": "system", "content": rendered.variant.prompt},
        {"role": "user", "content": [{"type": "text", "text": " three clocks\n"}, IMAGE]},
    )


def test_alignment_puts_the_prompt_right_behind_the_text() -> None:
    (message,) = render(ALL["alignment"], {"prompt": "a cup"}, True).messages
    assert message == {
        "role": "user",
        "content": [{"type": "text", "text": f"{ALL['alignment'].variants[None].prompt}a cup"}, IMAGE],
    }


@pytest.mark.parametrize(
    ("text", "has_image", "lines"),
    [
        ("Fold it.", True, ["Answer text: Fold it.", "Answer image: <image>"]),
        (None, True, ["Answer text: null", "Answer image: <image>"]),
        (" \t\n", True, ["Answer text: null", "Answer image: <image>"]),
        ("Fold it.", False, ["Answer text: Fold it.", "Answer image: null"]),
        (None, False, ["Answer text: null", "Answer image: null"]),
    ],
)
def test_interleaved_chat_block(text: str | None, has_image: bool, lines: list[str]) -> None:
    rubric = ALL["interleaved"]
    (message,) = render(rubric, {"question": "How?", "text": text}, has_image).messages
    block = "\n".join(["<chatbegin>", "Question: How?", *lines, "<chatend>"])
    whole = f"{rubric.variants[None].prompt}{block}"
    assert message["content"] == ([{"type": "text", "text": whole}, IMAGE] if has_image else whole)


def test_caption_template_changes_the_three_places_and_no_other_byte() -> None:
    rubric = ALL["caption"]
    (message,) = render(rubric, {"caption_type": "theme", "reference": "R {output}", "output": "O {reference}"}, True).messages
    content: Any = message["content"]
    assert content[1:] == [IMAGE]
    before, after = (rubric.variants[None].prompt or "").split(
        "Caption Type: {caption_type}\nReference: {reference}\nModel Output: {output}"
    )
    assert content[0]["text"] == f"{before}Caption Type: style\nReference: R {{output}}\nModel Output: O {{reference}}{after}"
    assert '{"score": [0-4], "reason": "1-2 sentence explanation"}' in content[0]["text"]


@pytest.mark.parametrize("category", [None, "", "Counting", "colour", "single_object "])
def test_a_category_without_a_prompt(category: str | None) -> None:
    with pytest.raises(NoPrompt, match="composition has no prompt for category") as caught:
        render(ALL["composition"], {"prompt": "a cup", "category": category}, True)
    assert caught.value.category == category


@pytest.mark.parametrize("word", ["Brief", "brief ", "{reference}", "haiku", "\u2028brief"])
def test_a_word_that_is_not_in_a_columns_closed_list(word: str) -> None:
    with pytest.raises(UnknownValue, match=r"caption does not know the caption_type .*; it knows 'brief', 'detail', ") as caught:
        render(ALL["caption"], {"caption_type": word, "reference": "a", "output": "b"}, True)
    assert caught.value.column == "caption_type"
    assert caught.value.exit_code == 2
    assert report_category(ALL["caption"], {"caption_type": word}) is None
    assert report_category(ALL["caption"], {"caption_type": "theme"}) == "style"


def test_every_missing_column_is_named_at_once() -> None:
    with pytest.raises(MissingColumns, match="caption needs image, output") as caught:
        render(ALL["caption"], {"caption_type": "brief", "reference": "a", "output": " \n"}, False)
    assert caught.value.columns == ("image", "output")
    assert caught.value.exit_code == 2


def test_a_rubric_without_messages_renders_none() -> None:
    rubric = load_rubric(SHIPPED.parent / "docs" / "examples" / "rubrics" / "viescore_sc")
    rendered = render(rubric, {}, False)
    assert rendered.messages == ()
    assert rendered.variant is rubric.variants[None]


def test_messages_without_a_prompt_file_say_so(write_rubric: Write) -> None:
    with pytest.raises(RubricError, match="has messages and no prompt file"):
        render(load_rubric(write_rubric(('prompt = "prompt.txt"\n', ""))), {"prompt": "a"}, True)


def test_an_empty_null_word_makes_no_empty_text_part(write_rubric: Write) -> None:
    change = (
        '    { kind = "prompt" },\n    { kind = "column", value = "prompt" },\n'
        '    { kind = "column", value = "text", null_as = "none" },\n    { kind = "image" },\n'
    )
    rubric = load_rubric(write_rubric((change, '{ kind = "image" }, { kind = "column", value = "text", null_as = "" }')))
    assert render(rubric, {"prompt": "p"}, True).messages == ({"role": "user", "content": [IMAGE]},)


def test_a_template_fills_needed_columns_and_leaves_other_braces(write_rubric: Write) -> None:
    prompt = 'beauty {prompt}{prompt} {question} {image} {{prompt}} { prompt } {"truth": {}} {0}'
    rubric = load_rubric(
        write_rubric(('{ kind = "prompt" },\n    { kind = "column", value = "prompt" }', '{ kind = "template" }'), prompt=prompt)
    )
    filled = 'beauty aa {question} {image} {a} { prompt } {"truth": {}} {0}none'
    assert text_of(rubric, {"prompt": "a", "question": "q"}) == filled


def test_a_part_without_a_word_for_null_is_needed_though_needs_forgot_it(write_rubric: Write) -> None:
    rubric = load_rubric(write_rubric(('value = "prompt" }', 'value = "question" }')))
    with pytest.raises(MissingColumns) as caught:
        render(rubric, {"prompt": "a"}, True)
    assert caught.value.columns == ("question",)


def test_the_dispatch_column_is_mapped_first() -> None:
    rubric = replace(ALL["composition"], value_maps={"category": {"colour": "colors"}})
    assert render(rubric, {"prompt": "a", "category": "colour"}, True).variant.category == "colors"
    with pytest.raises(NoPrompt):
        render(rubric, {"prompt": "a", "category": "color"}, True)


def test_plans_of_many_rubrics_do_not_pile_up() -> None:
    for _ in range(600):
        render(replace(ALL["alignment"]), {"prompt": "a"}, True)
    assert len(_PLANS) <= 256


def test_a_copy_of_a_rubric_is_not_taken_for_the_first() -> None:
    first = ALL["alignment"]
    variant = replace(first.variants[None], prompt="Other: ")
    other = replace(first, variants={None: variant})
    assert text_of(other, {"prompt": "a"}) == "Other: a"
    assert text_of(first, {"prompt": "a"}) != "Other: a"


@pytest.mark.parametrize(("name", "file"), [(name, file) for name in ALL for file in read_requests(SHIPPED / name)])
def test_golden_requests(name: str, file: str) -> None:
    golden = read_requests(SHIPPED / name)[file]
    assert as_golden(ALL[name], golden["values"], golden["has_image"]) == golden


def test_golden_requests_cover_every_category_and_every_null() -> None:
    assert {g["values"]["category"] for g in read_requests(SHIPPED / "composition").values()} == set(CATEGORIES)
    interleaved = read_requests(SHIPPED / "interleaved").values()
    assert len({(bool((g["values"]["text"] or "").strip()), g["has_image"]) for g in interleaved}) == 4
    assert "theme" in {g["values"]["caption_type"] for g in read_requests(SHIPPED / "caption").values()}


@given(
    reference=st.one_of(TEXT, st.sampled_from(["{output}", "{caption_type}{output}"])), output=TEXT,
    caption_type=st.sampled_from(["brief", "poem", "theme"]),
)  # fmt: skip
def test_caption_values_are_never_read_as_template(reference: str, output: str, caption_type: str) -> None:
    prompt = ALL["caption"].variants[None].prompt or ""
    head, rest = prompt.split("{caption_type}")
    middle, rest = rest.split("{reference}")
    last, tail = rest.split("{output}")
    word = "style" if caption_type == "theme" else caption_type
    values: dict[str, str | None] = {"caption_type": caption_type, "reference": reference, "output": output}
    assert text_of(ALL["caption"], values) == f"{head}{word}{middle}{reference}{last}{output}{tail}"


@given(value=st.one_of(TEXT, st.sampled_from(LOOKS_LIKE_TEMPLATE)), data=st.data())
@settings(max_examples=60)
def test_each_value_stands_verbatim_and_twice_the_same(value: str, data: st.DataObject) -> None:
    rubric = ALL[data.draw(st.sampled_from(sorted(ALL)))]
    category = data.draw(st.sampled_from(CATEGORIES))
    values: dict[str, str | None] = dict.fromkeys(rubric.needs, value) | {"category": category}
    if rubric.id == "caption":
        values["caption_type"] = "poem"
    first, second = render(rubric, values, True), render(rubric, dict(reversed(values.items())), True)
    assert first == second
    assert text_of(rubric, values).count(value) >= sum(
        1 for column in rubric.needs if column not in {"image", "category", "caption_type"}
    )


def test_naughty_strings_arrive_verbatim(needs_salon_data: Path) -> None:
    strings = json.loads((needs_salon_data / "naughty_text" / "blns.json").read_text(encoding="utf-8"))
    checked = 0
    for naughty in strings:
        if not naughty.strip():
            continue
        values = {"question": naughty, "text": naughty, "prompt": naughty, "reference": naughty, "output": naughty}
        values |= {"caption_type": "poem", "category": "colors"}
        base = ALL["interleaved"].variants[None].prompt
        block = f"<chatbegin>\nQuestion: {naughty}\nAnswer text: {naughty}\nAnswer image: <image>\n<chatend>"
        assert text_of(ALL["interleaved"], values) == f"{base}{block}"
        assert text_of(ALL["alignment"], values) == f"{ALL['alignment'].variants[None].prompt}{naughty}"
        assert f"Reference: {naughty}\nModel Output: {naughty}\n### **Output" in text_of(ALL["caption"], values)
        checked += 1
    assert checked > 500


def test_every_geneval_prompt_renders_under_composition(needs_salon_data: Path) -> None:
    lines = (needs_salon_data / "geneval" / "evaluation_metadata.jsonl").read_text(encoding="utf-8").splitlines()
    seen: dict[str, int] = {}
    for row in map(json.loads, lines):
        rendered = render(ALL["composition"], {"prompt": row["prompt"], "category": row["tag"]}, True)
        assert rendered.messages[0]["content"] == rendered.variant.prompt
        assert rendered.messages[1]["content"] == [{"type": "text", "text": row["prompt"]}, IMAGE]
        seen[row["tag"]] = seen.get(row["tag"], 0) + 1
    assert sum(seen.values()) == 553
    assert set(seen) == set(CATEGORIES)


def test_prompt_id_is_the_unit_and_falls_back_to_everything() -> None:
    rubric = ALL["image_aspects"]
    one = prompt_id(rubric, {"prompt": "a cup", "category": "colors"}, {"image": "aa"})
    assert one == prompt_id(rubric, {"prompt": "a cup"}, {"image": "bb"})
    assert one != prompt_id(rubric, {"prompt": "a cup "}, {"image": "aa"})
    # Recorded replies may come without a prompt: samples that differ must not fall into one unit.
    assert prompt_id(rubric, {"text": "x"}, {"image": "aa"}) != prompt_id(rubric, {"text": "y"}, {"image": "aa"})
    assert (
        prompt_id(rubric, {"prompt": " "}, {"image": "aa"})
        == prompt_id(rubric, {}, {"image": "aa"})
        != prompt_id(rubric, {}, {"image": "bb"})
    )


def test_prompt_id_of_an_image_unit_ignores_the_texts() -> None:
    rubric = ALL["caption"]
    assert prompt_id(rubric, {"output": "x"}, {"image": "aa"}) == prompt_id(rubric, {"output": "y"}, {"image": "aa"})
    assert prompt_id(rubric, {"output": "x"}, {"image": "aa"}) != prompt_id(rubric, {"output": "x"}, {"image": "bb"})


def test_prompt_id_is_pinned_since_it_is_stored() -> None:
    # sha256 of the UTF-8 bytes [["prompt","a café"]]
    pinned = "ef99faa5ae4f20814a28bbdaeab18b5f3e1d2565ffd3ac2f2afd0b580525c590"
    assert prompt_id(ALL["alignment"], {"prompt": "a café"}, {}) == pinned


def test_report_category_speaks_the_prompts_words() -> None:
    assert report_category(ALL["caption"], {"caption_type": "theme"}) == "style"
    assert report_category(ALL["caption"], {"caption_type": " "}) is None
    assert report_category(ALL["composition"], {"category": "counting"}) == "counting"
    assert report_category(ALL["alignment"], {"category": "counting"}) == "counting"
    assert report_category(ALL["alignment"], {}) is None
