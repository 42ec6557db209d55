"""Questions that show several pictures: what is sent in which place, what makes another question, what a sample may lack."""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from rubrics.linting import lint
from rubrics.loading import load_rubric
from rubrics.messages import Part
from rubrics.model import Condition, Items, ItemText, Rubric, Rule
from schemas.benchmark.judges import Judge
from schemas.errors import RubricError
from schemas.tables.stored import SAMPLES
from tasks.judge.pictures import digests_of
from tasks.plan.rows import Planner
from tests.support.contexts import plan_part

JUDGE = Judge(model="judge")
PNG = bytes.fromhex("89504e470d0a1a0a") + b"an example"
DECLARED = """\
id = "edits"
version = "1"
title = "t"
source = "s"
reply = "json"
prompt = "prompt.txt"
needs = ["prompt"]
pictures = ["source", "image", "mask"]
may_be_null = ["mask"]
unit = ["prompt"]
slots = { "<<do>>" = "prompt" }
scale = { min = 0, max = 10 }
[[dimensions]]
key = "score"
[[messages]]
role = "user"
parts = [{ kind = "text", value = "For example:" }, { kind = "example", value = "one.png" }]
[[messages]]
role = "assistant"
parts = [{ kind = "text", value = '{"score": 3}' }]
[[messages]]
role = "user"
parts = [
    { kind = "image", value = "source", detail = "low" }, { kind = "image" }, { kind = "image", value = "mask", null_as = "" },
    { kind = "template" },
]
"""
RULE = 'rules = [{{ name = "r", when = [{{ column = "mask", {} }}], then = {{ dimensions = ["score"], at_most = 5 }} }}]'


def digest(name: str) -> str:
    return sha256(name.encode()).hexdigest()


def shown(**roles: str) -> list[dict[str, str]]:
    """Pictures by role: names with a blank between them are several, in order."""
    return [{"role": role, "sha256": digest(name), "path": name} for role, names in roles.items() for name in names.split()]


def samples(*pictures: list[dict[str, str]]) -> pl.DataFrame:
    images = [next((one["sha256"] for one in each if one["role"] == "image"), None) for each in pictures]
    rows = [
        {"sample_id": digest(f"sample {n}"), "source": "s", "source_key": "k", "model": "m", "checkpoint": "c",
         "prompt": "red {it}", "image_sha256": image, "status": "ok", "pictures": each}
        for n, (image, each) in enumerate(zip(images, pictures, strict=True))
    ]  # fmt: skip
    return SAMPLES.frame(rows)


@pytest.fixture
def rubric(tmp_path: Path) -> Rubric:
    folder = tmp_path / "edits"
    folder.mkdir()
    (folder / "rubric.toml").write_text(DECLARED)
    (folder / "prompt.txt").write_text('Was <<do>> done? Say {"score": n}.')
    (folder / "one.png").write_bytes(PNG)
    return load_rubric(folder)


def test_each_picture_stands_in_its_place_and_examples_and_turns_before_it(rubric: Rubric) -> None:
    assert lint(rubric) == []
    judgements, requests = plan_part(samples(shown(image="new", source="old", mask="a b")), rubric, JUDGE)
    assert judgements["status"].to_list() == ["planned"]
    (said,) = requests["messages_json"]
    example = sha256(PNG).hexdigest()
    assert json.loads(said) == [
        {"role": "user", "content": [{"type": "text", "text": "For example:"}, {"type": "image", "sha256": example}]},
        {"role": "assistant", "content": '{"score": 3}'},
        {"role": "user", "content": [
            {"type": "image", "sha256": digest("old"), "shown": {"detail": "low"}}, {"type": "image", "sha256": digest("new")},
            {"type": "image", "sha256": digest("a")}, {"type": "image", "sha256": digest("b")},
            {"type": "text", "text": 'Was red {it} done? Say {"score": n}.'},
        ]},
    ]  # fmt: skip
    assert digests_of(said) == [example, *map(digest, ("old", "new", "a", "b"))]
    assert requests["image_sha256"].to_list() == [digest("new")], "the picture that is judged"
    close = plan_part(samples(shown(image="new", source="old")), rubric, Judge(model="judge", detail="high"))[1]
    assert {part["shown"]["detail"] for part in json.loads(close["messages_json"][0])[2]["content"][:2]} == {"high"}


