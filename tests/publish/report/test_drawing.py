"""Drawings are shapes and text, the same bytes each time, with colours that follow the page."""

import re
import time
from xml.etree import ElementTree as ET

import pytest

from tasks.publish.report import charts
from tasks.publish.report.boards import boards
from tasks.publish.report.drawing import draw, plain_svg
from tasks.publish.report.figures import figures

NASTY = "<script>alert(1)</script>\"'&]]>\u0000\u001b{{ }}datum.x"


def trend_rows(name="step-1"):
    return [
        {"model": model, "checkpoint": f"{name}{index}", "order": index, "estimate": 5.0 + index, "ci_low": 4.0, "ci_high": 8.0}
        for model in ("north", name)
        for index in range(3)
    ]


def interval_rows(name):
    return [{"name": f"{name}{i}", "order": i, "value": i, "low": i - 1, "high": None, "is_marked": i == 1} for i in range(3)]


def heat_rows(name):
    return [
        {"name": name, "order": 0, "category": name * 3, "estimate": None, "text": "–"},
        {
            "name": "b",
            "order": 1,
            "category": "c",
            "estimate": 3.0,
            "text": "3.0",
        },
    ]


def night_rows():
    common = {"ewma": 5.0, "limit_low": 4.5, "limit_high": 5.5}
    return [
        common | {"run_date": f"2026-01-0{day}", "estimate": 5.0 + day, "is_alarm": day == 3, "is_bridged": day == 1}
        for day in range(1, 5)
    ]


DRAWN = {
    "trend": lambda name: (charts.trend(trend_rows(name), name), trend_rows(name)),
    "intervals": lambda name: (charts.intervals(interval_rows(name), name), interval_rows(name)),
    "differences": lambda name: (charts.differences(interval_rows(f"0\n{name}"), name), interval_rows(f"0\n{name}")),
    "heatmap": lambda name: (charts.heatmap(heat_rows(name), 0, 10), heat_rows(name)),
    "distributions": lambda name: (
        charts.distributions(
            rows := [{"name": name, "order": 0, "score": "7", "score_from": 7.0, "share": 1.0, "text": name}], name
        ),
        rows,
    ),
    "failures": lambda name: (charts.failures(rows := [{"name": name, "order": 0, "reason": name, "n": 3}]), rows),
    "nights": lambda name: (charts.nights(night_rows(), name), night_rows()),
}


@pytest.mark.parametrize("which", DRAWN)
def test_a_chart_is_drawn_the_same_twice_with_colours_of_the_page(which):
    one, two = (draw(*DRAWN[which]("plain"), "what it shows") for _ in range(2))
    assert one == two
    colours = set(re.findall(r'(?:fill|stroke)="([^"]+)"', one))
    assert colours
    assert all(colour in {"none", "transparent"} or colour.startswith("var(--") for colour in colours), colours
    assert ET.fromstring(one).get("aria-label") == "what it shows"


def test_a_difference_names_both_on_a_line_each_and_says_which_way_is_better(made_of):
    """Of a name with no room on its line the beginning and the end stand, by which checkpoints differ."""
    made = made_of(
        made_by=[("a-model-of-some-size", f"{'step-of-a-long-run-' * 2}{n}") for n in (1, 2)] + [("other", "checkpoint-1")]
    )
    made_figures = figures(next(board for board in boards(made.tables) if board.is_headline))
    (svg,) = [one.svg for one in made_figures if one.title.startswith("Differences")]
    texts = [*ET.fromstring(svg).itertext()]
    assert "difference of means; the first is better →" in texts
    assert "other / checkpoint-1" in texts
    (second,) = {text for text in texts if text.startswith("a-model-of-so") and text.endswith("-2")}
    (first,) = {text for text in texts if text.startswith("vs step-of-a-") and text.endswith("-1")}
    assert "…" in second
    assert "…" in first


def test_differences_whose_shortened_names_are_alike_are_drawn_apart(made_of):
    """Names may differ in the middle alone, which is what is left out: their intervals still have a line each."""
    named = [("north", f"sweep-of-rates-{rate}-warmed-up-to-the-end") for rate in ("low", "mid", "top")]
    made_figures = figures(next(board for board in boards(made_of(made_by=named).tables) if board.is_headline))
    (svg,) = [one.svg for one in made_figures if one.title.startswith("Differences")]
    assert [text.startswith("sweep-of-rate") for text in ET.fromstring(svg).itertext()].count(True) == 3


@pytest.mark.parametrize("which", DRAWN)
def test_hostile_names_are_text_in_a_chart(which):
    root = ET.fromstring(draw(*DRAWN[which](NASTY), NASTY))
    assert {element.tag.rpartition("}")[2] for element in root.iter()} <= {"svg", "g", "path", "line", "rect", "text", "tspan"}
    assert root.get("aria-label").startswith("<script>")


def test_a_chart_shows_its_names_and_numbers():
    texts = [element.text for element in ET.fromstring(draw(*DRAWN["heatmap"]("plain"), "")).iter() if element.text]
    assert {"plain", "plainplainplain", "3.0", "–"} <= set(texts)


