"""Published instruments whose requests show several pictures, as folders of data: their messages, byte for byte.

Their rows are in the folder named by SALON_DATA (`instruments/<name>/samples.jsonl`, `requests.jsonl`); two of each stand in
`rows.jsonl` where the licence allows it. The prompt texts of the others are ours here, and theirs are put in for the comparison.
"""

import json
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from rubrics.figures import Operand, derive_each
from rubrics.items import questions_of
from rubrics.linting import lint
from rubrics.loading import DECLARATION, load_rubric
from rubrics.model import Rubric
from rubrics.rendering import render
from rubrics.replies.read import parse_reply

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent for path in HERE.glob(f"*/*/{DECLARATION}"))
Row = Mapping[str, Any]


@dataclass(frozen=True)
class Asked:
    """How a request is put with a rubric: its texts by column, its pictures by role in order, and the prompt that was sent."""

    rubric: str
    texts: Mapping[str, str]
    pictures: Mapping[str, str]
    prompt: tuple[str, str] | None = None  # our file, and theirs where ours is another


def gedit(sample: Row, request: Row) -> Asked:
    kind = "gedit_sc" if request["call"] == "SC" else "gedit_pq"
    first = "_pictures_first" if request["path"] == "qwen25vl" else ""
    shown = {"source": sample["images"]["source"], "image": sample["images"]["edited"]}
    return Asked(kind + first, {"instruction": sample["instruction"]}, shown)


def viescore_tie(sample: Row, request: Row) -> Asked | None:
    kind = {"text-guided editing": "viescore_edit_sc", "ImagenHub_Subject-Driven_IE": "viescore_subject_edit_sc"}.get(
        sample["task"]
    )
    if kind is None:
        return None  # other tasks' words
    if request["call"] == "PQ":
        kind = "gedit_pq"  # which took its text over
    images = sample["images"]
    shown = {"source": images["source"], "image": images["result"]} | {name: images[name] for name in images if name == "subject"}
    texts = {"instruction": sample.get("instruction", ""), "subject_text": sample.get("text", "")}
    return Asked(kind, texts, shown)


def imgedit(sample: Row, _: Row) -> Asked:
    kind, shown = sample["edit_type"], {"source": sample["images"]["source"], "image": sample["images"]["edited"]}
    texts = {"edit_prompt": sample["prompt"], "edit_type": kind}
    return Asked("imgedit_basic", texts, shown, (f"{kind}.txt", f"standin_{kind}.txt"))


RISE = {
    "consistency": "rise_consistency", "reasoning": "rise_reasoning", "reasoning_with_input": "rise_reasoning_with_source",
    "spatial_reference_picture": "rise_reasoning_beside_answer", "quality": "rise_quality",
    "logical_consistency": "rise_logical_consistency", "logical_text": "rise_logical_reasoning",
    "logical_picture": "rise_logical_reasoning_beside_answer",
}  # fmt: skip


def risebench(sample: Row, request: Row) -> Asked:
    answer = sample.get("reference_img")
    texts = {
        "instruction": sample["instruction"],
        "reference": sample.get("reference"),
        "answer_text": sample.get("reference_txt"),
    }
    shown = {"source": answer or sample["image"], "answer": answer, "image": sample["result"]}  # an answer stands for the source
    given = {role: name for role, name in shown.items() if name}
    theirs = f"standin_{request['template']}.txt"
    return Asked(RISE[request["template"]], {name: text for name, text in texts.items() if text}, given, ("prompt.txt", theirs))


INSTRUMENTS = {"gedit": (gedit, 28), "viescore_tie": (viescore_tie, 19), "imgedit": (imgedit, 10), "risebench": (risebench, 21)}


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_each_folder_lints_and_is_small(folder: Path) -> None:
    assert lint(load_rubric(folder)) == []
    assert len((folder / DECLARATION).read_text().splitlines()) <= 80


