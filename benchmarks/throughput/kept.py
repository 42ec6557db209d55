"""What a run leaves on the disk: bytes by part of the lake, and whether a picture's base64 stands anywhere in it."""

import base64
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PICTURES = "samples"  # the table that holds the pictures, once
_SOI_AND_COMMENT = b"\xff\xd8\xff\xfe"  # how every picture of material.py begins, then two bytes of length and its comment


def by_part(lake: Path) -> dict[str, int]:
    """Bytes by table (or file) at the top of the lake."""
    sizes: Counter[str] = Counter()
    for path in lake.rglob("*"):
        if path.is_file() and not path.is_symlink():
            sizes[path.relative_to(lake).parts[0]] += path.stat().st_size
    return dict(sizes)


def files_with_base64(folder: Path, picture: bytes) -> list[str]:
    """Files under `folder` that hold the beginning of the picture's base64; Parquet is looked into uncompressed."""
    probe = base64.b64encode(picture[:12])
    if not picture.startswith(_SOI_AND_COMMENT):
        raise ValueError("not one of the benchmark's pictures")
    return [str(path.relative_to(folder)) for path in sorted(folder.rglob("*")) if path.is_file() and probe in _plain_bytes(path)]


def _plain_bytes(path: Path) -> bytes:
    if path.suffix != ".parquet":
        return path.read_bytes()
    sink = pa.BufferOutputStream()
    table = pq.read_table(path, partitioning=None)
    with pa.ipc.new_stream(sink, table.schema) as stream:
        stream.write_table(table)
    plain: bytes = sink.getvalue().to_pybytes()
    return plain
