"""Nasty strings as prompts, names and replies of a run, through every place it writes to: inert there, and the numbers untouched.

A list of our own always; with SALON_DATA the big list of naughty strings too.
"""

import csv
import io
import json
import os
import re
import unicodedata
from collections.abc import Callable, Sequence
from pathlib import Path

import polars as pl
import pytest
from markdown_it import MarkdownIt
from PIL import Image

from flows.cli import run
from flows.run.context import RunContext, open_run
from flows.run.pipeline import run_pipeline
from rubrics.loading import SHIPPED, load_rubric
from rubrics.replies.jsonl import parse_jsonl
from tasks.publish.exports import to_csv, to_markdown
from tasks.publish.latex import escape_latex

pytestmark = pytest.mark.slow

NASTY = [
    '=HYPERLINK("http://x","y")', "@SUM(1+1)*cmd|' /C calc'!A0", "-2+3", "+1", "\t=1", "＝1", "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>', "</table><h1>x", "{{7*7}}", "${7*7}", "%s%n%d", "\\input{/etc/passwd}", "\\end{tabular}",
    "a & b \\\\ c", "$x^2$", "a|b|c", "[x](javascript:alert(1))", "**b** _i_ `c`", "1 | 2\n| --- |", "two\nlines", "cr\rlf\r\n",
    "\x1b[31mred\x1b[0m", "\x1b]0;title\x07", "\x1b]8;;http://evil\x1b\\link", "\x9b2Jgone", "bell\x07", "back\x08\x08space",
    "\u202egnp.exe", "a\u2028b\u2029c\x85d", "[bold red]markup[/]", "[/]", ":smile:", "NULL", "null", "NaN", "1e309", "0x1F",
    "'; DROP TABLE scores; --", "é e\u0301", "😀👩‍👩‍👧‍👦", "田中さん", "שלום", "\ufeffbom", "\u200b", "x" * 3000,
    "../../etc/passwd", "Score: 5", '{"score": 1}', "Ω≈ç√∫˜µ≤≥÷",
]  # fmt: skip
BENCHMARK = """
name = "naughty"
[[sources]]
reader = "manifest"
path = "pictures/m.jsonl"
columns = { item_id = "id" }
[[rubrics]]
id = "alignment"
[[judges]]
model = "[red]judge[/]"
recorded = true
[recorded]
columns = { item_id = "id", judge_model = "judge" }
[gate]
min_coverage = 0.0
"""
HARMLESS_CONTROLS = "\n"
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def naughty_list(folder: Path) -> list[str]:
    texts = json.loads((folder / "naughty_text" / "blns.json").read_text(encoding="utf-8"))
    assert len(texts) > 500
    return [text for text in texts if text.strip()]


@pytest.fixture(scope="module", params=["ours", pytest.param("the big list", marks=pytest.mark.salon_data)])
def texts(request: pytest.FixtureRequest) -> list[str]:
    if request.param == "ours":
        return NASTY
    if not os.environ.get("SALON_DATA"):
        pytest.skip("SALON_DATA is not set")
    return naughty_list(Path(os.environ["SALON_DATA"]))


