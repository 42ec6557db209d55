"""The charts, as Altair charts of named data: what is on which axis. Colours and the drawing to SVG are drawing.py."""

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

import altair as alt

from tasks.publish.report.drawing import ACCENT, ALARM, INK, LINE, QUIET, ROWS, SERIES, WIDTH_PX

Row = Mapping[str, Any]
_ROW_PX = 26
_N_TICKS = 5
_SHAPES = ("circle", "square", "triangle-up", "diamond")
"""Of the points of models that share a colour."""
_FIT = alt.AutoSizeParams(type="fit-x", contains="padding")


def trend(rows: Sequence[Row], scale_title: str) -> alt.TopLevelMixin:
    """Mean and interval over the checkpoints of each model. Rows: model, checkpoint, order, estimate, ci_low, ci_high."""
    models = list(dict.fromkeys(row["model"] for row in rows))
    places = [divmod(index, len(SERIES)) for index in range(len(models))]
    legend = alt.Legend(symbolOpacity=1) if len(models) > 1 else None
    scale = alt.Scale(domain=models, range=[SERIES[place] for _, place in places])
    shapes = alt.Scale(domain=models, range=[_SHAPES[again % len(_SHAPES)] for again, _ in places])
    colour = alt.Color("model:N", scale=scale, legend=legend)  # of every layer: the legend of one without hides that of all
    shape = alt.Shape("model:N", scale=shapes, legend=legend)
    base = _chart().encode(
        x=alt.X("checkpoint:N", sort=alt.EncodingSortField("order", op="min"), axis=_slanted(rows)), color=colour
    )
    score = alt.Scale(zero=False, nice=True)
    y = alt.Y("estimate:Q", title=scale_title, scale=score, axis=_axis(rows, 5, ("estimate", "ci_low", "ci_high")))
    band = base.mark_area(opacity=0.14).encode(y=alt.Y("ci_low:Q", title=scale_title, scale=score), y2=alt.Y2("ci_high"))
    line = base.mark_line(strokeWidth=2).encode(y=y)
    rule = base.mark_rule(strokeWidth=1.5).encode(y=alt.Y("ci_low:Q"), y2=alt.Y2("ci_high"))
    point = base.mark_point(filled=True, size=55, opacity=1).encode(y=y, shape=shape)
    return _sized((band + rule + line + point), 210)


def intervals(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """A point and its interval for each name, in the rows' order. Rows: name, order, value, low, high, is_marked."""
    return _sized(alt.layer(*_spans(rows, title, alt.Axis())), _height(rows))


def differences(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """The same around a line at 0: no difference. A name is a number, not shown, and two lines: who, and against whom."""
    names = alt.Axis(labelExpr="slice(split(datum.label, '\\n'), 1)", labelLimit=200, labelLineHeight=12)
    zero = _chart().mark_rule(color=INK, strokeDash=[3, 3]).encode(x=alt.XDatum(0))
    return _sized(alt.layer(zero, *_spans(rows, title, names)), _height(rows, 34))


def _spans(rows: Sequence[Row], title: str, names: alt.Axis) -> tuple[alt.Chart, alt.Chart]:
    base = _chart().encode(
        y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("order", op="min"), axis=names),
        color=alt.Color("is_marked:N", scale=alt.Scale(domain=[True, False], range=[ACCENT, QUIET]), legend=None),
    )
    scale = alt.Scale(zero=False, nice=True)
    axis = _axis(rows, 6, ("value", "low", "high"))
    axis.labelFlush = False
    rule = base.mark_rule(strokeWidth=2).encode(x=alt.X("low:Q", title=title, scale=scale, axis=axis), x2=alt.X2("high"))
    return rule, base.mark_point(filled=True, size=60, opacity=1, shape="circle").encode(x=alt.X("value:Q"))


def heatmap(rows: Sequence[Row], low: float, high: float) -> alt.TopLevelMixin:
    """A cell for each checkpoint and category, the fuller the higher. Rows: name, order, category, estimate (or null), text."""
    names = {row["category"] for row in rows}
    shade = alt.FillOpacity("estimate:Q", scale=alt.Scale(domain=[low, high], range=[0.03, 0.5]), legend=None)
    axis = alt.Axis(orient="top", labelAngle=-40 if len(names) > 3 else 0, labelLimit=110)
    base = _chart().encode(
        y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("order", op="min")), x=alt.X("category:N", title=None, axis=axis)
    )
    boxes = base.mark_rect(fill=ACCENT, stroke="var(--page)", strokeWidth=2).encode(fillOpacity=shade)
    numbers = base.mark_text(fontSize=11 if len(names) <= 7 else 8).encode(text=alt.Text("text:N"))
    return _sized((boxes + numbers), _height(rows, 30))


