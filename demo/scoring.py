"""The judge's scores for a drawn scene under the three rubrics about pictures: pure arithmetic on what was asked and seen.

The expected values of truth.py come from these same functions. Each score goes with one sentence that says why.
"""

from collections.abc import Callable, Mapping

from demo.facts import Facts, compare, in_words, is_uneven, of_shape
from demo.world import Asked, Scene

Scored = tuple[float, str]
Scores = dict[str, Scored]


def image_aspects(asked: Asked, seen: Scene) -> Scores:
    """Five aspects, 0-10, and their average."""
    facts = compare(asked, seen)
    found, n_asked = facts.n_elements_found + facts.n_relations_found, facts.n_elements + facts.n_relations
    scores: Scores = {
        "accuracy_to_prompt": (
            round(10 * facts.share_found, 1),
            f"I see {in_words(seen)}: {found} of {n_asked} points asked for.",
        ),
        "creativity_and_originality": (3.0, "Shapes on plain paper, as literal as can be.")
        if seen.is_plain
        else (6.0, "The shapes stand in a landscape that was not asked for."),
        "visual_quality_and_realism": (8.0 - 3 * facts.has_cut - 2 * facts.has_faint, _faults(facts)),
        "consistency_and_cohesion": (9.0 - 3 * facts.is_uneven - 2 * facts.has_cut, _faults(facts)),
        "emotional_or_thematic_resonance": (6.0, "The prompt has no mood, and its subject is met.")
        if facts.is_as_asked
        else (3.0, "The prompt has no mood, and its subject is missed."),
    }
    return scores | _average(scores)


def alignment(asked: Asked, seen: Scene) -> Scored:
    """1-5 by the rubric's own steps: elements first, then the relations between them (colour, number, place)."""
    facts = compare(asked, seen)
    reason = f"Shown: {in_words(seen)}. Asked elements found: {facts.n_elements_found} of {facts.n_elements}"
    if facts.n_relations:
        reason += f"; relations: {facts.n_relations_found} of {facts.n_relations}"
    return float(_alignment_step(facts)), reason + "."


def _alignment_step(facts: Facts) -> int:
    if facts.is_as_asked:
        return 5
    if not facts.n_elements_found:
        return 1
    if facts.n_elements_found < facts.n_elements or not facts.n_relations_found:
        return 3 if facts.n_relations_found else 2
    return 4 if 2 * facts.n_relations_found > facts.n_relations else 3


def composition(category: str, asked: Asked, seen: Scene) -> Scores:
    """A category's three aspects, 0-10, and their average."""
    scores = _COMPOSITION[category](asked, seen, compare(asked, seen))
    return scores | _average(scores)


def _single_object(_: Asked, seen: Scene, facts: Facts) -> Scores:
    if not facts.n_elements_found:
        return dict.fromkeys(
            ("object_completeness", "detectability", "occlusion_handling"),
            (0.0, f"The object asked for is not there: {in_words(seen)}."),
        )
    return {
        "object_completeness": (4.0, "A part of the object is cut off.") if facts.has_cut else (10.0, "The object is whole."),
        "detectability": _contrast(facts, faint=4.0),
        "occlusion_handling": (10.0, "Nothing stands in front of it."),
    }


def _two_object(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    found = facts.n_elements_found
    is_whole = [not any(thing.is_cut for thing in of_shape(item.shape, seen)) for item in asked.items]
    is_there = [bool(of_shape(item.shape, seen)) for item in asked.items]
    parts = sum((5.0 if whole else 2.0) for whole, there in zip(is_whole, is_there, strict=True) if there)
    return {
        "separation_clarity": ((0.0, 3.0, 10.0)[found], f"{found} of the two objects are there and stand apart."),
        "individual_completeness": (parts, "Five points for each whole object, two for one cut off."),
        "relationship_accuracy": (0.0, "There are not two objects to compare.")
        if found < 2
        else ((4.0, "One is far too small beside the other.") if facts.is_uneven else (10.0, "Their sizes fit.")),
    }


def _counting(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    wanted, n_seen = asked.items[0].n, len(of_shape(asked.items[0].shape, seen))
    differing = facts.has_cut + facts.has_faint + facts.is_uneven
    return {
        "count_accuracy": ({0: 10.0, 1: 4.0}.get(abs(wanted - n_seen), 0.0), f"{n_seen} where {wanted} were asked for."),
        "object_uniformity": ((10.0, 7.0, 4.0, 2.0)[differing], f"The objects differ in {differing} of shape, size and colour."),
        "spatial_legibility": _contrast(facts, faint=7.0),
    }


def _colors(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    is_right = facts.n_relations_found == facts.n_relations
    one_color = len({thing.color for thing in of_shape(asked.items[0].shape, seen)}) == 1
    return {
        "color_fidelity": ((7.0 if facts.has_faint else 10.0) if is_right else 0.0, f"I see {in_words(seen)}."),
        "contrast_effectiveness": _contrast(facts, faint=4.0),
        "multi_object_consistency": (10.0, "One kind, one colour.") if one_color else (0.0, "The kind has no one colour."),
    }


def _position(_: Asked, seen: Scene, facts: Facts) -> Scores:
    is_right = facts.n_relations_found == facts.n_relations
    is_complete = facts.n_elements_found == facts.n_elements
    return {
        "position_accuracy": (10.0, "The place is right.") if is_right else (0.0, "The place is not the one asked for."),
        "occlusion_management": _contrast(facts, faint=7.0) if is_complete else (0.0, "An object is missing."),
        "perspective_consistency": (4.0, "One is far too small beside the other.")
        if is_uneven(seen.things)
        else (10.0, "Their sizes fit."),
    }


def _color_attr(_: Asked, __: Scene, facts: Facts) -> Scores:
    share = facts.n_relations_found / facts.n_relations
    return {
        "attribute_binding": (round(10 * share, 1), f"{facts.n_relations_found} of {facts.n_relations} colours on their object."),
        "contrast_effectiveness": _contrast(facts, faint=6.0),
        "material_consistency": (6.0, "A surface ends in a cut.") if facts.has_cut else (10.0, "Even surfaces."),
    }


def _contrast(facts: Facts, *, faint: float) -> Scored:
    return (faint, "One object is so pale that it fades.") if facts.has_faint else (10.0, "Everything stands out clearly.")


def _faults(facts: Facts) -> str:
    faults = [(facts.has_cut, "a shape cut off"), (facts.has_faint, "a shape too pale"), (facts.is_uneven, "a shape too small")]
    return f"I see {', '.join(text for is_there, text in faults if is_there) or 'no fault of drawing'}."


def _average(scores: Scores) -> Scores:
    mean = round(sum(score for score, _ in scores.values()) / len(scores), 2)
    return {"overall_score": (mean, "The average of the aspects.")}


_COMPOSITION: Mapping[str, Callable[[Asked, Scene, Facts], Scores]] = {
    "single_object": _single_object, "two_object": _two_object, "counting": _counting,
    "colors": _colors, "position": _position, "color_attr": _color_attr,
}  # fmt: skip
ASPECTS = {
    "single_object": ("object_completeness", "detectability", "occlusion_handling"),
    "two_object": ("separation_clarity", "individual_completeness", "relationship_accuracy"),
    "counting": ("count_accuracy", "object_uniformity", "spatial_legibility"),
    "colors": ("color_fidelity", "contrast_effectiveness", "multi_object_consistency"),
    "position": ("position_accuracy", "occlusion_management", "perspective_consistency"),
    "color_attr": ("attribute_binding", "contrast_effectiveness", "material_consistency"),
}
"""The aspects each category's prompt names."""
