"""What a file of rows may take of a machine: its memory and seconds, measured in a process of its own."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

READ = """
import resource, sys, time
from pathlib import Path
from schemas.errors import SourceError
from tasks.ingest.readers.tables import records

before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
told, n = "", 0
try:
    for n, values, _ in records(Path(sys.argv[1]), "file", {"image", "prompt"}):
        told = told or (values if isinstance(values, str) else "")
except SourceError as error:
    told = str(error)
print(time.process_time() - started, (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024, n, told)
"""
TEXT = "x" * 30_000_000


def _same_text(path: Path) -> None:
    equal = pa.DictionaryArray.from_arrays(pa.array([0] * 60), pa.array([TEXT]))
    pq.write_table(pa.table({"prompt": equal}), path, compression="zstd", store_schema=False)


def _texts_of_their_own(path: Path) -> None:
    schema = pa.schema({"prompt": pa.string()})
    with pq.ParquetWriter(path, schema, compression="zstd", use_dictionary=False) as writer:
        writer.write_table(pa.table({"prompt": [f"{n}{TEXT}" for n in range(15)]}, schema))


def _columns(path: Path) -> None:
    path.write_text(",".join(f"column{n}" for n in range(1_000_000)) + "\n1,2\n")


FILES: dict[str, tuple[str, Callable[[Path], None], str]] = {
    "60 equal texts of 30 MB in 2 kB of Parquet": ("a.parquet", _same_text, "holds a text of 30,000,000 bytes"),
    "15 texts of 30 MB in Parquet": ("a.parquet", _texts_of_their_own, "column prompt unpacks from"),
    "a million columns": ("a.csv", _columns, "names 1,000,000 columns; at most 10,000 are read"),
}


@pytest.mark.parametrize(("name", "write", "said"), FILES.values(), ids=FILES.keys())
def test_a_small_file_takes_no_more_than_its_budget(tmp_path: Path, name: str, write: Callable[[Path], None], said: str) -> None:
    write(tmp_path / name)
    command = [sys.executable, "-c", READ, str(tmp_path / name)]
    root = Path(__file__).parents[2]
    told = subprocess.run(command, capture_output=True, text=True, check=True, cwd=root).stdout
    cpu_s, rss_mb, _, *words = told.split(maxsplit=3)
    assert said in " ".join(words)
    assert float(rss_mb) < 300
    assert float(cpu_s) < 5
