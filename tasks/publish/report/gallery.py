"""The gallery: what stands on its cards, read from the lake for the picked samples alone. Which are picked is picking.py."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from rubrics.model import Rubric
from schemas.identities import RunIds
from schemas.metrics import HEADLINE, RUBRIC_CELL, means_for_prompts_like_these
from schemas.statuses.cells import Total
from schemas.tables.stored import SAMPLES
from tasks.lake.pictures import StoredDataset
from tasks.lake.reading import Lake
from tasks.publish.report.asks import Ask, cut, said_of
from tasks.publish.report.picking import IS_COUNTED, Shelf, judged_samples, picked
from tasks.publish.report.pictures import thumbnails_of

N_CARDS, N_FIRST = 192, 8
"""Cards of a page, and those whose pictures stand near its top too: with the limits of thumbnails and texts it is under 3 MB."""

MAX_PROMPT = 400  # letters
_TEXTS = ("prompt", "question", "text", "reference", "output", "caption_type")


@dataclass(frozen=True, slots=True)
class Card:
    """One sample under one rubric. `texts`: what it was asked for, by column; `cell_id`: the cell `salon explain` takes.

    `places`: where it stands on each of its shelves, from 0; by the judge who places it foremost.
    """

    rubric_id: str
    sample_id: str
    model: str
    checkpoint: str
    category: str | None
    source_key: str
    shelves: tuple[str, ...]
    places: tuple[int, ...]
    texts: Mapping[str, str]
    picture: str | None
    cell_id: str | None
    asks: tuple[Ask, ...]


@dataclass(frozen=True, slots=True)
class Gallery:
    """The cards, the extremes of every rubric and checkpoint first, and of how many judgements they are a choice."""

    cards: tuple[Card, ...]
    n_judgements: int

    def first(self, order: Sequence[tuple[str, str]]) -> list[tuple[int, Card, Shelf]]:
        """Cards with a picture, where they stand in the gallery and as what: each rubric's best, then each one's worst.

        They are of the first (model, checkpoint) of `order`, the page's table, that has one.
        """
        turn = {made_by: index for index, made_by in enumerate(order)}
        found: dict[int, tuple[int, Card, Shelf]] = {}
        for shelf in (Shelf.BEST, Shelf.WORST):
            for rubric_id in dict.fromkeys(card.rubric_id for card in self.cards):
                pictured = ((at, one) for at, one in enumerate(self.cards) if one.picture and one.rubric_id == rubric_id)
                on = [
                    (turn.get((one.model, one.checkpoint), len(turn)), one.places[one.shelves.index(shelf)], at, one)
                    for at, one in pictured
                    if shelf in one.shelves
                ]
                for *_, at, one in sorted(on, key=lambda place: place[:3])[:1]:
                    found.setdefault(at, (at, one, shelf))
        return [*found.values()][:N_FIRST]


def gallery_of(lake: Lake, ids: RunIds, cells: pl.DataFrame, rubrics: Mapping[str, Rubric], *, n_cards: int = N_CARDS) -> Gallery:
    """The cards of a publication; `ids` are its identities, `cells` its benchmark_long. Pictures are read for the cards alone.

    Raises StoreError where the lake does not hold the plan, the reading, the snapshot or the dataset.
    """
    cards = picked(lake, ids, cells, n_cards)
    judgements = judged_samples(lake, ids).filter(IS_COUNTED)
    n_judgements = int(judgements.select(pl.len()).collect(engine="streaming").item())
    mine = judgements.filter(pl.col("sample_id").is_in(cards["sample_id"].unique().implode())).collect(engine="streaming")
    rows = mine.join(cards, on=["rubric_id", "sample_id"]).sort("judge_model", "repeat")
    asked: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for row in rows.iter_rows(named=True):
        asked[row["rubric_id"], row["sample_id"]].append(row)
    said = said_of(lake, ids, rows, rubrics)
    asks = {card: [said.ask(row, len(mine)) for row in mine] for card, mine in asked.items()}
    dataset = StoredDataset(lake, ids.dataset_id)
    texts = texts_by_sample(dataset, cards["sample_id"])
    pictures = thumbnails_of(dataset, set(texts))
    cell_ids = _cell_ids(cells)
    order = ["rank", "rubric_id", "model", "checkpoint", "sample_id"]
    shown = rows.unique(["rubric_id", "sample_id"], keep="first", maintain_order=True).sort(order)
    found = (
        _card(row, texts, pictures, cell_ids, asks[row["rubric_id"], row["sample_id"]]) for row in shown.iter_rows(named=True)
    )
    return Gallery(tuple(found), n_judgements)


def _card(
    row: Mapping[str, Any],
    texts: Mapping[str, Mapping[str, str | None]],
    pictures: Mapping[str, str],
    cell_ids: Mapping[tuple[str, ...], str],
    asks: list[Ask],
) -> Card:
    said = texts.get(row["sample_id"], {})
    address = tuple(row[name] for name in RUBRIC_CELL)
    cells = [cell_ids.get((*address, category)) for category in (row["category"] or Total.UNNAMED.value, Total.MACRO.value)]
    return Card(
        **{name: row[name] for name in ("rubric_id", "sample_id", "model", "checkpoint", "category")},
        source_key=said.get("source_key") or "",
        shelves=tuple(row["shelves"]),
        places=tuple(row["places"]),
        texts={name: text for name in _TEXTS if (text := said.get(name))},
        picture=pictures.get(row["sample_id"]),
        cell_id=next((cell for cell in cells if cell), None),
        asks=tuple(asks),
    )


def texts_by_sample(dataset: StoredDataset, sample_ids: pl.Series) -> dict[str, dict[str, str | None]]:
    """What the samples were asked for, and where they stood: at most MAX_PROMPT letters of each text."""
    wanted, names = pl.col("sample_id").is_in(sample_ids.unique().implode()), ("source_key", *_TEXTS)
    beginnings = pl.col(names).str.slice(0, MAX_PROMPT + 1)
    samples = dataset.lake.collect(SAMPLES, dataset.id, lambda rows: rows.filter(wanted).select("sample_id", beginnings))
    return {
        sample_id: {name: text and cut(text, MAX_PROMPT) for name, text in zip(names, texts, strict=True)}
        for sample_id, *texts in samples.iter_rows()
    }


def _cell_ids(cells: pl.DataFrame) -> dict[tuple[str, ...], str]:
    """The cell of a judge, checkpoint and category, in the rubric's leading dimension: the last in this order stays."""
    means = means_for_prompts_like_these(cells).sort(pl.col("dimension") == HEADLINE, "dimension", descending=[False, True])
    return {(*(row[name] for name in RUBRIC_CELL), row["category"]): row["cell_id"] for row in means.iter_rows(named=True)}
