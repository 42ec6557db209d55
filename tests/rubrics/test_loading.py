"""Reading rubric folders: what is refused and in which words, what stays inside the folder, what the digest covers."""

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from rubrics.loading import SHIPPED, find_rubrics, list_rubrics, load_rubric
from rubrics.messages import Part
from rubrics.model import Condition, ReplyFormat, Rubric, Rule, WordsOutside
from schemas.errors import RubricError

Write = Callable[..., Path]
EXAMPLES = SHIPPED.parent / "docs" / "examples" / "rubrics"


def test_a_users_rubric_loads_like_any_other(write_rubric: Write) -> None:
    rubric = load_rubric(write_rubric())
    assert (rubric.id, rubric.version, rubric.reply_format) == ("plain", "1", ReplyFormat.JSON)
    assert rubric.needs == ("prompt", "text", "image")
    assert rubric.may_be_null == {"text"}
    assert rubric.variants[None].keys == ("beauty", "truth")
    assert rubric.rules == (Rule("no_text", (Condition("text", is_null=True),), ("truth",), 0, 0),)
    assert rubric.messages[0].parts[2] == Part("column", "text", "none")
    assert rubric.variant("anything") is rubric.variants[None]


def test_the_caption_rubric_in_full(shipped: dict[str, Rubric]) -> None:
    rubric = shipped["caption"]
    assert rubric.value_maps == {"caption_type": {"theme": "style"}}
    assert rubric.unit == ("image",)
    assert rubric.report_by == "caption_type"
    length = Rule(
        "length",
        (Condition("caption_type", one_of=("brief", "detail")), WordsOutside("output", "reference", 30)),
        ("score",),
        None,
        1,
    )
    assert rubric.rules == (length,)


def test_units_and_reported_categories(shipped: dict[str, Rubric]) -> None:
    assert {name: (r.unit, r.report_by, r.dispatch) for name, r in shipped.items()} == {
        "interleaved": (("question",), "category", None),
        "image_aspects": (("prompt",), "category", None),
        "caption": (("image",), "caption_type", None),
        "composition": (("prompt",), "category", "category"),
        "alignment": (("prompt",), "category", None),
    }


def test_a_rubric_without_messages_loads_and_says_where_the_number_stands() -> None:
    rubric = load_rubric(EXAMPLES / "viescore_sc")
    (dimension,) = rubric.dimensions
    assert rubric.messages == ()
    assert (dimension.key, dimension.at, dimension.minimum, dimension.maximum) == ("semantic_consistency", "score[0]", 0, 10)


def test_a_number_may_stand_at_one_of_several_places(write_rubric: Callable[..., Path]) -> None:
    folder = write_rubric(('labels = ["truth"]', 'at = ["truth[0]", "truth"]'))
    truth = load_rubric(folder).dimensions[1]
    assert (truth.at, truth.or_at) == ("truth[0]", ("truth",))


