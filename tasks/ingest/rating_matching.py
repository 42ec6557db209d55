"""Which sample each rating is of. How ratings are read is ratings.py, why one does not count ratings_left_out.py."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import polars as pl

from schemas.benchmark.exam import EXAM
from schemas.benchmark.file import Benchmark
from schemas.errors import SourceError
from schemas.statuses.people import RatingStatus
from schemas.statuses.rows import SampleStatus
from schemas.tables.agreement import RATINGS
from schemas.tables.stored import SAMPLES
from schemas.tables.table import conform
from tasks.ingest.paths import quote
from tasks.ingest.ratings import IDENTIFIERS, NARROWING, RatingCell
from tasks.ingest.ratings_left_out import check_named, settle_repeats
from tasks.ingest.sources import ResolvedSource, expand
from tasks.lake.pictures import StoredDataset, with_picture_path

N_EXAMPLES = 3
_SHOWN_CHARACTERS = 80
_READ = ("sample_id", "item_id", "source", "source_key", "model", "checkpoint", "seed", "prompt", "image_sha256", "status")


def rated_samples(dataset: StoredDataset, benchmark: Benchmark, own_texts: Sequence[str]) -> pl.DataFrame:
    """What ratings can know a sample by; `place` is its picture's path from the folder of the benchmark file.

    A duplicate, or an id again, is not rated: its first row is; nor is an exam's twin.
    """
    paths = dataset.lake.parts_without_pictures(SAMPLES, dataset.id)
    samples = pl.concat(with_picture_path(path, _READ) for path in paths)
    samples = samples.filter(pl.col("model") != EXAM)
    samples = samples.filter(~pl.col("status").is_in([SampleStatus.DUPLICATE.value, SampleStatus.REPEATED_ID.value]))
    return _with_place(samples.drop("status"), expand(benchmark, own_texts), benchmark.folder)


def _with_place(samples: pl.DataFrame, sources: Iterable[ResolvedSource], folder: Path) -> pl.DataFrame:
    """The path in the source is one for each folder that a `{checkpoint}` stands for; this one opens the picture."""
    roots = pl.DataFrame(
        [
            (one.name, one.key(""), str(one.root.relative_to(folder) if one.root.is_relative_to(folder) else one.root))
            for one in sources
        ],
        schema={"source": pl.String, "prefix": pl.String, "root": pl.String}, orient="row",
    )  # fmt: skip
    found = samples.select("sample_id", "source", "source_key", "image").join(roots, on="source")
    found = found.filter(pl.col("source_key").str.starts_with(pl.col("prefix"))).sort(pl.col("prefix").str.len_bytes())
    path = pl.concat_str("root", "image", separator="/").str.strip_prefix("./")
    places = found.group_by("sample_id", maintain_order=True).agg(place=path.last())
    return samples.join(places, on="sample_id", how="left", maintain_order="left")


def match_ratings(
    cells: Iterable[RatingCell], samples: pl.DataFrame, dimensions: Mapping[str, str] = MappingProxyType({})
) -> pl.DataFrame:
    """The `ratings` table: every cell with its sample, or why it has none, sorted by rating_key.

    `dimensions`, as dimension_names() of metrics.py: what ratings call them, and what this table does. The first of IDENTIFIERS
    a row has is looked up; model, checkpoint and seed, where the row has them, must agree.
    Raises SourceError where the tables are empty, no cell is of any sample, or a file that names no rater is several's.
    """
    frame = _frame(cells).with_columns(pl.col("dimension").replace(dict(dimensions)))
    if frame.is_empty():
        raise SourceError("the tables of ratings contain no ratings; check the files, and `where` under [ratings]")
    found = _with_what_was_looked_up(matched(frame, samples))
    number = pl.col("rating").cast(pl.String).str.strip_suffix(".0")
    ok = found.filter(status=RatingStatus.OK.value).with_columns(key="rating_key", value="rating", text=number)
    found = settle_repeats(found, ok, ["sample_id", "dimension", "rater", "kind"])
    check_named(found, "ratings", "[ratings]")
    if found["sample_id"].null_count() == found.height:
        _check_no_sample_meant_twice(frame, found, samples)
        first = ", ".join(found["rating_key"].head(N_EXAMPLES)) + _looked_up(frame, samples)
        raise SourceError(
            f"none of the {found.height} ratings matches a sample of the dataset (the first: {first}); map item_id, "
            "and model if several models share the ids, under [ratings] columns"
        )
    order = pl.Series([natural(key) for key in found["rating_key"]])
    return pl.DataFrame(conform(found.with_columns(order=order).sort("order"), RATINGS))


def _with_what_was_looked_up(found: pl.DataFrame) -> pl.DataFrame:
    """The cells of no one sample, with what their rows call it as the detail."""
    said = [
        pl.concat_str(pl.lit(f"{name} "), pl.col(f"said_{name}").str.slice(0, _SHOWN_CHARACTERS))
        for name in (*IDENTIFIERS, *NARROWING)
    ]
    names = pl.concat_str(said, separator=", ", ignore_nulls=True)
    told = (
        pl.when(names == "").then(pl.lit("the row does not name a sample"))
        .when(pl.col("n_hits") > 1).then(pl.format("{} samples have {}", "n_hits", names))
        .otherwise(pl.format("no sample has {}", names))
    )  # fmt: skip
    return found.with_columns(detail=pl.when(pl.col("sample_id").is_null()).then(told).otherwise("detail"))


def _check_no_sample_meant_twice(frame: pl.DataFrame, found: pl.DataFrame, samples: pl.DataFrame) -> None:
    """Raises SourceError where ratings are of no one sample since theirs cannot be told apart, with what would do that."""
    several = found.filter(status=RatingStatus.AMBIGUOUS.value).sort("row")
    if several.is_empty():
        return
    row = several.row(0, named=True)
    hits = _hits(frame.filter(row=row["row"]), samples)
    apart = [one for one in NARROWING if hits[f"is_{one}"].n_unique() > 1]
    said = ", ".join(
        f"{name} {quote(text, 80)}" for name in (*IDENTIFIERS, *NARROWING) if (text := row[f"said_{name}"]) is not None
    )
    differ = f" that differ in {' and '.join(apart)}" if apart else ""
    remedy = (
        f"give the ratings a column {' and '.join(apart)}, or map it"
        if apart
        else f"map one of {', '.join(IDENTIFIERS)} that does"
    )
    raise SourceError(
        f"none of the {found.height:,} ratings matches exactly one sample: {several.height:,} match several (the first: "
        f"{row['rating_key']}, {said}: {hits.height} samples{differ}); {remedy} under [ratings] columns"
    )


def _looked_up(frame: pl.DataFrame, samples: pl.DataFrame) -> str:
    """What the first rating says its sample is, and such a name as the samples have."""
    name = next((one for one in IDENTIFIERS if frame[f"said_{one}"][0] is not None), None)
    if name is None:
        return ""
    known = samples[name].drop_nulls().head(1).to_list()
    have = f"have values such as {known[0][:80]!r}" if known else "have none"
    return f", {name} {frame[f'said_{name}'][0][:80]!r}, while the samples {have}"


def _frame(cells: Iterable[RatingCell]) -> pl.DataFrame:
    rows = [
        {
            "rating_key": cell.key, "dimension": cell.dimension, "rater": cell.rater, "is_named": cell.is_named,
            "kind": cell.kind.value,
            "rating": cell.rating, "scale_low": cell.scale.min if cell.scale else None,
            "scale_high": cell.scale.max if cell.scale else None, "scale_step": cell.scale.step if cell.scale else None,
            "status": cell.status.value, "detail": cell.detail,
            **{f"said_{name}": cell.names.get(name) for name in (*IDENTIFIERS, *NARROWING)},
        }
        for cell in cells
    ]  # fmt: skip
    empty = RATINGS.empty().drop("sample_id", "item_id").schema
    said = {f"said_{name}": pl.String() for name in (*IDENTIFIERS, *NARROWING)}
    return pl.DataFrame(rows, schema={**empty, **said, "is_named": pl.Boolean()}).with_row_index("row")


def matched(frame: pl.DataFrame, samples: pl.DataFrame, identifiers: Sequence[str] = IDENTIFIERS) -> pl.DataFrame:
    """The cells with `sample_id` and `item_id`, or the status unmatched or ambiguous.

    `frame` has a row number `row`, a `status`, and what its row says in `said_` columns; `samples` as rated_samples().
    """
    hits = (
        _hits(frame, samples, identifiers)
        .group_by("row")
        .agg(pl.len().alias("n_hits"), pl.first("sample_id"), pl.first("item_id"))
    )
    joined = frame.join(hits, on="row", how="left").sort("row")
    is_one = pl.col("n_hits") == 1
    why = pl.when(pl.col("n_hits") > 1).then(pl.lit(RatingStatus.AMBIGUOUS.value)).otherwise(pl.lit(RatingStatus.UNMATCHED.value))
    return joined.with_columns(
        sample_id=pl.when(is_one).then("sample_id"),
        item_id=pl.when(is_one).then("item_id").otherwise("said_item_id"),
        status=pl.when(is_one).then("status").otherwise(why),
    )


def _hits(frame: pl.DataFrame, samples: pl.DataFrame, identifiers: Sequence[str] = IDENTIFIERS) -> pl.DataFrame:
    """A row for each cell and each sample it can be of, with what tells that sample from others of its name."""
    texts = samples.with_columns(pl.col("seed").cast(pl.String))
    rest, pieces = frame, []
    for name in identifiers:
        mine, rest = rest.filter(pl.col(f"said_{name}").is_not_null()), rest.filter(pl.col(f"said_{name}").is_null())
        mine = mine.select("row", *_said(), identifier=f"said_{name}")
        pieces.append(_of_picture(mine, texts) if name == "image" else mine.join(_known(texts, name), on="identifier"))
    agrees = [pl.col(f"said_{one}").is_null() | pl.col(f"said_{one}").eq_missing(pl.col(f"is_{one}")) for one in NARROWING]
    return pl.concat(pieces).filter(*agrees)


def _known(texts: pl.DataFrame, name: str) -> pl.DataFrame:
    """What is known by this name, as `identifier`, with what tells samples of one name apart."""
    narrowing = (pl.col(one).alias(f"is_{one}") for one in NARROWING)
    return texts.filter(pl.col(name).is_not_null()).select(pl.col(name).alias("identifier"), "sample_id", "item_id", *narrowing)


def _of_picture(mine: pl.DataFrame, texts: pl.DataFrame) -> pl.DataFrame:
    """By the sample's key or its picture's path; else by the picture's file, where one of both paths is the end of the other.

    Of paths that end alike the one that has most of what the row says is meant.
    """
    mine = mine.with_columns(pl.col("identifier").str.replace_all("\\", "/", literal=True).str.replace(r"^(\./)+", ""))
    by_path = pl.concat([_known(texts, "image"), _known(texts, "place")])
    exact = mine.join(pl.concat([_known(texts, "source_key"), by_path]), on="identifier").unique(["row", "sample_id"])
    file = pl.col("identifier").str.split("/").list.last().alias("file")
    said, path = (pl.concat_str(pl.lit("/"), name) for name in ("identifier", "path"))
    ends = (
        mine.join(exact, on="row", how="anti")
        .with_columns(file)
        .join(by_path.with_columns(file).rename({"identifier": "path"}), on="file")
    )
    ends = ends.filter(said.str.ends_with(path) | path.str.ends_with(said))
    shared = pl.min_horizontal(said.str.len_bytes(), path.str.len_bytes())
    ends = ends.filter(shared == shared.max().over("row")).unique(["row", "sample_id"], maintain_order=True)
    return pl.concat([exact, ends.select(exact.columns)])


def _said() -> list[str]:
    return [f"said_{one}" for one in NARROWING]


def natural(key: str) -> str:
    """A text that sorts row 10 after row 9."""
    return re.sub(r"\d+", lambda found: found[0].zfill(12), key)
