"""What says a number's scale or unit behind it: "/5", "out of 5", "von 10", points, stars. No number is read here."""

import re
from decimal import Decimal, InvalidOperation

from rubrics.model import Dimension
from rubrics.replies.placeholders import is_number

_EMPHASIS = re.compile(r"[*_`]")
_OF = r"/|／|⁄|out\s++of|of|von|sur|из|van|su|de|sobre"
_OUT_OF = re.compile(
    rf"\s*+\(?\s*+(?:{_OF})\s*+(?:an?\s++)?(?:possible\s++|maximum\s++)?([0-9]++(?:\.[0-9]++)?+)(?![0-9a-z])", re.IGNORECASE
)
_ON_SCALE = re.compile(
    r"\s*+[,(]?\s*+(?:(?:on\s++)?(?:an?\s++|the\s++)?scale\s*+(?:of|from|:)?|\(|on\s++(?:an?\s++|the\s++)(?=[0-9]))"
    r"\s*+([0-9]++)\s*+(?:[-–—−~]|to)\s*+([0-9]++)(?:\s*+scale)?+\s*+\)?", re.IGNORECASE,
)  # fmt: skip
_FULL_MARKS = re.compile(r"\s*+[(（]\s*+(?:满分\s*+([0-9]++)\s*+分?|([0-9]++)\s*+[点分](?:満点|满分)中?)\s*+[)）]")
_OTHER_UNIT = re.compile(r"\s*+(?:%|％|‰|per\s?cent\b|stars?\b|[★☆⭐])", re.IGNORECASE)
_STARS = re.compile(r"\s*+(?:stars?\b|[★⭐])", re.IGNORECASE)
_DRAWN = re.compile(r"\s*+[(（]?((?:★|⭐\ufe0f?)++)(☆*+)[)）]?\s*+\Z")
_POINTS = re.compile(
    r"\s*+(?:(?:points?|pts?|punkte?n?|puntos?|punti|pontos?|балл(?:а|ов)?)\b\.?|[点分점](?![満满数钟間]))(?:です|입니다)?",
    re.IGNORECASE,
)
_COPULA = re.compile(r"\s*+(?:です|だ|입니다|이다)(?=[\s。．.、,，!！)）]|\Z)")  # 4です, but not 4ですが
_SHARE = re.compile(r"\s*+[(（=]\s*+([0-9]{1,3}(?:\.[0-9]{1,2})?)\s?[%％]\s*+[)）]?\s*+\Z")


def behind_units(number: str, rest: str, dimension: Dimension) -> str | None:
    """What stands behind the dimension's own scale and the number's unit; None where they are another's."""
    behind = _behind(number, rest, dimension)
    if behind == rest and (bare := _EMPHASIS.sub("", rest)) != rest:  # **4**/**5**, 4 *(out of 5)*
        behind = _behind(number, bare, dimension)
        return rest if behind == bare else behind
    return behind


def _behind(number: str, rest: str, dimension: Dimension) -> str | None:
    first = _POINTS.match(rest)
    rest = rest[first.end() :] if first else rest
    n_read = _scale_length(rest, dimension)
    if n_read is None:
        return None
    rest = rest[n_read:]
    if rest and _says_the_same(number, rest, dimension):
        return ""
    unit = _POINTS.match(rest) or (n_read and _STARS.match(rest))
    if unit:
        rest = rest[unit.end() :]
    if copula := _COPULA.match(rest):
        rest = rest[copula.end() :]
    return None if _OTHER_UNIT.match(rest) else rest


def _scale_length(rest: str, dimension: Dimension) -> int | None:
    """How many characters state the dimension's own scale ("/5", "out of 5", "(1-5)"); None where they state another."""
    if scale := _OUT_OF.match(rest) or _FULL_MARKS.match(rest):
        return scale.end() if is_number(scale[scale.lastindex or 1], dimension.maximum) else None
    if scale := _ON_SCALE.match(rest):
        is_same = is_number(scale[1], dimension.minimum) and is_number(scale[2], dimension.maximum)
        return scale.end() if is_same else None
    return 0


def _says_the_same(number: str, rest: str, dimension: Dimension) -> bool:
    """As many stars as the number says, of as many as there are; or its share of the scale's end: 7/10 (70%)."""
    drawn, share = _DRAWN.match(rest), _SHARE.match(rest)
    try:
        value = Decimal(number)
        if drawn:
            n_filled = drawn[1].count("★") + drawn[1].count("⭐")
            return value == n_filled and n_filled + len(drawn[2]) in {n_filled, dimension.maximum}
        return share is not None and Decimal(share[1]) * Decimal(str(dimension.maximum)) == value * 100
    except InvalidOperation:
        return False
