"""What reads a user's files: benchmarks, rubrics, manifests, tables, pictures. A judge's answers: answers.py; a lake: stored.py."""

# ruff: noqa: E501 - a surface is a line

from functools import cache
from pathlib import Path

from rubrics.loading import SHIPPED, load_rubric
from schemas.benchmark.file import Ratings, Recorded, load_benchmark
from schemas.errors import SalonError
from tasks.ingest.images.decode import open_bounded
from tasks.ingest.images.open import open_header, open_image
from tasks.ingest.ratings import read_ratings
from tasks.ingest.readers import read
from tasks.ingest.sources import ResolvedSource
from tasks.ledger.import_replies import files
from tasks.ledger.import_replies.recorded_rows import CannotRebuildError, named, replies_in
from tests.fuzz.answers import ANSWERS, ROOT, rubric
from tests.fuzz.mutating import with_png_sums, with_tar_sums
from tests.fuzz.seeds import (
    RECORDED,
    ROWS,
    TABLE,
    picture,
    tables,
    tar,
)
from tests.fuzz.surface import Surface, file_of
from tests.support.ingesting import opened_rows


def _samples(reader: str, path: Path) -> list[object]:
    columns = {"prompt": "prompt", "seed": "seed", "item_id": "id"}
    source = ResolvedSource(
        "source", reader, path, model="m", checkpoint="c", columns=columns, own_texts=("items",), where={"split": "test"}
    )
    rows, pictures = opened_rows(read(source), source.root)
    rows.validate(full=True)
    pictures.validate(full=True)
    return rows.column("status").to_pylist()


def _geneval(content: bytes, folder: Path) -> object:
    inside = folder / "00000"
    inside.mkdir(exist_ok=True)
    (inside / "metadata.jsonl").write_bytes(content)
    return _samples("geneval", folder)


def _hugging_face(content: bytes, folder: Path) -> object:
    (folder / "metadata.jsonl").write_bytes(content)
    return _samples("imagefolder", folder)


def _recorded(path: Path) -> list[object]:
    found: list[object] = []
    benchmark = load_benchmark(_benchmark_of_recorded(path.parent))
    rubrics = {one: rubric(one) for one in ("alignment", "program")}
    for place, row in files.read_rows(path):
        if isinstance(row, str):
            found.append(row)
            continue
        try:
            found += [place, *replies_in(named(row, Recorded()), row, benchmark, rubrics, {"judge_model": "eye"})]
            files.rebuild("{a} {prompt|text}", row, {})
        except CannotRebuildError as error:
            found.append(str(error))
    return found


@cache
def _benchmark_of_recorded(folder: Path) -> Path:
    path = folder / "recorded.toml"
    path.write_text('name = "b"\nlake = "l"\n[[sources]]\nreader = "manifest"\npath = "x.jsonl"\n'
                    '[[rubrics]]\nid = "alignment"\n[[judges]]\nmodel = "eye"\nrecorded = true\n')  # fmt: skip
    return path


def _rubric(content: bytes, folder: Path) -> object:
    for name in ("prompt.txt", "single_object.txt", "colors.txt"):
        (folder / name).write_text("Look at {prompt}.")
    (folder / "rubric.toml").write_bytes(content)
    return load_rubric(folder).id


def _prompt(content: bytes, folder: Path) -> object:
    (folder / "prompt.txt").write_bytes(content)
    (folder / "rubric.toml").write_bytes((SHIPPED / "caption/rubric.toml").read_bytes())
    return load_rubric(folder).id


RATINGS = Ratings.model_validate({"dimension": "score", "scale": {"min": 1, "max": 5, "step": 0.5}})

_WRONG = (SalonError,)
_BENCHMARKS = tuple((ROOT / name).read_bytes() for name in ("demo/benchmark.toml", "docs/examples/agreement/tifa.toml"))
_RUBRICS = tuple((ROOT / "rubrics" / name / "rubric.toml").read_bytes() for name in ("caption", "preference", "starters/items"))
SURFACES: dict[str, Surface] = {
    "benchmark file": Surface(
        _BENCHMARKS, file_of(".toml", lambda path: load_benchmark(path).name), _WRONG, kind="a rubric", costs=8
    ),
    "rubric.toml": Surface(_RUBRICS, _rubric, _WRONG, kind="a rubric", costs=8),
    "prompt": Surface(((SHIPPED / "caption/prompt.txt").read_bytes(),), _prompt, _WRONG, kind="a rubric", costs=8),
    "manifest, JSONL": Surface((ROWS,), file_of(".jsonl", lambda path: _samples("manifest", path)), _WRONG, kind="JSON Lines"),
    "manifest, JSON": Surface(
        (b"[" + ROWS.strip().replace(b"\n", b",") + b"]",),
        file_of(".json", lambda path: _samples("manifest", path)),
        _WRONG,
        kind="JSON Lines",
    ),
    "manifest, CSV": Surface((TABLE,), file_of(".csv", lambda path: _samples("manifest", path)), _WRONG, kind="CSV"),
    "Parquet": Surface(
        (*tables(),), file_of(".parquet", lambda path: _samples("huggingface", path)), _WRONG, kind="Parquet", costs=2
    ),
    "imagefolder": Surface(
        (ROWS.replace(b'"image":null', b'"file_name":"a.png"'),), _hugging_face, _WRONG, kind="JSON Lines", costs=2
    ),
    "GenEval": Surface(
        (b'{"tag":"colors","prompt":"a red cube","include":[{"class":"cube"}]}',), _geneval, _WRONG, kind="JSON Lines", costs=2
    ),
    "tar": Surface((tar(),), file_of(".tar", lambda path: _samples("webdataset", path)), _WRONG, with_tar_sums, "an archive"),
    "ratings, JSONL": Surface(
        (ROWS,), file_of(".jsonl", lambda path: [*read_ratings([path], RATINGS)]), _WRONG, kind="JSON Lines"
    ),
    "ratings, CSV": Surface((TABLE,), file_of(".csv", lambda path: [*read_ratings([path], RATINGS)]), _WRONG, kind="CSV"),
    "recorded, JSONL": Surface((RECORDED,), file_of(".jsonl", _recorded), _WRONG, kind="JSON Lines", costs=4),
    "recorded, CSV": Surface((TABLE,), file_of(".csv", _recorded), _WRONG, kind="CSV", costs=4),
    "recorded, Parquet": Surface((*tables(),), file_of(".parquet", _recorded), _WRONG, kind="Parquet", costs=4),
    "picture": Surface(
        (
            *(picture(one) for one in ("PNG", "JPEG", "WEBP", "BMP", "TIFF")),
            picture("GIF", "P", 3),
            picture("PNG", "LA"),
            picture("TIFF", "I"),
            picture("JPEG", "CMYK"),
        ),
        lambda content, _: [open_image(content), open_header(content)],
        (),
        with_png_sums,
        "a picture",
        4,
    ),
    "picture, bounded": Surface(
        (picture("PNG"), picture("JPEG")), lambda content, _: open_bounded(content), kind="a picture", costs=20
    ),
} | ANSWERS
