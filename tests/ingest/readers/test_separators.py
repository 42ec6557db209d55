"""What separates the cells of a CSV: seen in its header, told where it is no comma, and never guessed."""

import pytest

from schemas.benchmark.ratings import Ratings
from schemas.errors import SourceError
from schemas.statuses.people import RatingStatus
from tasks.delimited import columns_told, delimited
from tasks.ingest.ratings import SHEET, read_ratings
from tasks.ingest.readers import left_out
from tasks.ingest.sources import expand


@pytest.fixture
def write(tmp_path):
    def run(name, content):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content, encoding="utf-8", newline="")
        return name

    return run


HEADERS = {
    "commas": ("image,prompt", ","),
    "semicolons": ("image;prompt", ";"),
    "tabs": ("image\tprompt", "\t"),
    "semicolons, commas in a quoted name": ('image;prompt;"a, b\nand ""c, d"""', ";"),
    "commas, semicolons in a quoted name": ('image,prompt,"score; 1 to 5"', ","),
    "a quote amid a name": ('image;prompt;13" wide', ";"),
    "commas in the rows alone": ("prompt", ","),
    "a line that says it to Excel": ("sep=;\r\nimage;prompt", ";"),
    "the same, quoted, and a name with the other mark": ('"sep=;"\nimage;prompt;score, 1 to 5', ";"),
}


@pytest.mark.parametrize(("header", "mark"), HEADERS.values(), ids=HEADERS.keys())
def test_what_separates_the_cells_is_seen_in_the_header(write, read_all, header, mark):
    n_cells = 1 if header == "prompt" else 3 if "a, b" in header or "score" in header or "wide" in header else 2
    cells = {1: ["a; b"], 2: ["1.png", "a; b"], 3: ["1.png", "a; b", "x"]}[n_cells]
    row = mark.join(f'"{cell}"' for cell in cells)
    (sample,) = read_all(reader="manifest", path=write("m.csv", f"{header}\n{row}\n"), columns={"image": ""})
    assert (sample.status, sample.texts["prompt"]) == ("ok", "a; b")


ENDLESS = {"of one line": "," * 20_000_000, "of many lines": '"\n",' * 5_000_000}


@pytest.mark.parametrize("row", ENDLESS.values(), ids=ENDLESS)
def test_a_row_without_end_is_not_read_to_its_end(write, tmp_path, row):
    write("m.csv", f"prompt\n{row}")
    with pytest.raises(SourceError, match=r"m\.csv, row 1 is not valid CSV \(longer than 16,777,216 characters\)"):
        list(delimited(tmp_path / "m.csv", "m.csv"))


def test_rows_that_are_long_together_are_read(write, tmp_path):
    write("m.csv", "prompt\n" + f"{'x' * 6_000_000}\n" * 4)
    assert [number for number, row, _ in delimited(tmp_path / "m.csv", "m.csv") if isinstance(row, dict)] == [1, 2, 3, 4]


def test_a_header_behind_a_blank_line_is_none(write, read_all):
    with pytest.raises(SourceError, match=r"m\.csv is empty, or begins with a blank line"):
        read_all(reader="manifest", path=write("m.csv", "\nimage,prompt\n1.png,x\n"))


@pytest.mark.parametrize("header", ["image;prompt, long", "image,prompt\tlong", "image,prompt;score\twhy"])
def test_where_several_could_none_is_guessed(write, read_all, header):
    with pytest.raises(SourceError, match=r"m\.csv, row 0 has a .* outside quotes, .*quote the names that contain the other"):
        read_all(reader="manifest", path=write("m.csv", f"{header}\na;b,c\td\n"))


def test_a_tsv_is_what_its_name_says(write, read_all):
    (sample,) = read_all(
        reader="manifest", path=write("m.tsv", "prompt\timage, large; small\na;b, c\tx\n"), columns={"image": ""}
    )
    assert sample.texts["prompt"] == "a;b, c"


@pytest.mark.parametrize(
    ("reader", "name", "text", "said"),
    [
        ("manifest", "ds/manifest.csv", "image;prompt\n1.png;x\n", "'manifest.csv' is read with a semicolon as separator"),
        (
            "imagefolder",
            "ds/sub/metadata.csv",
            "file_name\tprompt\n1.png\tx\n",
            "'sub/metadata.csv' is read with a tab as separator",
        ),
        ("manifest", "ds/manifest.csv", "image,prompt\n1.png,x\n", ""),
        ("manifest", "ds/manifest.tsv", "image\tprompt\n1.png\tx\n", ""),
    ],
)
def test_what_is_read_otherwise_than_by_commas_is_told(write, benchmark_of, reader, name, text, said):
    write(name, text)
    (source,) = expand(benchmark_of({"reader": reader, "path": "ds", "model": "m"}), ())
    assert left_out(source).said().startswith(said)
    assert bool(left_out(source).said()) == bool(said)


def test_a_sheet_filled_in_by_a_spreadsheet_with_semicolons_is_read(tmp_path):
    path = tmp_path / "sheet.csv"
    rows = "".join(f"{'a' * 64};1.png;a, b;look;Zo\u00eb;{rating}\r\n" for rating in ("4", "4,5"))
    path.write_text(f"\ufeff{';'.join(SHEET)}\r\n{rows}", newline="")
    first, second = read_ratings([path], Ratings.model_validate({}))
    assert (first.rating, first.rater, first.status) == (4, "Zo\u00eb", RatingStatus.OK)
    assert second.status is RatingStatus.BAD_VALUE
    assert second.detail == "\"'4,5'\", with a decimal comma, is not a number"


def test_the_columns_that_are_there_are_told_with_the_one_that_is_meant():
    assert columns_told(["Image", "prompt", "Promt"], ["image", "seed"]) == 'Image, prompt, Promt (did you mean image = "Image"?)'
    assert columns_told(["image;prompt"], ["image", "prompt"]) == "image;prompt"
    assert len(columns_told(["x" * 10_000] * 10_000, ["x"])) < 2600