def _read(path: Path) -> Iterator[Row]:
    yield from (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def _sent(rubric: Rubric, asked: Asked) -> list[dict[str, Any]]:
    """What is rendered, in the form of the instruments' files: a text, or the name of a picture."""
    n_pictures = dict.fromkeys((role for role in asked.pictures if role != "image"), 1)
    found: list[dict[str, Any]] = []
    for message in render(rubric, asked.texts, has_image=True, others=n_pictures).messages:
        parts: Any = message["content"]
        shown = [
            {"text": part["text"]} if part["type"] == "text" else {"image": asked.pictures[part.get("role", "image")]}
            for part in parts
        ]
        found.append({"role": message["role"], "content": shown})
    return found


@pytest.mark.parametrize("name", INSTRUMENTS)
def test_every_message_is_the_instruments_own(name: str, needs_salon_data: Path, tmp_path: Path) -> None:
    asked_of, n_expected = INSTRUMENTS[name]
    data = needs_salon_data / "instruments" / name
    samples = {row.get("id") or row.get("key") or row["index"]: row for row in _read(data / "samples.jsonl")}
    n_compared = 0
    for request in _read(data / "requests.jsonl"):
        sample = (
            samples[request["sample"]]
            if name != "imgedit"
            else next(r for r in samples.values() if r["key"] == request["sample"])
        )
        asked = asked_of(sample, request)
        if asked is None:
            continue
        (folder,) = (one for one in FOLDERS if one.name == asked.rubric)
        if asked.prompt is not None:
            own = tmp_path / asked.rubric
            shutil.copytree(folder, own, dirs_exist_ok=True)
            shutil.copyfile(data / "prompts" / asked.prompt[1], own / asked.prompt[0])
            folder = own
        assert _sent(load_rubric(folder), asked) == request["messages"], (name, request["sample"], asked.rubric)
        n_compared += 1
    assert n_compared == n_expected


@pytest.mark.parametrize("name", ["gedit", "viescore"])
def test_a_few_messages_are_compared_wherever_the_tests_run(name: str) -> None:
    rows = list(_read(HERE / name / "rows.jsonl"))
    assert rows
    for row in rows:
        asked = Asked(row["rubric"], row["texts"], row["pictures"])
        assert _sent(load_rubric(HERE / name / asked.rubric), asked) == row["messages"]


# instrument -> the rubric of a reply, and how many of its replies are read; a careful reader reads a few more, in words
READERS: dict[str, tuple[Callable[[Row], str], int]] = {
    "gedit": (lambda row: "gedit_pq" if row["call"] == "PQ" else "gedit_sc", 10),
    "viescore_tie": (lambda row: "gedit_pq" if row.get("call") == "PQ" else "viescore_edit_sc", 10),
    "risebench": (lambda _: "rise_consistency", 10),
    "imgedit": (lambda _: "imgedit_basic", 13),
}


@pytest.mark.parametrize("name", READERS)
def test_no_reply_is_read_otherwise_than_by_a_careful_reader(name: str, needs_salon_data: Path) -> None:
    rubric_of, n_expected = READERS[name]
    n_read = 0
    for row in _read(needs_salon_data / "instruments" / name / "replies.jsonl"):
        (folder,) = (one for one in FOLDERS if one.name == rubric_of(row))
        context = {"category": row["edit_type"]} if "edit_type" in row else {}
        if name == "imgedit" and not context:
            continue  # of its other suite
        read = parse_reply(load_rubric(folder), row["reply"], context).as_dict()
        if "scores" in read:
            careful = row["careful"] if isinstance(row["careful"], list) else [row["careful"]]
            assert list(read["scores"].values()) == careful, row
            n_read += 1
    assert n_read == n_expected


def overall(rubric: Rubric, sc: Sequence[float], pq: Sequence[float]) -> dict[str, float]:
    """The figures of an instrument of two requests over the recorded scores of both.

    As its own code has it: of a list that is not of two the lowest, and of 8.5 the 8; replies that say so are no scores here.
    """
    both = [score for listed in (sc, pq) for score in (listed if len(listed) == 2 else [min(listed)] * 2)]
    named = zip(rubric.variants[None].dimensions, both, strict=True)
    operands = [Operand(one.key, float(int(score)), int(score), int(score)) for one, score in named]
    return {one.key: made.score or 0.0 for one, made in derive_each(rubric.variants[None].derived, operands)}


def test_gedit_prints_its_overall_over_both_requests(needs_salon_data: Path) -> None:
    said = json.loads((needs_salon_data / "instruments/gedit/scores.json").read_text())
    rubric = load_rubric(HERE / "gedit/gedit_overall")
    found: dict[str, list[dict[str, float]]] = {}
    for row in said["rows"]:
        if row["instruction_language"] == "en":
            found.setdefault(row["group"], []).append(overall(rubric, row["SC"], row["PQ"]))
    names = {"semantics": "semantic_consistency", "quality": "perceptual_quality", "overall": "overall"}
    for name, key in names.items():
        official = said["official"][name]
        means = {group: sum(one[key] for one in rows) / len(rows) for group, rows in found.items()}
        assert means == {group: pytest.approx(official[group], abs=1e-15) for group in means}
        assert sum(means.values()) / len(means) == pytest.approx(official[f"avg_{name}"], abs=1e-15)


def test_viescore_prints_its_overall_over_both_requests(needs_salon_data: Path) -> None:
    """The repository's printed means over 179 samples of each of eight models, to the last of their four digits."""
    folder = needs_salon_data / "instruments/viescore_tie"
    rubric = load_rubric(HERE / "viescore/viescore_overall")
    for judge, printed in (
        ("gemini_0shot", json.loads((folder / "expected.json").read_text())["published"]["means"]),
        ("gpt4o_0shot", json.loads((folder / "scores.json").read_text())["figures"]),
    ):
        found: dict[str, list[dict[str, float]]] = {}
        for row in _read(folder / "recorded.jsonl"):
            if row["judge"] == judge and row["SC"] and row["PQ"]:
                found.setdefault(row["model"], []).append(overall(rubric, row["SC"], row["PQ"]))
        for model, figures in ((one, printed[one]) for one in found):
            for name, key in (("SC", "semantic_consistency"), ("PQ", "perceptual_quality"), ("O", "overall")):
                mean = sum(one[key] for one in found[model]) / len(found[model]) / 10  # printed on 0 to 1
                assert round(mean, 4) == figures[name]["mean"], (judge, model, name)


@pytest.mark.parametrize("name", ["gedit", "viescore"])
def test_an_instrument_of_two_requests_sends_both_byte_for_byte(name: str) -> None:
    rubric = load_rubric(HERE / name / f"{name}_overall")
    alone = {
        "sc": load_rubric(HERE / name / ("gedit_sc" if name == "gedit" else "viescore_edit_sc")),
        "pq": load_rubric(HERE / "gedit/gedit_pq"),
    }
    values, shown = {"instruction": "add a {hat}"}, {"source": 1, "image": 1}
    sent = {items[0].id: rendered.messages for items, rendered, _ in questions_of(rubric, values, True, shown)}
    assert sent == {key: render(one, values, True, shown).messages for key, one in alone.items()}
