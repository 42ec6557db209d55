"""The painter: the demo's sources, drawn and written into a folder from one seed, the same bytes each time. No judging."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

from demo.drawing import draw_png
from demo.scenes import Errors, ask, compose
from demo.sentences import name, phrase
from demo.world import (
    CATEGORIES,
    CHECKPOINTS,
    COLORS,
    CONTENT_ERROR,
    MODEL,
    N_ANSWERS,
    N_CAPTIONS,
    N_IMAGES,
    N_PROMPTS,
    RATES,
    TEXT_RATES,
    Asked,
    Item,
    Scene,
    TextRates,
)

SEED = 1
_CAPTION_TYPES = ("brief", "detail", "poem", "narrative", "style")

_FORMS = {
    "brief": "A drawing of {}.",
    "detail": "The drawing shows {}, with flat colours and clean edges, inside a dark frame, and nothing else around.",
    "poem": "I looked into the frame and saw\n{},\nso still upon the evening shore,\nand then I did not ask for more.",
    "narrative": "One morning the painter woke early and set out {}. By the evening all stood in place, and she went home.",
    "style": "Ladies and gentlemen, behold, never seen before and only tonight: {}! Applause, please, for the shapes!",
}
"""The manner of each caption type; {} is where the things shown are named."""
_PADDING = " It is a very nice drawing, and one could go on and on about how nice it is, which is what is done here at length."


@dataclass(frozen=True, slots=True)
class PaintedScene:
    """One picture with its truth: what was asked (`prompt`), what went wrong, what is really there."""

    checkpoint: str
    category: str
    prompt_index: int  # over all categories
    image_index: int
    prompt: str
    asked: Asked
    errors: Errors
    scene: Scene


@dataclass(frozen=True, slots=True)
class PaintedWorld:
    """What was painted into `folder`."""

    folder: Path
    n_images: int


def paint(folder: Path, seed: int = SEED) -> PaintedWorld:
    """Paint the demo's three sources into `folder`: scenes/ (GenEval layout), answers.jsonl and captions.jsonl."""
    scenes = tuple(painted_scenes(seed))
    for painted in scenes:
        _write_scene(folder, painted)
    answers = [row for checkpoint in CHECKPOINTS for row in _answers(folder, seed, checkpoint)]
    captions = [row for checkpoint in CHECKPOINTS for row in _captions(folder, seed, checkpoint)]
    _write_lines(folder / "answers.jsonl", answers)
    _write_lines(folder / "captions.jsonl", captions)
    n_images = len(scenes) + sum(row["image"] is not None for row in answers) + len(captions)
    return PaintedWorld(folder, n_images)


def painted_scenes(seed: int) -> Iterator[PaintedScene]:
    """All pictures of one painting, in order. Prompts are shared by the checkpoints, and so is how hard a prompt is.

    A prompt is misread by every checkpoint whose rate lies above its difficulty, drawn anew for each seed: within a
    checkpoint each prompt is misread with exactly the rate, and all its pictures with it.
    """
    index = 0
    for category in CATEGORIES:
        rng = Random(f"{seed} {category}")
        for asked in ask(category, N_PROMPTS, rng):
            difficulty = rng.random()
            for checkpoint in CHECKPOINTS:
                for image in range(N_IMAGES):
                    own = Random(f"{seed} {category} {index} {checkpoint} {image}")
                    errors = _draw_errors(checkpoint, category, difficulty, own)
                    scene = compose(asked, errors, own)
                    yield PaintedScene(checkpoint, category, index, image, f"a photo of {phrase(asked)}", asked, errors, scene)
            index += 1


def _draw_errors(checkpoint: str, category: str, difficulty: float, rng: Random) -> Errors:
    rates = RATES[checkpoint]
    slips, cut, faint, uneven, plain = (
        rng.random() < rate for rate in (rates.slip[category], rates.cut, rates.faint, rates.uneven, rates.plain)
    )
    is_wrong = slips or difficulty < rates.misread[category]
    return Errors(CONTENT_ERROR[category] if is_wrong else None, cut, faint, uneven, plain)


def _write_scene(folder: Path, painted: PaintedScene) -> None:
    place = folder / "scenes" / MODEL / painted.checkpoint / f"{painted.prompt_index:05d}"
    if painted.image_index == 0:
        metadata = {"tag": painted.category, "include": _include(painted.asked), "prompt": painted.prompt}
        _write_lines(place / "metadata.jsonl", [metadata])
    _write(place / "samples" / f"{painted.image_index:04d}.png", draw_png(painted.scene))