ANOTHER_RULE = """[[rules]]
name = "no_text"
when = [{ column = "text", is_null = false }]
then = { dimensions = ["truth"], at_least = 1 }
"""
BAD = {
    "unknown key": (("version =", "colour = 1\nversion ="), r"colour is not a key here; allowed: id, version, title"),
    "unknown key in a dimension": (('labels = ["beauty"]', 'lable = "b"'), r"\.lable .*mean labels\? Allowed: key, l"),
    "unknown key in a part": (('{ kind = "prompt" }', '{ kind = "prompt", strip = true }'), r"parts\[0\]\.strip is not a key"),
    "key of control codes": (("version =", '"\\u001b[2J" = 1\nversion ='), r"'\\x1b\[2J' is not a key here"),
    "key without end": (("version =", "x" * 9000 + " = 1\nversion ="), r"^.{1,300} is not a key here"),
    "number for text": (('version = "1"', "version = 1"), r"version: 1 is not a text; write it in quotes"),
    "text for number": (("min = 0", 'min = "0"'), r'scale\.min: "0" is not a number; write one, without quotes'),
    "true for number": (("min = 0", "min = true"), r"scale\.min: .*number"),
    "infinite scale": (("max = 10", "max = inf"), r"scale\.max: .*finite"),
    "empty scale": (("max = 10", "max = 0"), r"scale: .*min 0 is not below its max 0"),
    "half step": (("max = 10 }", "max = 10, step = 0.5 }"), r"scale\.step: "),
    "no scale": (("scale = { min = 0, max = 10 }\n", ""), r"'beauty' has no scale; write scale = \{ min"),
    "missing id": (('id = "plain"\n', ""), r"id is missing; add it"),
    "id is not the folder": (('id = "plain"', 'id = "other"'), r"id 'other' is not the folder's name"),
    "id with a slash": (('id = "plain"', 'id = "../plain"'), r"id: .*pattern"),
    "column that is no name": (('needs = ["prompt"', 'needs = ["The prompt"'), r"needs\[0\]: .*not 'The prompt'"),
    "column that tells the model": (
        ('needs = ["prompt"', 'needs = ["model"'), r"needs\[0\]: 'model' identifies a sample or its model"
    ),
    "the picture as a text": (("[[rules]]", '[words]\nimage = ["a"]\n[[rules]]'), r"words.image.*: 'image' is the picture"),
    "a word twice": (("[[rules]]", '[words]\ntext = ["a", "a"]\n[[rules]]'), r"words\.text has 'a' twice"),
    "no word": (("[[rules]]", "[words]\ntext = []\n[[rules]]"), r"words\.text: .*at least 1 item"),
    "null of what is not needed": (('["text"]', '["question"]'), r"may_be_null names 'question'.*not in needs"),
    "unknown reply form": (('reply = "json"', 'reply = "xml"'), r"reply: .*'json', .*'lines' or 'list'"),
    "unknown role": (('role = "user"', 'role = "tool"'), r"messages\[0\]\.role: .*'user'"),
    "unknown part": (('kind = "prompt"', 'kind = "exec"'), r"parts\[0\]\.kind: "),
    "part without value": (('kind = "column", value = "prompt"', 'kind = "column"'), r"kind 'column' needs a value"),
    "part with useless value": (('{ kind = "prompt" }', '{ kind = "prompt", value = "x" }'), r"takes no value"),
    "two dimensions of a name": (('key = "truth"', 'key = "beauty"'), r"dimensions has 'beauty' twice"),
    "two dimensions of a label": (('labels = ["truth"]', 'labels = ["beauty"]'), r"labels has 'beauty' twice"),
    "bad second place of a number": (
        ('labels = ["truth"]', 'at = ["truth", "score[x]"]'), r"'truth', at: 'score\[x\]' is not a column or a path"
    ),
    "place without letters": (('labels = ["truth"]', 'at = "_[0]"'), r"'truth', at: '_\[0\]' begins with a name without letters"),
    "no place of a number": (('labels = ["truth"]', "at = []"), "dimensions"),
    "bad place of a number": (('labels = ["truth"]', 'at = "score[x]"'), r"'truth', at: 'score\[x\]' is not a column or a path"),
    "variants without dispatch": (("[[rules]]", '[[variants]]\ncategory = "a"\ndimensions = [{ key = "a" }]\n[[rules]]'), "go"),
    "dispatch without variants": (("scale =", 'dispatch = "category"\nscale ='), r"variants and dispatch go together"),
    "a condition of two kinds": (("is_null = true", 'is_null = true, one_of = ["a"]'), r"a condition is exactly one of"),
    "a condition without column": (('column = "text", is_null', "is_null"), r"a condition is exactly one of"),
    "equals and at_most": (("equals = 0", "equals = 0, at_most = 1"), r"write equals, or at_most"),
    "no bound": ((", equals = 0", ""), r"write equals, or at_most"),
    "bounds that cross": (("equals = 0", "at_most = 1, at_least = 2"), r"at_least 2 is above at_most 1"),
    "a picture of some words": (
        ('column = "text", is_null = true', 'column = "image", one_of = ["a"]'), "a picture has no words",
    ),
    "negative percent": (
        ('column = "text", is_null = true', 'words_outside = { of = "text", reference = "prompt", percent = -1 }'),
        r"when\[0\]\.words_outside\.percent: .*greater than or equal to 0, not '-1'",
    ),
    "null for fixed text": (('{ kind = "prompt" }', '{ kind = "prompt", null_as = "" }'), r"kind 'prompt' cannot be null"),
    "two rules of a name": (("[[rules]]", f"{ANOTHER_RULE}[[rules]]"), r"rules has 'no_text' twice"),
    "a reserved word": (("scale =", 'value_maps.category = { a = "__macro__" }\nscale ='), r"maps to '__macro__', a name"),
    "chained words": (("scale =", 'value_maps.category = { a = "b", b = "c" }\nscale ='), r"maps to 'b' and also from it"),
    "not TOML": (("[[rules]]", "[[rules"), r"not valid TOML"),
    "deep nesting": (("scale =", "x = " + "[" * 5000 + "\nscale ="), r"not valid TOML"),
    "huge integer": (("min = 0", "min = 1" + "0" * 5000), r"not valid TOML|scale\.min"),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused_and_why(write_rubric: Write, case: str) -> None:
    change, message = BAD[case]
    with pytest.raises(RubricError) as caught:
        load_rubric(write_rubric(change))
    text = str(caught.value)
    assert re.search(message, text), text
    assert "plain/rubric.toml: " in text.splitlines()[0]
    assert len(text) < 2000
    assert caught.value.exit_code == 2


def test_many_problems_are_cut_short(write_rubric: Write) -> None:
    many = "".join(f"key_{number} = 1\n" for number in range(5000))
    with pytest.raises(RubricError) as caught:
        load_rubric(write_rubric(('version = "1"\n', f'version = "1"\n{many}')))
    assert len(str(caught.value).splitlines()) == 20


def test_every_problem_is_told_at_once(write_rubric: Write) -> None:
    with pytest.raises(RubricError) as caught:
        load_rubric(write_rubric(('version = "1"', "version = 1"), ("min = 0", 'min = "0"')))
    assert len(str(caught.value).splitlines()) == 2


@pytest.mark.parametrize(
    "name",
    ["../secret.txt", "/etc/hostname", "a/../../secret.txt", "..", ".", "", "a\\\\b.txt", ".hidden", "prompt.txt/", "a\\u0000b"],
)
def test_a_prompt_file_name_stays_in_the_folder(write_rubric: Write, tmp_path: Path, name: str) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    with pytest.raises(RubricError, match="prompt"):
        load_rubric(write_rubric(("prompt.txt", name)))


def test_a_link_out_of_the_folder_is_not_followed(write_rubric: Write, tmp_path: Path) -> None:
    (tmp_path / "secret.txt").write_text("secret")
    folder = write_rubric()
    (folder / "prompt.txt").unlink()
    (folder / "prompt.txt").symlink_to(tmp_path / "secret.txt")
    with pytest.raises(RubricError, match=r"prompt\.txt is a link out of the rubric folder"):
        load_rubric(folder)


def test_a_linked_folder_of_prompts_is_not_followed(write_rubric: Write, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    folder = write_rubric(("prompt.txt", "texts/secret.txt"))
    (folder / "texts").symlink_to(tmp_path / "outside")
    with pytest.raises(RubricError, match="is a link out of the rubric folder"):
        load_rubric(folder)


def test_a_pipe_is_refused_instead_of_waited_for(write_rubric: Write) -> None:
    folder = write_rubric()
    (folder / "prompt.txt").unlink()
    os.mkfifo(folder / "prompt.txt")
    with pytest.raises(RubricError, match="not a regular file"):
        load_rubric(folder)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("prompt.txt", b"x" * (1024 * 1024 + 1), "more than 1048576 bytes"),
        ("rubric.toml", b"#" * (256 * 1024 + 1), "more than 262144 bytes"),
        ("prompt.txt", b"caf\xe9", "prompt.txt is not UTF-8"),
        ("rubric.toml", b'title = "caf\xe9"', "not UTF-8"),
    ],
)
def test_files_are_bounded_and_utf8(write_rubric: Write, name: str, content: bytes, message: str) -> None:
    folder = write_rubric()
    (folder / name).write_bytes(content)
    with pytest.raises(RubricError, match=message):
        load_rubric(folder)


