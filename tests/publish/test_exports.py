"""Hostile texts in CSV and Markdown do nothing; numbers are whole. A CSV reader and a Markdown renderer look back."""

import csv
import html
import io
import re

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from tasks.publish.exports import escape_markdown, to_csv, to_markdown

FORMULAS = [
    "=1+1", "+1", "-1+cmd|' /C calc'!A0", "@SUM(1)", "\t1", "\r1", "\n1", '=HYPERLINK("http://x")', "＝1", "－2", "-5",
]  # fmt: skip
PLAIN = ["plain", "a=b", " =1", "'=1", "", "a,b", 'say "x"', "two\nlines", "a; b", "a;b=c", "a - b", "é", '{"refusal":3}']


@pytest.mark.parametrize("text", FORMULAS)
def test_a_formula_is_a_text_in_csv(text):
    written = to_csv(pl.DataFrame({"name": [text], "score": [-1.5]})).decode()
    assert rows_of(written) == [["name", "score"], [f"'{text}", "-1.5"]]


BEHIND = {
    "sd;=cmd|'/c calc'!A1;x": "sd;'=cmd|'/c calc'!A1;x", "a; +1": "a;' +1", 'a;"=1': "a;'\"=1", "a\t@x": "a\t'@x",
    "a\n-1": "a\n'-1",
    "a\r=1": "a\r'=1", "a;＝1": "a;'＝1", ";=1;=2": ";'=1;'=2", "=1;=2": "'=1;'=2", "\t=1": "'\t'=1",
}  # fmt: skip


@pytest.mark.parametrize(("text", "shown"), BEHIND.items(), ids=map(repr, BEHIND))
def test_a_formula_behind_what_spreadsheets_split_at_is_a_text(text, shown):
    written = to_csv(pl.DataFrame({"name": [text], "score": [-1.5]})).decode()
    assert rows_of(written) == [["name", "score"], [shown, "-1.5"]]


@pytest.mark.parametrize("text", PLAIN)
def test_other_texts_stay_as_they_are(text):
    assert rows_of(to_csv(pl.DataFrame({"name": [text], "n": [1]})).decode())[1] == [text, "1"]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_keep_every_digit_and_are_never_quoted(number):
    written = to_csv(pl.DataFrame({"score": [number, None]})).decode()
    line = written.splitlines()[1]
    assert float(line) == number
    assert "'" not in written


def test_null_and_empty_text_are_told_apart():
    assert to_csv(pl.DataFrame({"a": ["", None], "b": [1, 2]})) == b'a,b\n"",1\n,2\n'


MARKUP = [
    "a|b", "a\\|b", "`code`", "**bold**", "_it_", "<script>alert(1)</script>", "<!-- x -->", "[x](javascript:alert(1))",
    "![x](y)", "https://evil.example", "www.evil.example", "me@evil.example", "&lt;b&gt;", "&#x3c;", "# title", "- item",
    "~~no~~", "$x$", "\\", "<b", "a  b",
]  # fmt: skip


@pytest.mark.parametrize("text", MARKUP)
def test_markup_is_shown_and_not_obeyed(text):
    written = to_markdown([text, "n"], [[text, 1]], n_text_columns=1)
    page = MarkdownIt("commonmark").enable(["table", "strikethrough"]).render(written)
    cell = page.split("<tbody>")[1].split("<td>")[1].split("</td>")[0]
    header = page.split("<th>")[1].split("</th>")[0]
    assert (unescape(cell), unescape(header)) == (text, text)
    assert "<" not in cell + header


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("two\nlines", "two lines"),
        ("cr\rlf", "cr lf"),
        ("nul\x00", "nul"),
        ("\u202egnp.exe", "gnp.exe"),
        ("a\u2028b", "a b"),
        (None, ""),
    ],
)
def test_what_would_break_the_line_or_turn_it_is_taken_out(text, shown):
    assert escape_markdown(text) == shown


@pytest.mark.parametrize(
    "text", ["> q", ">q", "- a", "+ a", "-", "---", "- - -", "1. a", "12) a", "1.", "-0.81 worse", "3.5", "1.a"]
)
def test_a_name_first_in_a_list_s_item_is_no_quotation_and_no_list(text):
    rendered = MarkdownIt("commonmark").render(f"- {escape_markdown(text)}\n")
    assert re.sub(r"<[^>]*>", "", rendered).strip() == html.escape(text)
    assert re.findall(r"<(\w+)", rendered) == ["ul", "li"]


def test_numbers_are_not_escaped():
    assert [escape_markdown(one) for one in ("-0.81 worse", 7.5, "+0.42 [0.10, 0.74]")] == [
        "-0.81 worse",
        "7.5",
        "+0.42 \\[0.10, 0.74]",
    ]


@given(st.text())
def test_any_text_stays_in_its_cell(text):
    rendered = MarkdownIt("commonmark").enable("table").render(to_markdown(["a", "b"], [[text, "end"]], n_text_columns=2))
    assert rendered.count("<td>") == 2
    assert rendered.count("<tr>") == 2


def test_links_are_not_made_of_plain_addresses():
    assert "https://" not in escape_markdown("see https://evil.example")
    assert "www." not in escape_markdown("see WWW.evil.example").lower()


def rows_of(text):
    return list(csv.reader(io.StringIO(text, newline="")))


def unescape(cell):
    for entity, char in (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&amp;", "&")):
        cell = cell.replace(entity, char)
    return cell
