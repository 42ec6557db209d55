"""`salon rubrics new|try`: a folder that lints from the start, and one sample asked and read by hand."""

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rubrics.linting import lint
from rubrics.loading import SHIPPED, list_rubrics, load_rubric
from tests.flows.flow_support import Said

SHIPPED_IDS = [rubric.id for rubric in list_rubrics([SHIPPED])]


@pytest.mark.parametrize(
    "begun",
    [
        *(("--like", name) for name in SHIPPED_IDS),
        ("--kind", "scale"),
        *(("--kind", k) for k in ("aspects", "items", "edit", "pairs", "program")),
    ],
    ids="-".join,
)
def test_a_rubric_begun_lints_from_the_start(salon: Callable[..., Said], tmp_path: Path, begun: tuple[str, str]) -> None:
    said = salon("rubrics", "new", "my_own", *begun)
    assert said.code == 0, said.err
    made = load_rubric(tmp_path / "my-rubrics" / "my_own")
    assert (made.id, lint(made)) == ("my_own", [])
    assert "salon rubrics lint my-rubrics/my_own" in said.out
    again = salon("rubrics", "new", "my_own")
    assert again.code == 2
    assert "already exists" in again.err


MARK = "\ufeff"  # of the byte order: an editor of Windows writes it


@pytest.mark.parametrize("line", ["id = 'one'", 'id="one"', '"id" = "one"', f'{MARK}id = "one"'])
def test_a_copy_is_called_by_its_own_name_however_the_id_is_written(
    salon: Callable[..., Said], tmp_path: Path, line: str
) -> None:
    assert salon("rubrics", "new", "one").code == 0
    declared = tmp_path / "my-rubrics" / "one" / "rubric.toml"
    told = declared.read_text().replace('id = "one"', line.removeprefix(MARK))
    declared.write_text(MARK * line.startswith(MARK) + told, encoding="utf-8")
    said = salon("rubrics", "new", "two", "--like", "my-rubrics/one")
    assert (said.code, load_rubric(tmp_path / "my-rubrics" / "two").id) == (0, "two"), said


def test_of_what_cannot_be_copied_nothing_is_left(salon: Callable[..., Said], tmp_path: Path) -> None:
    assert salon("rubrics", "new", "one").code == 0
    inside = salon("rubrics", "new", "two", "--like", "my-rubrics/one", "--folder", "my-rubrics/one/x")
    declared = tmp_path / "my-rubrics" / "one" / "rubric.toml"
    declared.write_text(declared.read_text().replace('id = "one"', 'id = """one"""'))
    odd = salon("rubrics", "new", "two", "--like", "my-rubrics/one")
    assert (inside.code, "is inside" in inside.err, odd.code, "its id cannot be replaced" in odd.err) == (2, True, 2, True)
    assert [path.name for path in tmp_path.rglob("two")] == []
    assert not (tmp_path / "my-rubrics" / "one" / "x").exists()


def test_the_starters_are_no_rubrics_of_the_shipped_ones() -> None:
    assert set(SHIPPED_IDS) == {
        "alignment",
        "caption",
        "composition",
        "edit_preference",
        "image_aspects",
        "interleaved",
        "preference",
    }


@pytest.mark.parametrize("name", ["My", "1st", "a/b", "../up", "", "a" * 65])
def test_an_id_that_is_none_is_refused(salon: Callable[..., Said], tmp_path: Path, name: str) -> None:
    assert salon("rubrics", "new", name).code == 2
    assert not (tmp_path / "my-rubrics").exists()


def test_a_sample_is_asked_word_for_word_and_a_reply_read(
    salon: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "a.png").write_bytes(b"a picture")
    (tmp_path / "sample.json").write_text(
        json.dumps({"prompt": "a cup {x} " + "long " * 60, "category": "counting", "image": "a.png"})
    )
    asked = salon("rubrics", "try", "composition", "--sample", "sample.json", "--json")
    messages = json.loads(asked.out)
    prompt = (SHIPPED / "composition" / "counting.txt").read_text()
    assert [message["content"] for message in messages] == [
        prompt, [{"type": "text", "text": "a cup {x} " + "long " * 60}, {"type": "image"}],
    ]  # fmt: skip
    shown = salon("rubrics", "try", "composition", "--sample", "sample.json").out
    assert "  a cup {x} " + "long " * 60 in shown, "lines stay whole"
    assert "[image]" in shown
    scores = {"count_accuracy": 10, "object_uniformity": 7.5, "spatial_legibility": 8, "overall_score": 8.5}
    (tmp_path / "reply.txt").write_text(json.dumps(scores))
    read = salon("rubrics", "try", "composition", "--sample", "sample.json", "--reply", "reply.txt")
    assert json.loads(read.out.splitlines()[-1]) == {"scores": scores}
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"I am sorry, but I cannot assist with that.")))
    pasted = salon("rubrics", "try", "composition", "--sample", "sample.json", "--reply", "-")
    assert json.loads(pasted.out.splitlines()[-1]) == {"error": "refusal"}


