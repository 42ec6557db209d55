"""The painter: the same bytes from the same seed, the layouts it promises, and errors at the rates it is given."""

import json
from collections import defaultdict
from hashlib import sha256
from itertools import product
from pathlib import Path

import pytest
from PIL import Image

import demo
from demo.painter import painted_scenes
from demo.world import CATEGORIES, CHECKPOINTS, CONTENT_ERROR, MODEL, N_IMAGES, N_PROMPTS, RATES


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    return demo.paint(tmp_path_factory.mktemp("painted"), seed=3)


def digests(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): sha256(path.read_bytes()).hexdigest() for path in folder.rglob("*") if path.is_file()}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_one_seed_paints_the_same_bytes_again_and_another_seed_others(world, tmp_path):
    again, other = demo.paint(tmp_path / "again", seed=3), demo.paint(tmp_path / "other", seed=4)
    assert digests(again.folder) == digests(world.folder)
    assert digests(other.folder).keys() == digests(world.folder).keys()
    assert digests(other.folder) != digests(world.folder)


def test_about_five_hundred_pictures_each_a_png_without_metadata(world):
    pictures = list(world.folder.rglob("*.png"))
    assert len(pictures) == world.n_images
    assert 480 <= world.n_images <= 520
    for path in pictures[::25]:
        with Image.open(path) as picture:
            assert (picture.format, picture.mode, picture.size, picture.info) == ("PNG", "RGB", (256, 256), {})


def test_scenes_stand_in_geneval_layout(world):
    for checkpoint in CHECKPOINTS:
        folders = sorted((world.folder / "scenes" / MODEL / checkpoint).iterdir())
        assert [folder.name for folder in folders] == [f"{index:05d}" for index in range(N_PROMPTS * len(CATEGORIES))]
        rows = [lines(folder / "metadata.jsonl")[0] for folder in folders]
        assert [row["tag"] for row in rows] == [category for category in CATEGORIES for _ in range(N_PROMPTS)]
        assert len({row["prompt"] for row in rows}) == len(rows), "two prompts alike would be one unit of the statistics"
        assert all(len(list((folder / "samples").glob("*.png"))) == N_IMAGES for folder in folders)


def test_manifests_name_pictures_that_are_there_and_hold_the_nulls_the_rubrics_provide_for(world):
    answers, captions = lines(world.folder / "answers.jsonl"), lines(world.folder / "captions.jsonl")
    for row in [*answers, *captions]:
        assert row["image"] is None or (world.folder / row["image"]).is_file()
    nulls = {(row["text"] is None, row["image"] is None) for row in answers}
    assert nulls == {(False, False), (True, False), (False, True)}
    assert {row["caption_type"] for row in captions} == {"brief", "detail", "poem", "narrative", "style"}
    assert {row["checkpoint"] for row in answers} == {row["checkpoint"] for row in captions} == set(CHECKPOINTS)


def test_no_file_tells_the_truth(world):
    """Nothing a run reads says what went wrong in a picture: a judge can only know it from the pixels."""
    words = set(CONTENT_ERROR.values()) | {"errors", "cut", "faint", "uneven"}
    for path in [*world.folder.rglob("*.jsonl")]:
        for row in lines(path):
            assert not words & set(row)


def test_errors_come_at_the_rates_of_the_table():
    counted: dict[tuple, list[bool]] = defaultdict(list)
    for painted in (scene for seed in range(60) for scene in painted_scenes(seed)):
        where = painted.checkpoint, painted.category
        counted[(*where, "content")].append(painted.errors.content is not None)
        for fault in ("cut", "faint", "uneven", "plain"):
            counted[(painted.checkpoint, "any", fault)].append(getattr(painted.errors, f"is_{fault}"))
    for checkpoint, category in product(CHECKPOINTS, CATEGORIES):
        rates = RATES[checkpoint]
        rate = rates.misread[category] + (1 - rates.misread[category]) * rates.slip[category]
        # 1200 pictures of 600 prompts: the standard error is at most 0.5 / sqrt(600) = 0.02
        assert abs(mean(counted[checkpoint, category, "content"]) - rate) < 0.08
        for fault in ("cut", "faint", "uneven", "plain"):
            assert abs(mean(counted[checkpoint, "any", fault]) - getattr(rates, fault)) < 0.03


def test_pictures_of_one_prompt_fail_together():
    """A misread prompt spoils all its pictures: both fail far more often than two independent pictures would."""
    pairs: dict[tuple, list[bool]] = defaultdict(list)
    for seed in range(40):
        for painted in painted_scenes(seed):
            if (painted.checkpoint, painted.category) == ("step-1000", "position"):
                pairs[seed, painted.prompt].append(painted.errors.content is not None)
    both = mean([all(pair) for pair in pairs.values()])
    rate = mean([failed for pair in pairs.values() for failed in pair])
    assert both > rate**2 + 0.1


def test_a_prompt_misread_late_was_misread_early():
    """One difficulty for all checkpoints: comparisons can be paired by prompt."""
    wrong: dict[tuple, set[str]] = defaultdict(set)
    for seed in range(20):
        for painted in painted_scenes(seed):
            if painted.errors.content:
                wrong[seed, painted.prompt_index, painted.image_index].add(painted.checkpoint)
    late = [checkpoints for checkpoints in wrong.values() if "step-3000" in checkpoints]
    assert mean(["step-1000" in checkpoints for checkpoints in late]) > 0.7


def test_the_shipped_benchmark_reads_what_is_painted(world):
    benchmark = demo.benchmark(world.folder, "http://127.0.0.1:1/v1", lake="lake/")
    assert [rubric.id for rubric in benchmark.rubrics] == ["composition", "image_aspects", "alignment", "interleaved", "caption"]
    assert [judge.base_url for judge in benchmark.judges] == ["http://127.0.0.1:1/v1"]
    for source in benchmark.sources:
        filled = source.path.replace("{model}", MODEL).replace("{checkpoint}", CHECKPOINTS[0])
        assert benchmark.path(filled).exists()


def mean(values: list[bool]) -> float:
    return sum(values) / len(values)