def test_a_missing_prompt_file_is_named(write_rubric: Write) -> None:
    with pytest.raises(RubricError, match=r"absent\.txt does not exist"):
        load_rubric(write_rubric(("prompt.txt", "absent.txt")))


def test_prompt_bytes_arrive_as_they_are(write_rubric: Write) -> None:
    folder = write_rubric()
    (folder / "prompt.txt").write_bytes("\ufeff beauty\r\ntruth\x85\u2028 \n\n".encode())
    assert load_rubric(folder).variants[None].prompt == "\ufeff beauty\r\ntruth\x85\u2028 \n\n"


def test_one_byte_changes_the_digest_and_golden_files_do_not(write_rubric: Write) -> None:
    folder = write_rubric()
    first = load_rubric(folder).digest
    (folder / "golden").mkdir()
    (folder / "golden" / "replies.jsonl").write_text("{}")
    (folder / "notes.txt").write_text("not named in the declaration")
    assert load_rubric(folder).digest == first
    (folder / "prompt.txt").write_text("Judge beauty and truth of this:  ")
    second = load_rubric(folder).digest
    (folder / "rubric.toml").write_text((folder / "rubric.toml").read_text() + "\n")
    third = load_rubric(folder).digest
    assert len({first, second, third}) == 3


VARIANT = '[[variants]]\ncategory = "a"\ndimensions = [{ key = "x" }]\n'
OTHER_SCALE = '[[variants]]\ncategory = "b"\ndimensions = [{ key = "x", scale = { min = 0, max = 5 } }]\n'


