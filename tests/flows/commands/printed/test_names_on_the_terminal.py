"""Names out of data on the terminal: none begins a line, steers the terminal or looks like another, whoever prints it."""

import json
import logging
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from rich.markup import escape
from rich.table import Table

from demo.drawing import draw_png
from demo.painter import painted_scenes
from flows.observability import redaction
from flows.observability.progress import Reporter
from flows.observability.terminal import Console, one_line, result_console
from rubrics.loading import SHIPPED
from tasks.publish.folders import Published
from tests.flows.flow_support import Said
from tests.support.small_lake import SmallLake

FORGED = "salon: nothing"
ENDS = "\n", "\r", "\u2028", "\u2029", "\x85", "\x0b", "\x0c"
UNSEEN = frozenset("\x1b\r\x07\x08\x0b\x0c\u2028\u2029\u200b\u202e\u2066\x85\x9b\U000e0041")
STEERING = f"\x1b[2K\x1b[1G{FORGED}\u202ehtron\u200b\u2066\x07\x08\x9b"
NAME = "north" + "".join(f"{end}{FORGED}" for end in ENDS) + STEERING
FILE = "north" + "".join(f"{end}salon:" for end in ENDS) + STEERING  # of 255 bytes at most
assert len(FILE.encode()) < 200


def _shown_badly(said: Said) -> list[str]:
    """What a reader would take for a line of the command's own, or would not see."""
    lines = (said.out + said.err).split("\n")
    forged = [line for line in lines if line.startswith("salon:") and line.startswith((FORGED, "salon:\u240d", "salon:\ufffd"))]
    return forged + [line for line in lines if UNSEEN & set(line)]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A benchmark file all of whose data are called so: pictures, a manifest, models, checkpoints, categories, a rubric."""
    root = tmp_path_factory.mktemp("named")
    (root / "pictures").mkdir()
    (root / "pictures" / f"{FILE}.png").write_bytes(b"no picture")
    (root / "good.png").write_bytes(draw_png(next(iter(painted_scenes(seed=1))).scene))
    shutil.copy(root / "good.png", root / "pictures" / f"2{FILE}.png")
    row = {"model": NAME, "checkpoint": NAME, "prompt": NAME, "category": NAME, "image": "good.png"}
    rows = [row, row | {"checkpoint": f"{NAME}2"}, row | {"image": NAME}, row | {"seed": NAME}, row | {"image": {NAME: 1}}, row]
    (root / f"{FILE}.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    shipped = (SHIPPED / "alignment" / "rubric.toml").read_text()
    for old, new in {
        '"alignment"': '"named"',
        '"Alignment of a picture with its prompt"': json.dumps(NAME.replace("\n", "").replace("\r", "")),
    }.items():
        shipped = shipped.replace(old, new, 1)
    (root / "named").mkdir()
    (root / "named" / "rubric.toml").write_text(shipped)
    (root / "named" / "prompt.txt").write_text(f"Rate it.\n{NAME}\nScore: 1 to 5\nUser prompt: ")
    path = root / "b.toml"
    path.write_text(
        f'name = "named"\nlake = "lake"\nrubric_folders = ["named"]\n'
        f'[[sources]]\nname = "rows"\nreader = "manifest"\npath = {json.dumps(FILE + ".jsonl")}\n'
        '[[sources]]\nname = "folder"\nreader = "imagefolder"\npath = "pictures"\nmodel = "m"\ncheckpoint = "c"\n'
        'columns = { prompt = "file_name" }\n'
        '[[rubrics]]\nid = "named"\n[[judges]]\nmodel = "j"\nbase_url = "http://127.0.0.1:1/v1"\n'
    )
    return path


OF_A_FILE: dict[str, tuple[str, ...]] = {
    "plan": ("plan", "FILE"),
    "a dry backfill": ("backfill", "FILE", "--all", "--dry-run"),
    "the partitions": ("backfill", "FILE", "--list"),
    "a checkpoint nobody has": ("backfill", "FILE", "--dry-run", "--checkpoints", "nobody"),
    "rubrics list": ("rubrics", "list", "--rubrics", "ROOT"),
    "rubrics show": ("rubrics", "show", "named", "--rubrics", "ROOT"),
    "rubrics lint": ("rubrics", "lint", "ROOT/named"),
    "anchors list": ("anchors", "list", "FILE"),
}


CODES = {"nobody": 2}


@pytest.mark.parametrize("arguments", OF_A_FILE.values(), ids=OF_A_FILE.keys())
def test_what_a_benchmarks_data_are_called(file: Path, salon: Callable[..., Said], arguments: tuple[str, ...]) -> None:
    said = salon(*(one.replace("FILE", str(file)).replace("ROOT", str(file.parent)) for one in arguments))
    assert not _shown_badly(said), "\n".join(_shown_badly(said))
    assert said.code == CODES.get(arguments[-1], 0), said.err


OF_A_LAKE: dict[str, tuple[str, ...]] = {
    "table": ("table",),
    "table of a rubric": ("table", "--rubric", NAME),
    "a model nobody has": ("table", "--model", "nobody"),
    "a cell": ("explain", "CELL"),
    "a cell nobody has": ("explain", "nobody/x/y/z"),
    "gc": ("gc", "--older-than", "0"),
    "pin": ("pin", "PUBLICATION", "--because", NAME),
    "pins": ("pin",),
    "verify": ("verify", "PUBLICATION"),
}


@pytest.mark.parametrize("arguments", OF_A_LAKE.values(), ids=OF_A_LAKE.keys())
def test_what_is_published_is_called(
    small_lake: SmallLake, put: Callable[..., Published], salon: Callable[..., Said], arguments: tuple[str, ...]
) -> None:
    names = {name: pl.lit(NAME) for name in ("model", "checkpoint", "rubric_id", "judge_model", "dimension")}
    cells = small_lake.cells.with_columns(**names, reason=pl.when(pl.col("reason").is_not_null()).then(pl.lit(NAME)))
    published = put(small_lake.lake.root, cells)
    told = {"CELL": cells["cell_id"][0], "PUBLICATION": published.publication_id}
    if arguments == ("pin",):
        assert salon("pin", published.publication_id, "--because", NAME, "--lake", small_lake.lake.root).code == 0
    said = salon(*(told.get(one, one) for one in arguments), "--lake", small_lake.lake.root)
    assert not _shown_badly(said), "\n".join(_shown_badly(said))


def test_a_log_line_that_names_it_is_one_line_too(capsys: pytest.CaptureFixture[str]) -> None:
    redaction.install()
    handler = logging.StreamHandler()
    log = logging.getLogger("salon.test")
    log.addHandler(handler)
    try:
        log.warning("of %s: %d rows", NAME, 3)
    finally:
        log.removeHandler(handler)
    assert _shown_badly(Said(0, "", capsys.readouterr().err)) == []


@pytest.mark.parametrize("name", ["ratings.csv#13:star:score", "a :heart: b", ":smiley-emoji:"])
def test_a_name_in_colons_is_no_picture(capsys: pytest.CaptureFixture[str], name: str) -> None:
    Reporter(Console(stderr=True)).say(f"left out: {name}")
    table = Table(name)
    table.add_row(name)
    result_console().print(f"left out: {escape(name)}", table)
    said = capsys.readouterr()
    assert said.err == f"note: left out: {name}\n"
    assert said.out.count(name) == 3


def test_a_name_of_a_hundred_thousand_letters_takes_no_longer_than_a_short_one(capsys: pytest.CaptureFixture[str]) -> None:
    started = time.process_time()
    Console(width=80).print(f"[yellow]warning[/] {escape(one_line('C' * 100_000))}: 3 of 4")
    assert time.process_time() - started < 2
    assert "".join(capsys.readouterr().out.split()) == "warning" + "C" * 1000 + "…:3of4"
