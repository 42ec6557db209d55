"""Inputs that mutating valid ones found, each of which once ended in a traceback: what reads them, and what it says now."""

import json
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from flows.nights.anchors import anchor_sets
from flows.nights.record import notes
from rubrics.items import BadItems, items_of
from rubrics.loading import load_rubric
from rubrics.replies.read import parse_reply
from schemas.benchmark.file import load_benchmark
from schemas.errors import BenchmarkFileError, CorruptLakeError, SourceError
from schemas.records import Unreadable
from schemas.statuses.rows import ReplyStatus
from tasks.ingest.readers.parquet_rows import _value_of, parquet_rows
from tasks.judge.batch.folders import BatchResults
from tasks.judge.provider.exchange import Answer
from tasks.judge.provider.gemini.batch_api import _ended
from tasks.judge.provider.openai.responses import read_answer
from tasks.lake.markers import entries_of
from tasks.publish.pins import pins
from tasks.publish.pointer import read_pointer
from tasks.publish.reading import publications

INSTRUMENTS = Path(__file__).parents[1] / "instruments"
OPTIONAL_TAGS = b"\x02\x18\x04tags"  # of a schema in a Parquet footer: optional, and the name
DEEP, DEEPER = b"[" * 900 + b"1" + b"]" * 900, b"[" * 3000 + b"]" * 3000


@pytest.mark.parametrize("value", [b"9" * 5000, DEEPER], ids=["5,000 digits", "3,000 deep"])
def test_a_benchmark_file_is_refused_by_name(value: bytes, tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_bytes(b"n = " + value)
    with pytest.raises(BenchmarkFileError, match="not valid TOML"):
        load_benchmark(tmp_path / "b.toml")


def test_a_benchmark_file_of_thousands_of_errors_tells_the_first(tmp_path: Path) -> None:
    (tmp_path / "b.toml").write_text("[[judges]]\n" * 20_000)  # one look for a line each took 30 s for 4,000
    with pytest.raises(BenchmarkFileError, match=r"line 1: judges\[0\].model is missing(?s:.*)\nand \d\d,\d{3} more$") as refused:
        load_benchmark(tmp_path / "b.toml")
    assert str(refused.value).count("\n") == 20


def test_a_repeated_key_whose_first_value_is_nested_deeply_is_two_things() -> None:
    answer = read_answer(200, {}, b'{"choices":' + DEEP + b',"choices":[{"message":{"content":"Score: 4"}}]}')
    assert answer.status == ReplyStatus.BAD_RESPONSE
    assert "contradicts itself" in (answer.detail or "")


def test_an_error_code_that_is_no_number_is_an_error_of_the_server() -> None:
    ended = _ended({"error": {"code": [1], "message": "m"}})
    assert isinstance(ended, Answer)
    assert ended.status == ReplyStatus.SERVER_ERROR


def test_names_of_a_manifest_that_are_no_texts_are_none(tmp_path: Path) -> None:
    (tmp_path / "manifest.json").write_bytes(b'{"files":[{"name":' + DEEP + b"}]}")
    (tmp_path / "results.jsonl").write_bytes(b"{}\n")
    assert BatchResults(tmp_path).files() == [tmp_path / "results.jsonl"]


def test_items_nested_deeply_are_refused() -> None:
    with pytest.raises(BadItems, match="nested in more than"):
        items_of(load_rubric(INSTRUMENTS / "dsg"), {"items": '[{"id":"a","text":' + DEEP.decode() + "}]"})


def test_an_empty_list_for_no_items_is_no_answer() -> None:
    assert isinstance(parse_reply(load_rubric(INSTRUMENTS / "unigenbench"), "[]", {}), Unreadable)


def _pointer(publication_id: str, run_date: str = "2026-01-01") -> bytes:
    return json.dumps({"publication_id": publication_id, "run_date": run_date, "manifest_sha256": "b" * 64}).encode()


STORED: dict[str, tuple[str, bytes, Callable[[Path], object]]] = {
    "manifest, a list": (
        "publish/v1/b/p/manifest.json",
        b'{"benchmark":"b","publication_id":"p","run_date":"d","files":[1]}',
        publications,
    ),
    "manifest, deep": ("publish/v1/b/p/manifest.json", DEEPER, publications),
    "pointer, deep": ("latest.json", DEEPER, read_pointer),
    "pointer out of its home": ("latest.json", _pointer("../../../elsewhere"), read_pointer),
    "pointer, a name no file can have": ("latest.json", _pointer("a" * 400), read_pointer),
    "pointer, no day": ("latest.json", _pointer("a" * 64, "someday"), read_pointer),
    "pin, deep": ("pins/a.json", DEEPER, pins),
    "night, deep": ("nights/b/2026-01-01.json", DEEPER, lambda root: notes(root, "b")),
    "anchors, deep": ("anchors/b/a.json", DEEPER, lambda root: anchor_sets(root, "b")),
    "marker, no sizes": ("m.json", b'{"parts":[{"name":"part-00000.parquet"}]}', lambda root: _marker(root / "m.json")),
    "marker, a name no file can have": (
        "m.json",
        b'{"parts":[{"name":"part-' + b"0" * 300 + b'.parquet","n_rows":1,"n_bytes":1,"sha256":"a"}]}',
        lambda root: _marker(root / "m.json"),
    ),
    "marker, deep": ("m.json", DEEPER, lambda root: _marker(root / "m.json")),
}


def _marker(path: Path) -> object:
    return entries_of(path, path.read_bytes())


@pytest.mark.parametrize("case", STORED)
def test_a_spoiled_file_of_a_lake_is_a_corrupt_lake(case: str, tmp_path: Path) -> None:
    place, content, use = STORED[case]
    (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / place).write_bytes(content)
    with pytest.raises(CorruptLakeError):
        use(tmp_path)


def test_a_value_that_its_dictionary_does_not_have_costs_its_row_alone() -> None:
    column = pa.DictionaryArray.from_arrays(pa.array([5]), pa.array(["a"]), safe=False)
    assert _value_of(pa.record_batch({"prompt": column})) == "refers to entry 5 of a dictionary of 1"


def test_statistics_that_do_not_fit_their_column_do_not_end_the_process(tmp_path: Path) -> None:
    """pyarrow's own way to a column chunk calls `terminate` there (old files of one writer are so, apache/arrow issue 45283)."""
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"prompt": ["a", "b"], "tags": ["x", "y"]}), path, compression="none")
    content = path.read_bytes()
    assert content.count(OPTIONAL_TAGS) == 1
    path.write_bytes(content.replace(OPTIONAL_TAGS, b"\x00" + OPTIONAL_TAGS[1:]))
    assert [values for _, values, _ in parquet_rows(path, path.name, {"prompt"})] == [{"prompt": "a"}, {"prompt": "b"}]
    with pytest.raises(SourceError, match="Definition level histogram size mismatch"):
        [*parquet_rows(path, path.name, {"tags"})]
