"""`salon parse` and `salon rubrics`, as other programs and people call them."""

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from textwrap import indent

import pytest

from rubrics.loading import SHIPPED
from tasks.publish.identity import code_version
from tests.flows.flow_support import Said

LINES = [
    {"raw": "Reasoning: all there.\nScore: 4", "context": {}},
    {"raw": "Score: 4", "context": {"finish_reason": "length"}},
    {"raw": "", "context": {}},
    {"raw": "I'm sorry, but I can't assist with that.", "context": {}},
    {"raw": "Score: 9", "context": {}},
]
READ = [{"scores": {"score": 4}}, *({"error": reason} for reason in ("truncated", "empty", "refusal", "out_of_range"))]


def _write(path: Path, lines: list[dict[str, object]]) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_parse_prints_a_line_for_each_line_in_order(salon: Callable[..., Said], tmp_path: Path) -> None:
    said = salon("parse", "--rubric", "alignment", "--jsonl", _write(tmp_path / "r.jsonl", LINES))
    assert said.code == 0
    assert [json.loads(line) for line in said.out.splitlines()] == READ


def test_parse_reads_standard_input() -> None:
    content = "".join(json.dumps(line) + "\n" for line in LINES).encode()
    command = [sys.executable, "-m", "flows", "parse", "--rubric", "alignment", "--jsonl", "-"]
    said = subprocess.run(command, input=content, capture_output=True, check=True, cwd=Path(__file__).parents[3])
    assert [json.loads(line) for line in said.stdout.splitlines()] == READ


def test_parse_takes_the_category_behind_a_colon(salon: Callable[..., Said], tmp_path: Path) -> None:
    scores = {"count_accuracy": 10, "object_uniformity": 7.5, "spatial_legibility": 8, "overall_score": 8.5}
    file = _write(tmp_path / "r.jsonl", [{"raw": json.dumps(scores), "context": {}}])
    assert json.loads(salon("parse", "--rubric", "composition:counting", "--jsonl", file).out) == {"scores": scores}
    assert json.loads(salon("parse", "--rubric", "composition:colors", "--jsonl", file).out) == {"error": "missing_key"}


def test_parse_prints_the_scores_beside_a_rule_violation(salon: Callable[..., Said], tmp_path: Path) -> None:
    context = {"caption_type": "brief", "reference_words": 10, "output_words": 14}
    file = _write(tmp_path / "r.jsonl", [{"raw": '{"score": 3, "reason": "fine"}', "context": context}])
    said = salon("parse", "--rubric", "caption", "--jsonl", file)
    assert json.loads(said.out) == {"error": "rule_violation", "scores": {"score": 3}}


def test_parse_explained_says_which_characters_each_number_came_from(salon: Callable[..., Said], tmp_path: Path) -> None:
    rows = [{"raw": "Reasoning: 4 cats.\nScore: 4/5", "context": {}}, {"raw": "Score: four", "context": {}}]
    said = salon("parse", "--rubric", "alignment", "--explain", "--jsonl", _write(tmp_path / "r.jsonl", rows))
    found = {"span": [26, 27], "text": "4", "in": "Reasoning: 4 cats.\nScore: 4/5"}
    failed = {"score": {"reason": "wrong_type", "in": "Score: four"}}
    lines = [json.loads(line) for line in said.out.splitlines()]
    assert lines == [{"scores": {"score": 4}, "found": {"score": found}}, {"error": "wrong_type", "failed": failed}]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        pytest.param(["--rubric", "beauty"], ["'beauty'", "alignment, caption"], id="unknown rubric"),
        pytest.param(["--rubric", "composition:texture"], ["'texture'", "single_object, two_object"], id="unknown category"),
        pytest.param(["--rubric", "alignment:colors"], ["one prompt for all categories"], id="category where there is none"),
        pytest.param(["--rubric", "composition"], ["line 1", "composition:CATEGORY"], id="no category"),
    ],
)
def test_parse_says_what_is_allowed(arguments: list[str], words: list[str], salon: Callable[..., Said], tmp_path: Path) -> None:
    said = salon("parse", *arguments, "--jsonl", _write(tmp_path / "r.jsonl", LINES))
    assert said.code == 2
    assert all(word in said.err for word in words)


def test_a_rubric_of_ones_own_is_listed_shown_linted_and_read_by(salon: Callable[..., Said], tmp_path: Path) -> None:
    example = Path(__file__).parents[3] / "docs" / "examples" / "rubrics"
    assert "viescore_sc" in salon("rubrics", "list", "--rubrics", example).out
    assert "score[0]" in salon("rubrics", "show", "viescore_sc", "--rubrics", example).out
    assert "prompt, source, the images of two samples" in salon("rubrics", "list").out
    assert salon("rubrics", "lint", example / "viescore_sc").out == "viescore_sc: good\n"
    assert "viescore_sc: good\n" in salon("rubrics", "lint", example).out  # a folder of rubrics: every one in it
    empty = salon("rubrics", "lint", tmp_path)
    assert (empty.code, empty.err.startswith(f"salon: {tmp_path} contains no rubric")) == (2, True)
    file = _write(tmp_path / "r.jsonl", [{"raw": '{"score": [7], "reasoning": "near"}', "context": {}}])
    said = salon("parse", "--rubric", "viescore_sc", "--rubrics", example, "--jsonl", file)
    assert json.loads(said.out) == {"scores": {"semantic_consistency": 7}}


