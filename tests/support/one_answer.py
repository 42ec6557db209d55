"""Whether rank, colour, words and p of a publication say one thing: its tables held against its page, every pair of them."""

import re
from pathlib import Path

import polars as pl

from tasks.publish.standings.wording import rank

MARKS = {
    "higher": ("up", "better"), "lower": ("down", "worse"), "open": ("level", "can't tell"),
    "failures_could_turn_it": ("level", "failures could turn it"),
}  # fmt: skip
_ROW = re.compile(r'<tr data-table="benchmark_long" data-key="(\w+)">\s*<td class="n rank"[^>]*>(.*?)</td>(.*?)</tr>', re.DOTALL)
_DELTA = r'<span class="delta (\w+)" data-table="standings"><span data-col="delta_predecessor">'
_CHANGE = re.compile(_DELTA + r'.*?<span class="verdict">([^<]*)</span>', re.DOTALL)
_FIRST = re.compile(r'data-key="(\w+)"><b data-col="estimate" class="first">')


def contradictions(folder: Path, page: str) -> list[str]:
    """What the tables of a publication and its page say against one another, a sentence each."""
    standings = pl.read_parquet(folder / "standings.parquet").to_dicts()
    pairs = pl.read_parquet(folder / "comparisons.parquet").filter(comparison="each_other").to_dicts()
    by_cell = {row["cell_id"]: row for row in standings}
    return [*_of_pairs(by_cell, pairs), *_of_page(by_cell, page)]


def _of_pairs(by_cell, pairs):
    for pair in pairs:
        a, b = by_cell.get(pair["cell_id_a"]), by_cell.get(pair["cell_id_b"])
        verdict, p = pair["verdict"], pair["p_adjusted"]
        if a is None or b is None or verdict is None:
            continue
        named = f"{pair['rubric_id']} {pair['dimension']} {pair['category']}: {a['model']} {verdict} than {b['model']}"
        is_sure, holds_0 = p < 0.05, pair["ci_low_adjusted"] is None or pair["ci_low_adjusted"] <= 0 <= pair["ci_high_adjusted"]
        if is_sure == (verdict == "open"):
            yield f"{named}, p {p}"
        if is_sure == holds_0 and pair["ci_low_adjusted"] is not None:
            yield f"{named}, interval {pair['ci_low_adjusted']} to {pair['ci_high_adjusted']} and p {p}"
        if a["state"] == b["state"] == "ranked" and verdict in ("higher", "lower"):
            better, worse = (a, b) if verdict == "higher" else (b, a)
            if better["rank_high"] >= better["n_ranked"] or worse["rank_low"] <= 1:
                yield f"{named}, ranks {rank(better)} and {rank(worse)}"


def _of_page(by_cell, page):
    shown = _ROW.findall(page)
    if {cell for cell, *_ in shown} != set(by_cell):
        yield "the page's rankings are not the rows of standings"
    for cell, placed, rest in shown:
        row = by_cell[cell]
        if re.sub("<[^>]+>", "", placed) != rank(row):
            yield f"{cell}: rank {placed} on the page, {rank(row)} in standings"
        change = _CHANGE.search(rest)
        verdict = row["verdict_predecessor"]
        colour, word = MARKS.get(verdict, ("", ""))
        word += ", exploratory" if verdict in ("higher", "lower") and not row["is_headline"] else ""
        if (change and verdict) and (change[1], change[2].replace("&#39;", "'")) != (colour, word):
            yield f"{cell}: {change[1]}, {change[2]} on the page, {verdict} in standings"
        if (change is None) != (row["delta_predecessor"] is None):
            yield f"{cell}: a change on the page or in standings alone"
    totals = [row for row in by_cell.values() if row["is_headline"] and row["category"] == "__macro__"]
    told = {_ranking(row) for row in totals if (row["rank_low"] or 0) > 1}  # of the others nobody knows who is not the best
    if set(_FIRST.findall(page)) != {row["cell_id"] for row in totals if row["rank_low"] == 1 and _ranking(row) in told}:
        yield "blue figures are not those that may be the best"


def _ranking(row):
    return row["rubric_id"], row["judge_model"], row["dimension"]
