"""The judge's scores for a drawn scene under the three rubrics about pictures: pure arithmetic on what was asked and seen.

The expected values of truth.py come from these same functions. Each score goes with the sentences of reasons.py that say why.
"""

from collections.abc import Callable, Mapping

from demo import reasons
from demo.facts import Facts, compare, in_words, is_uneven, of_shape
from demo.world import Asked, Scene

Scored = tuple[float, str]
Scores = dict[str, Scored]


def image_aspects(asked: Asked, seen: Scene) -> Scores:
    """Five aspects, 0-10, and their average."""
    facts = compare(asked, seen)
    scores: Scores = {
        "accuracy_to_prompt": (
            round(10 * facts.share_found, 1),
            f"{reasons.asked_and_shown(asked, seen)} {reasons.points(facts)}",
        ),
        "creativity_and_originality": (3.0 if seen.is_plain else 6.0, reasons.backdrop(seen)),
        "visual_quality_and_realism": (
            8.0 - 3 * facts.has_cut - 2 * facts.has_faint,
            f"{reasons.faults(seen)} {reasons.FLAT}",
        ),
        "consistency_and_cohesion": (9.0 - 3 * facts.is_uneven - 2 * facts.has_cut, reasons.cohesion(seen)),
        "emotional_or_thematic_resonance": (6.0 if facts.is_as_asked else 3.0, reasons.subject(facts, asked, seen)),
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


def _single_object(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    if not facts.n_elements_found:
        return dict.fromkeys(
            ("object_completeness", "detectability", "occlusion_handling"), (0.0, reasons.not_there(asked, seen))
        )
    return {
        "object_completeness": (4.0 if facts.has_cut else 10.0, reasons.wholeness(seen)),
        "detectability": _contrast(facts, seen, faint=4.0),
        "occlusion_handling": (10.0, reasons.free(seen)),
    }


def _two_object(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    found = facts.n_elements_found
    is_whole = [not any(thing.is_cut for thing in of_shape(item.shape, seen)) for item in asked.items]
    is_there = [bool(of_shape(item.shape, seen)) for item in asked.items]
    parts = sum((5.0 if whole else 2.0) for whole, there in zip(is_whole, is_there, strict=True) if there)
    return {
        "separation_clarity": ((0.0, 3.0, 10.0)[found], reasons.apart(asked, seen)),
        "individual_completeness": (parts, reasons.each_whole(asked, seen)),
        "relationship_accuracy": (0.0, f"There are not two objects to compare. {reasons.asked_and_shown(asked, seen)}")
        if found < 2
        else (4.0 if facts.is_uneven else 10.0, reasons.sizes(seen)),
    }


def _counting(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    wanted, n_seen = asked.items[0].n, len(of_shape(asked.items[0].shape, seen))
    differing = facts.has_cut + facts.has_faint + facts.is_uneven
    return {
        "count_accuracy": ({0: 10.0, 1: 4.0}.get(abs(wanted - n_seen), 0.0), reasons.count(asked, seen, n_seen)),
        "object_uniformity": ((10.0, 7.0, 4.0, 2.0)[differing], reasons.uniformity(differing, seen)),
        "spatial_legibility": _contrast(facts, seen, faint=7.0),
    }


def _colors(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    is_right = facts.n_relations_found == facts.n_relations
    one_color = len({thing.color for thing in of_shape(asked.items[0].shape, seen)}) == 1
    return {
        "color_fidelity": (
            (7.0 if facts.has_faint else 10.0) if is_right else 0.0,
            reasons.color(asked, seen, is_right=is_right),
        ),
        "contrast_effectiveness": _contrast(facts, seen, faint=4.0),
        "multi_object_consistency": (10.0 if one_color else 0.0, reasons.one_color(asked, seen)),
    }


def _position(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    is_right = facts.n_relations_found == facts.n_relations
    is_complete = facts.n_elements_found == facts.n_elements
    return {
        "position_accuracy": (10.0 if is_right else 0.0, reasons.place(asked, seen, is_right=is_right)),
        "occlusion_management": _contrast(facts, seen, faint=7.0)
        if is_complete
        else (0.0, f"An object is missing. {reasons.asked_and_shown(asked, seen)}"),
        "perspective_consistency": (4.0 if is_uneven(seen.things) else 10.0, reasons.sizes(seen)),
    }


def _color_attr(asked: Asked, seen: Scene, facts: Facts) -> Scores:
    share = facts.n_relations_found / facts.n_relations if facts.n_relations else 1.0
    return {
        "attribute_binding": (
            round(10 * share, 1),
            f"{facts.n_relations_found} of {facts.n_relations} colours on their object. {reasons.asked_and_shown(asked, seen)}",
        ),
        "contrast_effectiveness": _contrast(facts, seen, faint=6.0),
        "material_consistency": (6.0 if facts.has_cut else 10.0, reasons.surfaces(seen)),
    }


def _contrast(facts: Facts, seen: Scene, *, faint: float) -> Scored:
    return (faint if facts.has_faint else 10.0, reasons.contrast(seen))


def _average(scores: Scores) -> Scores:
    mean = round(sum(score for score, _ in scores.values()) / len(scores), 2)
    return {"overall_score": (mean, reasons.average([(key, score) for key, (score, _) in scores.items()]))}


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