def test_a_word_of_a_copied_prompt_is_changed_with_commands_alone(salon: Callable[..., Said], tmp_path: Path) -> None:
    assert salon("rubrics", "new", "mine", "--folder", tmp_path, "--like", "composition").code == 0
    folder = tmp_path / "mine"
    golden = folder / "golden" / "requests"
    before = {path.name: path.read_bytes() for path in golden.iterdir()}
    prompt = next(path for path in sorted(folder.glob("**/*.txt")) if "position" in path.name)
    prompt.write_text(prompt.read_text() + "Look twice.\n")
    refused = salon("rubrics", "lint", folder)
    advice = f"raise the version and rewrite it: salon rubrics lint {folder} --rewrite"
    assert "golden/requests/position.json differs from what is rendered now" in refused.out
    assert (refused.code, advice in refused.out) == (2, True)
    assert {path.name: path.read_bytes() for path in golden.iterdir()} == before, "lint alone writes nothing"
    said = salon("rubrics", "lint", folder, "--rewrite")
    assert (said.code, said.out.count("was rewritten")) == (0, 1), said.out
    assert "Look twice." in (golden / "position.json").read_text()
    assert [path.name for path in golden.iterdir() if path.read_bytes() != before[path.name]] == ["position.json"]
    assert salon("rubrics", "lint", folder).out == "mine: good\n"


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("{", "a golden request cannot be read"),
        ('{"values": {}, "has_image": true, "messages": []}', "plain.json cannot be rendered"),
    ],
    ids=["no JSON", "a value is missing"],
)
def test_what_cannot_be_rewritten_is_left_and_told(salon: Callable[..., Said], tmp_path: Path, content: str, said: str) -> None:
    folder = Path(shutil.copytree(SHIPPED / "alignment", tmp_path / "alignment"))
    golden = folder / "golden" / "requests" / "plain.json"
    golden.write_text(content)
    rewritten = salon("rubrics", "lint", folder, "--rewrite")
    assert (rewritten.code, said in rewritten.out, golden.read_text()) == (2, True, content)
    unnamed = salon("rubrics", "lint", "--rewrite")
    assert (unnamed.code, "name their folders" in unnamed.err) == (2, True)


def test_lint_names_the_fault_and_ends_with_2(salon: Callable[..., Said], tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "alignment", tmp_path / "alignment")
    toml = tmp_path / "alignment" / "rubric.toml"
    toml.write_text(toml.read_text().replace('{ kind = "prompt" }, { kind = "column", value = "prompt" }', '{ kind = "prompt" }'))
    said = salon("rubrics", "lint", tmp_path / "alignment")
    assert said.code == 2
    assert "alignment: 1 problem\n  - 'prompt' is needed but is not sent to the judge" in said.out
    assert "1 problem in 1 rubric; fix" in said.err
    prompt = tmp_path / "alignment" / "prompt.txt"
    shutil.copy(SHIPPED / "alignment" / "rubric.toml", toml)
    prompt.write_bytes(b"\xef\xbb\xbf" + prompt.read_bytes())
    shutil.rmtree(tmp_path / "alignment" / "golden")
    remarked = salon("rubrics", "lint", tmp_path / "alignment")
    assert (remarked.code, remarked.err) == (0, "")
    assert remarked.out.startswith("alignment: good\n  (remark) prompt.txt has a byte order mark")


def test_show_prints_the_prompt_and_the_rules(salon: Callable[..., Said]) -> None:
    said = salon("rubrics", "show", "caption")
    assert indent((SHIPPED / "caption" / "prompt.txt").read_text(), "  ") in said.out
    assert "where caption_type is brief or detail and the words of output differ" in said.out


def test_the_version_names_the_release_and_the_code(salon: Callable[..., Said]) -> None:
    assert salon("--version").out == f"salon {version('salon')}, code {code_version()[:12]}\n"


def test_a_rubric_of_somebody_else_tells_the_terminal_nothing(salon: Callable[..., Said], tmp_path: Path) -> None:
    shutil.copytree(SHIPPED / "alignment", tmp_path / "alignment")
    toml = tmp_path / "alignment" / "rubric.toml"
    toml.write_text(toml.read_text().replace('labels = ["Score"]', r'labels = ["Score", "[/x]", "\u001b[31m"]'))
    (tmp_path / "alignment" / "prompt.txt").write_text("Score: \x1b]52;c;aGV5\x07\u202e")
    said = salon("rubrics", "show", tmp_path / "alignment")
    assert said.code == 0
    assert "[/x]" in said.out
    assert not set(said.out + salon("rubrics", "lint", tmp_path / "alignment").out) & set("\x1b\x07\u202e")