@pytest.mark.parametrize("has_intervals", [True, False])
def test_a_trend_of_several_models_names_each_and_draws_no_two_alike(has_intervals):
    models = [f"model-{number}" for number in range(11)]
    ends = (4.0, 8.0) if has_intervals else (None, None)
    rows = [
        {"model": model, "checkpoint": "1", "order": 0, "estimate": 5.0, "ci_low": ends[0], "ci_high": ends[1]}
        for model in models
    ]
    svg = draw(charts.trend(rows, "mean"), rows, "")
    assert set(models) <= {element.text for element in ET.fromstring(svg).iter()}
    points = re.findall(r'<path transform="[^"]+" d="([^"]+)" fill="([^"]+)"', svg)
    assert len(set(points)) >= len(models)
    alone = [row for row in rows if row["model"] == "model-3"]
    assert "model-3" not in draw(charts.trend(alone, "mean"), alone, ""), "one model needs no legend"


@pytest.mark.parametrize("which", ["trend", "intervals", "nights"])
def test_a_lone_tick_is_named_with_its_digits(which):
    """All values are one: Vega would name it 8."""
    chart = {"trend": charts.trend, "intervals": charts.intervals, "nights": charts.nights}[which]
    _, rows = DRAWN[which]("plain")
    same = dict.fromkeys(("estimate", "ewma", "value", "low", "high", "ci_low", "ci_high", "limit_low", "limit_high"), 7.739)
    rows = [row | {name: same[name] for name in row.keys() & same.keys()} for row in rows]
    texts = [element.text for element in ET.fromstring(draw(chart(rows, "mean"), rows, "")).iter() if element.text]
    assert "7.739" in texts
    assert "8" not in texts


@pytest.mark.parametrize("n_nights", [1, 2, 3, 4, 12])
def test_a_night_is_named_once_below_its_series(n_nights):
    rows = [night_rows()[0] | {"run_date": f"2026-01-{day:02}"} for day in range(1, n_nights + 1)]
    labels = re.findall(r">(\d\d Jan 2026)<", draw(charts.nights(rows, "mean"), rows, "mean"))
    assert len(labels) == len(set(labels)) >= min(n_nights, 2)


@pytest.mark.parametrize("n", [1, 2, 3, 5, 7, 40])
def test_counts_have_ticks_at_whole_numbers_each_once(n):
    rows = [{"name": "x", "order": 0, "reason": "refusal", "n": n}]
    texts = [element.text for element in ET.fromstring(draw(charts.failures(rows), rows, "")).iter() if element.text]
    ticks = [text for text in texts if text.isdigit()]
    assert len(ticks) == len(set(ticks)) >= 2


@pytest.mark.parametrize(
    "inside",
    [
        "<script>1</script>",
        '<a href="http://x"/>',
        '<image href="http://x"/>',
        '<g style="x"/>',
        '<g onload="x"/>',
        "<foreignObject/>",
        '<use href="#a"/>',
        '<g id="a"/>',
        "<style>a{}</style>",
    ],
)
def test_a_drawing_with_more_than_shapes_is_refused(inside):
    with pytest.raises(ValueError, match="a chart"):
        plain_svg(f'<svg xmlns="http://www.w3.org/2000/svg"><g>{inside}<path d="M0,0L1,1"/></g></svg>', "")


def test_a_caption_says_that_not_all_is_drawn_where_that_is_so(made_of):
    """A trend holds every checkpoint; of the others there are so many lines as a chart has room for."""
    made = made_of(made_by=[("north", f"step-{n}") for n in range(31)], n_prompts=4, n_per_prompt=1)
    is_cut = {one.title: one.is_cut for one in figures(next(board for board in boards(made.tables) if board.is_headline))}
    assert is_cut.pop("Trend over checkpoints, 95 % intervals") is False
    assert is_cut.pop("Share of the scores, by score") is True


def test_labels_of_a_hundred_thousand_letters_are_drawn_as_quickly_and_stay_apart():
    long = "C" * 100_000
    rows = [{"name": f"{long}{end}", "order": place, "reason": "empty", "n": 3} for place, end in enumerate("ab")]
    started = time.process_time()
    drawn = draw(charts.failures(rows), rows, "")
    assert time.process_time() - started < 10
    labels = [element.text for element in ET.fromstring(drawn).iter() if (element.text or "").startswith("CCC")]
    assert len(labels) == 2


@pytest.mark.parametrize(("score", "label"), [(7, "7"), (7.5, "7 – 8")], ids=["whole scores", "others"])
def test_a_step_is_called_by_one_number_only_where_it_holds_no_other(made_of, score, label):
    made = made_of(n_prompts=4, n_per_prompt=1, became=lambda _at: score)
    drawn = figures(next(board for board in boards(made.tables) if board.is_headline))
    (svg,) = (one.svg for one in drawn if one.title == "Share of the scores, by score")
    labels = [one.text for one in ET.fromstring(svg).iter() if one.text]
    assert label in labels
    assert ("score (from – to under)" in labels) == (label != "7")