def distributions(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """How the scores of each checkpoint spread over the scale. Rows: name, order, score_from, share, text (or empty)."""
    shade = alt.FillOpacity("share:Q", scale=alt.Scale(domain=[0, 1], range=[0.02, 0.75]), legend=None)
    base = _chart().encode(
        y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("order", op="min")),
        x=alt.X(
            "score:N",
            title=title,
            sort=alt.EncodingSortField("score_from", op="min"),
            axis=alt.Axis(labelAngle=0, labelOverlap=True),
        ),
    )
    boxes = base.mark_rect(fill=ACCENT, stroke="var(--page)", strokeWidth=1).encode(fillOpacity=shade)
    numbers = base.mark_text(fontSize=10).encode(text=alt.Text("text:N"))
    return _sized((boxes + numbers), _height(rows, 30))


def failures(rows: Sequence[Row]) -> alt.TopLevelMixin:
    """Judgements without a score, stacked by reason. Rows: name, order, reason, n."""
    reasons = sorted({row["reason"] for row in rows})
    colour = alt.Color("reason:N", scale=alt.Scale(domain=reasons, range=[SERIES[i % len(SERIES)] for i in range(len(reasons))]))
    counts: Counter[object] = Counter()
    for row in rows:
        counts[row["name"]] += int(row["n"])
    most = max(counts.values(), default=0)  # of so few, Vega would put ticks between whole numbers
    ticks = alt.Axis(values=list(range(most + 1)), format="d") if most <= _N_TICKS else alt.Axis(tickCount=_N_TICKS, format="d")
    chart = _chart().mark_bar(height=14).encode(
        y=alt.Y("name:N", title=None, sort=alt.EncodingSortField("order", op="min")),
        x=alt.X("n:Q", title="judgements without a score", axis=ticks),
        color=colour,
    )  # fmt: skip
    return _sized(chart, _height(rows))


def nights(rows: Sequence[Row], title: str) -> alt.TopLevelMixin:
    """A series over nights, hollow where another judge measured one (`is_bridged`).

    Rows: run_date (ISO), is_alarm, is_bridged; estimate, ewma, limit_low, limit_high, null where there is none.
    """
    days = [date.fromisoformat(one) for one in sorted({row["run_date"] for row in rows})]
    named = [alt.DateTime(year=day.year, month=day.month, date=day.day, utc=True) for day in days]
    ticks: dict[str, Any] = (
        {"values": named} if len(days) <= _N_TICKS else {"tickCount": 4}
    )  # of so few, Vega would name a day several times
    base = _chart().encode(
        x=alt.X("run_date:T", title=None, scale=alt.Scale(type="utc"), axis=alt.Axis(format="%d %b %Y", grid=False, **ticks))
    )
    score = alt.Scale(zero=False, nice=True)
    limits = base.mark_area(fill=LINE, opacity=0.8).encode(
        y=alt.Y("limit_low:Q", title=title, scale=score), y2=alt.Y2("limit_high")
    )
    nightly = base.encode(y=alt.Y("estimate:Q", axis=_axis(rows, 4, ("estimate", "ewma", "limit_low", "limit_high"))))
    point = nightly.transform_filter("!datum.is_bridged").mark_point(filled=True, size=14, color=QUIET, opacity=0.9)
    carried = nightly.transform_filter("datum.is_bridged").mark_point(size=14, color=QUIET, opacity=0.9, strokeWidth=1)
    mean = base.mark_line(color=ACCENT, strokeWidth=2).encode(y=alt.Y("ewma:Q"))
    alarm = base.transform_filter("datum.is_alarm").mark_point(shape="triangle-up", filled=True, size=75, color=ALARM, opacity=1)
    return _sized((limits + point + carried + mean + alarm.encode(y=alt.Y("estimate:Q"))), 150)


def _axis(rows: Sequence[Row], n_ticks: int, names: Sequence[str]) -> alt.Axis:
    """The axis of numbers. Where all are one, its digits are named: Vega would write that lone tick as a whole number."""
    values = {f"{row[name]:.6g}" for row in rows for name in names if row[name] is not None}
    return alt.Axis(tickCount=n_ticks, format=".4~r" if len(values) == 1 else alt.Undefined)


def _sized(chart: alt.Chart | alt.LayerChart | alt.FacetChart, height_px: int) -> alt.TopLevelMixin:
    made: alt.TopLevelMixin = chart.properties(width=WIDTH_PX, height=height_px, autosize=_FIT)
    return made


def _chart() -> alt.Chart:
    return alt.Chart(alt.NamedData(name=ROWS))


def _height(rows: Sequence[Row], row_px: int = _ROW_PX) -> int:
    return max(2, len({row["name"] for row in rows})) * row_px


def _slanted(rows: Sequence[Row]) -> alt.Axis:
    """Labels of the checkpoints: level while there is room."""
    n_letters = sum(len(name) + 3 for name in {row["checkpoint"] for row in rows})
    return alt.Axis(title=None, grid=False, labelAngle=0 if n_letters < 60 else -40, labelOverlap=n_letters > 300)
