"""The page says what the Parquet tables say, in the same bytes each time; nothing that came from outside does anything in it."""

import base64
import hashlib
import json
import re
from collections.abc import Mapping
from functools import partial
from html.parser import HTMLParser
from types import SimpleNamespace

import polars as pl
import pytest

from schemas.tables.catalogue import TABLES
from schemas.tables.nights import JURY, RELIABILITY
from schemas.tables.published import BENCHMARK_LONG, COMPARISONS, DISTRIBUTIONS, HEALTH, STANDINGS
from schemas.tables.stored import CHECKS
from schemas.tables.table import Table
from tasks.publish.report import formats
from tasks.publish.report.boards import glance
from tasks.publish.report.gallery import N_CARDS, Gallery
from tasks.publish.standings.wording import rank

VOID = {"meta", "link", "img", "br", "input"}
ALLOWED_ELEMENTS = {
    "html",
    "head",
    "meta",
    "link",
    "title",
    "style",
    "body",
    "script",
    "a",
    "header",
    "main",
    "nav",
    "section",
    "article",
    "div",
    "p",
    "span",
    "b",
    "code",
    "pre",
    "h1",
    "h2",
    "h3",
    "h4",
    "ul",
    "li",
    "dl",
    "dt",
    "dd",
    "time",
    "table",
    "thead",
    "tbody",
    "tr",
    "th",
    "td",
    "figure",
    "figcaption",
    "details",
    "summary",
    "form",
    "fieldset",
    "legend",
    "label",
    "select",
    "option",
    "input",
    "button",
    "output",
    "img",
    "br",
    "blockquote",
    "bdi",
    "svg",
    "g",
    "path",
    "line",
    "rect",
    "text",
    "tspan",
}


class Scraper(HTMLParser):
    """The page as a reader's program sees it: elements with attributes, and the published numbers with where they stand."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.numbers: list[tuple[str, str, str, str]] = []
        self.open: list[tuple[str, dict[str, str], list[str]]] = []
        self.texts: dict[str, list[str]] = {}

    def handle_starttag(self, tag, attrs):
        attributes = {name: value or "" for name, value in attrs}
        self.elements.append((tag, attributes))
        if tag not in VOID:
            self.open.append((tag, attributes, []))

    def handle_endtag(self, tag):
        while self.open:
            name, attributes, text = self.open.pop()
            if "data-col" in attributes:
                around = [*(a for _, a, _ in self.open), attributes]
                table, key = (next((a[n] for a in reversed(around) if n in a), "") for n in ("data-table", "data-key"))
                self.numbers.append((table, key, attributes["data-col"], "".join(text).strip()))
            self.texts.setdefault(name, []).append("".join(text))
            if name == tag:
                return

    def handle_data(self, data):
        for _, _, text in self.open:
            text.append(data)


def scrape(page: bytes) -> Scraper:
    scraper = Scraper()
    scraper.feed(page.decode())
    assert not scraper.open, "every element is closed"
    return scraper


def published(made, table_name, key, columns):
    """The values of these columns in the table's frame, at the key."""
    table = TABLES[table_name]
    frame = made.tables[table]
    if table in {BENCHMARK_LONG, STANDINGS}:
        found = frame.filter(pl.col("cell_id") == key)
    else:
        found = frame.filter([pl.col(n).cast(pl.String) == v for n, v in zip(table.key, json.loads(key), strict=True)])
    assert found.height == 1, (table_name, key)
    return [found[name][0] for name in columns]


FORMATS = {
    "estimate": formats.number,
    "ci_low": formats.number,
    "ci_high": formats.number,
    "mde80": formats.number,
    "delta": formats.signed,
    "delta_predecessor": formats.signed,
    "delta_baseline": formats.signed,
    "delta_predecessor_low": formats.signed,
    "delta_predecessor_high": formats.signed,
    "delta_baseline_low": formats.signed,
    "delta_baseline_high": formats.signed,
    "ci_low_adjusted": formats.signed,
    "ci_high_adjusted": formats.signed,
    "p_adjusted": formats.p_value,
    "coverage": formats.percent,
    "share": formats.percent,
}
OF_PAIRS = {
    "preferences": {"n_prompts": formats.count},
    "preference_ratings": {"n_opponents": formats.count, "n_opponents_blocked": formats.count, "n_pairs": formats.count},
    "position_bias": {"n_both_orders": formats.count, "n_pairs": formats.count},
}
"""Of pages with pairs: all else is per cent, and of ratings whole points."""


