"""The judge's comparisons of two drawn scenes: which follows the prompt better, which is drawn better. Scores are scoring.py."""

from demo import reasons
from demo.facts import compare, in_words
from demo.scoring import image_aspects
from demo.world import Asked, Scene

Compared = tuple[str, str]
"""The answer, `first`, `second` or `tie`, and why."""

_ALIGNMENT_WEIGHS = 2


def preference(asked: Asked, first: Scene, second: Scene) -> dict[str, Compared]:
    """Two pictures of one prompt: alignment, quality and, alignment weighing twice as much, overall."""
    aligned = [compare(asked, seen).share_found for seen in (first, second)]
    made = [_quality(asked, seen) for seen in (first, second)]
    whole = [_ALIGNMENT_WEIGHS * share + quality for share, quality in zip(aligned, made, strict=True)]
    shown = f"First: {in_words(first)}; second: {in_words(second)}."
    return {
        "alignment": (_better(aligned), f"{shown} {_of_ten(aligned)} of what is asked."),
        "quality": (_better(made), f"{reasons.faults(first)} Against: {reasons.faults(second)}"),
        "overall_score": (_better(whole), f"Alignment counts twice. {shown}"),
    }


def edit_preference(asked: Asked, source: Scene, first: Scene, second: Scene) -> dict[str, Compared]:
    """Two edits of one picture: what of the instruction is there, what of the rest is left as it was, and both together."""
    done = [compare(asked, seen).share_found for seen in (first, second)]
    kept = [_share_kept(asked, source, seen) for seen in (first, second)]
    whole = [_ALIGNMENT_WEIGHS * share + left for share, left in zip(done, kept, strict=True)]
    shown = f"First: {in_words(first)}; second: {in_words(second)}; before: {in_words(source)}."
    return {
        "instruction": (_better(done), f"{shown} {_of_ten(done)} of what is asked."),
        "preservation": (_better(kept), f"{shown} {_of_ten(kept)} of the rest left alone."),
        "overall_score": (_better(whole), f"The instruction counts twice. {shown}"),
    }


def _quality(asked: Asked, seen: Scene) -> float:
    """How well it is drawn, 0-1, by the aspects that do not look at the prompt."""
    scores = image_aspects(asked, seen)
    keys = ("visual_quality_and_realism", "consistency_and_cohesion", "creativity_and_originality")
    return sum(scores[key][0] for key in keys) / 30


def _share_kept(asked: Asked, source: Scene, seen: Scene) -> float:
    """Of the source's things that the instruction does not speak of, the share that is still there."""
    named = {item.shape for item in asked.items}
    rest = [(thing.shape, thing.color) for thing in source.things if thing.shape not in named]
    left = [(thing.shape, thing.color) for thing in seen.things]
    return sum(thing in left for thing in rest) / len(rest) if rest else 1.0


def _better(values: list[float]) -> str:
    first, second = (round(value, 6) for value in values)
    return "tie" if first == second else "first" if first > second else "second"


def _of_ten(shares: list[float]) -> str:
    return " against ".join(f"{10 * share:.0f} of 10" for share in shares)
