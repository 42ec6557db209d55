"""A benchmark judged by files: exported, answered in another split and order, half of it imported, twice, then the rest.

    python -m benchmarks.offline_round_trip [--judgements 50000] [--files 20]

First it is run online in a lake of its own, by the mock provider that answers at once; what it said of each request is what the
files' answers say. Pictures have 3 KB. In the end no request is lost or doubled, and both lakes publish the same tables.
"""

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from sqlalchemy import create_engine, text

from benchmarks.throughput.material import make_pictures, write_benchmark, write_items
from benchmarks.throughput.measuring import measure
from benchmarks.unchanged_rerun import SCENARIO
from demo.running import running_judge
from tasks.publish.reading import current

LINE_BYTES = 8_000
"""A little more than a line with a picture of 3 KB has."""
TABLES = ("benchmark_long", "standings")
RUN_DATE = ("--run-date", "2026-03-04")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judgements", type=int, default=50_000)
    parser.add_argument("--files", type=int, default=20)
    given = parser.parse_args()
    print("step                      wall s   CPU s  peak MB")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pictures(folder, given.judgements, is_small=True)
        items = write_items(folder, given.judgements)
        with running_judge(SCENARIO) as base_url:
            file = _benchmark(folder, items, base_url)
            _step(folder, "online", "run", str(file), *RUN_DATE)
        (folder / "lake").rename(folder / "online")
        file = _benchmark(folder, items, "https://judge.invalid/v1")
        max_mb = max(1, -(-given.judgements * LINE_BYTES // given.files // 10**6))
        _step(folder, "export", "export", str(file), "--batch-files", str(folder / "asked"), "--max-mb", str(max_mb))
        n_asked = len(list((folder / "asked").glob("*.jsonl")))
        _answer(folder, given.files)
        for step in ("half", "half again", "rest", "rest again"):
            _step(folder, step, "import", str(file), "--batch-results", str(folder / step.split()[0]), *RUN_DATE)
        return _compared(folder, n_asked, given.judgements)


def _benchmark(folder: Path, items: Path, base_url: str) -> Path:
    """A benchmark file by which half of the replies are published with exit code 0."""
    file = write_benchmark(folder, items, base_url, 200)
    file.write_text(file.read_text() + "[gate]\nmin_coverage = 0.4\n")
    return file


def _step(folder: Path, name: str, *command: str) -> None:
    usage = measure([sys.executable, "-m", "flows", *command], folder, {"PYTHONPATH": str(Path.cwd())})
    print(f"{name:24}  {usage.wall_s:6.1f}  {usage.client_cpu_s:6.1f}  {usage.peak_client_bytes / 1e6:7.0f}", flush=True)


def _answer(folder: Path, n_files: int) -> None:
    """Results of every line, shuffled, in `n_files` files: one half in `half`, the other in `rest`."""
    said = {row["request_key"]: row for row in _ledger(folder / "online", "SELECT * FROM replies")}
    results = [_result(name, said[name[:-2]]) for name in _names(folder / "asked")]
    random.Random(1).shuffle(results)
    for number in range(n_files):
        path = folder / ("half" if 2 * number < n_files else "rest") / f"{number}.jsonl"
        path.parent.mkdir(exist_ok=True)
        path.write_text("".join(results[number::n_files]), encoding="utf-8")


def _names(asked: Path) -> Iterator[str]:
    for file in asked.glob("*.jsonl"):
        with file.open("rb") as lines:
            yield from (json.loads(line)["custom_id"] for line in lines)


def _result(name: str, said: Any) -> str:
    message = {"role": "assistant", "content": said["reply_text"].decode()}
    usage = {"prompt_tokens": said["n_input_tokens"], "completion_tokens": said["n_output_tokens"]}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    body = {"model": said["answered_model"].decode(), "choices": choices, "usage": usage}
    return json.dumps({"custom_id": name, "response": {"status_code": 200, "body": body}, "error": None}) + "\n"


def _ledger(lake: Path, query: str) -> list[Any]:
    engine = create_engine(f"sqlite:///{lake / 'ledger.db'}")
    with engine.connect() as connection:
        return list(connection.execute(text(query)).mappings())


def _compared(folder: Path, n_files: int, n_judgements: int) -> int:
    """Whether nothing was lost or doubled, and the tables are equal: 0, else 1."""
    rows = [
        {(row["request_key"], row["ask_index"]): row["reply_text"] for row in _ledger(folder / lake, "SELECT * FROM replies")}
        for lake in ("online", "lake")
    ]
    n_lost, n_wrong = len(rows[0].keys() - rows[1]), sum(rows[1].get(ask, said) != said for ask, said in rows[0].items())
    boards = [[_table(folder / lake, table) for table in TABLES] for lake in ("online", "lake")]
    is_same = all(one.equals(other) for one, other in zip(*boards, strict=True))
    print(f"{n_judgements:,} requests in {n_files} files: {len(rows[1]):,} replies, {n_lost} lost, {n_wrong} others' replies")
    print(f"tables {'equal' if is_same else 'NOT equal'}: {', '.join(TABLES)}")
    return int(bool(n_lost or n_wrong) or not is_same or len(rows[1]) != len(rows[0]))


def _table(lake: Path, name: str) -> pl.DataFrame:
    return pl.read_parquet(current(lake).folder / f"{name}.parquet").drop("publication_id", strict=False)


if __name__ == "__main__":
    sys.exit(main())
