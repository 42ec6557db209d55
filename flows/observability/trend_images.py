"""The trend as images for the Prefect UI: headline means over a model's checkpoints, and over the nights with their limits."""

import base64
from collections.abc import Iterator
from itertools import groupby, islice
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import polars as pl

from schemas.lineage import oldest_first
from schemas.metrics import HEADLINE
from tasks.publish.exports import escape_markdown
from tasks.publish.leaderboard import leading
from tasks.publish.report.drawing import drawable

if TYPE_CHECKING:
    import altair as alt

N_IMAGES_MAX = 8  # about 20 kB each, and an artifact is one row of Prefect's database
N_DATES_MAX = 10  # named below a drawing
LEAST_MARGIN = 0.05  # above the highest score and below the lowest
_VEGA_LITE = "6.1"  # the generation Altair 6 writes
_LOOK = {"background": "white", "padding": 10, "width": 560, "height": 200}
_BLUE, _GREY, _RED = "#1f5fa8", "#8a919c", "#b3261e"


def trend_markdown(cells: pl.DataFrame, drift: pl.DataFrame | None) -> str:
    """A section with an image for each headline mean that has a trend, nights first; empty where none has.

    The images are data: URIs, which the UI shows in Markdown: they need no server and live as long as the artifact.
    """
    nights = _over_nights(drift) if drift is not None else iter(())
    drawn = [*islice(nights, N_IMAGES_MAX // 2)]
    drawn += islice(_over_checkpoints(cells), N_IMAGES_MAX - len(drawn))
    return "\n".join(
        f"### {escape_markdown(title)}\n\n![{escape_markdown(title)}]({_data_uri(chart)})\n" for title, chart in drawn
    )


def _over_checkpoints(cells: pl.DataFrame) -> Iterator[tuple[str, "alt.LayerChart"]]:
    import altair as alt

    for named, rows in groupby(leading(cells), key=itemgetter("rubric_id", "dimension", "judge_model")):
        shown = [row for row in rows if row["estimate"] is not None]
        if len(shown) <= len({row["model"] for row in shown}):
            continue  # no model has two checkpoints
        names = ("model", "checkpoint", "estimate", "ci_low", "ci_high")
        order = list(dict.fromkeys(str(row["checkpoint"]) for row in sorted(shown, key=lambda row: oldest_first(row)[1:])))
        base = alt.Chart(alt.InlineData(values=[{name: row[name] for name in names} for row in shown])).encode(
            x=alt.X("checkpoint:N", title=None, sort=order, axis=alt.Axis(labelAngle=-30)), color=alt.Color("model:N")
        )
        score = alt.Y("estimate:Q", title="mean, 95 % interval", scale=alt.Scale(zero=False))
        bars = base.mark_rule().encode(y=alt.Y("ci_low:Q"), y2="ci_high:Q")
        yield _titled(*named), bars + base.mark_line(point=True).encode(y=score)


def _over_nights(drift: pl.DataFrame) -> Iterator[tuple[str, "alt.LayerChart"]]:
    import altair as alt

    keys = ["rubric_id", "dimension", "judge_model", "model"]
    with_headline = drift.filter(dimension=HEADLINE)["rubric_id"].unique().to_list()
    headline = drift.filter((pl.col("dimension") == HEADLINE) | ~pl.col("rubric_id").is_in(with_headline))
    for named, rows in headline.sort(*keys, "run_date").group_by(keys, maintain_order=True):
        if rows["estimate"].count() < 2:
            continue  # one night, or nights of several checkpoints: no series
        is_bridged = pl.col("measured_by") != pl.col("judge_model")
        values = rows.select(
            pl.col("run_date").cast(pl.String), "estimate", "ewma", "limit_low", "limit_high", "is_alarm", is_bridged=is_bridged
        )
        nights = rows["run_date"].to_list()[:: 1 + rows.height // N_DATES_MAX]
        named_nights = [alt.DateTime(year=day.year, month=day.month, date=day.day, utc=True) for day in nights]
        base = alt.Chart(alt.InlineData(values=values.to_dicts())).encode(
            x=alt.X(
                "run_date:T",
                title=None,
                scale=alt.Scale(type="utc", padding=12),
                axis=alt.Axis(format="%-d %b", values=named_nights),
            )
        )
        shown = alt.Scale(domain=_reach(values.select("estimate", "ewma", "limit_low", "limit_high")), nice=False, zero=False)
        score = alt.Y("estimate:Q", title="mean of the night", scale=shown)
        limits = base.mark_area(color=_GREY, opacity=0.2).encode(y=alt.Y("limit_low:Q"), y2="limit_high:Q")
        points = (
            base.transform_filter("!datum.is_bridged").mark_point(filled=True, color=_GREY, size=45, opacity=1).encode(y=score)
        )
        carried = (
            base.transform_filter("datum.is_bridged").mark_point(filled=False, color=_GREY, size=45, opacity=1).encode(y=score)
        )
        alarms = base.transform_filter("datum.is_alarm").mark_point(shape="triangle-up", filled=True, size=90, color=_RED)
        lines = base.mark_line(color=_BLUE).encode(y="ewma:Q")
        title = _titled(*named) + _carried_over(rows.filter(is_bridged))
        yield title, limits + points + carried + lines + alarms.encode(y="estimate:Q")


def _reach(values: pl.DataFrame) -> list[float]:
    """The scores an axis spans, a little more than all values: equal ones would leave it without any width."""
    known = [value for column in values.iter_columns() for value in column.drop_nulls()]
    low, high = min(known), max(known)
    margin = max(0.05 * (high - low), LEAST_MARGIN)
    return [low - margin, high + margin]


def _carried_over(bridged: pl.DataFrame) -> str:
    """What the title says of nights another judge was asked on."""
    if bridged.is_empty():
        return ""
    judges = " and ".join(sorted(bridged["measured_by"].unique()))
    last_night = max(bridged["run_date"].to_list())
    return f" (hollow, up to {last_night}: {judges}, carried over by a bridge)"


def _titled(rubric_id: object, dimension: object, judge_model: object, model: object = None) -> str:
    return f"{rubric_id}, {dimension}{f' of {model}' if model is not None else ''}, judged by {judge_model}"


def _data_uri(chart: "alt.LayerChart") -> str:
    import vl_convert

    spec: dict[str, Any] = drawable(chart.to_dict(validate=False)) | _LOOK
    svg = vl_convert.vegalite_to_svg(spec, vl_version=_VEGA_LITE, allowed_base_urls=[])
    return "data:image/svg+xml;base64," + base64.b64encode(svg.encode()).decode()
