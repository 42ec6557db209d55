"""What a change costs: exactly the questions it changes are asked again, and no other."""

import io
import shutil
from pathlib import Path

import pytest
from PIL import Image

from flows.cli import run
from flows.observability.progress import Reporter
from flows.run.preview import preview
from rubrics.loading import SHIPPED, load_rubric
from tests.support.painting import paint

BENCHMARK = """\
name = "changes"
rubric_folders = ["mine"]
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "alignment"
[[rubrics]]
id = "composed"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
"""


@pytest.fixture(scope="module")
def once_judged(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """One checkpoint's pictures, judged under a shipped rubric and under a copy of composition."""
    home = tmp_path_factory.mktemp("judged")
    paint(home)
    mine = home / "mine" / "composed"
    shutil.copytree(SHIPPED / "composition", mine, ignore=shutil.ignore_patterns("golden"))
    toml = mine / "rubric.toml"
    toml.write_text(toml.read_text().replace('id = "composition"', 'id = "composed"'))
    (home / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    assert run(["run", str(home / "b.toml"), "--run-date", "2026-01-02", "--checkpoints", "step-1000"]) in (0, 1)
    return home


@pytest.fixture
def judged(once_judged: Path, tmp_path: Path) -> Path:
    """A copy of it to change; the folder of its pictures, in folders of their prompts."""
    shutil.copytree(once_judged, tmp_path, dirs_exist_ok=True)
    assert _asked_again(tmp_path) == {"alignment": 0, "composed": 0}
    return tmp_path / "scenes" / "demo-painter" / "step-1000"


def _asked_again(folder: Path) -> dict[str, int]:
    previewed = preview(folder / "b.toml", ["step-1000"], Reporter())
    return {row.rubric_id: row.n_to_ask for row in previewed.rubrics}


def test_one_byte_of_a_prompt(judged: Path, tmp_path: Path) -> None:
    prompt = tmp_path / "mine" / "composed" / "counting.txt"
    before = load_rubric(prompt.parent).digest
    content = prompt.read_bytes()
    prompt.write_bytes(content.replace(b"Assess", b"assess", 1))
    assert load_rubric(prompt.parent).digest != before
    n_counting = sum('"tag": "counting"' in (one / "metadata.jsonl").read_text() for one in judged.iterdir()) * 2
    assert n_counting == 20
    assert _asked_again(tmp_path) == {"alignment": 0, "composed": n_counting}
    prompt.write_bytes(content)
    assert _asked_again(tmp_path) == {"alignment": 0, "composed": 0}


def test_who_changes_a_prompt_is_told_that_numbers_do_not_compare(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Once: then the publication of before is the one with the new text."""
    prompt = tmp_path / "mine" / "composed" / "counting.txt"
    prompt.write_bytes(prompt.read_bytes().replace(b"Assess", b"assess", 1))
    told = (
        "rubric composed (same version; its text or rules changed): the numbers are not comparable with those of the previously"
    )
    for date, is_told in (("2026-01-03", True), ("2026-01-04", False)):
        assert run(["run", str(tmp_path / "b.toml"), "--run-date", date, "--checkpoints", "step-1000"]) in (0, 1)
        assert (told in " ".join(capsys.readouterr().err.split())) == is_told
    assert judged.is_dir()


def test_other_bytes_of_a_picture_under_the_same_path(judged: Path, tmp_path: Path) -> None:
    picture = judged / "00003" / "samples" / "0000.png"
    rewritten = io.BytesIO()
    Image.open(picture).save(rewritten, "PNG", compress_level=9)
    assert rewritten.getvalue() != picture.read_bytes()
    picture.write_bytes(rewritten.getvalue())
    assert _asked_again(tmp_path) == {"alignment": 1, "composed": 1}


def test_a_picture_renamed(judged: Path, tmp_path: Path) -> None:
    samples = judged / "00003" / "samples"
    (samples / "0000.png").rename(samples / "0007.png")
    assert _asked_again(tmp_path) == {"alignment": 0, "composed": 0}


def test_two_samples_more_and_one_picture_under_two_prompts(judged: Path, tmp_path: Path) -> None:
    """The same bytes under another prompt are another question; under their own prompt once more they are not."""
    picture = judged / "00003" / "samples" / "0000.png"
    shutil.copyfile(picture, judged / "00004" / "samples" / "0002.png")
    shutil.copyfile(picture, judged / "00005" / "samples" / "0002.png")
    shutil.copyfile(picture, judged / "00003" / "samples" / "0002.png")
    assert _asked_again(tmp_path) == {"alignment": 2, "composed": 2}


def test_checkpoints_that_vanished_are_told_and_those_that_were_not_chosen_are_not(
    judged: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    painter = judged.parent
    for name in [path.name for path in painter.iterdir()]:  # the demo's others, less all but three pictures
        for prompt in sorted((painter / name).iterdir())[3:]:
            shutil.rmtree(prompt)
    there = sorted(path.name for path in painter.iterdir())

    def told(day: int, *arguments: str) -> str:
        assert run(["run", str(tmp_path / "b.toml"), "--run-date", f"2026-02-{day:02}", *arguments]) in (0, 1)
        return " ".join(capsys.readouterr().err.split())

    assert "was current" not in told(1)
    assert "was current" not in told(2, "--checkpoints", there[0])
    assert "was current" not in told(3)
    shutil.rmtree(painter / there[1])
    shutil.rmtree(painter / there[2])
    said = told(4)
    assert f"demo-painter/{there[1]}, demo-painter/{there[2]}: in the previously current publication, but without samples" in said
    assert "was current" not in told(5)
