"""Files of recorded replies: what separates their cells, and that a broken row costs itself alone."""

import os
from pathlib import Path

import pytest

from schemas.errors import SourceError
from schemas.input_budget import ROW_BYTES
from tasks.ledger.import_replies.files import read_rows
from tests.support.importing import Import

B, C = '{"item_id": "b", "reply": "x"}', '{"item_id": "c", "reply": "y"}'
DEEP = "[" * 200 + "]" * 200
BROKEN = {
    "half a line": ("r.jsonl", f'{B}\n{{"item_id": "a", "rep\n{C}\n', "row 2: is not a JSON object on one line"),
    "a number": ("r.jsonl", f"1\n{B}\n{C}", "row 1: is a JSON int, not an object"),
    "one of a list": ("r.json", f"[{B}, 1, {C}]", "row 2: is a JSON int, not an object"),
    "a key twice": (
        "r.jsonl",
        f'{B}\n{{"reply": "1", "reply": "5"}}\n{C}\n',
        "row 2: is ambiguous: the key 'reply' occurs twice",
    ),
    "and no number": ("r.jsonl", f'{B}\n{{"a": 1, "a": NaN}}\n{C}\n', "row 2: is ambiguous: the key 'a' occurs twice"),
    "too deep": ("r.jsonl", f'{B}\n{{"a": {DEEP}}}\n{C}\n', "row 2: is nested in more than 100 levels"),
    "too long": ("r.jsonl", f'{B}\n{{"a": "{"x" * 2 * ROW_BYTES}"}}\n{C}\n', "row 2: is longer than 8,388,608 bytes"),
    "a comma outside quotes": ("r.csv", "item_id,reply\nb,x\na,4, but\nc,y\n", "row 2: has 3 cells, but the header has 2"),
    "a byte of another encoding": ("r.csv", "item_id,reply\nb,x\na,caf\xe9\nc,y\n", "row 2: holds a byte that is not UTF-8"),
}


@pytest.mark.parametrize(("name", "text", "why"), BROKEN.values(), ids=BROKEN.keys())
def test_a_broken_row_is_left_out_and_the_others_are_taken(recorded: Import, name: str, text: str, why: str) -> None:
    file = recorded.path / name
    file.write_bytes(text.encode("latin-1"))
    result = recorded.of(file)
    assert (result.n_rows, result.n_stored, result.n_unmatched) == (3, 2, 1)
    assert f"{name}, {why}" in result.unmatched_examples[0]
    assert recorded.texts() == {2: "x", 3: "y"}


@pytest.mark.parametrize("separator", [";", "\t"], ids=["semicolon", "tab"])
def test_what_separates_a_csv_is_seen_in_its_header(recorded: Import, separator: str) -> None:
    recorded(f'item_id{separator}"re{separator}ply"\nb{separator}"3, not 4"\n', "r.csv", columns={"reply": f"re{separator}ply"})
    assert recorded.texts() == {2: "3, not 4"}


def test_where_no_column_names_the_sample_the_columns_are_told(recorded: Import) -> None:
    with pytest.raises(SourceError, match=r'its columns: Item_ID, answer \(did you mean item_id = "Item_ID"\?\)'):
        recorded("Item_ID;answer\nb;x\n", "r.csv", columns={"reply": "answer"})


@pytest.mark.parametrize("name", ["r.jsonl", "r.json", "r.csv", "r.parquet"])
def test_a_pipe_in_a_folder_is_named_and_not_waited_for(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(SourceError, match=rf"{name}.* it is a pipe, not a regular file"):
        list(read_rows(tmp_path))
