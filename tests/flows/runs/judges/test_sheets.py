"""The sheet of samples to rate, where each checkpoint has pictures of the same names in a folder of its own."""

import json
from collections.abc import Callable
from pathlib import Path

import polars as pl
from PIL import Image

from tests.flows.flow_support import Said

FILE = """\
name = "folders"
[[sources]]
reader = "manifest"
path = "out/{checkpoint}/m.jsonl"
model = "m"
[[rubrics]]
id = "alignment"
[[judges]]
model = "somebody"
recorded = true
[ratings]
scale = { min = 1, max = 5, step = 1 }
"""


def written(tmp_path: Path, salon: Callable[..., Said], *, n_prompts: int = 1) -> pl.DataFrame:
    """What people should rate of two checkpoints, twelve pictures each, of each so many prompts."""
    replies = []
    for number, checkpoint in enumerate(("step-1", "step-2")):
        folder = tmp_path / "out" / checkpoint
        (folder / "pics").mkdir(parents=True)
        numbers = [(n, more) for more in range(n_prompts) for n in range(12)]
        rows = [{"item_id": f"i{n}{more}", "image": f"pics/{n}.png", "prompt": f"prompt {n + 12 * more}"} for n, more in numbers]
        for (n, _), row in zip(numbers, rows, strict=True):
            Image.new("RGB", (8, 8), (20 * n, 90 * number, 0)).save(folder / row["image"])
            reply = {"item_id": row["item_id"], "checkpoint": checkpoint, "rubric": "alignment"}
            replies.append(reply | {"reply": f"Reasoning: so.\nScore: {1 + (n + number) % 5}"})
        (folder / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in replies))
    (tmp_path / "b.toml").write_text(FILE)
    assert salon("import", "b.toml", "--replies", "replies.jsonl").code == 0
    said = salon("agreement", "b.toml", "--label-next", "sheet.csv", "--label-count", "20")
    assert said.code == 0, said.err
    return pl.read_csv(tmp_path / "sheet.csv")


def test_each_picture_is_named_by_a_path_that_opens_it_and_is_taken_back(tmp_path: Path, salon: Callable[..., Said]) -> None:
    sheet = written(tmp_path, salon)
    assert sheet["image"].n_unique() == sheet.height == 20
    for path, prompt in sheet.select("image", "prompt").iter_rows():
        assert (tmp_path / path).name == f"{prompt.removeprefix('prompt ')}.png"
        assert (tmp_path / path).is_file()
    as_it_is, elsewhere = pl.col("image"), "/home/eve/" + pl.col("image")
    for image in (as_it_is, elsewhere, as_it_is.str.strip_prefix("out/")):
        sheet.select("dimension", image=image, rating=pl.lit(3)).write_csv(tmp_path / "eve.csv")
        said = salon("agreement", "b.toml", "--ratings", "eve.csv")
        assert (said.code, "20: 20 ok" in said.out) == (0, True), said.err
    (_,) = tmp_path.glob("lake/publish/v1/folders/agreement/*/ratings.parquet")  # three ways to say one thing


def test_a_picture_of_several_prompts_is_named_by_its_path_in_each(tmp_path: Path, salon: Callable[..., Said]) -> None:
    sheet = written(tmp_path, salon, n_prompts=2)
    for path, prompt in sheet.select("image", "prompt").iter_rows():
        assert (tmp_path / path).is_file(), path
        assert Path(path).stem == str(int(prompt.removeprefix("prompt ")) % 12)
    sheet.with_columns(rating=pl.lit(3)).write_csv(tmp_path / "eve.csv")
    assert "20: 20 ok" in salon("agreement", "b.toml", "--ratings", "eve.csv").out