def check_pairs(page: bytes, tables: Mapping[Table, pl.DataFrame]) -> int:
    """Hold every number of a page's pairs against its table; how many there were."""
    found = [one for one in scrape(page).numbers if one[0] in OF_PAIRS]
    for table, key, column, text in found:
        (value,) = published(SimpleNamespace(tables=tables), table, key, [column])
        rest = partial(formats.signed, n_digits=0) if table == "preference_ratings" else formats.percent
        assert text == OF_PAIRS[table].get(column, rest)(value), (table, key, column)
    return len(found)


MEASURES = {"latency_s": formats.seconds, "cost_usd": formats.usd}


@pytest.mark.parametrize("which", ["small", "hostile"])
def test_every_number_is_the_parquet_value_rounded(which, request):
    made = request.getfixturevalue(which)
    numbers = scrape(made.kept_page()).numbers
    for table, key, column, text in numbers:
        values = published(made, table, key, column.split(","))
        if column == "rank_low,rank_high":
            assert text == rank(dict(zip(("rank_low", "rank_high"), values, strict=True)))
        elif table == "health":
            assert text == MEASURES.get(json.loads(key)[4], formats.count)(values[0]), (key, text)
        else:
            assert text == FORMATS.get(column, formats.count)(values[0]), (table, key, column)
    tables = {table for table, *_ in numbers}
    assert tables == {"benchmark_long", "standings", "comparisons", "distributions", "health", "checks"}
    shown = {key for table, key, column, _ in numbers if table == "benchmark_long" and column == "estimate"}
    means = made.tables[BENCHMARK_LONG].filter(pl.col("estimand") == "prompts_like_these", pl.col("category") != "__micro__")
    assert shown == set(means.filter(pl.col("estimate").is_not_null())["cell_id"])


@pytest.mark.parametrize(
    ("value", "n_digits", "text"),
    [
        (7.4249, 2, "7.42"),
        (-0.001, 2, "0.00"),
        (-1.25, 1, "−1.2"),
        (None, 2, "–"),
        (2.0, 0, "2"),
    ],
)
def test_numbers_are_rounded_and_never_minus_zero(value, n_digits, text):
    assert formats.number(value, n_digits) == text


@pytest.mark.parametrize(("p", "text"), [(0.0004, "<\u202f0.001"), (0.0006, "0.001"), (0.0495, "0.050"), (None, "–")])
def test_a_small_p_is_not_shown_as_zero(p, text):
    assert formats.p_value(p) == text


def test_the_same_inputs_give_the_same_bytes(small):
    first = small.kept_page()
    shuffled = {table: frame.sample(fraction=1, shuffle=True, seed=4) for table, frame in reversed(small.tables.items())}
    assert type(small)(small.lake, shuffled, small.provenance).page() == first


def test_hostile_texts_stay_texts(hostile):
    page = scrape(hostile.kept_page())
    assert {tag for tag, _ in page.elements} <= ALLOWED_ELEMENTS
    assert [tag for tag, _ in page.elements].count("script") == 1
    assert [tag for tag, _ in page.elements].count("style") == 1
    names = {name for _, attributes in page.elements for name in attributes}
    assert not {name for name in names if name.startswith("on") or name in {"style", "srcset", "xlink:href"}}
    beside = {"compare.html", "../partitions.html", "../../index.html"}
    assert {a["href"] for tag, a in page.elements if tag == "a" and a["href"][:1] != "#"} == beside
    assert {a["src"].split(",")[0] for tag, a in page.elements if tag == "img"} == {"data:image/webp;base64"}
    assert "<script>window.pwned=1</script>" in page.texts["h1"][0]
    assert any("{{ 7*7 }}" in text for text in page.texts["dd"])


def test_pictures_under_the_leaderboard_say_whose_they_are(small):
    captions = re.findall(r"small, (?:best|worst) of ([^<]+)</span></li>", small.kept_page().decode())
    names = {" / ".join(one) for one in small.tables[BENCHMARK_LONG].select("model", "checkpoint").unique().rows()}
    assert captions
    assert set(captions) <= names, "there are several models"


