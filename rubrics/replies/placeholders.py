"""The form itself, unfilled: whether a value stands for a number instead of saying one."""

import re

from rubrics.model import Dimension

_DIGITS = re.compile(r"[0-9]++(?:\.[0-9]++)?+")
_SPAN = re.compile(r"([0-9]++(?:\.[0-9]++)?+)\s*+(?:[-–—−~]|to\b|and\b|through\b)\s*+([0-9]++(?:\.[0-9]++)?+)", re.IGNORECASE)
_LIST = re.compile(r"[0-9\s|/,;]++")
_OF_SCALE = re.compile(r"[^0-9]*(?:/|\bof)\s*+([0-9]++)")
_WORD = re.compile(r"[a-z]++")
_PLACEHOLDERS = re.compile(
    r"(?:scores?|your|number|numeric|integer|int|float|decimal|value|rating|digit|insert|here|nn?|xx?|an?|the|from|between|to|and"
    r"|points?|out|of|on|scale|whole|tbd)"
)


def is_placeholder(text: str, dimension: Dimension, *, is_enclosed: bool) -> bool:
    """Whether an undecorated value is no value: nothing, dots, the whole scale, or words that stand for a number.

    `is_enclosed`: brackets stood around it, so that any words inside are taken for a placeholder's.
    """
    if not text.strip(".…#"):
        return True
    if text[0] in "+-−" or len(text) > 200:
        return False
    span = _SPAN.search(text)
    if span and is_number(span[1], dimension.minimum) and is_number(span[2], dimension.maximum):
        beside = text[: span.start()] + " " + text[span.end() :]
        return not _DIGITS.search(beside) and _are_placeholders(beside)
    if not _DIGITS.search(text):
        words = _WORD.findall(text.lower())
        return bool(words) and (_are_placeholders(text) or (is_enclosed and text.isascii()))
    scale = _OF_SCALE.fullmatch(text)
    if scale and is_number(scale[1], dimension.maximum):
        return _are_placeholders(text)
    return _is_whole_list(text, dimension)


def is_number(text: str, number: float) -> bool:
    """Whether ASCII digits say exactly this number."""
    return len(text) < 20 and float(text) == number


def _are_placeholders(text: str) -> bool:
    return all(_PLACEHOLDERS.fullmatch(word) for word in _WORD.findall(text.lower())) and text.isascii()


def _is_whole_list(text: str, dimension: Dimension) -> bool:
    """0, 1, 2, 3, 4: every whole number of the scale."""
    if not _LIST.fullmatch(text):
        return False
    numbers = _DIGITS.findall(text)
    scale = range(int(dimension.minimum), int(dimension.maximum) + 1) if dimension.maximum - dimension.minimum < 101 else range(0)
    return len(numbers) > 2 and [int(n) for n in numbers if len(n) < 20] == list(scale)
