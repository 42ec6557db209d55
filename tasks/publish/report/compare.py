"""The pages beside the report that hold every judged sample: prompt by checkpoint, with scores, the judge's words and pictures.

`compare.html` leads to them and lays two checkpoints side by side; `pictures-001.html` and so on hold the samples, some sixty
each, and beside each stands the sheet of its pictures. The report's own gallery is gallery.py.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from typing import Any

import polars as pl

from rubrics.model import Rubric
from schemas.identities import RunIds
from schemas.lineage import oldest_first
from schemas.tables.stored import SAMPLES
from schemas.tables.table import Table
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.lake.request_rows import number_of
from tasks.publish.folders import PublicationName
from tasks.publish.report.asks import Ask, said_of
from tasks.publish.report.environment import render
from tasks.publish.report.gallery import texts_by_sample
from tasks.publish.report.picking import judged_samples
from tasks.publish.report.sheets import Shown, Tiles
from tasks.publish.report.side_by_side import Index, Prompt, Shot
from tasks.publish.report.tile_cache import TileCache
from tasks.publish.standings.placed_cells import placed
from tasks.stopping import check_not_stopped

START = "compare.html"
BESIDE = "data: 'self' file:"
"""Where these pages may take a picture from: the folder they stand in. `file:` is for browsers to which a file has no 'self'."""

MAX_SAMPLES = 20_000
"""On the pages of one publication. Beyond it the first of each prompt stay, and the start page says how many are elsewhere."""

_PER_PAGE = 60  # samples
_PER_BLOCK = 30_000  # requests, whose replies are read from the lake at once
_ID = 12  # letters of a sample's id, as on the gallery's cards
_KEYS = ("prompt_id", "sample_id", "model", "checkpoint", "category")


def compare_pages(
    lake: Lake,
    ids: RunIds,
    tables: Mapping[Table, pl.DataFrame],
    rubrics: Mapping[str, Rubric],
    name: PublicationName,
    max_samples: int = MAX_SAMPLES,
    cache: TileCache | None = None,
) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file, one at a time: sheets and pages of all judged samples, and last the page they start from.

    `tables` are those of the publication, for the contestants' order and the dimensions that claims are made of. Nothing where
    nothing was judged. Without a `cache` every picture is looked at.
    """
    if not has_pages(lake, ids, max_samples):
        return
    samples, n_left = chosen(lake, ids, max_samples)
    cells = placed(tables)
    made_by = samples.select("model", "checkpoint").unique()
    known = cells.select("model", "checkpoint", "place").drop_nulls().unique()
    rows = made_by.join(known, on=["model", "checkpoint"], how="left").to_dicts()
    contestants = [(row["model"], row["checkpoint"]) for row in sorted(rows, key=oldest_first)]
    index = Index(contestants, cells)
    dataset = StoredDataset(lake, ids.dataset_id)
    texts, twins = texts_by_sample(dataset, samples["sample_id"]), _twins(dataset, samples["sample_id"])
    judged = _of(judged_samples(lake, ids), samples["sample_id"])
    pages = list(_pages(samples))
    stand: dict[str, Any] = {
        "benchmark": name.benchmark, "run_date": name.run_date.isoformat(), "publication_id": name.publication_id,
        "n_pages": len(pages), "pictures": BESIDE,
    }  # fmt: skip
    with closing(Tiles(dataset, samples["sample_id"], cache)) as tiles:
        number = 0
        for block in _blocks(pages, _n_requests(judged)):
            asks = _asks(lake, ids, rubrics, _of(judged, pl.Series([row["sample_id"] for page in block for row in page])))
            for page in block:
                check_not_stopped()
                number += 1
                file = f"pictures-{number:03}"
                places: dict[str, Shown] = {}
                for sheet, content, mine in tiles.sheets(file, [row["sample_id"] for row in page]):
                    places |= mine
                    yield sheet, content
                prompts = _prompts(page, contestants, texts, asks, places, twins)
                index.add(f"{file}.html", prompts)
                yield f"{file}.html", render("pictures.html.j2", script="", prompts=prompts, number=number, **stand)
    yield START, render("compare.html.j2", script="compare.js", index=index, n_left=n_left, **stand)


def has_pages(lake: Lake, ids: RunIds, max_samples: int) -> bool:
    """Whether there are any: of pairs alone there are none."""
    return max_samples > 0 and not judged_samples(lake, ids).head(1).collect().is_empty()


def chosen(lake: Lake, ids: RunIds, max_samples: int) -> tuple[pl.DataFrame, int]:
    """At most `max_samples` rows, each prompt's and contestant's first before any second, and how many are left out.

    Of all judgements only numbers are in memory, which have the order of the ids.
    """
    judged = judged_samples(lake, ids)
    few = pl.col("model", "checkpoint").cast(pl.Categorical)
    numbers = {"prompt": number_of("prompt_id"), "sample": number_of("sample_id")}
    rows = judged.with_row_index("row").select("row", few, **numbers).collect(engine="streaming")
    once = rows.sort("sample", "prompt", "row").unique("sample", keep="first", maintain_order=True)
    del rows
    ordered = once.with_columns(turn=pl.int_range(pl.len()).over("prompt", "model", "checkpoint"))
    first = ordered.select("row", "turn", "prompt", "sample").sort("turn", "prompt", "sample").head(max_samples)
    named = judged.select(_KEYS).with_row_index("row").filter(pl.col("row").is_in(first["row"].implode()))
    found = first.select("row").join(named.collect(engine="streaming"), on="row", maintain_order="left")
    return found.drop("row"), once.height - found.height


