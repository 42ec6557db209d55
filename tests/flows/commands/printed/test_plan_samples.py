"""What `salon plan` says of the samples it found: what is left out, whose they are, which prompts are names of files."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from demo.drawing import draw_png
from demo.painter import painted_scenes
from flows.run.found import not_as_meant
from rubrics.loading import SHIPPED, load_rubric
from schemas.identities import RunIds
from schemas.tables.stored import SAMPLES
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tests.flows.flow_support import Said
from tests.support.contexts import stage_context
from tests.support.small_lake import filled_row

pytestmark = pytest.mark.slow

BENCHMARK = """\
name = "found"
lake = "lake"
[[sources]]
name = "set"
reader = "imagefolder"
model = "m"
{source}
[[rubrics]]
id = "alignment"
[[judges]]
model = "j"
base_url = "http://127.0.0.1:1/v1"
"""


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """write(source, places): a benchmark file whose source is these lines, and a picture, each another, at each place."""

    def run(source: str, *places: str) -> Path:
        for place, one in zip(places, painted_scenes(seed=1), strict=False):
            path = tmp_path / "set" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(draw_png(one.scene))
        (tmp_path / "b.toml").write_text(BENCHMARK.format(source=source))
        return tmp_path / "b.toml"

    return run


def flat(said: Said) -> str:
    assert said.code == 0, said.err
    return " ".join(said.out.split())


def test_what_is_left_out_is_told_by_plan_and_by_run(write: Callable[..., Path], salon: Callable[..., Said]) -> None:
    file = write('path = "set/{checkpoint}"\ncolumns = { prompt = "stem" }', "a/1.png", "a/2.avif", "b/3.avif")
    note = "source 'set': 2 files are not read (.avif 2); pictures are .bmp"
    assert f"note {note}" in flat(salon("plan", file))
    (said,) = json.loads(salon("plan", file, "--json").out)["notes"]
    assert said.startswith(note)
    assert said.endswith("; 1 folder holds no picture: 'b'")
    unasked = write('path = "set/{checkpoint}"')  # no prompt, so it ends before anybody is asked
    assert f"note: {said}" in " ".join(salon("run", unasked).err.split())


def test_the_checkpoints_are_listed_in_the_order_of_the_trend(write: Callable[..., Path], salon: Callable[..., Said]) -> None:
    steps = [f"step-{number}" for number in (1000, 900, *range(1001, 1012))]
    places = [f"{step}/{number}.png" for step in steps for number in range(2 if step == "step-900" else 1)]
    file = write('path = "set/{checkpoint}"\ncolumns = { prompt = "stem" }', *places)
    (file.parent / "set" / "step-900" / "1.png").write_bytes(b"no picture")
    said = flat(salon("plan", file))
    assert "checkpoints 13, in the order of the trend m/step-900: 1 of 2 usable m/step-1000: 1 usable m/step-1001" in said
    assert "m/step-1008: 1 usable … and 3 more" in said
    assert "m/step-1009" not in said
    found = json.loads(salon("plan", file, "--json").out)["checkpoints"]
    assert [one["checkpoint"] for one in found] == ["step-900", "step-1000", *steps[2:]]
    assert found[0] == {"model": "m", "checkpoint": "step-900", "n_samples": 2, "n_usable": 1}


UNNAMED = "all 3 samples count as one checkpoint, unnamed; "
ONE = {
    "nobody says it": ("", UNNAMED),
    "a constant": ('checkpoint = "step-1"', "trend m/step-1: 3 usable"),
    "a column": (
        'columns = { prompt = "stem", checkpoint = "folder" }',
        "trend m/a: 2 usable m/b: 1 usable",
    ),
}


@pytest.mark.parametrize(("lines", "words"), ONE.values(), ids=ONE.keys())
def test_one_checkpoint_that_nobody_named_is_told(
    write: Callable[..., Path], salon: Callable[..., Said], lines: str, words: str
) -> None:
    columns = "" if "columns" in lines else '\ncolumns = { prompt = "stem" }'
    said = flat(salon("plan", write(f'path = "set"\n{lines}{columns}', "a/1.png", "a/2.png", "b/1.png")))
    assert words in said
    assert ("one checkpoint" in said) == (words == UNNAMED)


@pytest.mark.parametrize(("column", "n"), [("file_name", 2), ("stem", 1), ("folder", 0)])
def test_prompts_that_are_names_of_files_are_told(
    write: Callable[..., Path], salon: Callable[..., Said], column: str, n: int
) -> None:
    places = ["cups.of/a red cup_0.png", "cups.of/a.JPG .png"]
    said = flat(salon("plan", write(f'path = "set"\ncolumns = {{ prompt = "{column}" }}', *places)))
    assert (f"note source 'set': {n} of 2 prompts look like picture file names, such as 'cups.of/" in said) == (n == 2)
    assert ("note source 'set': 1 of 2 prompts look like picture file names, such as 'a.JPG '" in said) == (n == 1)
    assert ("prompts look like" in said) == (n > 0)


SEEDS = [f"s/{text}{behind}.png" for text in ("a red cup", "two dogs") for behind in ("_1", "_42")]
NUMBERED: dict[str, tuple[str, list[str], bool]] = {
    "in the prompt": ('prompt = "stem"', SEEDS, True),
    "of one text of many": ('prompt = "stem"', [*SEEDS[:2], "s/a.png", "s/b.png", "s/c 3.png"], False),
    "said to be seeds": ('prompt = "stem_text", seed = "stem_number"', SEEDS, False),
}


@pytest.mark.parametrize(("columns", "places", "is_told"), NUMBERED.values(), ids=NUMBERED)
def test_prompts_that_differ_by_a_number_at_their_end_alone_are_told(
    write: Callable[..., Path], salon: Callable[..., Said], columns: str, places: list[str], *, is_told: bool
) -> None:
    said = flat(salon("plan", write(f'path = "set"\ncolumns = {{ {columns} }}', *places)))
    note = "note source 'set': 4 prompts, the pictures' names, are 2 texts with numbers at their end, such as 'a red cup_1'."
    assert (note in said, "intervals are too narrow" in said) == (is_told, is_told)


def test_numbered_prompts_of_all_parts_are_counted_together(tmp_path: Path) -> None:
    """A quarter of a million rows is read at a time; a prompt that stands in two parts is one."""
    lake = Lake(tmp_path)
    staging = stage(lake, SAMPLES)
    for part, prompts in enumerate((["a red cup_1", "dogs"], ["a red cup_2", "dogs"])):
        rows = [{"source": "set", "model": "m", "checkpoint": "c", "prompt": prompt, "status": "ok"} for prompt in prompts]
        frame = SAMPLES.frame([filled_row(SAMPLES, **row) for row in rows])
        staging.write_part(part, frame.select(pl.all().repeat_by(65_000).explode()))
    staging.commit("d" * 64)
    source = {"reader": "imagefolder", "name": "set", "path": "set", "columns": {"prompt": "stem"}}
    rubrics = {"alignment": load_rubric(SHIPPED / "alignment")}
    context = stage_context(lake, rubrics, RunIds(dataset_id="d" * 64), sources=[source])
    (note,) = not_as_meant(context)
    assert "source 'set': 2 prompts, the pictures' names, are 1 text with numbers at their end, such as 'a red cup_1'" in note


BOTH = ["a/red/1.png", "a/blue/2.png", "b/red/1.png", "b/blue/2.png"]
ITEMS: dict[str, tuple[list[str], str]] = {
    "the same": (BOTH, ""),
    "one corrected": (
        [*BOTH, "c/a red cup/1.png", "c/blue/2.png"],
        "item '1' has 2 prompts, such as 'red' of m/a and 'a red cup' of m/c; pictures with different prompts are not compared",
    ),
    "both corrected": (
        [*BOTH, "c/a red cup/1.png", "c/a blue cup/2.png"],
        "item '1' has 2 prompts, such as 'red' of m/a and 'a red cup' of m/c (2 items have several); pictures",
    ),
    "an id of many things": (["a/red/1.png", "a/blue/1.png", "b/green/1.png"], ""),
    "only one of two is of many things": (
        ["a/red/1.png", "a/blue/1.png", "a/red/2.png", "b/blue/2.png"],
        "item '2' has 2 prompts",
    ),
}


@pytest.mark.parametrize(("places", "told"), ITEMS.values(), ids=ITEMS.keys())
def test_an_item_whose_prompt_differs_between_checkpoints_is_told(
    write: Callable[..., Path], salon: Callable[..., Said], places: list[str], told: str
) -> None:
    columns = 'columns = { prompt = "folder", item_id = "stem" }'
    file = write(f'path = "set/{{checkpoint}}"\n{columns}', *places)
    notes = json.loads(salon("plan", file, "--json").out)["notes"]
    assert [note.startswith(told) for note in notes] == [True] * bool(told)
    file.write_text(file.read_text().replace('base_url = "http://127.0.0.1:1/v1"', "recorded = true"))  # nobody is asked
    assert ("pictures with different prompts" in " ".join(salon("run", file).err.split())) == bool(told)
