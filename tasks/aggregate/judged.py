"""A rubric's judgements as numbers: cells, prompts, samples, and which are the same picture. Their scores are outcomes.py.

Names become numbers here, once: rows are then gathered and summed by number.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from rubrics.model import Rubric
from schemas.errors import SourceError
from schemas.metrics import CELL
from schemas.records import UNKNOWN
from schemas.statuses.cells import Total
from schemas.statuses.rows import ROW_UNUSABLE, JudgementStatus
from tasks.aggregate.scales import has_prompt
from tasks.lake.request_rows import HASHES, Keys, each_request

PROMPT = [*CELL, "category", "prompt_id"]
"""A prompt's judgements within a cell and category: what the statistics take as independent units."""

_CHUNK_ROWS = 1_000_000  # rows turned into numbers together
NOT_KNOWN = [JudgementStatus.NO_PROMPT.value, JudgementStatus.UNKNOWN_VALUE.value]
"""Statuses of samples whose category the rubric has no prompt for."""


def _category() -> pl.Expr:
    is_without, is_unusable = pl.col("category").is_null(), pl.col("status") == JudgementStatus.UNUSABLE_SAMPLE.value
    is_one = is_without & ~is_unusable & ~pl.col("status").is_in(NOT_KNOWN)
    is_unknown = is_without & is_unusable & ~is_one.any() & ~is_without.all()
    return pl.when(is_unknown).then(pl.lit(UNKNOWN)).otherwise(pl.col("category").fill_null(Total.UNNAMED.value))


CATEGORY = _category()
"""The category of each of one rubric's judgements; of samples without one, where others have one, `__unnamed__`.

But UNKNOWN of an unusable sample without one where each usable sample has one: it belongs to a category that nobody could read.
"""

Array = npt.NDArray[Any]


@dataclass(frozen=True)
class Judged:
    """One rubric's judgements, as numbers.

    `frame` has rubric_version, status and reason of each judgement, where a rubric counts kinds of items also items_json of those
    without a request; `keys` the request_key of those that were planned, under which their scores stand.
    `prompts` has a row for each prompt within a cell and category, sorted by name; `strata` one for each cell and category,
    sorted; `stratum` numbers the stratum of each prompt and `prompt_code` its prompt_id in alphabetical order. `prompt` and
    `sample` number the prompt and the sample of each judgement, `sample_prompt` the prompt of each sample. `twin` numbers the
    samples that are one and the same alike, prompt by prompt; None where each is its own. `is_again`: judgements of duplicates.
    `first_look`: the look before which each judgement is asked, from 1; None where all are asked at once.
    """

    frame: pl.DataFrame
    keys: Keys
    strata: pl.DataFrame
    stratum: Array
    prompt_code: Array
    prompt: Array
    sample: Array
    sample_prompt: Array
    twin: Array | None = None
    is_again: Array = field(default_factory=lambda: np.empty(0, bool))
    first_look: Array | None = None

    @cached_property
    def versions(self) -> dict[tuple[str, ...], frozenset[str]]:
        """The rubric versions each cell was judged by: one, unless somebody has mended the lake by hand."""
        cells = self.strata.select(CELL).unique().rows()
        used = self.frame["rubric_version"].unique().cast(pl.String).to_list()
        if len(used) == 1:
            return dict.fromkeys(cells, frozenset(used))
        used_in = self.frame.select("rubric_version", stratum=pl.Series(self.stratum[self.prompt])).unique()
        named = [(self.strata.select(CELL).row(number), str(version)) for version, number in used_in.iter_rows()]
        return {cell: frozenset(version for other, version in named if other == cell) for cell in cells}

    @cached_property
    def asked(self) -> Array:
        """A number for the requests of each prompt: the same where the very same is asked, pictures and all."""
        found, keys = np.zeros(self.n_prompts, np.uint64), self.keys
        np.add.at(found, self.prompt[keys.row], keys.key * np.uint64(3) + keys.check)
        return found

    @property
    def n_prompts(self) -> int:
        """Prompts within cells and categories."""
        return len(self.stratum)


