"""From an Altair chart to inline SVG: the theme, the drawing, and a check that the drawing holds nothing but shapes and text.

Colours are CSS variables of style.css, so one drawing serves light and dark. What is drawn is charts.py.
"""

import re
from collections.abc import Mapping, Sequence
from functools import cache
from hashlib import sha256
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from markupsafe import Markup

if TYPE_CHECKING:
    import altair as alt

WIDTH_PX = 430
"""Natural width of a drawing: a phone shows it slightly smaller, a desktop slightly larger."""

ROWS = "rows"
"""What a chart calls its data."""

SERIES = tuple(f"var(--series-{index})" for index in range(1, 9))
INK, QUIET, LINE, ACCENT, ALARM = "var(--ink)", "var(--quiet)", "var(--line)", "var(--accent)", "var(--bad)"

_VEGA_LITE = "6.1"  # the generation Altair 6 writes
_SVG = "http://www.w3.org/2000/svg"
_ELEMENTS = frozenset({"svg", "g", "path", "line", "rect", "text", "tspan"})
_ATTRIBUTES = frozenset({
    "d", "dx", "dy", "fill", "fill-opacity", "font-family", "font-size", "font-style", "font-weight", "height", "opacity",
    "stroke", "stroke-dasharray", "stroke-linecap", "stroke-miterlimit", "stroke-opacity", "stroke-width", "text-anchor",
    "transform", "version", "viewBox", "width", "x", "x2", "y", "y2",
})  # fmt: skip
_DROPPED = frozenset({"aria-hidden", "aria-label", "aria-roledescription", "class", "display", "pointer-events", "role"})
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_LABEL_CHARACTERS = 1000
_MANY_DIGITS = re.compile(r"-?\d+\.\d{3,}")


def draw(chart: "alt.TopLevelMixin", rows: Sequence[Mapping[str, Any]], label: str) -> Markup:
    """The chart of these rows as an `<svg role="img">` that says `label`; its numbers stand in a table beside it.

    Raises ValueError where the drawing holds an element or attribute that a chart does not need.
    """
    import vl_convert

    text = vl_convert.vegalite_to_svg(_spec(chart, rows), vl_version=_VEGA_LITE, allowed_base_urls=[])
    return Markup(plain_svg(text, label))  # noqa: S704  plain_svg lets nothing through but shapes and escaped text


def plain_svg(text: str, label: str) -> str:
    """The drawing rewritten from an allow-list: no script, link, style, image, id or handler can be in it. Raises ValueError."""
    ET.register_namespace("", _SVG)
    root = ET.fromstring(text)  # noqa: S314  our own renderer's output; entities cannot stand in it
    for element in root.iter():
        name = element.tag.removeprefix(f"{{{_SVG}}}")
        if name not in _ELEMENTS:
            raise ValueError(f"a chart may hold {', '.join(sorted(_ELEMENTS))}; the drawing holds {name!r}")
        for attribute in _DROPPED:
            element.attrib.pop(attribute, None)
        strange = set(element.keys()) - _ATTRIBUTES
        if strange:
            raise ValueError(f"a chart needs no attribute {sorted(strange)}; {name} has it")
        element.attrib.update({key: _MANY_DIGITS.sub(_short, value) for key, value in element.items()})
    _prune(root)
    for name in ("width", "height", "version"):
        root.attrib.pop(name, None)
    root.attrib.update({"role": "img", "aria-label": _NOT_IN_XML.sub("\ufffd", label)})
    return ET.tostring(root, encoding="unicode")


def _prune(element: ET.Element) -> None:
    """Drop groups and paths that draw nothing."""
    for child in list(element):
        _prune(child)
        name = child.tag.removeprefix(f"{{{_SVG}}}")
        is_empty = (name == "g" and len(child) == 0) or (name == "path" and child.get("d") in {None, "", "M0,0h0v0h0Z"})
        if is_empty or (name == "rect" and child.get("fill") == "transparent"):
            element.remove(child)


def _short(found: re.Match[str]) -> str:
    return f"{float(found[0]):.2f}".rstrip("0").rstrip(".")


def _spec(chart: "alt.TopLevelMixin", rows: Sequence[Mapping[str, Any]]) -> dict[str, object]:
    """The data goes in here: Altair would copy and check it once for each layer."""
    spec: dict[str, object] = drawable(chart.to_dict(validate=False))
    return spec | {
        "datasets": {ROWS: drawable(list(rows))},
        "config": _theme(),
        "padding": {"left": 2, "right": 6, "top": 4, "bottom": 2},
        "background": None,
    }


def drawable(value: Any) -> Any:
    """The value with every text as XML can hold it: what it cannot becomes U+FFFD. The renderer ends the process over one.

    Of a text longer than any label is drawn its beginning is left, with a digest: the renderer cuts labels letter by letter.
    """
    if isinstance(value, str):
        if len(value) > _LABEL_CHARACTERS:
            value = f"{value[:_LABEL_CHARACTERS]}… {sha256(value.encode('utf-8', 'replace')).hexdigest()[:8]}"
        return _NOT_IN_XML.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {name: drawable(one) for name, one in value.items()}
    return [drawable(one) for one in value] if isinstance(value, (list, tuple)) else value


@cache
def _theme() -> dict[str, object]:
    text = {"labelColor": QUIET, "titleColor": QUIET, "labelFontSize": 11, "titleFontSize": 11, "titleFontWeight": "normal"}
    return {
        "aria": False,  # the whole drawing is one image with a label; a table holds the numbers
        "font": "Liberation Sans",  # comes with the renderer, so labels take the same room on every machine
        "view": {"stroke": None},
        "axis": text | {
            "domain": False, "ticks": False, "gridColor": LINE, "labelPadding": 6, "titlePadding": 8, "labelLimit": 150,
        },
        "legend": text | {"title": None, "orient": "top", "symbolType": "circle", "labelLimit": 200, "columns": 2, "offset": 6},
        "header": text | {"title": None, "labelLimit": 140},
        "text": {"color": INK, "fontSize": 11},
    }  # fmt: skip
