"""Whether what a rubric's messages say can be sent, and all that it needs reaches the judge. The rest of a rubric: linting.py."""

import difflib
from collections.abc import Iterator

from rubrics.linting_prompts import figure_remarks, prompt_remarks
from rubrics.model import Rubric, Variant
from rubrics.rendering import PLACEHOLDER, fillers
from schemas.records import IMAGE, SAMPLE_TEXTS

_ITEM_FIELDS = ("id", "question", "kind", "weight", "depends_on", "expected", "choices", "text")
_UNSEEN = {"\ufeff": "a byte order mark", "\0": "a NUL character", "\r\n": "a Windows line ending (CRLF)"}


def message_problems(rubric: Rubric) -> Iterator[str]:
    """A sentence for every part, placeholder, slot or picture that is not there, is not needed, or says nothing where null."""
    for problems in (_prompts, _placeholders, _slots, _reach, _images, _nulls):
        yield from problems(rubric)


def remarks(rubric: Rubric) -> Iterator[str]:
    """What may be meant, and seldom is: characters of a prompt that nobody sees and every judge is sent, answers of any mass."""
    for name, request in rubric.requests.items():
        yield from (f"request {name}: {one}" for one in remarks(request))
    yield from (*_item_fields(rubric), *prompt_remarks(rubric), *figure_remarks(rubric))
    for variant in () if rubric.requests else rubric.variants.values():
        for sign, what in _UNSEEN.items():
            n = (variant.prompt or "").count(sign)
            if n:
                times = f" {n} times" if n > 1 else ""
                yield f"{variant.prompt_file} has {what}{times}, which is sent as it is; remove it unless it is intended"
        for dimension in variant.dimensions:
            if dimension.probability and dimension.answers and not dimension.probability.min_mass:
                yield f"probability of {dimension.key!r} has no min_mass: any mass on the answers counts; set one, such as 0.5"


def _item_fields(rubric: Rubric) -> Iterator[str]:
    """Fields that texts take from each item and that look like a name known here: which there are, the data alone says."""
    fields = {k: v for k, v in rubric.items.fields.items() if k != "text"} if rubric.items else {}  # it may be the only one shown
    known = {*_item_texts(rubric), *_ITEM_FIELDS, *fields.values()}
    for name, text in rubric.items.texts.items() if rubric.items else ():
        for field in dict.fromkeys(PLACEHOLDER.findall(text.each)):
            close = difflib.get_close_matches(field, sorted(known), n=1, cutoff=0.8)
            if field not in known and close:
                yield f"items.texts.{name} takes {{{field}}} from each item, which looks like a misspelling of {close[0]!r}"


def _prompts(rubric: Rubric) -> Iterator[str]:
    is_sent = any(part.kind in {"prompt", "template"} for message in rubric.messages for part in message.parts)
    if not is_sent:
        yield "no message holds the prompt; add a part of kind 'prompt' or 'template'"
    for variant in rubric.variants.values():
        if variant.prompt is None:
            yield f'{name_of(rubric, variant)} has no prompt; name its file: prompt = "prompt.txt"'
        elif not variant.prompt.strip():
            yield f"{variant.prompt_file} is empty; write the prompt into it"


def _placeholders(rubric: Rubric) -> Iterator[str]:
    """Each placeholder of a template is a needed column; and a prompt sent as it is holds none that someone meant."""
    for kind in sorted({part.kind for message in rubric.messages for part in message.parts}):
        for variant in rubric.variants.values():
            for name in dict.fromkeys(PLACEHOLDER.findall(variant.prompt or "")):
                if f"{{{name}}}" in rubric.slots:
                    continue
                if kind == "template" and (name not in {*rubric.needs, *_item_texts(rubric)} or name == "image"):
                    filled_by = ", ".join(rubric.needs) or "nothing"
                    where = f"{variant.prompt_file} has the placeholder {{{name}}}, but no text of that name is in needs"
                    yield f"{where}; needs: {filled_by}. If it is literal text, put blanks inside its braces: {{ {name} }}"
                if kind == "prompt" and name in {*SAMPLE_TEXTS, *rubric.needs}:
                    yield f"{variant.prompt_file} has {{{name}}} but is sent as it is; make its part kind 'template'"