SETS = {
    "as it is": shown(image="new", source="old"),
    "another source": shown(image="new", source="other"),
    "another image": shown(image="other", source="old"),
    "changed about": shown(image="old", source="new"),
    "a mask": shown(image="new", source="old", mask="m"),
    "two masks": shown(image="new", source="old", mask="m n"),
    "the masks changed about": shown(image="new", source="old", mask="n m"),
}


def test_whatever_is_shown_otherwise_is_another_question_and_nothing_else_is(rubric: Rubric) -> None:
    assert plan_part(samples(*SETS.values()), rubric, JUDGE)[1].height == len(SETS)
    same = [shown(source="old", image="new"), shown(image="new", unused="x", source="old"), SETS["as it is"]]
    assert plan_part(samples(*same), rubric, JUDGE)[1].height == 1


def test_a_sample_without_a_needed_role_is_a_row_that_says_so_and_the_rest_goes_on(rubric: Rubric) -> None:
    given = samples(shown(image="new"), shown(source="old"), [], SETS["as it is"])
    judgements, requests = plan_part(given.with_columns(prompt=pl.Series(["p", "p", None, "p"])), rubric, JUDGE)
    assert judgements.select("status", "reason").rows() == [
        ("missing_column", "missing:source"), ("missing_column", "missing:image"),
        ("missing_column", "missing:prompt,image,source"), ("planned", None),
    ]  # fmt: skip
    assert requests.height == 1


def test_a_sample_whose_picture_is_broken_is_told_by_that_and_not_by_what_it_then_lacks(rubric: Rubric) -> None:
    given = samples(shown(image="new"), []).with_columns(status=pl.lit("broken_image"))
    assert plan_part(given, rubric, JUDGE)[0]["reason"].to_list() == ["broken_image", "broken_image"]


def test_with_its_image_alone_a_sample_asks_what_samples_of_an_older_release_ask(
    make_rubric: Callable[..., Rubric], make_samples: Callable[..., pl.DataFrame]
) -> None:
    old = make_samples(3)
    new = old.with_columns(pictures=pl.Series([shown(image=f"{n}") for n in range(3)]))
    new = new.with_columns(image_sha256=pl.col("pictures").list.first().struct.field("sha256"))
    old = old.with_columns(image_sha256=new["image_sha256"])
    assert plan_part(old, make_rubric(), JUDGE)[1].equals(plan_part(new, make_rubric(), JUDGE)[1])
    twice = make_rubric(messages=(replace(make_rubric().messages[1], parts=(Part("image"), Part("prompt"), Part("image"))),))
    (said,) = plan_part(new[:1], twice, JUDGE)[1]["messages_json"]
    assert digests_of(said) == [digest("0"), digest("0")]


REFUSED: dict[str, tuple[tuple[str, str], str]] = {
    "an example that is not there": (('value = "one.png"', 'value = "two.png"'), "two.png does not exist"),
    "an example outside": (('value = "one.png"', 'value = "../one.png"'), "must be a file of the rubric folder"),
    "an example that is no picture": (('value = "one.png"', 'value = "prompt.txt"'), "is none of PNG, JPEG, WEBP"),
    "a role that is a text": (('["source", "image", "mask"]', '["prompt"]'), "'prompt' is a text in needs and a picture"),
    "a detail nobody knows": (('detail = "low"', 'detail = "lowest"'), "detail"),
    "detail of a text": (('{ kind = "template" }', '{ kind = "template", detail = "low" }'), "is not a picture; remove detail"),
}
DOUBTED: dict[str, tuple[tuple[str, str], str]] = {
    "a role that is not sent": (('"mask"]\nmay', '"mask", "depth"]\nmay'), "'depth' is needed but is not sent to the judge"),
    "a role that is not needed": (('["source", "image", "mask"]\nmay_be_null = ["mask"]', '["image"]'), "'source' is sent but"),
    "a role twice": (('{ kind = "template" }', '{ kind = "template" }, { kind = "image", value = "source" }'), "is sent 2 times"),
    "a role that may be null, silently": ((', null_as = ""', ""), "'mask' may be null, but a part"),
    "a rule whether a needed role is null": (('may_be_null = ["mask"]', RULE.format("is_null = true")), "is null, but it"),
    "a rule about words of a picture": (("scale =", RULE.format('one_of = ["x"]') + "\nscale ="), "words of the picture"),
    "a slot that is not there": (('"<<do>>"', '"<<done>>"'), "the slot '<<done>>' is in no prompt"),
    "a slot for a column that is not needed": (('= "prompt" }', '= "text" }'), "names 'text', which is not in needs"),
    "a picture from the assistant": (
        ('"assistant"\nparts = [', '"assistant"\nparts = [{ kind = "example", value = "one.png" }, '),
        "providers accept pictures only from the user",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "message"), REFUSED.values(), ids=REFUSED.keys())