def _include(asked: Asked) -> list[dict[str, object]]:
    """GenEval's own description of what is asked; no reader of Salon uses it, a person may."""
    rows = [{"class": item.shape, "count": item.n} | ({"color": item.color} if item.color else {}) for item in asked.items]
    return [rows[0] | {"position": [asked.relation, 1]}, rows[1]] if asked.relation else [*rows]


def _answers(folder: Path, seed: int, checkpoint: str) -> Iterator[dict[str, str | None]]:
    """Answers to requests for a drawing, as manifest rows; every sixth lacks its text, every sixth its picture."""
    rng = Random(f"{seed} answers")
    for index in range(N_ANSWERS):
        category = CATEGORIES[index % len(CATEGORIES)]
        asked, difficulty = ask(category, 1, rng)[0], rng.random()
        own = Random(f"{seed} answers {index} {checkpoint}")
        scene = compose(asked, _draw_errors(checkpoint, category, difficulty, own), own)
        text = _write_answer(asked.items, TEXT_RATES[checkpoint], own)
        place = index // len(CATEGORIES) + index % len(CATEGORIES)
        yield {
            "item_id": f"{checkpoint}-answer-{index:03d}",
            "model": MODEL,
            "checkpoint": checkpoint,
            "question": f"Please draw {phrase(asked)} for me, and tell me in words what you drew.",
            "text": None if place % 6 == 4 else text,
            "image": None if place % 6 == 5 else _write_image(folder, f"answers/{checkpoint}/{index:03d}.png", scene),
        }


def _captions(folder: Path, seed: int, checkpoint: str) -> Iterator[dict[str, str | None]]:
    """Captions of drawings, as manifest rows: the same kinds of drawing and of caption for each checkpoint."""
    rng = Random(f"{seed} captions")
    for index in range(N_CAPTIONS):
        asked = ask("color_attr" if index % 2 else "counting", 1, rng)[0]
        own = Random(f"{seed} captions {index} {checkpoint}")
        scene = compose(asked, Errors(is_plain=own.random() < 0.5), own)
        caption_type = _CAPTION_TYPES[index % len(_CAPTION_TYPES)]
        reference, output = _write_caption(caption_type, _items_shown(scene), TEXT_RATES[checkpoint], own)
        yield {
            "item_id": f"{checkpoint}-caption-{index:03d}",
            "model": MODEL,
            "checkpoint": checkpoint,
            "caption_type": caption_type,
            "reference": reference,
            "output": output,
            "image": _write_image(folder, f"captions/{checkpoint}/{index:03d}.png", scene),
        }


def _write_image(folder: Path, relative: str, scene: Scene) -> str:
    _write(folder / relative, draw_png(scene))
    return relative


def _write_lines(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    _write(path, "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows).encode())


def _write(path: Path, content: bytes) -> None:
    """A file that holds this already is left as it is: ingest knows it by its time of change."""
    if path.is_file() and path.read_bytes() == content:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


def _items_shown(scene: Scene) -> list[Item]:
    """What a true description of the scene names: each kind with its colour and number."""
    kinds: dict[tuple[str, str], int] = {}
    for thing in scene.things:
        kinds[thing.shape, thing.color] = kinds.get((thing.shape, thing.color), 0) + 1
    return [Item(shape, color, n) for (shape, color), n in kinds.items()]


def _write_answer(items: tuple[Item, ...], rates: TextRates, rng: Random) -> str:
    """An answer's text to a request for `items`."""
    return f"Here you are: {_listed(_with_errors(list(items), rates, rng))}. I hope you like the drawing."


def _write_caption(caption_type: str, items: list[Item], rates: TextRates, rng: Random) -> tuple[str, str]:
    """(reference, output): a true caption, which in one of three names only the first kind, and the model's."""
    told = items[:1] if len(items) > 1 and rng.random() < 1 / 3 else items
    output = _form(caption_type, _with_errors(items, rates, rng))
    if rng.random() < rates.bad_form:
        output = output + _PADDING if caption_type in ("brief", "detail") else f"Here you see {_listed(items)}."
    return _form(caption_type, told), output


def _form(caption_type: str, items: list[Item]) -> str:
    before, after = _FORMS[caption_type].split("{}")
    return before + _listed(items) + after


def _listed(items: list[Item]) -> str:
    return " and ".join(name(item) for item in items)


def _with_errors(items: list[Item], rates: TextRates, rng: Random) -> list[Item]:
    said = list(items)
    if len(said) > 1 and rng.random() < rates.omitted:
        said.pop(rng.randrange(len(said)))
    if rng.random() < rates.wrong:
        hit = rng.randrange(len(said))
        item = said[hit]
        color = rng.choice([color for color in COLORS if color != item.color])
        said[hit] = replace(item, color=color) if item.color else replace(item, n=item.n + 1)
    return said