@pytest.fixture(scope="module")
def lake(texts: list[str], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run over samples whose prompt, and up to 40 of whose model names, are the strings; so are the recorded replies' words."""
    folder = tmp_path_factory.mktemp("naughty")
    (folder / "pictures").mkdir()
    Image.new("RGB", (8, 8), (1, 2, 3)).save(folder / "pictures" / "a.png")
    models = texts[:: max(1, len(texts) // 40)]
    rows = [
        {"id": str(n), "image": "a.png", "prompt": text, "model": models[n % len(models)], "checkpoint": f"c{n % 3}"}
        for n, text in enumerate(texts)
    ]
    replies = [
        {"id": str(n), "judge": "[red]judge[/]", "reply": f"Reasoning: {text}\nScore: {1 + n % 5}"}
        for n, text in enumerate(texts)
    ]
    (folder / "pictures" / "m.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "replies.jsonl").write_text("".join(json.dumps(row) + "\n" for row in replies))
    (folder / "b.toml").write_text(BENCHMARK)
    summary = run_pipeline(RunContext.of(open_run(folder / "b.toml")), replies=folder / "replies.jsonl")
    assert summary.imported is not None
    assert summary.imported.n_stored == len(texts)
    return folder / "lake"


def published(lake: Path) -> Path:
    pointer = json.loads(next(lake.glob("publish/v1/naughty/latest.json")).read_text())
    return lake / "publish" / "v1" / "naughty" / str(pointer["publication_id"])


def test_every_text_and_number_is_kept_as_it_was(lake: Path, texts: list[str]) -> None:
    samples = pl.concat([pl.read_parquet(path, columns=["prompt"]) for path in lake.glob("samples/**/*.parquet")])
    assert set(samples["prompt"]) == set(texts)
    cells = pl.read_parquet(published(lake) / "benchmark_long.parquet")
    n_scored = cells.filter(category="__micro__", metric="mean", estimand="prompts_like_these")["n_scored"].sum()
    assert n_scored > 0.9 * len(texts)  # but for those that say a second score, and those of no prompt


def test_published_csv_runs_no_formula_and_keeps_every_digit(lake: Path) -> None:
    checked = 0
    for path in published(lake).glob("*.csv"):
        parquet = path.with_suffix(".parquet")
        rows = list(csv.DictReader(io.StringIO(path.read_bytes().decode(), newline="")))
        if not parquet.is_file():
            continue
        frame = pl.read_parquet(parquet)
        assert len(rows) == frame.height, path.name
        for name, kind in frame.schema.items():
            for told, value in zip((row[name] for row in rows), frame[name], strict=True):
                if kind == pl.String and value is not None:
                    assert told.replace("'", "") == value.replace("'", "")
                    assert told[:1] not in tuple("=+-@\t\r\n＝＋－＠")
                elif kind.is_float() and value is not None:
                    assert float(told) == value
                    checked += 1
    assert checked > 100


def test_published_markdown_and_latex_keep_one_row_to_a_line(lake: Path) -> None:
    said = (published(lake) / "leaderboard.md").read_text(encoding="utf-8")
    rendered = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(said)
    assert not re.findall(r"<(script|img|h1|a|strong|em|code|del)\b", rendered.partition("<table>")[2].rpartition("</table>")[0])
    widths = {line.replace("\\\\", "").replace("\\|", "").count("|") for line in said.split("\n") if line.startswith("| ")}
    assert len(widths) == 1
    assert not controls_in(said)
    latex = (published(lake) / "leaderboard.tex").read_text(encoding="utf-8")
    assert latex.count("\\end{tabular}") == latex.count("\\begin{tabular}") > 0
    assert not re.search(r"\\(input|write|include|csname|def)\b", latex.partition("\\begin{tabular}")[2])
    assert not controls_in(latex)


@pytest.fixture
def printed(lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., str]:
    """What a command prints, on a terminal of 100 columns that draws no colours of its own."""
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("NO_COLOR", "1")

    def call(*arguments: str) -> str:
        capsys.readouterr()
        assert run([*arguments, "--lake", str(lake)]) == 0, capsys.readouterr().err
        return capsys.readouterr().out

    return call


def controls_in(text: str) -> list[str]:
    """What a terminal obeys: control characters of both sets, and changes of the writing direction. Line feeds apart."""
    obeyed = (c for c in text if (unicodedata.category(c) == "Cc" and c not in HARMLESS_CONTROLS) or c in BIDI)
    return sorted(set(obeyed))


@pytest.mark.parametrize(
    "arguments", [("table",), ("table", "--format", "markdown"), ("table", "--format", "latex")], ids=" ".join
)
def test_a_terminal_is_told_nothing_by_names(printed: Callable[..., str], arguments: Sequence[str]) -> None:
    assert controls_in(printed(*arguments)) == []


def test_a_terminal_is_told_nothing_by_prompts_and_replies(printed: Callable[..., str], lake: Path) -> None:
    cells = pl.read_parquet(published(lake) / "benchmark_long.parquet")
    ids = cells.filter(category="__micro__", metric="mean", estimand="prompts_like_these").sort("cell_id")["cell_id"]
    said = "".join(printed("explain", cell_id, "--limit", "0") for cell_id in ids.head(60))
    assert said.count("--- reply 0") > 30
    assert controls_in(said) == []


def test_json_of_a_cell_is_one_line_that_holds_every_text(printed: Callable[..., str], lake: Path) -> None:
    cells = pl.read_parquet(published(lake) / "benchmark_long.parquet")
    cell_id = cells.filter(category="__micro__", metric="mean", estimand="prompts_like_these").sort("cell_id")["cell_id"][0]
    said = printed("explain", cell_id, "--json")
    assert said.count("\n") == 1
    assert "\x1b" not in said
    assert len(json.loads(said)["judgements"]) >= 1


def test_an_error_tells_the_terminal_nothing(capsys: pytest.CaptureFixture[str], lake: Path) -> None:
    for argument in ("\x1b[31mx", "a\u202eb", "\x9b2J"):
        assert run(["explain", argument, "--lake", str(lake)]) == 2
        assert controls_in(capsys.readouterr().err) == []


def test_replies_stay_one_line_each(texts: list[str]) -> None:
    """`salon parse`: as many lines as replies, whatever counts as a line's end elsewhere, and none of the text in them."""
    rubric = load_rubric(SHIPPED / "alignment")
    lines = [json.dumps({"raw": f"{text}\nScore: 3", "context": {"finish_reason": text, "category": text}}) for text in texts]
    said = list(parse_jsonl(rubric, lines))
    assert len(said) == len(texts)
    assert all(line.isascii() and len(line.splitlines()) == 1 for line in said)
    assert {frozenset(json.loads(line)) for line in said} <= {frozenset({"scores"}), frozenset({"error"})}
    assert [json.loads(line).get("scores") for line in said].count({"score": 3}) > 0.9 * len(texts)


def test_each_text_alone_in_a_table(texts: list[str]) -> None:
    """One by one, so that a text that breaks a table is named."""
    for text in texts:
        written = to_csv(pl.DataFrame({"name": [text], "score": [-1.5]})).decode()
        ((_, number),) = list(csv.reader(io.StringIO(written, newline="")))[1:]
        assert number == "-1.5", text
        assert len(to_markdown(["a", "b"], [[text, -1.5]], n_text_columns=1).splitlines()) == 3, text
        assert len(escape_latex(text).splitlines()) <= 1, text
