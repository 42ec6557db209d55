"""Published instruments as folders: the messages they send, the replies they read, the figures they print.

Rows, requests, replies and figures are those of `instruments/` in the folder that SALON_DATA names. Where an instrument's licence
keeps its words out of this tree, the folder here has our own, and they are exchanged for the recorded ones before comparing.
"""

import json
import math
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rubrics.figures import Operand, derive
from rubrics.items import item_facts, items_of, questions_of
from rubrics.linting import lint
from rubrics.loading import load_rubric
from rubrics.model import Rubric
from rubrics.replies.read import parse_reply
from schemas.records import ReadScores

HERE = Path(__file__).parent
FOLDERS = sorted(path.parent.name for path in HERE.glob("*/rubric.toml"))
NA, NONE = "not applicable", "unreadable"
Row = dict[str, Any]


@pytest.fixture
def data(needs_salon_data: Path) -> Path:
    return needs_salon_data


@pytest.mark.parametrize("name", FOLDERS)
def test_a_folder_is_data_that_lints(name: str) -> None:
    assert lint(load_rubric(HERE / name)) == []
    assert len((HERE / name / "rubric.toml").read_text().splitlines()) <= 80
    assert {path.suffix for path in (HERE / name).iterdir()} <= {".toml", ".txt"}


def rows(data: Path, instrument: str, file: str) -> list[Row]:
    text = (data / "instruments" / instrument / file).read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


def prompt(data: Path, instrument: str, file: str) -> str:
    return (data / "instruments" / instrument / "prompts" / file).read_bytes().decode()


def exchanged(tmp_path: Path, name: str, *changes: tuple[str, str], **files: str) -> Rubric:
    """A folder with pieces of its rubric.toml and whole texts of it exchanged."""
    folder = tmp_path / name
    shutil.copytree(HERE / name, folder)
    declared = (folder / "rubric.toml").read_text(encoding="utf-8")
    for old, new in changes:
        assert old in declared
        declared = declared.replace(old, new)
    (folder / "rubric.toml").write_text(declared, encoding="utf-8")
    for file, text in files.items():
        (folder / f"{file}.txt").write_bytes(text.encode())
    return load_rubric(folder)


def sent(rubric: Rubric, values: dict[str, str | None], image: str) -> list[bytes]:
    """The messages of each request about a sample, in the recorded layout."""
    found = []
    for _, rendered, _ in questions_of(rubric, values, True):
        messages = [
            {"role": message["role"], "content": [_part(part, image) for part in _parts(message["content"])]}
            for message in rendered.messages
        ]
        found.append(json.dumps(messages, ensure_ascii=False).encode())
    return found


def _parts(content: Any) -> list[Any]:
    return [{"type": "text", "text": content}] if isinstance(content, str) else content


def _part(part: Any, image: str) -> dict[str, str]:
    return {"text": part["text"]} if part["type"] == "text" else {"image": image}


def recorded(request: Row) -> bytes:
    return json.dumps(request["messages"], ensure_ascii=False).encode()


def as_items(items: list[Any]) -> str:
    return json.dumps(items, ensure_ascii=False)


def dsg_items(listed: list[Row]) -> str:
    """0 names no parent; where the table's parents are words, there are none."""
    return as_items([item | {"depends_on": [one for one in item["depends_on"] or [] if one]} for item in listed])


def unigen_items(data: Path, sample: Row) -> str:
    zh = sample["language"] == "zh"
    about = sample["sub_dims"]
    names, descriptions = ("考点", "考点对应描述") if zh else ("Testpoints", "Testpoint Description")
    explained = json.loads(prompt(data, "unigenbench", f"explanations_{'zh' if zh else 'en'}.json"))
    listed = zip(about[names], about[descriptions], strict=True)
    return as_items(
        [{"name": name, "description": text, "explanation": explained[name], "kind": unigen_kinds(name)} for name, text in listed]
    )


def unigen_kinds(name: str) -> list[str]:
    return list(dict.fromkeys([name, name.split("-", maxsplit=1)[0].strip()]))


