"""Settings that only the rubrics, the provider or the dataset show to be wrong: `salon plan` refuses them with their line."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from flows.run.context import open_run
from schemas.errors import InputError
from tests.flows.flow_support import Said

FILE = """\
name = "small"
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "lab/north"
checkpoint = "one"
[[rubrics]]
id = "alignment"
[[judges]]
model = "m"
base_url = "http://127.0.0.1:9/v1"
parameters = { temperature = 0 }
[nightly]
baseline = "lab/north/one"
[statistics]
at_least = { score = 4 }
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    Image.new("RGB", (32, 32)).save(tmp_path / "a.png")
    (tmp_path / "broken.png").write_bytes((tmp_path / "a.png").read_bytes()[:50])
    rows = [{"image": "a.png", "prompt": "a"}, {"image": "broken.png", "prompt": "b"}, {"image": "a.png", "prompt": "a"}]
    (tmp_path / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "b.toml").write_text(FILE)
    return tmp_path / "b.toml"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("temperature = 0", "n = 2", "line 12: judges[0].parameters: n cannot be set here; use repeats"),
        (
            "parameters = { temperature = 0 }",
            'provider = "anthropic"\nparameters = { max_tokens = 9 }\ndetail = "low"',
            'line 14: judges[0].detail: judge m: anthropic does not support detail = "low"; set max_side_px instead',
        ),
        (
            "score = 4",
            "beauty = 4",
            "line 16: statistics.at_least.beauty: no rubric of this file has 'beauty'; its dimensions: score",
        ),
        (
            "score = 4",
            "score = 99",
            "line 16: statistics.at_least.score: 99 is not on the scale of score in rubric alignment, 1 to 5; write a score on",
        ),
        (
            "score = 4",
            'score = 4, "alignment.score" = nan',
            "line 16: statistics.at_least.alignment.score: Input should be a finite number",
        ),
        (
            "north/one",
            "north/two",
            "line 14: nightly.baseline: 'lab/north/two' has no samples; write it as model/checkpoint; available: lab/north/one",
        ),
    ],
)
def test_plan_refuses_what_a_run_could_not_use(file: Path, salon: Callable[..., Said], old: str, new: str, says: str) -> None:
    file.write_text(FILE.replace(old, new))
    said = salon("plan", file)
    assert said.code == 2
    assert f"b.toml, {says}" in said.err


@pytest.mark.parametrize("value", ["inf", "1e300", "nan"])
def test_a_budget_that_cannot_be_counted_is_refused(file: Path, salon: Callable[..., Said], value: str) -> None:
    option = salon("run", file, "--max-usd", value)
    assert (option.code, "--max-usd" in option.err) == (2, True), option
    with pytest.raises(InputError, match="from 0 to"):
        open_run(file, max_usd=float(value))  # a flow's parameter
    file.write_text(f"{FILE}[limits]\nmax_usd = {value}\n")
    key = salon("plan", file)
    assert (key.code, "limits.max_usd" in key.err) == (2, True), key


def test_plan_names_the_rows_that_are_not_judged(file: Path, salon: Callable[..., Said]) -> None:
    said = salon("plan", file)
    assert said.code == 0, said.err
    assert "broken_image 1 row is not judged:\n            source-0, m.jsonl#2: " in said.out
    again = "duplicate   1 row repeats earlier samples, whose judgement counts for both:"
    assert f"{again}\n            source-0, m.jsonl#3" in said.out


def test_the_rows_that_plan_names_are_the_first_of_the_source(file: Path, salon: Callable[..., Said]) -> None:
    bad = {2, 4, 9, 12, 13, 18, 20, 101}
    rows = [{"image": "broken.png" if n in bad else "a.png", "prompt": f"p{n}"} for n in range(1, 102)]
    (file.parent / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    file.write_text(FILE + "[limits]\nshard_size = 10\n")
    said = salon("plan", file).out
    assert "broken_image 8 rows are not judged; the first 5:" in said
    assert re.findall(r"m\.jsonl#(\d+)", said) == ["2", "4", "9", "12", "13"]


def test_advice_is_not_taken_for_a_secret(file: Path, salon: Callable[..., Said]) -> None:
    """An address to be copied keeps its user; one with a password loses it."""
    file.write_text(FILE.replace("name =", 'lake = "s3://bucket/x"\nname =', 1))
    assert "postgresql+psycopg://user@host/database" in salon("plan", file).err
    file.write_text(FILE.replace("name =", 'ledger = "nosuch://user:hunter22@host/x"\nname =', 1))
    assert "hunter22" not in salon("plan", file).err
