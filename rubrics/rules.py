"""The declared rules: a sample's facts, which rules hold, which scores they allow. In integers; nothing here edits a score."""

import json
import math
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from rubrics.model import Condition, Rubric, Rule, WordsOutside
from schemas.records import IMAGE
from schemas.statuses.rows import JudgementStatus, SampleStatus

_N_SHOWN_MAX = 80
_A_COUNT, _A_WORD, _TRUE_OR_FALSE = "a whole number from 0 on", "a text", [True, False]


def is_null(value: str | None) -> bool:
    """SQL null, or nothing but white space."""
    return value is None or not value.strip()


def mapped(rubric: Rubric, column: str, value: str) -> str:
    """The prompt's word for a source's word. Mapping twice changes nothing (loading sees to that)."""
    words = rubric.value_maps.get(column)
    return words.get(value, value) if words else value


def facts(
    rubric: Rubric, values: Mapping[str, str | None], has_image: bool, others: Mapping[str, int] | None = MappingProxyType({})
) -> dict[str, object]:
    """What the rubric's rules need to know of a sample: "<column>_is_null", "<column>", "<column>_words" (a count).

    `others` as in render(): how many pictures it has of other roles, which rules name as columns; None where nobody knows.
    """
    n_pictures = {**(others or {}), IMAGE: int(has_image)}
    found: dict[str, object] = {}
    for rule in rubric.rules:
        for condition in rule.when:
            if isinstance(condition, WordsOutside):
                for column in (condition.of, condition.reference):
                    text = values.get(column)
                    if text is not None and not is_null(text):
                        found[f"{column}_words"] = len(text.split())
                continue
            text = values.get(condition.column)
            if condition.is_null is not None:
                if others is None and condition.column in rubric.pictures and condition.column != IMAGE:
                    continue
                found[f"{condition.column}_is_null"] = not n_pictures.get(condition.column) and is_null(text)
            elif text is not None and not is_null(text):
                found[condition.column] = mapped(rubric, condition.column, text)
    return found


def unusable_fact(rubric: Rubric, facts: Mapping[str, object]) -> dict[str, object] | None:
    """The first fact of a user's that reading cannot use, why, and what is allowed; None where each is absent, null or declared.

    A word that the rubric does not declare is `unknown_value`, as a sample's is; what is of another type is `bad_value`.
    """
    for name, allowed in _facts_read(rubric):
        if facts.get(name) is not None and not _is_usable(rubric, name, facts[name], allowed):
            is_word = isinstance(facts[name], str) and isinstance(allowed, list) and allowed is not _TRUE_OR_FALSE
            reason = JudgementStatus.UNKNOWN_VALUE.value if is_word else SampleStatus.BAD_VALUE.value
            return {"error": reason, "fact": name, "value": _shown(facts[name]), "allowed": allowed}
    return None


def _facts_read(rubric: Rubric) -> Iterator[tuple[str, object]]:
    """The names of the facts that rules and the question of sight read, and what each may be."""
    for rule in rubric.rules:
        for condition in rule.when:
            if isinstance(condition, WordsOutside):
                yield from ((f"{column}_words", _A_COUNT) for column in (condition.of, condition.reference))
            elif condition.is_null is not None:
                yield f"{condition.column}_is_null", _TRUE_OR_FALSE
            else:
                words = rubric.words.get(condition.column)
                yield condition.column, [*words, *rubric.value_maps.get(condition.column, ())] if words else _A_WORD
    yield from ((f"{column}_is_null", _TRUE_OR_FALSE) for column in (IMAGE, "text"))


def _is_usable(rubric: Rubric, name: str, value: object, allowed: object) -> bool:
    if allowed is _A_COUNT:
        return _count(value) is not None
    if allowed is _TRUE_OR_FALSE:
        return isinstance(value, bool)
    return isinstance(value, str) and (allowed is _A_WORD or mapped(rubric, name, value) in rubric.words[name])


def _shown(value: object) -> object:
    """A value as a line of JSON can hold it; what is long or nested, as text."""
    text = json.dumps(value, default=str)
    if len(text) > _N_SHOWN_MAX:
        return text[: _N_SHOWN_MAX - 3] + "..."
    return text if isinstance(value, float) and not math.isfinite(value) else value


def bounds(rubric: Rubric, facts: Mapping[str, object]) -> dict[str, tuple[float, float]]:
    """For every dimension that a reply of any variant says, the inclusive [low, high] that scale and holding rules leave."""
    narrowed = {dimension.key: (dimension.minimum, dimension.maximum) for dimension in rubric.said}
    for rule in rubric.rules:
        if _holds(rubric, rule, facts):
            _narrow(narrowed, rule)
    return narrowed


def violations(
    rubric: Rubric, scores: Mapping[str, float], facts: Mapping[str, object], of_items: str | None = None
) -> dict[str, tuple[float, float]]:  # fmt: skip
    """The scores a holding rule forbids, each with the [low, high] that was allowed. Never raises on facts of a user.

    `of_items` names the dimension of all scores where they are those of items, by their ids.
    """
    if not rubric.rules:
        return {}
    ruled = {key for rule in rubric.rules if _holds(rubric, rule, facts) for key in rule.dimensions}
    if not ruled:
        return {}
    allowed = bounds(rubric, facts)
    of = {key: of_items or key for key in scores}
    return {
        key: allowed[of[key]]
        for key, score in scores.items()
        if of[key] in ruled and of[key] in allowed and not allowed[of[key]][0] <= score <= allowed[of[key]][1]
    }


def _narrow(allowed: dict[str, tuple[float, float]], rule: Rule) -> None:
    """Both ends stay on what earlier rules left: rules that contradict one another are lint's to find, not a crash here."""
    for key in rule.dimensions:
        if key not in allowed:
            continue
        low, high = allowed[key]
        allowed[key] = (
            low if rule.low is None else min(max(low, rule.low), high),
            high if rule.high is None else max(min(high, rule.high), low),
        )


def _holds(rubric: Rubric, rule: Rule, facts: Mapping[str, object]) -> bool:
    return all(_is_met(rubric, condition, facts) for condition in rule.when)


def _is_met(rubric: Rubric, condition: Condition | WordsOutside, facts: Mapping[str, object]) -> bool:
    """Whether a fact says so. A fact that is absent, or is not of its type, says nothing: the rule does not apply."""
    if isinstance(condition, WordsOutside):
        n_words, n_reference = _count(facts.get(f"{condition.of}_words")), _count(facts.get(f"{condition.reference}_words"))
        if n_words is None or n_reference is None:
            return False
        return abs(n_words - n_reference) * 100 > condition.percent * n_reference
    if condition.is_null is not None:
        return facts.get(f"{condition.column}_is_null") is condition.is_null
    value = facts.get(condition.column)
    return isinstance(value, str) and mapped(rubric, condition.column, value) in (condition.one_of or ())


def _count(value: object) -> int | None:
    """A number of words; 10.0 is one, as some tables write it. JSON's true is no count, though Python's bool is an int."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None