def _dsg(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    requests = rows(data, "dsg", "requests.jsonl")
    for name, path in (("dsg", "gpt4o"), ("dsg_bare", "mplug / instructblip")):
        rubric = load_rubric(HERE / name)
        for sample in rows(data, "dsg", "samples.jsonl"):
            made = sent(rubric, {"items": dsg_items(sample["items"])}, sample["image"])
            ids = [item["id"] for item in sample["items"]]
            mine = [one for one in requests if one["sample"] == sample["id"] and one["path"] == path]
            yield [made[ids.index(one["item"])] for one in mine], list(map(recorded, mine))


def _tifa(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    free = prompt(data, "tifa", "blip2_free_form.txt")
    requests = rows(data, "tifa", "requests.jsonl")
    rubrics = {
        "multiple choice": load_rubric(HERE / "tifa"),
        "free form": exchanged(tmp_path, "tifa", (', choices = { each = "{choices}" }', ""), prompt=free),
    }
    for call, rubric in rubrics.items():
        for sample in rows(data, "tifa", "samples.jsonl"):
            made = sent(rubric, {"items": as_items(sample["items"])}, sample["image"])
            mine = [one for one in requests if one["sample"] == sample["id"] and one["call"] == call]
            yield [made[one["item"]] for one in mine], list(map(recorded, mine))


def _core(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    requests = rows(data, "t2i-corebench", "requests.jsonl")
    for name, path in (("t2i_corebench", "qwen-vllm"), ("t2i_corebench_gemini", "gemini")):
        rubric = load_rubric(HERE / name)
        for sample in rows(data, "t2i-corebench", "samples.jsonl"):
            mine = [one for one in requests if one["sample"] == sample["id"] and one["path"] == path]
            made = sent(
                rubric, {"prompt": sample["Prompt"], "items": as_items(sample["Checklist"])}, f"{sample['id']}-0.png"
            )  # fmt: skip
            yield [made[one["item"]] for one in mine], list(map(recorded, mine))


def _unigen(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    samples = {sample["id"]: sample for sample in rows(data, "unigenbench", "samples.jsonl")}
    turned = ('{ kind = "template" }, { kind = "image" }', '{ kind = "image" }, { kind = "template" }')
    texts = {zh: prompt(data, "unigenbench", f"template{zh or '_en'}.txt") for zh in ("", "_zh")}
    changes: dict[str, list[tuple[str, str]]] = {"gemini": [], "vllm": [turned]}
    rubrics = {
        (path, zh): exchanged(tmp_path / path, f"unigenbench{zh}", *changed, prompt=text)
        for path, changed in changes.items() for zh, text in texts.items()
    }  # fmt: skip
    for request in rows(data, "unigenbench", "requests.jsonl"):
        sample = samples[request["sample"]]
        rubric = rubrics[request["path"], "_zh" if sample["language"] == "zh" else ""]
        image = next(part["image"] for part in request["messages"][0]["content"] if "image" in part)
        made = sent(rubric, {"prompt": sample["prompt"], "items": unigen_items(data, sample)}, image)
        yield made, [recorded(request)]


def _wise(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    samples = {sample["prompt_id"]: sample for sample in rows(data, "wise", "samples.jsonl")}
    for variant, name in (("verified", "wise"), ("legacy", "wise_legacy")):
        text = prompt(data, "wise", f"standin_{variant}.txt").replace("{Prompt}", "{prompt}")
        own = ("You check pictures with care.", prompt(data, "wise", "standin_system.txt"))
        rubric = exchanged(tmp_path, name, own, prompt=text.replace("{Explanation}", "{explanation}"))
        for request in rows(data, "wise", "requests.jsonl"):
            if request["variant"] == variant:
                sample = samples[request["sample"]]
                values = {"prompt": sample["Prompt"], "explanation": sample["Explanation"], "category": "CULTURE"}
                yield sent(rubric, values, sample["image"]), [recorded(request)]


def _tiif(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    samples = {sample["id"]: sample for sample in rows(data, "tiif", "samples.jsonl")}
    texts = {one: prompt(data, "tiif", f"standin_{one}.txt").replace("##YNQuestions##", "{questions}") for one in "abc"}
    rubric = exchanged(tmp_path, "tiif", ("You answer questions about pictures.", "[Stand-in system sentence]"), **texts)
    for request in rows(data, "tiif", "requests.jsonl"):
        sample = samples[request["sample"]]
        pairs = zip(sample["yn_question_list"], sample["yn_answer_list"], strict=True)
        values = {"items": as_items([{"question": q, "answer": a} for q, a in pairs]), "prompt_form": request["template"]}
        yield sent(rubric, values, sample["images"][request["length"]]), [recorded(request)]


Sending = Callable[[Path, Path], Iterator[tuple[list[bytes], list[bytes]]]]


@pytest.mark.parametrize(
    ("sending", "n_requests"), [(_dsg, 74), (_tifa, 38), (_core, 47), (_unigen, 23), (_wise, 16), (_tiif, 12)],
    ids=["dsg", "tifa", "t2i-corebench", "unigenbench", "wise", "tiif"],
)  # fmt: skip
def test_messages_are_the_recorded_ones_byte_for_byte(sending: Sending, n_requests: int, data: Path, tmp_path: Path) -> None:
    n = 0
    for made, wanted in sending(data, tmp_path):
        assert made == wanted
        n += len(wanted)
    assert n == n_requests


def said(found: object, key: str) -> object:
    """What was read for an item or a dimension, in the words of the recorded careful reader."""
    if not isinstance(found, ReadScores) or key in found.unreadable:
        return NONE
    return NA if key in found.not_applicable else found.scores[key]


def _read_one(rubric: Rubric, reply: Row, item: Row, careful: str = "careful") -> list[tuple[object, object]]:
    facts = item_facts(rubric, items_of(rubric, {"items": as_items([item])})) if rubric.items else {}
    key = next(iter(rubric.variants.values())).dimensions[0].key
    text = reply.get("reply", reply.get("reply_free_form"))
    return [(said(parse_reply(rubric, text, {**facts, "category": "a"}), key), reply[careful])]


def _read_all(rubric: Rubric, reply: Row, items: list[Row]) -> list[tuple[object, object]]:
    facts = item_facts(rubric, items_of(rubric, {"items": as_items(items)}))
    found = parse_reply(rubric, reply["reply"], {**facts, "category": "a"})
    whole = reply["careful"] if isinstance(reply["careful"], list) else [reply["careful"]] * len(items)
    return [(said(found, str(place)), careful) for place, careful in enumerate(whole, 1)]


def dsg_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "dsg", "replies.jsonl"):
        yield _read_one(load_rubric(HERE / "dsg"), reply, {"question": "Is it?"})


def core_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "t2i-corebench", "replies.jsonl"):
        yield _read_one(load_rubric(HERE / "t2i_corebench"), reply, {"question": "Is it?"})


def tifa_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "tifa", "replies.jsonl"):
        item = {"question": "?", "choices": reply["choices"], "answer": reply["right_answer"], "element_type": "object"}
        yield _read_one(load_rubric(HERE / "tifa"), reply, item)


def unigen_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "unigenbench", "replies.jsonl"):
        zh = "_zh" if reply["sample"].startswith("zh") else ""
        items = [{"name": name, "kind": unigen_kinds(name)} for name in reply["items"]]
        yield _read_all(load_rubric(HERE / f"unigenbench{zh}"), reply, items)


def tiif_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "tiif", "replies.jsonl"):
        items = [{"question": question, "answer": "yes"} for question in reply["items"]]
        words = {"yes": 1, "no": 0}
        careful = reply["careful"]
        careful = [words.get(one, one) for one in careful] if isinstance(careful, list) else careful
        yield _read_all(load_rubric(HERE / "tiif"), reply | {"careful": careful}, items)


def wise_replies(data: Path) -> Iterator[list[tuple[object, object]]]:
    for reply in rows(data, "wise", "replies.jsonl"):
        if reply["variant"] == "verified":
            yield _read_one(load_rubric(HERE / "wise"), reply, {})
        else:
            rubric = load_rubric(HERE / "wise_legacy")
            found = parse_reply(rubric, reply["reply"], {})
            keys = rubric.variants[None].read_keys
            yield [(said(found, key), careful) for key, careful in zip(keys, reply["careful"], strict=True)]


@pytest.mark.parametrize(
    ("replies", "n_left"),
    [(dsg_replies, 7), (core_replies, 0), (tifa_replies, 3), (unigen_replies, 0), (tiif_replies, 0), (wise_replies, 16)],
    ids=["dsg", "t2i-corebench", "tifa", "unigenbench", "tiif", "wise"],
)  # fmt: skip
def test_replies_say_what_a_careful_reader_says_or_nothing(
    replies: Callable[[Path], Iterator[list[tuple[object, object]]]], n_left: int, data: Path
) -> None:
    """No value is another one; `n_left` of those a careful reader reads are left (docs/decisions/03-rubrics-and-replies.md)."""
    pairs = [pair for found in replies(data) for pair in found]
    assert [pair for pair in pairs if pair[0] not in (pair[1], NONE)] == []
    assert sum(read == NONE != careful for read, careful in pairs) == n_left


def figure(name: str, key: str, scores: list[float | None], items: list[Row] | None = None) -> float | None:
    """A figure of a folder over the scores of a sample's items; a score None is missing."""
    rubric = load_rubric(HERE / name)
    variant = next(iter(rubric.variants.values()))
    dimension = next(one for one in variant.derived if one.key == key)
    listed = items or [{} for _ in scores]
    operands = [
        Operand(
            str(item.get("id", place)), score, 0.0 if score is None else score, 1.0 if score is None else score, "not_found",
            parents=tuple(map(str, item.get("depends_on") or ())),
        )
        for place, (item, score) in enumerate(zip(listed, scores, strict=True), 1)
    ]  # fmt: skip
    return derive(dimension, operands).score


def test_dsg_with_dependencies_is_the_official_figure(data: Path) -> None:
    for case in json.loads((data / "instruments/dsg/scores.json").read_text())["cases"]:
        if not case["answers"]:
            continue  # official: 0. A sample without items is not asked here
        scores = [float(answer == "yes") for answer in case["answers"].values()]
        parents = case["depends_on"] or {}
        items = [{"id": int(key), "depends_on": parents.get(key)} for key in case["answers"]]
        official = case["official"]
        assert figure("dsg", "score", scores, items) == official["average_score_with_dependency"], case["name"]
        assert figure("dsg", "score_without_dependencies", scores) == official["average_score_without_dependency"]


def test_dsg_prints_what_its_repository_prints(data: Path) -> None:
    """1,060 prompts' recorded answers of three models, an answer that is not yes counted 0 as the official reader does."""
    expected = json.loads((data / "instruments/dsg/expected.json").read_text())["recomputed_scores_sd2dot1"]
    sets = rows(data, "dsg", "recorded.jsonl")
    rubric = load_rubric(HERE / "dsg")
    (dimension,) = [one for one in rubric.variants[None].derived if one.key == "score"]
    for judge, printed in expected.items():
        found: dict[str, list[float]] = {}
        for row in sets:
            answers = row["answers"].get("sd2dot1", {}).get(judge, [])
            operands = [
                Operand(
                    str(item["id"]), value := float(answer == "yes"), value, value,
                    parents=tuple(str(parent) for parent in item["depends_on"] or () if parent),
                )
                for item, answer in zip(row["items"], answers, strict=False)
            ]  # fmt: skip
            found.setdefault(row["category"], []).append((derive(dimension, operands).score or 0.0) if operands else 0.0)
        everything = [score for scores in found.values() for score in scores]
        for name, scores in {**found, "all": everything}.items():
            assert round(100 * sum(scores) / len(scores), 4) == printed[name]["score"], (judge, name)


def test_t2i_corebench_over_what_could_be_read_and_nothing_where_an_answer_could_not(data: Path) -> None:
    """The official figure leaves an unreadable answer out. Here it is missing, and lies within its bounds."""
    recorded_set = json.loads((data / "instruments/t2i-corebench/scores.json").read_text())
    for image, replies in recorded_set["replies_per_image_in_item_order"].items():
        scores = [{"yes": 1.0, "no": 0.0}.get(reply) for reply in replies]
        known, official = (
            [score for score in scores if score is not None],
            recorded_set["official"]["images"][image]["image_score"],
        )
        assert (figure("t2i_corebench", "score", [*known]) if known else "") == official
        assert (figure("t2i_corebench", "score", scores) is None) == (None in scores)


def test_tifa_is_the_recorded_result(data: Path) -> None:
    expected = json.loads((data / "instruments/tifa/expected.json").read_text())["published"]
    by_caption: dict[str, list[float | None]] = {}
    by_type: dict[str, list[float]] = {}
    rubric = load_rubric(HERE / "tifa")
    types = {item["question"]: item["element_type"] for s in rows(data, "tifa", "samples.jsonl") for item in s["items"]}
    for reply in rows(data, "tifa", "replies.jsonl"):
        if reply["origin"] == "recorded":
            item = {"question": "?", "choices": reply["choices"], "answer": reply["right_answer"], "element_type": "object"}
            text = {"reply": reply["multiple_choice_answer"]}
            ((score, _),) = _read_one(rubric, reply | text, item)
            by_caption.setdefault(reply["sample"], []).append(float(str(score)))
            by_type.setdefault(types[reply["question"]], []).append(float(str(score)))
    assert {name: figure("tifa", "score", scores) for name, scores in by_caption.items()} == expected["caption_scores"]
    assert {name: sum(scores) / len(scores) for name, scores in by_type.items()} == expected["accuracy_by_type"]


def test_wise_legacy_figures_are_the_published_form(data: Path) -> None:
    recorded_set = json.loads((data / "instruments/wise/scores.json").read_text())["legacy"]
    (dimension,) = load_rubric(HERE / "wise_legacy").variants[None].derived
    keys = ("consistency", "realism", "aesthetic_quality")
    scores = [
        derive(dimension, [Operand(k, float(n), float(n), float(n)) for k, n in zip(keys, digits, strict=True)]).score or 0.0
        for digits in recorded_set["scores_consistency_realism_aesthetic"]
    ]
    culture, time = scores[:400], scores[400:567]
    assert sum(culture) / 400 / 2 == pytest.approx(recorded_set["categories"]["CULTURE"], abs=1e-12)
    assert sum(time) / 167 / 2 == pytest.approx(recorded_set["categories"]["TIME"], abs=1e-12)
    assert sum(scores) / 1000 / 2 == pytest.approx(recorded_set["overall"], abs=1e-12)


def test_tiif_accuracies_are_the_shares_of_right_answers(data: Path) -> None:
    recorded_set = json.loads((data / "instruments/tiif/scores.json").read_text())
    for name, pictures in recorded_set["pairs"].items():
        right = [float(w.lower() == g.lower()) for pairs in pictures for w, _, g in (pair.partition(":") for pair in pairs)]
        assert round(figure("tiif", "score", [*right]) or 0.0, 4) == recorded_set["accuracy"][name]


def _geneval2(data: Path, tmp_path: Path) -> Iterator[tuple[list[bytes], list[bytes]]]:
    rubric = exchanged(tmp_path, "geneval2", prompt="{question} " + prompt(data, "geneval2", "standin_suffix.txt"))
    requests = rows(data, "geneval2", "requests.jsonl")
    for sample in rows(data, "geneval2", "samples.jsonl"):
        mine = [one for one in requests if one["sample"] == sample["id"]]
        pairs = zip(sample["vqa_list"], sample["skills"], strict=True)
        items = [{"question": question, "spellings": [answer], "skill": skill} for (question, answer), skill in pairs]
        made = sent(rubric, {"items": as_items(items)}, sample["image"])
        yield [made[one["item"]] for one in mine], list(map(recorded, mine))


def test_geneval2_asks_as_recorded_and_scores_by_probability(data: Path, tmp_path: Path) -> None:
    pairs = list(_geneval2(data, tmp_path))
    assert sum(len(wanted) for _, wanted in pairs) == 25
    assert all(made == wanted for made, wanted in pairs)
    rubric = load_rubric(HERE / "geneval2")
    digits = {"three": "3", "eleven": "11"}
    for reply in rows(data, "geneval2", "replies.jsonl"):
        question, answer = reply["item"]
        item = {"question": question, "spellings": [answer, *([digits[answer]] if answer in digits else [])], "skill": "count"}
        facts = item_facts(rubric, items_of(rubric, {"items": as_items([item])}))
        shares = reply["first_token_probabilities"]
        top = [{"token": token, "logprob": math.log(share)} for token, share in shares.items()]
        logprobs = json.dumps({"content": [top[0] | {"top_logprobs": top}]})
        found = parse_reply(rubric, "x", facts | {"logprobs_json": logprobs})
        assert said(found, "answer") == pytest.approx(reply["careful_soft"], abs=1e-12), reply["name"]


def test_geneval2_figures(data: Path) -> None:
    recorded_set = json.loads((data / "instruments/geneval2/scores.json").read_text())
    sums: dict[str, list[float]] = {}
    for row in recorded_set["prompts"]:
        assert figure("geneval2", "arithmetic_mean", row["scores"]) == pytest.approx(row["am"], abs=1e-12)
        assert figure("geneval2", "geometric_mean", row["scores"]) == pytest.approx(row["gm"], abs=1e-12)
        for skill, score in zip(row["skills"], row["scores"], strict=True):
            sums.setdefault(skill, []).append(score)
    pooled = {skill: 100 * sum(scores) / len(scores) for skill, scores in sums.items()}
    assert pooled == pytest.approx(recorded_set["per_skill"], abs=1e-9), "a kind's figure is a mean over its items"
