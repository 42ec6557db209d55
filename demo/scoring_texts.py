"""The judge's scores where a text is judged too: answers and captions. Pure arithmetic on words and the scene seen."""

from collections import Counter

from demo.facts import Facts, compare, in_words, is_true
from demo.scoring import alignment
from demo.sentences import claims, name, without_claims
from demo.world import Asked, Item, Scene

_LEAST_MANNER = 0.5  # share of the reference's other words, and of its lines, that a caption of the same manner has


def interleaved(asked: Asked, text: str | None, seen: Scene | None) -> tuple[int, int, int, int]:
    """Text quality, image quality, image aesthetics, synergy: 0-5 each; 0 for what is null and for synergy with it."""
    facts = compare(asked, seen) if seen else None
    return (
        0 if text is None else _text_quality(asked, text),
        0 if seen is None else int(alignment(asked, seen)[0]),
        0 if facts is None else _aesthetics(facts),
        0 if text is None or seen is None else _synergy(text, seen),
    )


def _text_quality(asked: Asked, text: str) -> int:
    """5 where it names what was asked for and no more; one point less for each kind wrong, 1 where no shape is right."""
    said = claims(text)
    if not {item.shape for item in said} & {item.shape for item in asked.items}:
        return 1
    n_wrong = sum(not any(_agrees(item, other) for other in said) for item in asked.items)
    n_extra = sum(not any(item.shape == other.shape for other in asked.items) for item in said)
    return max(2, 5 - 2 * n_wrong - n_extra)


def _agrees(item: Item, said: Item) -> bool:
    return said.shape == item.shape and said.n == item.n and (item.color is None or said.color in (None, item.color))


def _aesthetics(facts: Facts) -> int:
    return 5 - 2 * facts.has_cut - facts.has_faint - facts.is_uneven


def _synergy(text: str, seen: Scene) -> int:
    """The share of what the text says that the picture shows, in the rubric's steps."""
    said = claims(text)
    if not said:
        return 0
    n_true = sum(is_true(item, seen) for item in said)
    if n_true == len(said):
        return 5
    if 2 * n_true > len(said):
        return 3
    return 2 if n_true else 1


def caption(caption_type: str, reference: str, output: str, seen: Scene) -> tuple[int, str]:
    """0-4 and a reason: what is false first, then what is left out, then the manner, and the rule on length last."""
    score, reason = _caption_content(caption_type, reference, output, seen)
    if caption_type in ("brief", "detail") and is_length_off(reference, output):
        return min(score, 1), f"{reason} Its length is more than 30% away from the reference's."
    return score, reason


def _caption_content(caption_type: str, reference: str, output: str, seen: Scene) -> tuple[int, str]:
    said = claims(output)
    n_false = sum(not is_true(item, seen) for item in said)
    named = ", ".join(map(name, said)) or "nothing of the kind"
    shown = f"The picture shows {in_words(seen)}, and the output names {named}."
    if n_false == len(said):  # also where it says nothing of the picture
        return 0, f"{shown} Nothing it says of the picture is true."
    if n_false:
        return (
            1 if 2 * n_false > len(said) else 2
        ), f"{shown} Of the {len(said)} things it names {n_false} {'is' if n_false == 1 else 'are'} not as shown."
    told = [item for item in claims(reference) if is_true(item, seen)]
    if len(said) < len(told):
        return 2, f"{shown} All of it is true, but the reference names more of the picture."
    if caption_type not in ("brief", "detail") and not _has_manner(reference, output):
        return 2, f"{shown} All of it is true, but it is not written in the manner of the reference."
    if len(said) > len(told):
        return 4, f"{shown} All of it is true, and it is more than the reference names."
    return 3, f"{shown} All of it is true, and the reference names as much."


def is_length_off(reference: str, output: str) -> bool:
    """Whether the output's words differ from the reference's by more than 30 % of them; exactly 30 % is inside."""
    n_reference, n_output = len(reference.split()), len(output.split())
    return 100 * abs(n_output - n_reference) > 30 * n_reference


def _has_manner(reference: str, output: str) -> bool:
    """Whether the output has at least half of the reference's words (what is shown apart) and of its lines."""
    theirs, ours = (Counter(without_claims(text).lower().split()) for text in (reference, output))
    n_lines, n_our_lines = (len([line for line in text.splitlines() if line.strip()]) for text in (reference, output))
    return (theirs & ours).total() >= _LEAST_MANNER * theirs.total() and n_our_lines >= _LEAST_MANNER * n_lines
