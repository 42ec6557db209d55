"""Scores in the words a rubric asks for: one writer for each form of reply, and the sentences of a refusal. No judging."""

import json
from collections.abc import Mapping

NO_PICTURE = "No image was provided, so there is nothing I can evaluate."


def refuse_picture(reason: str) -> str:
    """The reply to a picture that is not one of the drawn scenes."""
    return f"I'm sorry, but I can't judge this picture: {reason}. I only look at drawn scenes."


def refuse_text(what: str) -> str:
    """The reply to a text that is not about the drawn world."""
    return f"I'm sorry, but I can't judge this: {what}. I only look at drawn scenes."


def aspects_reply(scores: Mapping[str, tuple[float, str]]) -> str:
    """A JSON object: each aspect, and `overall_score`, with its score and explanation."""
    content = {key: {"score": _number(score), "explanation": why} for key, (score, why) in scores.items()}
    return json.dumps(content, indent=2, ensure_ascii=False)


def label_reply(score: float, reason: str) -> str:
    """Two lines: the reasoning, then the score."""
    return f"Reasoning: {reason}\nScore: {_number(score)}"


def bracket_reply(text: int, image: int, aesthetics: int, synergy: int) -> str:
    """One line with the four labels of the interleaved rubric."""
    return (
        f"[Text Response Quality: {text}; Image Response Quality: {image}; "
        f"Image Aesthetic Quality: {aesthetics}; Text-Image Synergy: {synergy}]"
    )


def caption_reply(score: int, reason: str) -> str:
    """A JSON object on one line: the score and its reason."""
    return json.dumps({"score": score, "reason": reason}, ensure_ascii=False)


def _number(score: float) -> float | int:
    return int(score) if score == int(score) else score
