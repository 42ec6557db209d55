"""The judge's exam: which samples have twins with planted faults, and as which rows. What a fault does is in its own file.

Twins are samples of the model EXAM: the checkpoint says the fault, item_id whose twin it is, the source what was changed.
"""

import hashlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import polars as pl

from schemas.benchmark.exam import EXAM, IN_PROMPTS, PlantedFault, exam_source
from schemas.records import IMAGE, texts_of
from schemas.statuses.rows import SampleStatus
from schemas.tables.stored import SAMPLES
from schemas.tables.table import Row
from tasks.ingest.identity import id_of_row
from tasks.ingest.text_flags import text_flags
from tasks.ingest.twins import picture_faults, text_faults
from tasks.lake.pictures import StoredDataset

PROMPTS = ("prompt", "question")
"""The texts that say what was asked for: what a fault of the prompt is planted in, wherever it stands."""

COLUMNS = ["sample_id", "source", "model", "checkpoint", "category", *PROMPTS]
"""What is to be known of every sample to choose."""

Pixels = Callable[[str], Row]
"""The row of PICTURES of a digest."""


@dataclass(frozen=True, slots=True)
class Twin:
    """A row of SAMPLES, and of PICTURES where its picture is one of its own."""

    row: Row
    picture: Row | None


def usable(samples: pl.LazyFrame) -> pl.DataFrame:
    """COLUMNS of the samples that can be examined, each once, in the order of their ids: digests, so as good as by lot."""
    is_own = ~pl.col("source").str.starts_with("__")  # neither an anchor nor a twin
    mine = samples.filter(pl.col("status") == SampleStatus.OK.value, is_own).select(COLUMNS).collect()
    return mine.unique("sample_id", maintain_order=True).sort("sample_id")


def twins_in(dataset: StoredDataset) -> pl.DataFrame:
    """(twin_id, sample_id) of every twin of a dataset and whose it is."""
    of = {"twin_id": "sample_id", "sample_id": "item_id"}
    return dataset.lake.collect(SAMPLES, dataset.id, lambda rows: rows.filter(pl.col("model") == EXAM).select(**of))


