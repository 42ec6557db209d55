"""The manifest reader: every way of writing rows, mapped columns, and what is said where one is missing."""

import json

import polars as pl
import pytest

from schemas.errors import SourceError
from schemas.records import SAMPLE_TEXTS


@pytest.fixture
def write(tmp_path):
    def run(name: str, content: bytes | str) -> str:
        (tmp_path / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return name

    return run


def lines(*rows: object) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def prompts(samples):
    return [sample.texts["prompt"] for sample in samples]


SPELLINGS = {
    "LF": "image,prompt\na.png,one\nb.png,two\n",
    "no end of line at the end": "image,prompt\na.png,one\nb.png,two",
    "CRLF": "image,prompt\r\na.png,one\r\nb.png,two\r\n",
    "lone CR": "image,prompt\ra.png,one\rb.png,two\r",
    "BOM": "\ufeffimage,prompt\na.png,one\nb.png,two\n",
    "BOM, quotes and CRLF": '\ufeff"image","prompt"\r\n"a.png","one"\r\n"b.png","two"\r\n',
    "blank lines": "image,prompt\n\na.png,one\n\n\nb.png,two\n\n",
}


@pytest.mark.parametrize("content", SPELLINGS.values(), ids=SPELLINGS.keys())
def test_a_csv_reads_the_same_however_its_lines_end(write, read_all, content):
    samples = read_all(reader="manifest", path=write("m.csv", content))
    assert [(one.image_path, one.texts["prompt"], one.source_key) for one in samples] == [
        ("a.png", "one", "m.csv#1"),
        ("b.png", "two", "m.csv#2"),
    ]


def test_line_breaks_inside_quotes_stay_as_they_are(write, read_all):
    content = 'image,prompt\na.png,"one\ntwo"\nb.png,"one\rtwo"\nc.png,"one\r\ntwo"\nd.png,"say ""hi"", ok"\n'
    assert prompts(read_all(reader="manifest", path=write("m.csv", content))) == [
        "one\ntwo",
        "one\rtwo",
        "one\r\ntwo",
        'say "hi", ok',
    ]


def test_a_stray_cr_outside_quotes_breaks_its_row_alone(write, read_all):
    samples = read_all(reader="manifest", path=write("m.csv", "image,prompt,x\na.png,on\re,1\nb.png,two,2\n"))
    assert [one.status for one in samples] == ["bad_value", "bad_value", "ok"]
    assert "cells, but the header has 3" in samples[0].detail


def test_an_empty_cell_is_null_and_blanks_are_kept(write, read_all):
    assert prompts(read_all(reader="manifest", path=write("m.csv", 'image,prompt\na.png,\nb.png,""\nc.png,  \n'))) == [
        None,
        None,
        "  ",
    ]


def test_tsv_parquet_and_jsonl_give_the_same_samples(write, read_all, tmp_path):
    rows = [{"image": "a.png", "prompt": "a, b", "seed": 1}, {"image": "b.png", "prompt": None, "seed": 2}]
    write("m.jsonl", lines(*rows))
    write("m.tsv", "image\tprompt\tseed\na.png\ta, b\t1\nb.png\t\t2\n")
    pl.DataFrame(rows).write_parquet(tmp_path / "m.parquet")
    read = [read_all(reader="manifest", path=f"m.{suffix}") for suffix in ("jsonl", "tsv", "parquet")]
    seen = [[(one.image_path, one.texts["prompt"], one.seed) for one in samples] for samples in read]
    assert seen == [[("a.png", "a, b", 1), ("b.png", None, 2)]] * 3


def test_jsonl_line_ends_bom_and_unicode_separators(write, read_all):
    content = (
        "\ufeff" + '{"image": "a", "prompt": "x\u2028y"}\r\n\r\n{"image": "b", "prompt": "z"}\r{"image": "c", "prompt": "w"}'
    )
    assert prompts(read_all(reader="manifest", path=write("m.jsonl", content))) == ["x\u2028y", "z", "w"]


BROKEN_LINES = {
    "cut off": b'{"image": "b.png", "pro',
    "a list": b"[1, 2]",
    "not UTF-8": b'{"image": "b.png", "prompt": "\xff"}',
    "lone surrogate": b'{"image": "b.png", "prompt": "\\ud800"}',
    "nested too deeply": b"[" * 100_000,
    "a number of 5000 digits": b'{"image": "b.png", "prompt": ' + b"9" * 5000 + b"}",
    "a list for a text": b'{"image": "b.png", "prompt": ["x"]}',
    "an object for an image": b'{"image": {"a": 1}, "prompt": "x"}',
    "half a seed": b'{"image": "b.png", "prompt": "x", "seed": 1.5}',
    "true for a seed": b'{"image": "b.png", "prompt": "x", "seed": true}',
    "a seed over 64 bits": b'{"image": "b.png", "prompt": "x", "seed": 9223372036854775808}',
}


@pytest.mark.parametrize("line", BROKEN_LINES.values(), ids=BROKEN_LINES.keys())
def test_a_broken_line_is_a_row_with_a_status_and_the_rest_is_read(write, read_all, line):
    content = b'{"image": "a.png", "prompt": "a"}\n' + line + b'\n{"image": "c.png", "prompt": "c"}\n'
    samples = read_all(reader="manifest", path=write("m.jsonl", content))
    assert [one.status for one in samples] == ["ok", "bad_value", "ok"]
    assert samples[1].source_key == "m.jsonl#2"
    assert "\n" not in samples[1].detail
    str(samples[1].texts).encode()


@pytest.mark.parametrize(
    "content", [b'"prompt": "x", "prompt": "y"', b'"x": [{"prompt": 1, "prompt": 1}]'], ids=["a key", "inside"]
)
def test_a_row_that_names_a_key_twice_has_two_readings_and_is_not_used(write, read_all, content):
    row = b'{"image": "a.png", %s}\n' % content
    first, second, last = read_all(reader="manifest", path=write("m.jsonl", row + row + b'{"image": "c.png", "prompt": "c"}\n'))
    assert [one.status for one in (first, second, last)] == ["bad_value", "bad_value", "ok"]
    assert first.detail == second.detail == "the row is ambiguous: the key 'prompt' occurs twice"


def test_so_is_one_of_which_a_cell_does(write, read_all):
    rows = 'image,talk\na.png,"{""q"": 1, ""q"": 2}"\nb.png,"{""q"": 3}"\n'
    columns, where = {"prompt": "talk.q"}, {"talk.q": 1}
    bad, good = read_all(reader="manifest", path=write("m.csv", rows), columns=columns)
    assert (bad.status, good.texts["prompt"]) == ("bad_value", "3")
    assert bad.detail == "prompt: the JSON in the cell is ambiguous: the key 'q' occurs twice"
    assert [one.status for one in read_all(reader="manifest", path="m.csv", columns=columns, where=where)] == ["bad_value"]


def test_values_that_are_no_texts_are_written_out(write, read_all):
    values = [3, 3.5, True, None, float("nan"), "", "  \n"]
    samples = read_all(reader="manifest", path=write("m.jsonl", lines(*[{"image": None, "prompt": value} for value in values])))
    assert prompts(samples) == ["3", "3.5", "true", None, None, "", "  \n"]
    assert {one.status for one in samples} == {"ok"}


def test_columns_are_mapped_by_name_path_and_nested_json(write, read_all, tmp_path):
    row = {"a.b": "exact", "a": {"b": "inner"}, "talk": [{"value": "q"}, {"value": "r"}], "file": "x.png"}
    columns = {"prompt": "a.b", "reference": "talk[1].value", "image": "file"}
    write("m.jsonl", lines(row))
    pl.DataFrame({"a.b": ["exact"], "talk": [json.dumps(row["talk"])], "file": ["x.png"]}).write_csv(tmp_path / "m.csv")
    for name in ("m.jsonl", "m.csv"):
        (sample,) = read_all(reader="manifest", path=name, columns=columns)
        assert (sample.texts["prompt"], sample.texts["reference"], sample.image_path) == ("exact", "r", "x.png")


def test_nothing_at_the_end_of_a_mapped_path_is_a_missing_value(write, read_all):
    rows = [{"image": None, "talk": ["q"]}, {"image": None, "talk": ["q", "r"]}, {"image": None, "talk": None}]
    samples = read_all(reader="manifest", path=write("m.jsonl", lines(*rows)), columns={"reference": "talk[1]"})
    assert [(one.status, one.texts["reference"]) for one in samples] == [("missing_value", None), ("ok", "r"), ("ok", None)]


MISSING = {
    "mapped, from the first row": ("m.jsonl", '{"image": "a"}', {"prompt": "caption"}, ["row 1", "'caption'", "prompt", "image"]),
    "mapped, from a later row": ("m.jsonl", lines({"image": "", "caption": ""}, {"image": ""}), {"prompt": "caption"}, ["row 2"]),
    "csv": ("m.csv", "image,text\na,b\n", {"prompt": "caption"}, ["m.csv, row 1", "'caption'", "image, text"]),
    "the image": ("m.csv", "file,prompt\na,b\n", {"image": "picture"}, ["'picture'", 'image = ""', "file, prompt"]),
}


@pytest.mark.parametrize("case", MISSING.values(), ids=MISSING.keys())
def test_a_missing_column_stops_with_its_name_the_file_and_the_row(write, read_all, case):
    name, content, columns, words = case
    with pytest.raises(SourceError) as error:
        read_all(reader="manifest", path=write(name, content), columns=columns)
    for word in [name, *words]:
        assert word in str(error.value)


def test_a_missing_column_of_parquet_lists_all_columns_of_the_file(read_all, tmp_path):
    pl.DataFrame({"file": ["a"], "other": [1]}).write_parquet(tmp_path / "m.parquet")
    with pytest.raises(SourceError, match=r"m\.parquet, row 1 has no column 'picture'.*its columns: file, other"):
        read_all(reader="manifest", path="m.parquet", columns={"image": "picture"})


def test_a_source_without_an_image_column_has_no_pictures(write, read_all):
    (sample,) = read_all(reader="manifest", path=write("m.jsonl", lines({"prompt": "x"})))
    assert (sample.image_path, sample.image_bytes, sample.status) == (None, None, "ok")


def test_an_image_mapped_to_nothing_is_not_read(write, read_all):
    path = write("m.jsonl", lines({"image": "absent.png", "prompt": "x"}))
    (sample,) = read_all(reader="manifest", path=path, columns={"image": ""})
    assert (sample.image_path, sample.image_bytes, sample.status) == (None, None, "ok")


def test_the_model_stands_in_its_column_or_in_the_benchmark_file(write, read_all):
    rows = [{"image": None, "model": "a", "checkpoint": "c1"}, {"image": None, "model": None, "checkpoint": " "}]
    path = write("m.jsonl", lines(*rows))
    given = read_all(reader="manifest", path=path, model="fallback")
    assert [(one.model, one.checkpoint) for one in given] == [("a", "c1"), ("fallback", "unnamed")]
    alone = read_all(reader="manifest", path=path, model=None)
    assert [(one.model, one.status) for one in alone] == [("a", "ok"), ("__unknown__", "missing_value")]


def test_without_any_model_it_stops_and_says_what_to_add(write, read_all):
    with pytest.raises(SourceError, match=r"m\.jsonl, row 1 does not say which model.*columns = .*model = \"<name>\".*\{model\}"):
        read_all(reader="manifest", path=write("m.jsonl", lines({"image": None})), model=None)


def test_columns_of_rubrics_own_are_read_where_a_rubric_needs_them(write, read_all):
    path = write(
        "m.jsonl", lines({"prompt": "p", "Explanation": "why", "mood": "sad", "n": 3}, {"Explanation": None, "mood": "\u00fc"})
    )
    source = {"reader": "manifest", "path": path}
    plain = read_all(**source)
    assert {name for one in plain for name in one.texts} == {*SAMPLE_TEXTS}
    assert [one.texts.get("mood") for one in read_all(**source, own_texts=("mood",))] == ["sad", "\u00fc"]
    mapped = read_all(**source, own_texts=("explanation", "n"), columns={"explanation": "Explanation"})
    assert [(one.texts.get("explanation"), one.texts.get("n"), one.status) for one in mapped] == [
        ("why", "3", "ok"), (None, None, "ok"),
    ]  # fmt: skip


def test_a_column_that_no_rubric_needs_cannot_be_mapped(write, read_all):
    path = write("m.jsonl", lines({"prompt": "p", "mood": "sad"}))
    with pytest.raises(SourceError, match=r"maps 'feeling', which neither Salon nor a rubric of this file knows; .*, mood"):
        read_all(reader="manifest", path=path, columns={"feeling": "mood"}, own_texts=("mood",))


def test_where_keeps_equal_rows_and_types_matter(write, read_all, tmp_path):
    rows = [("a", 1, True), ("b", 1.0, False), ("c", True, 1), ("d", "1", None)]
    path = write("m.jsonl", lines(*[{"image": None, "prompt": p, "n": n, "on": on} for p, n, on in rows]))
    assert prompts(read_all(reader="manifest", path=path, where={"n": 1})) == ["a", "b", "d"]
    assert prompts(read_all(reader="manifest", path=path, where={"on": True})) == ["a"]
    assert prompts(read_all(reader="manifest", path=path, where={"prompt": "c", "n": True})) == ["c"]
    csv = write("m.csv", "image,prompt,n,on\n,a,1,True\n,b,2,false\n")
    assert prompts(read_all(reader="manifest", path=csv, where={"n": 1, "on": True})) == ["a"]
    with pytest.raises(SourceError, match="no column 'nn', which where"):
        read_all(reader="manifest", path=path, where={"nn": 1})


def test_rows_of_other_checkpoints_are_left_out(write, benchmark_of):
    from tasks.ingest.readers import read
    from tasks.ingest.sources import expand

    rows = [{"image": None, "prompt": c, "model": m, "checkpoint": c} for m, c in [("a", "1"), ("a", "2"), ("b", "2")]]
    benchmark = benchmark_of({"reader": "manifest", "path": write("m.jsonl", lines(*rows))})
    for wanted, n in [(["2"], 2), (["a/2"], 1), (["3"], 0)]:
        (source,) = expand(benchmark, (), wanted)
        assert len(list(read(source))) == n


def test_a_repeated_item_id_is_refused_unless_the_seed_differs_or_the_row_is_the_same(write, read_all):
    rows = [
        ("a", "m", None),
        ("a", "m", None),
        ("a", "n", None),
        ("a", "m", 1),
        ("a", "m", 2),
        ("a", "m", 2),
        (None, "m", None),
        (None, "m", None),
    ]
    listed = [{"image": None, "item_id": i, "model": m, "seed": s, "prompt": str(n)} for n, (i, m, s) in enumerate(rows)]
    content = lines(*listed, listed[0], listed[1])
    samples = read_all(reader="manifest", path=write("m.jsonl", content))
    assert [n for n, one in enumerate(samples) if one.status == "repeated_id"] == [1, 5, 9]
    assert {one.status for one in samples} == {"ok", "repeated_id"}
    assert "'a'" in samples[1].detail
    assert "seed 2" in samples[5].detail


STOPS = {
    "no JSON Lines at all": ("m.jsonl", '[\n {"image": "a"}\n]', ["row 1", "one JSON object per line"]),
    "a key twice in a list": (
        "m.json",
        '[{"image": "a", "image": "b"}]',
        ["ambiguous: the key 'image' occurs twice", "keep one"],
    ),
    "not a manifest's suffix": ("m.xlsx", "x", [".jsonl", ".csv", ".parquet"]),
    "an empty CSV": ("m.csv", "", ["empty"]),
    "a column named twice": ("m.csv", "image,prompt,image\n", ["'image' twice"]),
    "a quote that never ends": ("m.csv", 'image,prompt\na,"b\nc,d\n', ["row 1", "quote"]),
    "a header that is not UTF-8": ("m.csv", b"image,caf\xe9\na,b\n", ["row 0", "UTF-8"]),
    "more columns than are read": ("m.csv", ",".join(f"c{n}" for n in range(10_001)), ["10,001 columns", "10,000"]),
    "UTF-16": ("m.csv", "image,prompt\na,b\n".encode("utf-16"), ["UTF-8"]),
    "not Parquet": ("m.parquet", "PAR1 no", ["Parquet"]),
}


@pytest.mark.parametrize(("name", "content", "words"), STOPS.values(), ids=STOPS.keys())
def test_a_file_that_is_no_manifest_stops_with_a_message(write, read_all, name, content, words):
    with pytest.raises(SourceError) as error:
        read_all(reader="manifest", path=write(name, content))
    for word in [name, *words]:
        assert word in str(error.value)


def test_a_broken_byte_of_a_csv_costs_its_row(write, read_all):
    path = write("m.csv", b'image,prompt\n,one\n,caf\xe9\n,"a\xff, b"\n,\xc3\xa9\n')
    samples = read_all(reader="manifest", path=path)
    assert [one.status for one in samples] == ["ok", "bad_value", "bad_value", "ok"]
    assert "not UTF-8" in samples[1].detail
    assert samples[3].texts["prompt"] == "é"


def test_a_folder_stands_for_the_one_manifest_in_it(write, read_all, tmp_path):
    write("manifest.jsonl", lines({"image": None, "prompt": "x"}))
    assert prompts(read_all(reader="manifest", path=".")) == ["x"]
    write("manifest.csv", "image\n")
    with pytest.raises(SourceError, match=r"manifest\.csv, manifest\.jsonl"):
        read_all(reader="manifest", path=".")


def _parquet_columns():
    import pyarrow as pa

    return {
        "text that is not UTF-8": pa.array([b"one", b"\xff\xfe", b"three"]).view(pa.string()),
        "a year after 9999": pa.array([1, 2**62, 3], pa.timestamp("us")),
        "a day after the last": pa.array([1, 2**31 - 1, 3], pa.date32()),
        "a time zone nobody knows": pa.array([None, 2, None], pa.timestamp("us", tz="Nowhere/None")),
    }


@pytest.mark.parametrize("column", _parquet_columns().values(), ids=_parquet_columns().keys())
def test_one_value_of_parquet_that_python_cannot_hold_loses_one_row(read_all, tmp_path, column):
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": pa.nulls(3, pa.string()), "prompt": column}), tmp_path / "m.parquet")
    samples = read_all(reader="manifest", path="m.parquet")
    assert [one.status for one in samples] == ["ok", "bad_value", "ok"]


HUGE = {
    "a line of nine million bytes": 9_000_000,
    "a line longer than is read at once": 65 * 1024 * 1024,
    "a text of a million characters and one": 1_000_001,
}


@pytest.mark.parametrize("length", HUGE.values(), ids=HUGE.keys())
def test_a_huge_row_is_lost_and_no_other(write, read_all, length):
    path = write("m.jsonl", b'{"prompt": "a"}\n{"prompt": "%s"}\n{"prompt": "z"}\n' % (b"x" * length))
    samples = read_all(reader="manifest", path=path, columns={"image": ""})
    assert [one.status for one in samples] == ["ok", "bad_value", "ok"]
    assert samples[2].source_key == "m.jsonl#3"


@pytest.mark.parametrize("column", ["model", "checkpoint"])
def test_a_name_that_would_fill_every_table_makes_its_row_alone_unusable(write, read_all, column):
    rows = ({"image": None, "prompt": "p", "model": "a", "checkpoint": "1"} | {column: "1" * n} for n in (4000, 4001))
    good, bad = read_all(reader="manifest", path=write("m.jsonl", lines(*rows)), model=None)
    assert (good.status, bad.status, bad.model) == ("ok", "bad_value", "__unknown__")
    assert bad.detail == f"{column}: the name has 4001 characters; 4000 are allowed"


@pytest.mark.parametrize("word", ["__macro__", "__micro__", "__unnamed__", "__all__", "__unknown__", " __macro__ "])
@pytest.mark.parametrize("column", ["category", "caption_type", "model", "checkpoint"])
def test_a_name_that_salon_reserves_makes_its_row_alone_unusable(write, read_all, column, word):
    row = {"image": None, "prompt": "__macro__", "model": "a", "checkpoint": "1", "category": "c"}
    path = write("m.jsonl", lines(row, row | {column: word}))
    good, bad = read_all(reader="manifest", path=path, model=None)
    assert (good.status, bad.status) == ("ok", "bad_value")
    assert bad.detail == f"{column}: {word.strip()} is a name that Salon reserves; rename it in the source"
    assert word not in (bad.checkpoint, bad.texts["category"], bad.texts["caption_type"])
    assert bad.model == ("a" if column in bad.texts else "__unknown__")


def test_a_folder_with_a_name_that_salon_reserves_stops(read_all, tmp_path):
    (tmp_path / "made" / "__all__").mkdir(parents=True)
    with pytest.raises(SourceError, match="checkpoint '__all__' is a name that Salon reserves; rename it"):
        read_all(reader="imagefolder", path="made/{checkpoint}")
