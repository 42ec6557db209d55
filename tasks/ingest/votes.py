"""People's votes on pairs of pictures out of tables, and which two samples each is of. Ratings of one picture are ratings.py."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl

from schemas.benchmark.ratings import Votes
from schemas.errors import InputError, SourceError
from schemas.pointers import steps
from schemas.statuses.people import RatingStatus
from schemas.tables.agreement import VOTES
from schemas.tables.table import Row, conform
from tasks.delimited import columns_told
from tasks.ingest.paths import encodable, quote
from tasks.ingest.rating_matching import N_EXAMPLES, matched, natural
from tasks.ingest.ratings import IDENTIFIERS, NARROWING, name_of_rater, rating_files, text_at, value_at, whose, why_reserved
from tasks.ingest.ratings_left_out import check_named, settle_repeats
from tasks.ingest.readers.tables import records
from tasks.ingest.values import is_equal

SIDES = ("a", "b")
BY_PROMPT = (*IDENTIFIERS, "prompt")
"""What can name a side, the surest first; the prompt, which both share, where its model and checkpoint have one picture of it."""
_OF_SIDE = (*IDENTIFIERS, *NARROWING)
NAMES = (*(f"{name}_{side}" for side in SIDES for name in _OF_SIDE), "prompt", "rater", "dimension", "vote", "shown_first")
"""What `ratings.votes.columns` may map; by default each is the column of the same name."""


def read_votes(paths: Sequence[Path], votes: Votes, dimension: str) -> Iterator[Row]:
    """Every vote of every file, before it is known which samples are meant; a folder stands for the files of rows in it.

    `dimension` is meant where neither the row nor [ratings.votes] says one. Raises SourceError where a file cannot be read or
    lacks a column it needs, InputError where a name is wrong.
    """
    for name in votes.columns:
        if name not in NAMES:
            raise InputError(f"ratings.votes.columns: {name} is not a name Salon knows; allowed: {', '.join(NAMES)}")
    words = {word.strip().casefold(): worth for word, worth in votes.words.items()}
    for path in rating_files(paths):
        columns = {*votes.columns.values(), *NAMES, *votes.where}
        columns |= {str(steps(column)[0]) for column in columns}
        is_checked = False
        for number, row, there in records(path, path.name, columns):
            key = encodable(f"{path.name}#{number}")
            if isinstance(row, str):
                yield _vote(key, {}, votes.dimension or dimension, (path.stem, True), None, RatingStatus.BAD_VALUE, row)
                continue
            if not is_checked or there:
                _check_columns(votes, [str(name) for name in (there or row)], key)
                is_checked = True
            if all(is_equal(value_at(row, pointer), wanted) for pointer, wanted in votes.where.items()):
                said = {name: text for name in NAMES if (text := text_at(row, votes.columns.get(name, name))) is not None}
                rater = whose(name_of_rater(said.get("rater")), path, is_unnamed=votes.unnamed)
                yield _read(key, said, votes.dimension or said.get("dimension") or dimension, rater, words)


def _check_columns(votes: Votes, known: Sequence[str], place: str) -> None:
    mapped, there = {*votes.columns.values(), *votes.where}, columns_told(known)
    for pointer in sorted(mapped):
        if pointer not in known and str(steps(pointer)[0]) not in known:
            raise SourceError(f"{place} has no column {pointer!r}, which [ratings.votes] names; its columns: {there}")
    has = {name for name in NAMES if name in votes.columns or name in known}
    for side in SIDES:
        names = [f"{name}_{side}" for name in IDENTIFIERS]
        if not has & {*names, "prompt"}:
            raise SourceError(
                f"{place} does not name sample {side}: map one of {', '.join(names)}, or prompt with model_{side} and "
                f"checkpoint_{side}, under [ratings.votes] columns; its columns: {there}"
            )
    if "vote" not in has:
        raise SourceError(f'{place} has no column "vote"; map it under [ratings.votes] columns; its columns: {there}')


def _read(key: str, said: Mapping[str, str], dimension: str, rater: tuple[str, bool], words: Mapping[str, float]) -> Row:
    word = said.get("vote")
    worth = None if word is None else words.get(word.strip().casefold())
    status, detail = RatingStatus.OK, None
    if word is None:
        status = RatingStatus.MISSING
    elif worth is None:
        allowed = ", ".join(words)
        status, detail = RatingStatus.UNKNOWN_WORD, f"{quote(word, 60)} is not a vote; [ratings.votes] words has {allowed}"
    elif detail := why_reserved(rater[0]):
        status = RatingStatus.RESERVED_NAME
    return _vote(key, said, dimension, rater, worth, status, detail) | {
        "shown_first": {1.0: "a", 0.0: "b"}.get(words.get(said.get("shown_first", "").strip().casefold(), -1.0))
    }


def _vote(
    key: str, said: Mapping[str, str], dimension: str, rater: tuple[str, bool], worth: float | None, status: RatingStatus,
    detail: str | None,
) -> Row:  # fmt: skip
    sides = {f"said_{name}_{side}": said.get(f"{name}_{side}") for side in SIDES for name in _OF_SIDE}
    return {
        "vote_key": key, "dimension": dimension, "rater": rater[0], "is_named": rater[1], "vote": worth, "shown_first": None,
        "status": status.value, "detail": detail, "prompt": said.get("prompt"), **sides,
    }  # fmt: skip


def match_votes(votes: Iterable[Row], samples: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """The `votes` table: every vote with its two samples, or why it does not count, sorted by vote_key.

    `samples` as rated_samples(); `units` has a row for each sample that stands in pairs: rubric_id, dimension, sample_id,
    prompt_id, model, checkpoint. Raises SourceError where the tables are empty, or no vote is of two samples.
    """
    schema = {**VOTES.empty().drop("sample_id_a", "sample_id_b").schema, "prompt": pl.String()}
    schema |= {"is_named": pl.Boolean()} | {f"said_{name}_{side}": pl.String() for side in SIDES for name in _OF_SIDE}
    frame = pl.DataFrame(list(votes), schema=schema).with_row_index("row")
    if frame.is_empty():
        raise SourceError("the tables of votes contain no votes; check the files, and `where` under [ratings.votes]")
    found = _settled(_paired(_sided(frame, samples), units))
    check_named(found, "votes", "[ratings.votes]")
    if found.filter(pl.col("sample_id_a").is_not_null() & pl.col("sample_id_b").is_not_null()).is_empty():
        keys = ", ".join(found["vote_key"].head(N_EXAMPLES))
        raise SourceError(
            f"none of the {found.height} votes matches two samples of the dataset (the first: {keys}); map item_id_a and "
            "item_id_b, and model_a and model_b if several models share the ids, under [ratings.votes] columns"
        )
    order = pl.Series([natural(key) for key in found["vote_key"]])
    return pl.DataFrame(conform(found.with_columns(order=order).sort("order"), VOTES))


def _sided(frame: pl.DataFrame, samples: pl.DataFrame) -> pl.DataFrame:
    """The votes with sample_id_a and sample_id_b; a side that is of no one sample gives its vote its status."""
    for side in SIDES:
        said = {f"said_{name}": pl.col(f"said_{name}_{side}") for name in _OF_SIDE}
        of_side = frame.select("row", **said, said_prompt="prompt", said_status="status", status=pl.lit(RatingStatus.OK.value))
        hits = matched(of_side, samples, BY_PROMPT).select(
            "row", pl.col("sample_id").alias(f"sample_id_{side}"), is_side="status"
        )
        named = pl.concat_str(
            [pl.lit(f"{side}:"), *(pl.col(f"said_{name}_{side}") for name in _OF_SIDE)], separator=" ", ignore_nulls=True
        )
        is_lost = (pl.col("status") == RatingStatus.OK.value) & (pl.col("is_side") != RatingStatus.OK.value)
        frame = (
            frame.join(hits, on="row", how="left", maintain_order="left")
            .with_columns(
                detail=pl.when(is_lost).then(named).otherwise("detail"),
                status=pl.when(is_lost).then("is_side").otherwise("status"),
            )
            .drop("is_side")
        )
    return frame


def _paired(frame: pl.DataFrame, units: pl.DataFrame) -> pl.DataFrame:
    """What two samples must be to be compared: two, of two checkpoints and one prompt under a rubric of pairs."""
    a, b = (
        units.select("rubric_id", "dimension", *(pl.col(name).alias(f"{name}_of_{side}") for name in _OF_UNIT)) for side in SIDES
    )
    names = ["row", "dimension", "sample_id_a", "sample_id_b"]
    both = (
        frame.select(names)
        .join(a, left_on=["dimension", "sample_id_a"], right_on=["dimension", "sample_id_of_a"])
        .join(b, left_on=["rubric_id", "dimension", "sample_id_b"], right_on=["rubric_id", "dimension", "sample_id_of_b"])
    )
    is_one_maker = (pl.col("model_of_a") == pl.col("model_of_b")) & (pl.col("checkpoint_of_a") == pl.col("checkpoint_of_b"))
    known = both.group_by("row").agg(
        is_one_prompt=(pl.col("prompt_id_of_a") == pl.col("prompt_id_of_b")).any(), is_one_maker=is_one_maker.any()
    )
    why = (
        pl.when(pl.col("sample_id_a") == pl.col("sample_id_b")).then(pl.lit(RatingStatus.SAME_SAMPLE.value))
        .when(pl.col("is_one_prompt").is_null()).then(pl.lit(RatingStatus.NOT_COMPARED.value))
        .when(pl.col("is_one_prompt").not_()).then(pl.lit(RatingStatus.DIFFERENT_PROMPTS.value))
        .when(pl.col("is_one_maker")).then(pl.lit(RatingStatus.SAME_CHECKPOINT.value))
        .otherwise("status")
    )  # fmt: skip
    joined = frame.join(known, on="row", how="left", maintain_order="left")
    return joined.with_columns(status=pl.when(pl.col("status") == RatingStatus.OK.value).then(why).otherwise("status"))


_OF_UNIT = ("sample_id", "prompt_id", "model", "checkpoint")


def _settled(frame: pl.DataFrame) -> pl.DataFrame:
    """Of the same vote given again the first counts; where a rater gave one pair two votes, whichever way round, none does."""
    is_turned = pl.col("sample_id_a") > pl.col("sample_id_b")
    ok = frame.filter(pl.col("status") == RatingStatus.OK.value).select(
        "row", "dimension", "rater", low=pl.min_horizontal("sample_id_a", "sample_id_b"),
        high=pl.max_horizontal("sample_id_a", "sample_id_b"), value=pl.when(is_turned).then(1 - pl.col("vote")).otherwise("vote"),
        key="vote_key", text=pl.lit("otherwise"),
    )  # fmt: skip
    return settle_repeats(frame, ok, ["low", "high", "dimension", "rater"])