def test_what_is_refused(rubric: Rubric, change: tuple[str, str], message: str) -> None:
    assert change[0] in DECLARED
    (rubric.folder / "rubric.toml").write_text(DECLARED.replace(*change))
    with pytest.raises(RubricError, match=message):
        load_rubric(rubric.folder)


@pytest.mark.parametrize(("change", "message"), DOUBTED.values(), ids=DOUBTED.keys())
def test_what_the_linter_finds(rubric: Rubric, change: tuple[str, str], message: str) -> None:
    assert change[0] in DECLARED
    (rubric.folder / "rubric.toml").write_text(DECLARED.replace(*change))
    assert any(message in problem for problem in lint(load_rubric(rubric.folder))), lint(load_rubric(rubric.folder))


def test_an_examples_bytes_are_the_rubrics(rubric: Rubric) -> None:
    before: Any = rubric.digest
    (rubric.folder / "one.png").write_bytes(PNG + b"!")
    assert load_rubric(rubric.folder).digest != before


def test_the_unit_may_be_the_source_picture(rubric: Rubric) -> None:
    """Edits of one source are one unit, whatever was asked for; the judged picture then tells nothing apart."""
    by_source = replace(rubric, unit=("source",))
    given = samples(shown(image="a", source="old"), shown(image="b", source="old"), shown(image="a", source="other"))
    prompts = pl.Series("prompt", ["red", "blue", "red"])
    ids = plan_part(given.with_columns(prompts), by_source, JUDGE)[0]["prompt_id"].to_list()
    assert ids[0] == ids[1] != ids[2]
    both = plan_part(given.with_columns(prompts), replace(rubric, unit=("prompt", "source")), JUDGE)[0]["prompt_id"]
    assert both.n_unique() == 3
    drawn = Planner(by_source, Judge(model="judge", share=0.5)).drawn(given.with_columns(prompts))["sample_id"].to_list()
    assert (given["sample_id"][0] in drawn) == (given["sample_id"][1] in drawn), "a unit is in the share or not"


def test_a_unit_that_is_no_role_of_the_rubric_is_no_name_of_a_picture(rubric: Rubric) -> None:
    declared = DECLARED.replace('unit = ["prompt"]', 'unit = ["source"]').replace('"source", "image", "mask"', '"image", "mask"')
    (rubric.folder / "rubric.toml").write_text(declared)
    with pytest.raises(RubricError, match="'source' identifies a sample or its model"):
        load_rubric(rubric.folder)


LISTED = Items("items", is_together=False, texts={"question": ItemText("{text}")}, fields={}, kinds={})


@pytest.mark.parametrize("change", [{}, {"messages": ()}, {"messages": (), "items": LISTED}], ids=["asked", "recorded", "items"])
def test_a_rule_about_a_role_sees_whether_the_sample_has_such_a_picture(rubric: Rubric, change: dict[str, Any]) -> None:
    rules = tuple(Rule(f"no {role}", (Condition(role, is_null=True),), ("score",), None, 5) for role in ("mask", "image"))
    given = samples(shown(image="new", source="old", mask="m"), shown(image="new", source="old"), shown(source="old"))
    given = given.with_columns(texts_json=pl.lit('{"items": "[{\\"text\\": \\"Red?\\"}]"}'))
    _, requests = plan_part(given, replace(rubric, rules=rules, **change), JUDGE)
    found = [(facts["mask_is_null"], facts["image_is_null"]) for facts in map(json.loads, requests["facts_json"])]
    lacking = [] if not change else [(True, True)]  # one that is asked is not planned without its image
    assert found == [(False, False), (True, False), *lacking]


def test_nobody_knows_the_other_pictures_of_a_sample_that_cannot_be_opened(rubric: Rubric) -> None:
    rules = tuple(Rule(f"no {role}", (Condition(role, is_null=True),), ("score",), None, 5) for role in ("mask", "image"))
    given = samples(shown(image="new", source="old")).with_columns(status=pl.lit("missing_file"))
    _, requests = plan_part(given, replace(rubric, rules=rules, messages=()), JUDGE)
    assert [json.loads(facts) for facts in requests["facts_json"]] == [{"image_is_null": False}]