def chosen(samples: pl.DataFrame, share: float) -> dict[str, int]:
    """sample_id -> how many twins it may have: of each source and checkpoint as many in all as the share of its samples allows.

    A checkpoint has its twins whatever stands beside it, so that each is bought once. Samples follow one another until the twins
    are used up; who asks for them says how many a sample took.
    """
    found: dict[str, int] = {}
    for _, mine in samples.group_by("source", "model", "checkpoint", maintain_order=True):
        n_twins = int(share * mine.height + 1e-9)
        if n_twins >= 2:  # a harmless one and one with a fault
            # one sample has two twins or more, so that more of them than half as many are not needed
            found |= dict.fromkeys(mine["sample_id"][: n_twins // 2], n_twins)
    return found


def twins(
    rows: Sequence[Row], faults: Sequence[PlantedFault], budgets: Mapping[str, int], prompts: "Prompts", picture_of: Pixels
) -> Iterator[Twin]:
    """The twins of rows of SAMPLES (with their `pictures`), in the order of their ids, until each group's are used up.

    Each sample has a harmless twin and one for every fault that applies to it. Where not all can be asked, the sample's own id
    says which come first, so that all are asked alike often over many samples.
    """
    used: dict[tuple[str, ...], int] = defaultdict(int)
    for row in sorted(rows, key=lambda one: str(one["sample_id"])):
        group = row["source"], row["model"], row["checkpoint"]
        left = budgets[row["sample_id"]] - used[group]
        if left < 2:
            continue
        made = list(_twins_of(row, _turned(faults, row["sample_id"]), prompts, picture_of, left))
        if len(made) > 1:
            used[group] += len(made)
            yield from made


def _turned(faults: Sequence[PlantedFault], sample_id: str) -> list[PlantedFault]:
    start = number_of(sample_id) % len(faults)
    return [*faults[start:], *faults[:start]]


def _twins_of(row: Row, faults: Iterable[PlantedFault], prompts: "Prompts", picture_of: Pixels, most: int) -> Iterator[Twin]:
    """The harmless twin first: without it no other says anything."""
    stored = picture_of(row["image_sha256"]) if row["image_sha256"] is not None else None
    pixels = picture_faults.opened(stored["image"]["bytes"]) if stored else None
    same = None if pixels is None else picture_faults.alike(pixels)
    n_made = 0
    for fault in (PlantedFault.HARMLESS, *faults):
        if n_made == most:
            return
        changed: Mapping[str, Any] | None = {}
        shown = same
        if fault in IN_PROMPTS:
            changed = _with_fault_in_texts(row, fault, prompts)
        elif fault is not PlantedFault.HARMLESS:
            is_fault = pixels is not None and text_faults.contradicts(fault, texts_of(row).values())
            shown = picture_faults.with_fault(pixels, fault) if pixels is not None and is_fault else None
            changed = None if shown is None else {}
        if changed is None:
            continue
        picture = None if stored is None or shown is None else own_picture(stored, picture_faults.as_png(shown), f"exam_{fault}")
        n_made += 1
        yield Twin(_row(row, changed, picture, fault), picture)


def _with_fault_in_texts(row: Row, fault: PlantedFault, prompts: "Prompts") -> dict[str, str] | None:
    there = {name: str(row[name]) for name in PROMPTS if row[name] and str(row[name]).strip()}
    if fault is PlantedFault.SWAPPED_PROMPT:
        return prompts.another(row, there)
    found = {name: text_faults.with_fault(text, fault, number_of(row["sample_id"])) for name, text in there.items()}
    return {name: text for name, text in found.items() if text is not None} or None


@dataclass(frozen=True, slots=True)
class Prompts:
    """The prompts of a dataset's samples, by source, and by source and category."""

    by_group: Mapping[tuple[str, str | None], Sequence[tuple[str | None, ...]]]

    @classmethod
    def of(cls, samples: pl.DataFrame) -> "Prompts":
        """Those of `usable` samples, each once, in an order that has nothing to do with what they say."""
        groups: dict[tuple[str, str | None], dict[tuple[str | None, ...], None]] = defaultdict(dict)
        for source, category, *texts in samples.select("source", "category", *PROMPTS).iter_rows():
            groups[source, category][tuple(texts)] = None
            groups[source, None][tuple(texts)] = None
        return cls({key: sorted(found, key=_digest) for key, found in groups.items()})

    def another(self, row: Row, there: Mapping[str, str]) -> dict[str, str] | None:
        """Another sample's prompt, of the same category where there is one, else of the same source; None where all are one."""
        own = tuple(row[name] for name in PROMPTS)
        for category in dict.fromkeys((row["category"], None)):
            listed = self.by_group.get((row["source"], category), ())
            others = [one for one in listed if one != own and all(dict(zip(PROMPTS, one, strict=True))[name] for name in there)]
            if others and there:
                other = dict(zip(PROMPTS, others[number_of(row["sample_id"]) % len(others)], strict=True))
                return {name: str(other[name]) for name in there}
        return None


def own_picture(stored: Row, shown: bytes, treatment: str) -> Row:
    """The row of PICTURES of a twin's own picture, in place of the one of its sample."""
    digest = hashlib.sha256(shown).hexdigest()
    return dict(stored) | {
        "image": {"bytes": shown, "path": stored["image"]["path"]}, "image_sha256": digest, "file_sha256": digest,
        "image_format": "PNG", "image_treatment": treatment, "n_bytes": len(shown),
    }  # fmt: skip


def _row(row: Row, texts: Mapping[str, Any], picture: Row | None, fault: PlantedFault) -> Row:
    who = {"source": exam_source(row["source"], fault), "model": EXAM, "checkpoint": fault.value, "item_id": row["sample_id"]}
    return named({**row, **texts, **(shown_instead(row, picture) if picture else {}), **who})


def shown_instead(row: Row, picture: Row) -> Row:
    """What a row of SAMPLES says of its pictures where this one stands in the place of its own."""
    own = {row["image_sha256"]: picture["image_sha256"]}
    pictures = [
        one | {"sha256": own.get(one["sha256"], one["sha256"])} if one["role"] == IMAGE else one for one in row["pictures"]
    ]
    return {name: value for name, value in picture.items() if name != IMAGE} | {"pictures": pictures}


def named(row: Row) -> Row:
    """A changed row of SAMPLES with the flags of its texts, and the id that is its own."""
    flagged = row | {"text_flags": text_flags(texts_of(row))}
    return flagged | {"sample_id": id_of_row(flagged, SampleStatus.OK)}


def number_of(sample_id: str) -> int:
    """A number by which a sample's own id chooses: as good as by lot, and the same in every run."""
    return int(sample_id[:15], 16)


def _digest(texts: tuple[str | None, ...]) -> bytes:
    return hashlib.sha256(repr(texts).encode("utf-8", "surrogatepass")).digest()