def _pages(samples: pl.DataFrame) -> Iterator[list[dict[str, Any]]]:
    """The samples by category and prompt, in pages of whole prompts."""
    page: list[dict[str, Any]] = []
    ordered = samples.sort("category", "prompt_id", "sample_id", nulls_last=True)
    for _, rows in ordered.group_by("category", "prompt_id", maintain_order=True):
        if page and len(page) + rows.height > _PER_PAGE:
            yield page
            page = []
        page += rows.to_dicts()
    if page:
        yield page


def _of(rows: pl.LazyFrame, sample_ids: pl.Series) -> pl.LazyFrame:
    return rows.filter(pl.col("sample_id").is_in(sample_ids.implode()))


def _n_requests(judged: pl.LazyFrame) -> int:
    """Each item of a list names its own: about so many replies there are."""
    n_listed = pl.col("items_json").str.count_matches("request_key", literal=True)
    return int(judged.select(pl.max_horizontal(n_listed, 1).sum()).collect(engine="streaming").item())


def _blocks(pages: list[list[dict[str, Any]]], n_requests: int) -> Iterator[list[list[dict[str, Any]]]]:
    n = max(1, _PER_BLOCK * len(pages) // n_requests)
    return (pages[start : start + n] for start in range(0, len(pages), n))


def _asks(lake: Lake, ids: RunIds, rubrics: Mapping[str, Rubric], judged: pl.LazyFrame) -> Mapping[str, Mapping[str, list[Ask]]]:
    """What was asked of samples and answered, by sample and rubric."""
    rows = judged.collect(engine="streaming").sort("rubric_id", "judge_model", "repeat")
    said = said_of(lake, ids, rows, rubrics)
    asks: dict[str, dict[str, list[Ask]]] = defaultdict(lambda: defaultdict(list))
    for row in rows.iter_rows(named=True):
        asks[row["sample_id"]][row["rubric_id"]].append(said.ask(row))
    return asks


def _prompts(
    page: list[dict[str, Any]],
    contestants: Sequence[tuple[str, str]],
    texts: Mapping[str, Mapping[str, str | None]],
    asks: Mapping[str, Mapping[str, list[Ask]]],
    places: Mapping[str, Shown],
    twins: Mapping[str, str],
) -> list[Prompt]:
    by_prompt: dict[tuple[str, str | None], list[Shot]] = defaultdict(list)  # a prompt may stand in two categories
    for row in page:
        said = texts.get(row["sample_id"], {})
        told = {one: text for one, text in said.items() if text and one not in ("prompt", "source_key")}
        by_prompt[row["prompt_id"], row["category"]].append(
            Shot(
                row["sample_id"], f"s-{row['sample_id'][:_ID]}", row["model"], row["checkpoint"], row["category"], told,
                said.get("source_key") or "", asks[row["sample_id"]], places.get(row["sample_id"]), twins.get(row["sample_id"]),
            )
        )  # fmt: skip
    found: list[Prompt] = []
    for (prompt_id, category), shots in by_prompt.items():
        said = texts.get(shots[0].sample_id, {})
        text = said.get("prompt") or said.get("question") or said.get("reference") or shots[0].source_key
        columns = [(one, [shot for shot in shots if (shot.model, shot.checkpoint) == one]) for one in contestants]
        anchor = f"p-{prompt_id[:_ID]}"
        n_before = sum(one.anchor.startswith(anchor) for one in found)
        anchor = f"{anchor}-{n_before + 1}" if n_before else anchor
        found.append(Prompt(anchor, text or "", category, [c for c in columns if c[1]]))
    return found


def _twins(dataset: StoredDataset, sample_ids: pl.Series) -> dict[str, str]:
    """Of each of these samples that is a duplicate, or shows the same picture as an earlier one of them, what that one is."""
    columns = ["sample_id", "model", "checkpoint", "image_sha256", "duplicate_of_sample_id", "source_key"]

    def those(wanted: pl.Series) -> pl.DataFrame:
        return dataset.lake.collect(SAMPLES, dataset.id, lambda rows: _of(rows.select(columns), wanted))

    samples = those(sample_ids)
    again = samples.drop_nulls("duplicate_of_sample_id").select("sample_id", first="duplicate_of_sample_id")
    keys = dict(those(again["first"]).select("sample_id", "source_key").iter_rows()) if again.height else {}
    found = {
        sample: f"a duplicate of {keys.get(first, 'a sample')} (sample {first[:_ID]}), whose judgement counts for both"
        for sample, first in again.iter_rows()
    }
    shared = samples.filter(pl.col("image_sha256").is_not_null() & (pl.col("image_sha256").count().over("image_sha256") > 1))
    firsts = {row["image_sha256"]: row for row in shared.reverse().iter_rows(named=True)}
    for row in shared.iter_rows(named=True):
        other = firsts[row["image_sha256"]]
        if other["sample_id"] != row["sample_id"]:
            whose = f"{other['model']} / {other['checkpoint']}, {other['source_key']} (sample {other['sample_id'][:_ID]})"
            found.setdefault(row["sample_id"], f"the same picture as {whose}")
    return found
