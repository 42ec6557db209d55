"""The demo's judge: chat messages in, a reply out. It has the messages and nothing else: no file, no truth of the painter.

It knows a rubric by the words of its prompt, looks at the pixels of the picture that came with it, and compares.
"""

import base64
import binascii
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from demo.comparing import Compared, edit_preference, preference
from demo.scoring import ASPECTS, alignment, composition, image_aspects
from demo.scoring_texts import caption, interleaved
from demo.sentences import find_asked, read_prompt
from demo.sight import NotAScene, look
from demo.world import Scene

_NO_PICTURE = "No image was provided, so there is nothing I can evaluate."
_IMAGE_ASPECTS = (
    "accuracy_to_prompt", "creativity_and_originality", "visual_quality_and_realism",
    "consistency_and_cohesion", "emotional_or_thematic_resonance",
)  # fmt: skip
_KEYS_OF_REPLY = re.compile(r"The keys\s+in the JSON object should be:(.{0,400}?)`overall_score`", re.DOTALL)
_CAPTION_INPUT = re.compile(
    r"### \*\*Input:\*\*\nCaption Type: (.*?)\nReference: (.*?)\nModel Output: (.*)\n### \*\*Output:\*\*", re.DOTALL
)
_ANSWER = re.compile(
    r".*<chatbegin>\s*Question: (.*?)\nAnswer text: (.*)\nAnswer image: (.*?)\n<chatend>", re.DOTALL
)  # the last such block: the prompt itself speaks of <chatbegin>


@dataclass(frozen=True, slots=True)
class Seen:
    """What came with the messages: the texts by role, and the pictures' bytes."""

    system: str
    user: str
    pictures: tuple[bytes, ...]


def judge(messages: Sequence[Mapping[str, Any]]) -> str:
    """The reply to chat messages in the form of the API: contents are strings, or lists of text and image_url parts."""
    seen = _read(messages)
    try:
        return _reply(seen)
    except NotAScene as reason:
        return _refuse_picture(str(reason))


def _reply(seen: Seen) -> str:
    keys = _KEYS_OF_REPLY.search(seen.system)
    if keys:
        return _judge_aspects(tuple(re.findall(r"`(\w+)`", keys[1])), seen)
    if "expert text-to-image evaluator" in seen.user and "User prompt: " in seen.user:
        return _judge_alignment(seen)
    if "[Text Response Quality: <0-5>;" in seen.user:
        return _judge_interleaved(seen)
    if '{"score": [0-4], "reason":' in seen.user:
        return _judge_caption(seen)
    if seen.system.startswith("You compare two "):
        return _judge_pair(seen)
    return _refuse_text("its instructions are none of the rubrics I know")


def _judge_aspects(keys: tuple[str, ...], seen: Seen) -> str:
    scene = _look(seen)
    if scene is None:
        return _NO_PICTURE
    asked = read_prompt(seen.user)
    if asked is None:
        return _refuse_text("its prompt asks for something that is not in my drawn world")
    if keys == _IMAGE_ASPECTS:
        return _aspects_reply(image_aspects(asked, scene))
    category = next((name for name, aspects in ASPECTS.items() if aspects == keys), None)
    if category is None:
        return _refuse_text("it asks for aspects I do not know")
    return _aspects_reply(composition(category, asked, scene))


def _judge_alignment(seen: Seen) -> str:
    scene = _look(seen)
    if scene is None:
        return _NO_PICTURE
    asked = read_prompt(seen.user.rpartition("User prompt: ")[2])
    if asked is None:
        return _refuse_text("its prompt asks for something that is not in my drawn world")
    return _label_reply(*alignment(asked, scene))


def _judge_interleaved(seen: Seen) -> str:
    parts = _ANSWER.match(seen.user)
    if parts is None:
        return _NO_PICTURE.replace("image", "conversation")
    question, text, image = parts.groups()
    is_without_picture = image.strip() in ("", "null")
    scene = None if is_without_picture else _look(seen)
    if scene is None and not is_without_picture:
        return _NO_PICTURE
    asked = find_asked(question)
    if asked is None:
        return _refuse_text("its question asks for nothing in my drawn world")
    is_without_text = text.strip() in ("", "null")
    return _bracket_reply(*interleaved(asked, None if is_without_text else text, scene))


