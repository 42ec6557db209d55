"""Structured output in a whole run: its own keys, a schema for each category, and a rubric that has none is said at once."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from rubrics.loading import SHIPPED, load_rubric
from schemas.tables.stored import REQUESTS
from tasks.lake.reading import Lake
from tasks.plan.parameters import response_format
from tests.flows.flow_support import Said, runs_of
from tests.support.painting import paint

BENCHMARK = """\
name = "shaped"
[[sources]]
reader = "geneval"
path = "scenes/{{model}}/{{checkpoint}}"
[[rubrics]]
id = "{rubric}"
[[judges]]
model = "salon-demo-judge"
base_url = "{url}"
parameters = {{ temperature = 0 }}
structured_output = {structured}
"""

Salon = Callable[..., Said]


@pytest.fixture
def run(tmp_path: Path, judge_url: str, salon: Salon) -> Callable[..., Said]:
    paint(tmp_path)

    def made(structured: str, rubric: str = "composition") -> Said:
        (tmp_path / "b.toml").write_text(BENCHMARK.format(rubric=rubric, url=judge_url, structured=structured))
        return salon("run", "b.toml", "--run-date", "2026-01-02", "--checkpoints", "step-1000")

    return made


def test_it_has_its_own_keys_and_each_category_its_schema(run: Callable[..., Said], tmp_path: Path) -> None:
    for structured in ("true", "false", "true"):
        assert run(structured).code in (0, 1)
    runs = runs_of(tmp_path / "lake").sort("started_at")
    n = runs["n_requests"][0]
    assert runs["n_asked"].to_list() == [n, n, 0]
    assert runs["n_cached"].to_list() == [0, 0, n]
    rubric, seen = load_rubric(SHIPPED / "composition"), set()
    lake = Lake(tmp_path / "lake")
    for marker in (lake.root / "complete" / "requests").iterdir():
        for variant, parameters in (
            lake.scan(REQUESTS, marker.stem).select("variant", "parameters_json").collect().unique().rows()
        ):
            said: dict[str, Any] = orjson.loads(parameters)
            structure = said.pop("response_format", None)
            assert said == {"temperature": 0}
            assert structure in (None, response_format(rubric, rubric.variants[variant]))
            if structure:
                seen.add(variant)
                # the order of the properties is the order they are answered in
                assert list(structure["json_schema"]["schema"]["properties"]) == list(rubric.variants[variant].keys)
    assert seen == set(rubric.variants)


def test_a_rubric_without_a_json_form_is_said_with_rubric_and_judge(run: Callable[..., Said], tmp_path: Path) -> None:
    said = run("true", "alignment")
    assert said.code == 2
    assert "salon-demo-judge" in said.err
    assert "rubric alignment" in said.err
    assert "structured_output = false" in said.err
    assert not (tmp_path / "lake" / "requests").exists(), "nothing was planned"
