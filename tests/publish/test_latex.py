"""leaderboard.tex: names from outside are shown and not obeyed; where a TeX engine is installed, it is run."""

import re
import shutil
import subprocess
from dataclasses import replace
from datetime import date

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tasks.publish.folders import PublicationName
from tasks.publish.latex import escape_latex, leaderboard_tex

NAME = PublicationName("nightly", "p" * 64, date(2026, 11, 3))
HOSTILE = [
    "\\input{/etc/passwd}", "\\write18{id}", "a{b", "a}b", "$x$", "a & b", "#1", "a_b_c", "100 % sure", "~", "^^M", "x^2", "\\",
    "line\nbreak", "par\n\n\\end{tabular}", "tab\tx", "[2cm] x", "*", "-- ---", ",,", "?` !`", "<<>>", '"quoted"', "`tick'",
    "é Ü ß", "雪と花", "🎨", "עברית", "e\u0301", "nul\x00", "\u202egnp", "\ud800", "^^5c input", "ﬁ", "−1", "\u2028x",
]  # fmt: skip
SHOWN = [
    ("a_b", r"a\_b"), ("50 %", r"50 \%"), ("\\", r"\textbackslash{}"), ("{$&#}", r"\{\$\&\#\}"),
    ("~^", r"\textasciitilde{}\textasciicircum{}"), ("--", "-{}-"), ("a\n\nb", "a  b"), ("雪", r"\salonsign{96EA}"), ("é", "é"),
    ("e\u0301", "é"), ("\u202eab", "ab"), (None, ""), (3, "3"), ("7.42 [6.91, 7.93]", "7.42 [6.91, 7.93]"),
]  # fmt: skip
COMMAND = re.compile(
    r"\\(?:textbackslash|textasciitilde|textasciicircum|textless|textgreater|textbar|salonquote|textasciigrave|textquotesingle"
    r"|textendash|textemdash)\{\}|\\salonsign\{[0-9A-F]{4,6}\}|\\[{}$&#_%]|\{\}"
)


@pytest.mark.parametrize(("text", "shown"), SHOWN, ids=range(len(SHOWN)))
def test_escaping(text, shown):
    assert escape_latex(text) == shown


@given(st.text(alphabet=st.characters(codec=None)) | st.sampled_from(HOSTILE))
def test_no_text_says_anything_to_tex(text):
    """What is left after our own commands are taken out holds nothing that TeX obeys."""
    assert not set(COMMAND.sub("", escape_latex(text))) & set("\\{}$&#_%~^\n\r\t\"`'<>|")


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_a_row_stays_a_row(small_cells, text):
    page = leaderboard_tex(small_cells.with_columns(model=pl.lit(text)), NAME)
    (row,) = [line for line in page.splitlines() if "6.50 [" in line]
    assert row.replace(r"\&", "").count("&") == 6
    assert row.endswith(r"77.8\,\% \\")


def test_the_comment_stays_a_comment(small_cells):
    page = leaderboard_tex(small_cells, replace(NAME, benchmark="a\n\\b"))
    assert page.startswith(f"% a \\b, 2026-11-03, publication {'p' * 64}\n")


@pytest.mark.parametrize("engine", ["pdflatex", "lualatex"])
def test_every_hostile_name_compiles(small_cells, tmp_path, engine):
    """Skipped nowhere silently: where no TeX is installed, what is checked is that the braces close."""
    rows = [small_cells.with_columns(model=pl.lit(name), judge_model=pl.lit(name[:3])) for name in HOSTILE if name != "\ud800"]
    page = leaderboard_tex(pl.concat(rows), NAME)
    bare = re.sub(r"\\[{}]", "", page)
    assert bare.count("{") == bare.count("}")
    if shutil.which(engine) is None:
        return
    (tmp_path / "board.tex").write_text(page, "utf-8")
    whole = "\\documentclass{article}\\usepackage{booktabs,textcomp}\\begin{document}\\input{board}\\end{document}\n"
    (tmp_path / "page.tex").write_text(whole)
    said = subprocess.run(
        [engine, "-interaction=nonstopmode", "-halt-on-error", "page.tex"], cwd=tmp_path, capture_output=True, check=False
    )
    assert said.returncode == 0, said.stdout.decode(errors="replace")[-1500:]
    assert (tmp_path / "page.pdf").is_file()
