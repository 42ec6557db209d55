"""Judged samples with their scores, in a notebook as cards with their pictures, which are read from the lake when shown."""

import base64
import io
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from salon.errors import SalonError
from salon.rows import narrowed

if TYPE_CHECKING:
    import polars as pl

    from salon.publication import Publication

N_SHOWN = 24
"""Cards in a notebook; a notebook keeps what it shows, pictures and all."""

_KINDS = {b"\x89PNG": "png", b"\xff\xd8\xff": "jpeg", b"GIF8": "gif", b"RIFF": "webp", b"BM": "bmp"}  # what browsers show
_KEY = ("sample_id", "rubric_id", "judge_model", "repeat")
_READ = ("score", "status", "reason", "note")
_SECOND = ("second_sample_id", "second_model", "second_checkpoint")
_OF_SAMPLE = ("sample_id", "model", "checkpoint", "prompt", "category", "seed", "source_key", "image_sha256")


@dataclass(frozen=True)
class Samples:
    """`frame` has a row for each sample, rubric, judge, repeat, dimension and `item`; `reason` says why a score is null.

    `image_path`: where in its source the sample's picture is.

    In pairs also for each `second_sample_id`, the one shown after it: the score is 1 where the sample won, 0.5 for a tie, else 0.
    """

    publication: "Publication"
    frame: "pl.DataFrame"

    @classmethod
    def of(cls, publication: "Publication", prompt: str | None, named: Mapping[str, str], rubric: str | None) -> "Samples":
        """See Publication.samples."""
        import polars as pl

        samples = narrowed(publication.table("samples"), **named)
        samples = samples.select(*_OF_SAMPLE, image_path=_image_path(samples))
        if prompt is not None:
            samples = samples.filter(pl.col("prompt").str.to_lowercase().str.contains(prompt.lower(), literal=True))
        asked = publication.table("judgements").filter(pl.col("occasion") == "")  # anchors are asked again each night
        lacking = [name for name in _SECOND if name not in asked.columns]  # in a publication from before there were pairs
        asked = narrowed(asked.with_columns(pl.lit(None, pl.String).alias(name) for name in lacking), rubric_id=rubric)
        asked = asked.select(*_KEY, *_SECOND, "request_key", judgement_status="status", judgement_reason="reason")
        read = publication.table("scores")
        read = read.select("request_key", "dimension", "item" if "item" in read.columns else pl.lit("").alias("item"), *_READ)
        joined = samples.join(asked, on="sample_id").join(read, on="request_key", how="left")
        joined = joined.with_columns(
            status=pl.coalesce("status", "judgement_status"), reason=pl.coalesce("reason", "judgement_reason")
        )
        order = ("prompt", "model", "checkpoint", *_KEY, "second_sample_id", "dimension", "item")
        return cls(publication, joined.drop("request_key", "judgement_status", "judgement_reason").sort(order))

    def pictures(self, sample_ids: Iterable[str] | None = None) -> dict[str, bytes]:
        """The stored bytes of these samples' pictures (default: all of the frame's); of those that the place holds."""
        import polars as pl

        wanted = list(dict.fromkeys(self.frame["sample_id"] if sample_ids is None else sample_ids))
        place = self.publication.place
        dataset = f"dataset_id={self.publication.provenance()['identities']['dataset_id']}"
        # A lake of an older release has the pictures in `samples` itself.
        names = place.names(f"pictures/{dataset}", ".parquet") or place.names(f"samples/{dataset}", ".parquet")
        shown = self.frame.filter(pl.col("sample_id").is_in(wanted)).select("sample_id", "image_sha256").drop_nulls().unique()
        found: dict[str, bytes] = {}
        for name in names:
            part = io.BytesIO(place.read(name) or b"") if place.is_remote else Path(place.root, name)
            try:
                mine = pl.scan_parquet(part, hive_partitioning=False).filter(
                    pl.col("image_sha256").is_in(shown["image_sha256"].implode())
                )
                rows = mine.select("image_sha256", pl.col("image").struct.field("bytes")).drop_nulls().collect()
            except (OSError, pl.exceptions.PolarsError) as error:
                raise SalonError(f"{place.root}/{name} cannot be read ({error}); restore it") from error
            found |= dict(rows.iter_rows())
        return {sample_id: found[digest] for sample_id, digest in shown.iter_rows() if digest in found}

    @cached_property
    def _rows(self) -> dict[str, list[dict[str, Any]]]:
        rows: dict[str, list[dict[str, Any]]] = {}
        for row in self.frame.iter_rows(named=True):
            rows.setdefault(row["sample_id"], []).append(row)
        return rows

    def __len__(self) -> int:
        return len(self._rows)

    def __repr__(self) -> str:
        return f"Samples({len(self)} samples, {self.frame.height} scores)\n{self.frame}"

    def _repr_html_(self) -> str:
        shown = list(self._rows)[:N_SHOWN]
        pictures = self.pictures(shown)
        cards = "".join(_card(self._rows[one], pictures.get(one)) for one in shown)
        rest = f"; the first {len(shown)} are shown" if len(self) > len(shown) else ""
        style = "display:flex;flex-wrap:wrap;gap:12px"
        return f'<p>{len(self)} samples, {self.frame.height} scores{rest}</p><div style="{style}">{cards}</div>'


def _image_path(samples: "pl.DataFrame") -> "pl.Expr":
    """Where in the source the judged picture is; null where a row carries it, and in older lakes."""
    import polars as pl

    if "pictures" not in samples.columns:
        return pl.lit(None, pl.String)
    of_image = pl.element().filter(pl.element().struct.field("role") == "image").struct.field("path")
    return pl.col("pictures").list.eval(of_image).list.first()


def _card(rows: list[dict[str, Any]], picture: bytes | None) -> str:
    first = rows[0]
    said = [f"{row['rubric_id']} {_named(row)}{_against(row)}: {_score(row)}" for row in rows]
    lines = [f"{first['model']} / {first['checkpoint']}", first["prompt"] or first["source_key"], *said, first["sample_id"][:12]]
    text = "".join(f"<div>{escape(str(line))}</div>" for line in lines)
    return f'<div style="width:190px;font-size:12px;overflow-wrap:anywhere">{_picture(picture, first)}{text}</div>'


def _named(row: Mapping[str, Any]) -> str:
    return f"{row['dimension'] or ''}, item {row['item']}" if row["item"] else row["dimension"] or ""


def _against(row: Mapping[str, Any]) -> str:
    return "" if row["second_sample_id"] is None else f", before {row['second_model']} / {row['second_checkpoint']}"


def _score(row: Mapping[str, Any]) -> str:
    why = row["reason"] or row["status"] or "no reply"
    if row["score"] is None:
        return f"no score ({why})"
    return f"{row['score']:g}" + ("" if row["status"] == "scored" else f" ({why})")


def _picture(content: bytes | None, row: Mapping[str, Any]) -> str:
    kind = next((kind for start, kind in _KINDS.items() if content and content.startswith(start)), None)
    if content is None or kind is None:
        return f"<div>{'no picture here' if row['image_sha256'] else 'without a picture'}</div>"
    data = base64.b64encode(content).decode()
    return f'<img alt="" style="max-width:190px;max-height:190px" src="data:image/{kind};base64,{data}">'
