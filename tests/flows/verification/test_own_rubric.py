"""A publication judged by a rubric of one's own is verified and exported with its folder named; without, how to name it is said.

What verifying finds is tests/flows/commands/exchange/test_verify.py, what stands in a bundle test_bundle.py.
"""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from rubrics.loading import SHIPPED
from tests.flows.flow_support import Said

BENCHMARK = """\
name = "shades"
rubric_folders = ["mine"]
[[sources]]
reader = "manifest"
path = "m.jsonl"
[[rubrics]]
id = "shade"
[[judges]]
model = "gpt-4o"
recorded = true
"""
HOW = "name its folder with --rubrics DIR"


@pytest.fixture
def publication(tmp_path: Path, salon: Callable[..., Said]) -> str:
    """The id of a publication by the rubric `shade`, of a reply that was recorded."""
    shutil.copytree(SHIPPED / "alignment", tmp_path / "mine" / "shade")
    declared = tmp_path / "mine" / "shade" / "rubric.toml"
    declared.write_text(declared.read_text().replace('id = "alignment"', 'id = "shade"'))
    Image.new("RGB", (8, 8), (80, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "m.jsonl").write_text('{"image": "a.png", "prompt": "a dark red", "model": "m", "checkpoint": "c"}\n')
    (tmp_path / "replies.jsonl").write_text('{"prompt": "a dark red", "reply": "Score: 4"}\n')
    (tmp_path / "b.toml").write_text(BENCHMARK)
    said = salon("import", "b.toml", "--replies", "replies.jsonl")
    assert said.code == 0, said.err
    (tmp_path / "elsewhere").mkdir()
    return said.out.partition("publication ")[2][:16]


@pytest.mark.parametrize(
    ("words", "how"),
    [
        (("verify", "{id}"), f"{HOW}, or its benchmark file with --file FILE"),
        (("export", "{id}", "--to", "bundle", "--out", "x.zip"), HOW),
    ],
    ids=["verified", "exported"],
)
def test_the_folder_of_ones_own_rubric_is_asked_for_and_taken(
    publication: str,
    salon: Callable[..., Said],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    words: tuple[str, ...],
    how: str,
) -> None:
    monkeypatch.chdir(tmp_path / "elsewhere")
    shutil.move(tmp_path / "lake" / "rubrics", tmp_path / "rubrics")
    asked = [*(word.format(id=publication) for word in words), "--lake", str(tmp_path / "lake")]
    said = salon(*asked)
    told = " ".join(said.err.split())
    assert (said.code, told.endswith(f"; {how}")) == (2, True), told
    assert salon(*asked, "--rubrics", str(tmp_path / "mine")).code == 0


def test_a_rubric_that_was_edited_since_is_named_before_money_is_spent_and_as_the_cause_of_what_differs(
    publication: str, salon: Callable[..., Said], tmp_path: Path
) -> None:
    prompt = tmp_path / "mine" / "shade" / "prompt.txt"
    prompt.write_text(prompt.read_text().replace("image", "picture", 1))
    shutil.rmtree(tmp_path / "mine" / "shade" / "golden")  # lint would say it
    planned = salon("plan", "b.toml")
    assert planned.code == 0, planned.err
    assert "rubric shade (same version; its text or rules changed): changed requests are paid for again" in " ".join(
        planned.out.split()
    )
    (kept,) = (tmp_path / "lake" / "rubrics").glob("*/shade")
    for named in (("--file", "b.toml"), ("--rubrics", "mine")):
        said = salon("verify", publication, *named)
        assert said.code == 0, said.out
        assert f"from where the lake keeps it: {kept.relative_to(tmp_path)}" in " ".join(said.out.split())
    shutil.copy(prompt, kept / "prompt.txt")  # it is not the one of the digest any more
    said = salon("verify", publication, "--file", "b.toml", "--limit", "3")
    assert said.code == 1
    assert said.out.count("derived ") == 3
    assert re.search("and [0-9,]+ more of these; --limit 0 shows all", said.out)
    summary, _, listed = said.out.partition("\n\n")
    told = " ".join(summary.split())
    assert f"because rubric shade in {tmp_path / 'mine' / 'shade'} differs from the published one" in told
    assert "restore it, or give a folder with the old version" in told
    assert listed.splitlines()[-1].startswith("not verified: ")


def test_a_rubric_that_is_gone_is_taken_from_the_lake(
    publication: str, salon: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.rmtree(tmp_path / "mine")
    (tmp_path / "mine").mkdir()
    assert salon("verify", publication).code == 0
    assert salon("export", publication, "--to", "bundle", "--out", "x.zip").code == 0
    named = salon("verify", publication, "--rubrics", "elsewhere")
    assert (named.code, "there is no rubric 'shade'" in " ".join(named.err.split())) == (2, True)


def test_a_bundle_that_is_not_there_is_no_publications_id(salon: Callable[..., Said]) -> None:
    said = salon("verify", "nope.zip")
    assert said.code == 2
    assert "nope.zip does not exist; name a bundle" in said.err
