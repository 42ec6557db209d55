"""The judge whose blindness is known, asked about twins that stand in a lake; through whole runs it is tests/flows/runs."""

import base64
from hashlib import sha256
from pathlib import Path

import polars as pl
import pytest

from demo.drawing import draw_png
from demo.mock_provider.exam import Examined
from demo.world import Scene, Thing
from schemas.benchmark.exam import EXAM, PlantedFault

F = PlantedFault
BEFORE, ERASED = (draw_png(Scene(things, is_plain=True)) for things in ((Thing("heart", "red", 60, 70, 60),), ()))


def digest(picture: bytes) -> str:
    return sha256(picture).hexdigest()


def lake(folder: Path, prompt: str | None, changed: str | None) -> Path:
    """One sample, its picture erased in one twin, and, where it has a prompt, another prompt in the other."""
    rows = [("own", None, "m", "1", digest(BEFORE), prompt), ("e", "own", EXAM, F.ERASED.value, digest(ERASED), prompt)]
    if changed:
        rows.append(("s", "own", EXAM, F.SWAPPED_PROMPT.value, digest(BEFORE), changed))
    columns = ["sample_id", "item_id", "model", "checkpoint", "image_sha256", "prompt"]
    samples = pl.DataFrame(rows, schema=columns, orient="row").with_columns(question=pl.lit(None, pl.String))
    shown = [{"image_sha256": digest(one), "image": {"bytes": one, "path": None}} for one in (BEFORE, ERASED)]
    for name, frame in (("samples", samples), ("pictures", pl.DataFrame(shown))):
        home = folder / name / "dataset_id=d"
        home.mkdir(parents=True)
        frame.write_parquet(home / "part-00000.parquet")
    return folder


def seen(examined: Examined, picture: bytes, text: str) -> tuple[bytes, str]:
    url = "data:image/png;base64," + base64.b64encode(picture).decode()
    content = [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    (message,) = examined.as_seen([{"role": "user", "content": content}])
    told, shown = message["content"]
    return base64.b64decode(shown["image_url"]["url"].partition(",")[2]), told["text"]


@pytest.mark.parametrize("prompt", ["a red heart", None], ids=["with a prompt", "without one, as captions are"])
@pytest.mark.parametrize("share", [0.0, 1.0])
def test_a_fault_of_the_picture_is_noticed_or_seen_as_it_was(tmp_path: Path, prompt: str | None, share: float) -> None:
    examined = Examined(lake(tmp_path, prompt, None), {F.ERASED: share}, 1)
    shown, _ = seen(examined, ERASED, prompt or "Describe it.")
    assert (shown == BEFORE) is (share == 0)
    assert seen(examined, BEFORE, prompt or "Describe it.")[0] == BEFORE  # the untouched sample


def test_a_fault_of_the_prompt_that_is_not_noticed_is_the_prompt_it_was(tmp_path: Path) -> None:
    examined = Examined(lake(tmp_path, "a red heart", "two blue stars"), {}, 1)
    assert seen(examined, BEFORE, "Draw two blue stars.") == (BEFORE, "Draw a red heart.")
    assert seen(examined, BEFORE, "Draw a red heart.") == (BEFORE, "Draw a red heart.")