@pytest.mark.parametrize(
    ("extra", "variants", "message"),
    [
        ("", VARIANT + VARIANT, "variants has 'a' twice"),
        ('prompt = "p.txt"\n', VARIANT, "prompt belongs in each of the variants, not at the top"),
        ('dimensions = [{ key = "y" }]\n', VARIANT, "dimensions belong either at the top or in variants"),
        ("", VARIANT + OTHER_SCALE, "'x' has different scales"),
    ],
)  # fmt: skip
def test_variants_that_cannot_be_meant(tmp_path: Path, extra: str, variants: str, message: str) -> None:
    folder = tmp_path / "two"
    folder.mkdir()
    (folder / "p.txt").write_text("x")
    (folder / "rubric.toml").write_text(
        'id = "two"\nversion = "1"\ntitle = "t"\nsource = "s"\nreply = "json"\nunit = ["prompt"]\ndispatch = "category"\n'
        f"scale = {{ min = 0, max = 10 }}\n{extra}{variants}"
    )
    with pytest.raises(RubricError, match=message):
        load_rubric(folder)


def test_a_declaration_saved_with_a_byte_order_mark_loads(write_rubric: Write) -> None:
    folder = write_rubric()
    (folder / "rubric.toml").write_text((folder / "rubric.toml").read_text(), encoding="utf-8-sig")
    assert load_rubric(folder).id == "plain"


def test_finding_by_id_in_several_folders(write_rubric: Write) -> None:
    mine = write_rubric()
    for folders in ([SHIPPED, mine.parent], [SHIPPED, mine], [mine, mine.parent, SHIPPED]):
        assert list(find_rubrics(["plain", "caption"], folders)) == ["plain", "caption"]
    assert [rubric.id for rubric in list_rubrics([SHIPPED])] == [
        "alignment",
        "caption",
        "composition",
        "edit_preference",
        "image_aspects",
        "interleaved",
        "preference",
    ]


def test_a_broken_neighbour_does_not_stop_the_rubric_asked_for(write_rubric: Write) -> None:
    write_rubric(('version = "1"', "version = 1"), name="broken")
    assert list(find_rubrics(["plain"], [write_rubric().parent])) == ["plain"]


def test_an_unknown_id_is_answered_with_those_there_are(write_rubric: Write) -> None:
    with pytest.raises(RubricError, match=r"no rubric 'captoin'; did you mean 'caption'\? Known: alignment, caption"):
        find_rubrics(["captoin"], [SHIPPED])
    with pytest.raises(RubricError, match=r"no rubric '\.\./caption'"):
        find_rubrics(["../caption"], [SHIPPED / "caption"])
    with pytest.raises(RubricError, match="is not a folder"):
        find_rubrics(["caption"], [SHIPPED / "absent"])


def test_two_rubrics_of_one_id_are_never_chosen_between(write_rubric: Write) -> None:
    mine = write_rubric(('id = "plain"', 'id = "caption"'), name="caption")
    with pytest.raises(RubricError, match="rename one"):
        find_rubrics(["caption"], [SHIPPED, mine.parent])
