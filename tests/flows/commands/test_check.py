"""`salon check`: the one reply that is asked for is read as a run reads it, under each rubric of the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.flows.flow_support import Said
from tests.support.night_world import World, write_benchmark
from tests.support.servers.provider import Play, Provider, completion

Salon = Callable[..., Said]


def _said(text: str | None, **more: object) -> Play:
    return Play(body=completion(text, **({"model": "salon-demo-judge"} | more)))


def _logprobs(sent: object) -> Play:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Yes"}, "finish_reason": "stop", "logprobs": sent}
    return _said("Yes", choices=[choice])


READ = {
    "scores": (_said("Reasoning: all there.\nScore: 4"), "ok", "s: score = 4: Reasoning: all there. Score: 4", None),
    "no name, or an accepted one": (_said("Score: 4", model="salon-b"), "ok", "s: score = 4", "answered by"),
    "another name": (
        _said("Score: 4", model="[b]gpt[/b]"), "ok", "answered by [b]gpt[/b], asked for salon-demo-judge: score = 4: Sco", "wrong"
    ),
    "cut": (
        _said("", finish_reason="length"), "wrong", "cannot be read (truncated): no text", "s: Score",
    ),
    "prose": (_said("Quite good, 4 of 5 cats."), "wrong", "cannot be read (not_found): Quite good, 4 of 5 cats.", "score ="),
    "off the scale": (_said("Score: 9"), "wrong", "cannot be read (out_of_range): Score: 9", "score ="),
    "refused": (_said(None, message={"refusal": "Not this one."}), "wrong", "cannot be read (refusal): Not this one.", "score ="),
}  # fmt: skip


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("world")
    World(folder).make(1)
    return folder / "made"


@pytest.mark.parametrize(("play", "state", "told", "not_told"), READ.values(), ids=READ.keys())
def test_a_reply_is_read_as_a_run_reads_it(
    salon: Salon, tmp_path: Path, made: Path, provider: Provider, play: Play, state: str, told: str, not_told: str | None
) -> None:
    (tmp_path / "made").symlink_to(made)
    provider.then = play
    file = write_benchmark(
        tmp_path, provider.url, judge='parameters = { max_tokens = 30 }\naccept_models = ["salon-demo-judge", "salon-b"]'
    )
    said = salon("check", file)
    (line,) = [line for line in said.out.splitlines() if line[8:24].strip() == "judge"]
    assert (said.code, line[:8].strip(), provider.n) == (0 if state == "ok" else 3, state, 1)
    assert told in line
    assert not_told is None or not_told not in line
    assert ("-> truncated: 1 reply was cut at max_tokens = 30; raise it" in said.out) == ("truncated" in told)


SOFT = """\
id = "soft"
version = "1"
title = "The probability of yes"
source = "The prompt is Salon's own."
prompt = "prompt.txt"
reply = "answer"
needs = ["image"]
unit = ["image"]
scale = { min = 0, max = 1 }
answers = { yes = 1, no = 0 }
probability = { normalised = false, min_mass = 0.5 }

[[dimensions]]
key = "is_there"

[[messages]]
role = "user"
parts = [{ kind = "image" }, { kind = "prompt" }]
"""
TOKEN = {"token": "Yes", "logprob": -0.1, "top_logprobs": []}
LIKELY = {"content": [TOKEN | {"top_logprobs": [{"token": one, "logprob": at} for one, at in (("No", -2.4), ("The", -7))]}]}
UNLIKELY = {"content": [TOKEN | {"logprob": -3, "top_logprobs": [{"token": "Sure", "logprob": -0.06}]}]}
PROBABILITIES = {
    "as they should be": (_logprobs(LIKELY), ["is_there = 0.904837"], ["came without", "must ask for the rubric's form"]),
    "none": (
        _logprobs(None),
        ["1 reply came without the log probabilities that the rubric reads, or without those of other tokens; the endpoint"],
        ["must ask for the rubric's form"],
    ),
    "no other tokens": (
        _logprobs({"content": [TOKEN | {"token": "No", "logprob": -0.5}]}), ["those of other tokens; the endpoint"], [],
    ),
    "too little on the answers": (_logprobs(UNLIKELY), ["the prompt must ask for the rubric's form"], ["came without"]),
}  # fmt: skip


@pytest.mark.parametrize(("play", "told", "not_told"), PROBABILITIES.values(), ids=PROBABILITIES.keys())
def test_a_reply_without_the_probabilities_that_are_read_is_told_so(
    salon: Salon, tmp_path: Path, made: Path, provider: Provider, play: Play, told: list[str], not_told: list[str]
) -> None:
    (tmp_path / "made").symlink_to(made)
    (tmp_path / "mine" / "soft").mkdir(parents=True)
    (tmp_path / "mine" / "soft" / "rubric.toml").write_text(SOFT)
    (tmp_path / "mine" / "soft" / "prompt.txt").write_text("Is it there? Yes or no.")
    provider.then = play
    file = write_benchmark(tmp_path, provider.url, rubrics=("soft",), judge="parameters = { logprobs = true, top_logprobs = 20 }")
    file.write_text('rubric_folders = ["mine"]\n' + file.read_text())
    checked = salon("check", file)
    said = checked.out + checked.err
    assert all(one in said for one in told), said
    assert not any(one in said for one in not_told), said


def test_a_judge_of_a_share_of_the_prompts_is_asked_about_the_first(
    salon: Salon, tmp_path: Path, made: Path, provider: Provider
) -> None:
    (tmp_path / "made").symlink_to(made)
    provider.then = _said("Score: 4")
    said = salon("check", write_benchmark(tmp_path, provider.url, judge="share = 0.001"))
    assert (said.code, provider.n) == (0, 1), said.out


def test_each_rubric_is_asked_once_and_one_of_pairs_is_left_out(
    salon: Salon, tmp_path: Path, made: Path, provider: Provider
) -> None:
    """One that is asked in its own form is fine, the next one's reply is told of by itself."""
    (tmp_path / "made").symlink_to(made)
    provider.then = _said("Score: 4")
    said = salon("check", write_benchmark(tmp_path, provider.url, rubrics=("alignment", "composition", "preference")))
    lines = [line for line in said.out.splitlines() if line[8:24].strip() == "judge"]
    assert [line.split()[0] for line in lines] == ["ok", "wrong", "skipped"]
    assert ["alignment" in lines[0], "composition" in lines[1], "preference" in lines[2]] == [True] * 3
    assert (said.code, provider.n) == (3, 2)


@pytest.mark.parametrize("command", ["check", "plan", "run"])
def test_a_rubric_without_messages_asks_nobody(command: str, salon: Callable[..., Said], tmp_path: Path) -> None:
    """It is for replies that were recorded elsewhere; a judge that is to be asked by it was a fault of Salon's own."""
    file = tmp_path / "b.toml"
    file.write_text(
        f'name = "b"\nrubric_folders = ["{Path(__file__).parents[3] / "docs/examples/rubrics"}"]\n'
        '[[sources]]\nreader = "imagefolder"\npath = "."\nmodel = "m"\n[[rubrics]]\nid = "opinion"\n'
        '[[judges]]\nmodel = "asked"\nbase_url = "http://127.0.0.1:9/v1"\n'
    )
    said = salon(command, file)
    assert said.code == 2
    assert "rubric opinion has no [[messages]], and asked cannot be asked with it; add them to its rubric.toml" in said.err