def _judge_caption(seen: Seen) -> str:
    scene = _look(seen)
    if scene is None:
        return _NO_PICTURE
    parts = _CAPTION_INPUT.search(seen.user)
    if parts is None:
        return _refuse_text("its input has not the form I know")
    caption_type, reference, output = parts.groups()
    return _caption_reply(*caption(caption_type.strip(), reference, output, scene))


def _judge_pair(seen: Seen) -> str:
    is_edit = seen.system.startswith("You compare two edits")
    if len(seen.pictures) != 2 + is_edit:
        return _NO_PICTURE
    scenes = [look(picture) for picture in seen.pictures]
    asked = read_prompt(seen.user.rpartition("The instruction: " if is_edit else "The prompt: ")[2])
    if asked is None:
        return _refuse_text("its prompt asks for something that is not in my drawn world")
    return _pair_reply(edit_preference(asked, *scenes) if is_edit else preference(asked, *scenes))


def _look(seen: Seen) -> Scene | None:
    """The scene of the picture that came with the messages; None where none came. Raises NotAScene."""
    if len(seen.pictures) > 1:
        raise NotAScene("there are several, and I look at one at a time")
    return look(seen.pictures[0]) if seen.pictures else None


def _read(messages: Sequence[Mapping[str, Any]]) -> Seen:
    system: list[str] = []
    user: list[str] = []
    pictures: list[bytes] = []
    for message in messages:
        texts = system if message.get("role") in ("system", "developer") else user
        content = message.get("content")
        parts: list[Any] = [{"type": "text", "text": content}] if isinstance(content, str) else content or []
        for part in parts:
            if part.get("type") == "text":
                texts.append(str(part.get("text", "")))
            elif part.get("type") == "image_url":
                pictures += _bytes_of(part["image_url"]["url"])
    return Seen("".join(system), "".join(user), tuple(pictures))


def _bytes_of(url: str) -> list[bytes]:
    """The bytes of a data URL; nothing where it is an address: this judge fetches nothing, so no picture came with it."""
    head, comma, encoded = url.partition(",")
    if not comma or not head.startswith("data:image/") or not head.endswith(";base64"):
        return []
    try:
        return [base64.b64decode(encoded, validate=True)]
    except binascii.Error:
        return [b""]


def _refuse_picture(reason: str) -> str:
    """The reply to a picture that is not one of the drawn scenes."""
    return f"I'm sorry, but I can't judge this picture: {reason}. I only look at drawn scenes."


def _refuse_text(what: str) -> str:
    """The reply to a text that is not about the drawn world."""
    return f"I'm sorry, but I can't judge this: {what}. I only look at drawn scenes."


def _aspects_reply(scores: Mapping[str, tuple[float, str]]) -> str:
    """A JSON object: each aspect, and `overall_score`, with its score and explanation."""
    content = {key: {"score": _number(score), "explanation": why} for key, (score, why) in scores.items()}
    return json.dumps(content, indent=2, ensure_ascii=False)


def _label_reply(score: float, reason: str) -> str:
    """Two lines: the reasoning, then the score."""
    return f"Reasoning: {reason}\nScore: {_number(score)}"


def _bracket_reply(text: int, image: int, aesthetics: int, synergy: int) -> str:
    """One line with the four labels of the interleaved rubric."""
    return (
        f"[Text Response Quality: {text}; Image Response Quality: {image}; "
        f"Image Aesthetic Quality: {aesthetics}; Text-Image Synergy: {synergy}]"
    )


def _caption_reply(score: int, reason: str) -> str:
    """A JSON object on one line: the score and its reason."""
    return json.dumps({"score": score, "reason": reason}, ensure_ascii=False)


def _pair_reply(compared: Mapping[str, Compared]) -> str:
    """A JSON object on one line: the reasons, then a word for each thing compared."""
    why = " ".join(f"{key}: {reason}" for key, (_, reason) in compared.items())
    return json.dumps(
        {"reason": why} | {key.removesuffix("_score"): word for key, (word, _) in compared.items()}, ensure_ascii=False
    )


def _number(score: float) -> float | int:
    return int(score) if score == int(score) else score