def test_checkpoints_without_a_rank_stand_by_their_mean():
    def board(*rows):
        found = [{"model": "m", "checkpoint": name, "rank_low": low, "estimate": mean} for name, low, mean in rows]
        return SimpleNamespace(rows=found)

    one = board(("s9", 1, 5.0), ("s1", None, 4.0), ("s10", None, 3.0), ("s2", None, None))
    other = board(("s9", 1, 5.0), ("s1", None, 4.5), ("s10", None, 3.5), ("s2", None, None))
    assert [key for key, _ in glance([one, other])] == [("m", name) for name in ("s9", "s1", "s10", "s2")]
    assert [name for (_, name), _ in glance([board(("s10", None, 4.0), ("s9", None, 3.0))])] == ["s10", "s9"]


def test_the_policy_lets_in_the_style_and_the_script_of_the_page_alone(small):
    page = small.kept_page().decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', page)[1].replace("&#39;", "'")
    inlined = {name: re.search(rf"<{name}>(.*?)</{name}>", page, re.DOTALL)[1] for name in ("style", "script")}
    hashes = {name: base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for name, text in inlined.items()}
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes['style']}'; script-src 'sha256-{hashes['script']}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def test_a_blocked_cell_says_why_and_has_no_figure(small):
    long = small.tables[BENCHMARK_LONG]
    is_one = (pl.col("model") == "south") & (pl.col("dimension") == "overall_score") & (pl.col("category") == "__macro__")
    changes = {"estimate": None, "ci_low": None, "ci_high": None, "status": "blocked", "reason": "refusal"}
    blocked = long.with_columns(pl.when(is_one).then(pl.lit(v, long.schema[n])).otherwise(n).alias(n) for n, v in changes.items())
    page = scrape(type(small)(small.lake, small.tables | {BENCHMARK_LONG: blocked}, small.provenance).page())
    ids = set(long.filter(is_one).select("cell_id").to_series())
    assert "blocked: refusal" in page.texts["span"]
    assert not [n for n in page.numbers if n[0] == "benchmark_long" and n[1] in ids and n[2] == "estimate"]


@pytest.mark.parametrize("left_out", [COMPARISONS, HEALTH, CHECKS, STANDINGS, DISTRIBUTIONS], ids=lambda table: table.name)
def test_a_section_whose_table_is_not_there_is_left_out(small, left_out):
    tables = {table: frame for table, frame in small.tables.items() if table is not left_out}
    numbers = scrape(type(small)(small.lake, tables, small.provenance).page(Gallery((), 48))).numbers
    assert left_out.name not in {table for table, *_ in numbers}
    assert "benchmark_long" in {table for table, *_ in numbers}


def test_twenty_thousand_judgements_are_less_than_three_megabytes(large):
    page = large.kept_page()
    assert "20\u202f000" in scrape(page).texts["dd"]
    assert page.count(b"data:image/webp") == N_CARDS + len(large.gallery().first([])) <= 200
    assert len(page) < 3_000_000


def test_reliability_and_jury_stand_there_where_they_are_inputs(small):
    where = {
        "publication_id": small.publication_id,
        "run_date": small.tables[BENCHMARK_LONG]["run_date"][0],
        "benchmark": "nightly",
        "dataset_id": "d" * 64,
        "rubric_id": "small",
        "rubric_version": "1",
        "dimension": "overall_score",
    }
    reliability = where | {
        "judge_model": "eye",
        "model": "north",
        "checkpoint": "step-900",
        "n_prompts": 12,
        "n_images": 24,
        "n_scores": 48,
        "n_repeats_mean": 2.0,
        "n_truncated": 0,
        "icc": 0.834,
        "icc_low": 0.7,
        "icc_high": 0.9,
        "reliability": 0.91,
        "status": "ok",
    }
    jury = where | {
        "model": "north",
        "checkpoint": "step-900",
        "judge_a": "eye",
        "judge_b": "lens",
        "metric": "icc_agreement",
        "estimate": 0.5,
        "n_judges": 2,
        "n_items": 24,
        "status": "ok",
    }
    added = {}
    for table, row in ((RELIABILITY, reliability), (JURY, jury)):
        known = {name: value for name, value in row.items() if name in table.columns}
        added[table] = pl.DataFrame([known], schema=table.empty().schema)
    page = scrape(type(small)(small.lake, small.tables | added, small.provenance).page())
    found = {(table, column): text for table, _, column, text in page.numbers if table in {"reliability", "jury"}}
    assert (found["reliability", "icc"], found["reliability", "reliability"], found["jury", "estimate"]) == (
        "0.83",
        "0.91",
        "0.50",
    )