def test_a_reply_is_tried_with_its_log_probabilities(salon: Callable[..., Said], tmp_path: Path) -> None:
    assert salon("rubrics", "new", "mine", "--kind", "items").code == 0
    declared = tmp_path / "my-rubrics" / "mine" / "rubric.toml"
    declared.write_text(
        declared.read_text().replace("\n[[dimensions]]", "\nprobability = { min_mass = 0.5 }\n\n[[dimensions]]", 1)
    )
    (tmp_path / "a.png").write_bytes(b"a picture")
    (tmp_path / "sample.json").write_text(json.dumps({"items": [{"question": "Is there a cup?"}], "image": "a.png"}))
    (tmp_path / "reply.txt").write_text("No.")
    given = ("rubrics", "try", "my-rubrics/mine", "--sample", "sample.json", "--reply", "reply.txt")
    bare = salon(*given)
    assert (bare.code, json.loads(bare.out.splitlines()[-1])) == (0, {"error": "not_found", "lacks": "logprobs_json"})
    assert "pass the reply's with --logprobs FILE" in bare.err
    token = {"token": "No", "logprob": -0.1, "top_logprobs": [{"token": "Yes", "logprob": -3}]}
    (tmp_path / "logprobs.json").write_text(json.dumps({"content": [token]}))
    read = salon(*given, "--logprobs", "logprobs.json")
    assert json.loads(read.out.splitlines()[-1]) == {"scores": {"answer": pytest.approx(0.0497870683678639)}}
    assert read.err == ""
    for content, asked, told in [("{}", given, "contains no token with its logprob"), ("{}", given[:-2], "name it with --reply")]:
        (tmp_path / "logprobs.json").write_text(content)
        said = salon(*asked, "--logprobs", "logprobs.json")
        assert (said.code, told in " ".join(said.err.split())) == (2, True), said.err


def test_rules_look_at_the_sample(salon: Callable[..., Said], tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"a picture")
    texts = {"caption_type": "brief", "reference": "one two three", "output": "one two three four five six", "image": "a.png"}
    (tmp_path / "sample.json").write_text(json.dumps(texts | {"seed": 7, "tags": ["of no rubric"]}))
    (tmp_path / "reply.txt").write_text('{"score": 3, "reason": "long"}')
    read = salon("rubrics", "try", "caption", "--sample", "sample.json", "--reply", "reply.txt")
    assert json.loads(read.out.splitlines()[-1]) == {"error": "rule_violation", "scores": {"score": 3}}


@pytest.mark.parametrize(
    ("content", "why"),
    [
        ("[1]", "expected one JSON object with these columns as texts: prompt, image"),
        ('{"prompt": 3, "seed": 7}', "sample.json: prompt is 3; rubric "),
        ('{"prompt": ', "not JSON"),
        ('{"prompt": "a", "image": "none.png"}', "picture 'none.png' does not exist"),
        ('{"image": null, "prompt": "a"}', "rubric alignment needs image"),
        (None, "cannot be read"),
    ],
    ids=["a list", "a number", "cut", "no such file", "no picture", "no file"],
)
def test_a_sample_that_cannot_be_asked_is_told(salon: Callable[..., Said], tmp_path: Path, content: str | None, why: str) -> None:
    if content is not None:
        (tmp_path / "sample.json").write_text(content)
    said = salon("rubrics", "try", "alignment", "--sample", "sample.json")
    assert said.code == 2
    assert why in " ".join(said.err.split())


def test_the_items_of_a_sample_are_asked_one_by_one_and_what_is_wrong_with_them_is_said(
    salon: Callable[..., Said], tmp_path: Path
) -> None:
    assert salon("rubrics", "new", "mine", "--kind", "items").code == 0
    (tmp_path / "a.png").write_bytes(b"a picture")
    items = [{"question": "Is there a cup?"}, {"question": "Is it red?", "depends_on": ["1"]}]
    (tmp_path / "sample.json").write_text(json.dumps({"items": items, "image": "a.png"}))
    asked = json.loads(salon("rubrics", "try", "my-rubrics/mine", "--sample", "sample.json", "--json").out)
    assert [messages[0]["content"][0]["text"].splitlines()[-1] for messages in asked] == [
        "Question: Is there a cup?", "Question: Is it red?",
    ]  # fmt: skip
    (tmp_path / "reply.txt").write_text("No.")
    read = salon("rubrics", "try", "my-rubrics/mine", "--sample", "sample.json", "--reply", "reply.txt")
    assert json.loads(read.out.splitlines()[-1]) == {"scores": {"answer": 0}}
    for wrong, told in [
        ([{"question": "?", "depends_on": ["9"]}], "depends on '9', which is not another item"),
        ([{"id": "a", "question": "?"}, {"id": "a", "question": "?"}], "the id 'a' twice"),
        ([{"question": "?", "kind": "smell"}], "is of the unknown kind 'smell'"),
        ([{"question": "?", "weight": -1}], "write a number above 0"),
        ([], "a JSON list of 1 to 200 items"),
    ]:
        (tmp_path / "sample.json").write_text(json.dumps({"items": wrong, "image": "a.png"}))
        said = salon("rubrics", "try", "my-rubrics/mine", "--sample", "sample.json")
        assert said.code == 2
        assert told in " ".join(said.err.split())
