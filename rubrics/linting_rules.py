"""Whether the rules of a rubric can hold, apart and together. The rest of a rubric is linting.py; applying rules is rules.py."""

from collections.abc import Iterator
from itertools import combinations

from rubrics.model import Condition, Dimension, Rubric, Rule, WordsOutside


def rule_problems(rubric: Rubric) -> Iterator[str]:
    """A sentence for every rule that names what is not there, can never hold, or forbids every score."""
    dimensions = {dimension.key: dimension for dimension in rubric.said}
    for rule in rubric.rules:
        for key in rule.dimensions:
            if key not in dimensions:
                yield f"rule {rule.name!r} names the unknown dimension {key!r}; available: {', '.join(dimensions)}"
            else:
                yield from _bound_problems(rule, dimensions[key])
        for condition in rule.when:
            yield from _condition_problems(rubric, rule, condition)
    for first, second in combinations(rubric.rules, 2):
        for key in sorted(set(first.dimensions) & set(second.dimensions)):
            if _are_apart(first, second) and not _exclude_one_another(first, second):
                both = f"{first.name!r} and {second.name!r}"
                yield f"rules {both} can both apply and then leave no score for {key!r}; make one of them narrower"


def _bound_problems(rule: Rule, dimension: Dimension) -> Iterator[str]:
    for bound in {rule.low, rule.high} - {None}:
        assert bound is not None
        if not dimension.minimum <= bound <= dimension.maximum:
            scale = f"{dimension.minimum:g} to {dimension.maximum:g}"
            yield f"rule {rule.name!r} bounds {dimension.key!r} at {bound:g}, outside its scale of {scale}; put it on the scale"


def _condition_problems(rubric: Rubric, rule: Rule, condition: Condition | WordsOutside) -> Iterator[str]:
    columns = (condition.of, condition.reference) if isinstance(condition, WordsOutside) else (condition.column,)
    for column in columns:
        if column in rubric.pictures and (isinstance(condition, WordsOutside) or condition.one_of):
            yield f"rule {rule.name!r} asks for words of the picture {column!r}, which has none; use is_null"
        if rubric.messages and column not in (*rubric.needs, *rubric.pictures):
            yield f"rule {rule.name!r} asks about {column!r}, which is not in needs; add it there"
    if isinstance(condition, WordsOutside):
        return
    if condition.is_null and condition.column in (*rubric.needs, *rubric.roles) and condition.column not in rubric.may_be_null:
        yield f"rule {rule.name!r} asks whether {condition.column!r} is null, but it cannot be; add it to may_be_null"
    words = rubric.value_maps.get(condition.column, {})
    allowed = rubric.words.get(condition.column)
    for word in condition.one_of or ():
        if allowed is not None and word not in {*allowed, *words}:
            yield f"rule {rule.name!r} asks for {condition.column} {word!r}, which is not in words.{condition.column}; add it"
        if word in words:
            yield f"rule {rule.name!r} asks for {condition.column} {word!r}, which is mapped to {words[word]!r}; use that"


def _are_apart(first: Rule, second: Rule) -> bool:
    """Whether no number lies within both rules' bounds."""
    lows = [rule.low for rule in (first, second) if rule.low is not None]
    highs = [rule.high for rule in (first, second) if rule.high is not None]
    return bool(lows and highs) and max(lows) > min(highs)


def _exclude_one_another(first: Rule, second: Rule) -> bool:
    """Whether a condition of one and a condition of the other can never both be met."""
    pairs = ((a, b) for a in first.when for b in second.when if isinstance(a, Condition) and isinstance(b, Condition))
    for a, b in pairs:
        if a.column != b.column:
            continue
        if a.is_null is not None and b.is_null is not None and a.is_null != b.is_null:
            return True
        if (a.is_null and b.one_of is not None) or (b.is_null and a.one_of is not None):
            return True
        if a.one_of is not None and b.one_of is not None and not set(a.one_of) & set(b.one_of):
            return True
    return False