def is_of_cells(rubric: Rubric) -> pl.Expr:
    """Of judgements, whether they are this rubric's and belong to cells.

    Left out: anchors (their occasion is not empty; they watch the judge), duplicates that an older release planned as none, and,
    where the rubric dispatches on the category, samples without one: the rubric is not for them. A row that could not be read may
    well have one.
    """
    is_counted = pl.col("status") != JudgementStatus.DUPLICATE.value
    is_mine = (pl.col("rubric_id") == rubric.id) & (pl.col("occasion") == "") & is_counted
    if rubric.dispatch and rubric.dispatch == rubric.report_by:
        is_unknown = pl.col("status") == JudgementStatus.UNKNOWN_VALUE.value
        is_unread = pl.col("reason").is_in(ROW_UNUSABLE)
        is_planned = pl.col("status") == JudgementStatus.PLANNED.value
        is_mine &= pl.col("category").is_not_null() | is_unknown | is_unread | is_planned
    return is_mine


def judgements_of(judgements: pl.LazyFrame, rubric: Rubric) -> Judged:
    """The judgements of one rubric that belong to cells, each in its CATEGORY.

    Raises SourceError where a category has a reserved name.
    """
    mine = judgements.filter(is_of_cells(rubric))
    few = [pl.col(name).cast(pl.Categorical) for name in (*PROMPT, "rubric_version", "status", "reason")]
    has_repeats = (mine.select(pl.col("repeat").max()).collect().item() or 0) > 0
    again = pl.col("duplicate_of_sample_id")
    has_twins = bool(mine.select(again.is_not_null().any()).collect().item())
    more = {"sample": pl.col("sample_id").hash(1)} if has_repeats else {}
    if has_twins:
        more |= {"twin": pl.coalesce(again, "sample_id").hash(1), "is_again": again.is_not_null()}
    has_looks = bool(mine.select(pl.col("first_look").is_not_null().any()).collect().item())
    if has_looks:
        more |= {"first_look": pl.col("first_look").fill_null(1).cast(pl.Int16)}
    if rubric.kinds:
        more |= {"items_json": pl.when(pl.col("request_key").is_null()).then("items_json")}
    frame = mine.select(*few, **more, **HASHES).collect(engine="streaming")
    _refuse_reserved(mine)
    planned = np.flatnonzero((frame["status"] == JudgementStatus.PLANNED.value).to_numpy()).astype(np.int32)
    keys = Keys.of(frame.select(*HASHES)[planned], planned)
    frame = frame.drop(*HASHES).with_columns(category=CATEGORY)
    found, prompt, names = _prompts(frame)
    codes = np.unravel_index(found, [max(1, len(values)) for values in names])
    cells = np.ravel_multi_index(codes[:-1], [max(1, len(values)) for values in names[:-1]])
    first, stratum = np.unique(cells, return_index=True, return_inverse=True)[1:]
    strata = pl.DataFrame(
        {name: values.gather(code[first]) for name, values, code in zip(PROMPT[:-1], names, codes, strict=False)}
    )
    samples = (
        numbered_within(frame["sample"].to_numpy(), prompt) if has_repeats else (np.arange(len(prompt), dtype=np.int32), prompt)
    )
    twins = _twins(frame, prompt, samples[0]) if has_twins else ()
    kept = frame.select("rubric_version", "status", "reason", *["items_json"] * bool(rubric.kinds))
    judged = Judged(kept, keys, strata, stratum.astype(np.int32), codes[-1], prompt, *samples, *twins)
    return replace(judged, first_look=frame["first_look"].to_numpy()) if has_looks else judged