def _slots(rubric: Rubric) -> Iterator[str]:
    """Each slot stands in a prompt that is a template, and names a needed text."""
    texts = [variant.prompt or "" for variant in rubric.variants.values()]
    for slot, column in rubric.slots.items():
        if column not in {*rubric.needs, *_item_texts(rubric)}:
            yield f"the slot {slot!r} names {column!r}, which is not in needs; add it there"
        if not any(slot in text for text in texts):
            yield f"the slot {slot!r} is in no prompt; spell it as in the prompt"
    if rubric.slots and not any(part.kind == "template" for message in rubric.messages for part in message.parts):
        yield "slots are filled in a template, but no message has a part of kind 'template'; add one"


def _reach(rubric: Rubric) -> Iterator[str]:
    """Every needed value reaches the judge in every category, and nothing is sent that is not declared as needed."""
    for variant in rubric.variants.values():
        sent = _sent(rubric, variant)
        for column in rubric.needs:
            is_of_items = rubric.items is not None and column == rubric.items.column and not sent.isdisjoint(_item_texts(rubric))
            if column not in sent and column not in {rubric.dispatch, rubric.report_by} and not is_of_items:
                yield f"{column!r} is needed but is not sent to the judge in {name_of(rubric, variant)}; add a part for it"
        for column in sorted(sent - {*rubric.needs, *_item_texts(rubric)}):
            yield f"{column!r} is sent but is not in needs; add it there"


def _images(rubric: Rubric) -> Iterator[str]:
    shown = [(message.role, part) for message in rubric.messages for part in message.parts if part.kind in {"image", "example"}]
    named = [part.value or IMAGE for _, part in shown if part.kind == "image"]
    for role in sorted({role for role in named if named.count(role) > 1}):
        what = "the picture" if role == IMAGE else f"the picture {role!r}"
        yield f"{what} is sent {named.count(role)} times; keep one part of kind 'image'"
    for sender in dict.fromkeys(sender for sender, _ in shown if sender != "user"):
        yield f"the picture is in a message of role {sender!r}; providers accept pictures only from the user"
    for role in sorted(set(named) - set(rubric.roles)):
        yield f"the picture {role!r} is sent but is not in pictures; add it there"
    for role in rubric.roles:
        if role not in named and role != IMAGE:
            yield f"the picture {role!r} is needed but is not sent to the judge; add a part of kind 'image' with this value"
    if not any(message.role == "user" for message in rubric.messages):
        yield "no message has the role 'user'; a judge needs one"


def _nulls(rubric: Rubric) -> Iterator[str]:
    for message in rubric.messages:
        for part in message.parts:
            role = (part.value or IMAGE) if part.kind == "image" else IMAGE
            column = part.value if part.kind == "column" else role if part.kind in {"image", "image_word"} else None
            if column in rubric.may_be_null and part.null_as is None:
                yield f"{column!r} may be null, but a part of kind {part.kind!r} does not say what is sent then; add null_as"
            if column and column not in rubric.may_be_null and part.null_as is not None:
                yield f"{column!r} has null_as but is not in may_be_null; add it there, or remove null_as"
        if any(part.kind == "template" for part in message.parts):
            for variant in rubric.variants.values():
                for column in sorted(rubric.may_be_null & set(PLACEHOLDER.findall(variant.prompt or ""))):
                    yield f"{variant.prompt_file} has {{{column}}}, which may be null; use a column part with null_as"


def _sent(rubric: Rubric, variant: Variant) -> set[str]:
    sent: set[str] = set()
    for message in rubric.messages:
        for part in message.parts:
            if part.kind == "column":
                sent.add(part.value)
            elif part.kind == "image" and part.value in {"", IMAGE}:
                sent.add(IMAGE)
            elif part.kind == "template":
                filled = (rubric.slots.get(match[0], match[1]) for match in fillers(rubric).finditer(variant.prompt or ""))
                sent |= set(filled) & {*rubric.needs, *_item_texts(rubric)}
    return sent


def _item_texts(rubric: Rubric) -> tuple[str, ...]:
    return tuple(rubric.items.texts) if rubric.items else ()


def name_of(rubric: Rubric, variant: Variant) -> str:
    """What a variant is called in a sentence."""
    return f"{rubric.dispatch} {variant.category!r}" if rubric.dispatch else f"rubric {rubric.id!r}"