def requests_of(judged: Judged, judgements: pl.LazyFrame, rubric: Rubric) -> Keys:
    """What was asked for each judgement that was planned: its request, or of a list all that it names."""
    if not rubric.is_of_lists:
        return judged.keys
    planned = judgements.filter(is_of_cells(rubric)).with_row_index("row").filter(status=JudgementStatus.PLANNED.value)
    each = each_request(planned, {rubric.id: rubric}).select("row", **HASHES).collect(engine="streaming")
    return Keys.of(each, each["row"].to_numpy())


def known_prompts(judged: Judged, rubric: Rubric) -> Array:
    """Whether each prompt has a judgement in a category the rubric has a prompt for: else it is no part of a macro mean."""
    known = [category != UNKNOWN and has_prompt(rubric, category) for category in judged.strata["category"]]
    in_known = np.array(known, bool)[judged.stratum]
    status = judged.frame["status"]
    is_planned = (status == JudgementStatus.PLANNED.value).to_numpy()
    is_known = is_planned | (in_known[judged.prompt] & ~status.is_in(NOT_KNOWN).to_numpy())
    return np.bincount(judged.prompt, is_known, judged.n_prompts) > 0


def _refuse_reserved(judgements: pl.LazyFrame) -> None:
    is_reserved = pl.col("category").is_in([*map(str, Total), UNKNOWN])  # an older release's ingest let them pass
    reserved = judgements.filter(is_reserved).select("category", "sample_id").head(1).collect()
    if not reserved.is_empty():
        raise SourceError(
            f"the category {reserved['category'][0]!r} of sample {reserved['sample_id'][0][:12]} is a name Salon reserves "
            "for totals; rename it in the source"
        )


def numbered_within(hashed: Array, group: Array) -> tuple[Array, Array]:
    """The number of each distinct (hash, group) at each row, such as of a prompt's samples, and the group of each number."""
    order = np.lexsort((hashed, group))
    is_first = np.ones(len(order), bool)
    is_first[1:] = (np.diff(group[order]) != 0) | (hashed[order][1:] != hashed[order][:-1])
    number = np.empty(len(order), np.int32)
    number[order] = np.cumsum(is_first) - 1
    return number, group[order[is_first]]


def _twins(frame: pl.DataFrame, prompt: Array, sample: Array) -> tuple[Array, Array]:
    """`twin` and `is_again` of Judged."""
    twin = np.empty(int(sample.max(initial=-1)) + 1, np.int32)
    twin[sample] = numbered_within(frame["twin"].to_numpy(), prompt)[0]
    return twin, frame["is_again"].to_numpy()


def _prompts(frame: pl.DataFrame) -> tuple[Array, Array, list[pl.Series]]:
    """The prompts within cells and categories as sorted codes, the number of each judgement's, and the names in the codes."""
    code, names = np.zeros(frame.height, np.int64), []
    for name in PROMPT:
        place, sorted_names = _numbered(frame[name])
        physical = frame[name].to_physical().to_numpy()
        for rows in _chunks(frame.height):
            code[rows] = code[rows] * max(1, len(sorted_names)) + place[physical[rows]]
        names.append(sorted_names)
    found, prompt = np.unique(code), np.empty(len(code), np.int32)
    for rows in _chunks(len(code)):
        prompt[rows] = np.searchsorted(found, code[rows])
    return found, prompt, names


def _chunks(n_rows: int) -> Iterator[slice]:
    return (slice(start, start + _CHUNK_ROWS) for start in range(0, n_rows, _CHUNK_ROWS))


def _numbered(values: pl.Series) -> tuple[Array, pl.Series]:
    """The place of each physical value among the sorted names, and the names. Strings are compared once a name."""
    found = values.unique()
    names = found.cast(pl.String)
    codes = found.to_physical().to_numpy()
    place = np.zeros(int(codes.max()) + 1 if len(codes) else 1, np.int64)
    place[codes[names.arg_sort().to_numpy()]] = np.arange(len(codes))
    return place, names.sort()
