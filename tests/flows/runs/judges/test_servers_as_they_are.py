"""Servers that answer in ways of their own: under two names, as one of two deployments of a model, with settings they refuse."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tasks.publish.reading import current
from tests.flows.flow_support import Said
from tests.support.night_world import N_SAMPLES, World, write_benchmark
from tests.support.servers.provider import completion

RUN = ("--run-date", "2026-03-04")
SAID = "Reasoning: plain.\nScore: 4"


def _gateway(provider: Any) -> None:
    """Two names in turn, for as long as it is asked."""
    names = ["qwen-vl-a", "qwen-vl-b"] * N_SAMPLES
    provider.script.extend(provider.play(body=completion(SAID, model=name)) for name in names)


def test_a_gateway_that_answers_under_two_names_is_one_judge_where_the_file_says_so(
    tmp_path: Path, salon: Callable[..., Said], provider: Any
) -> None:
    for number in (0, 1):
        World(tmp_path).make(number)
    _gateway(provider)
    stopped = salon("run", write_benchmark(tmp_path, provider.url), *RUN)
    assert stopped.code == 3
    assert 'list them: accept_models = ["qwen-vl-a", "qwen-vl-b"]' in " ".join(stopped.err.split())
    provider.script.clear()

    _gateway(provider)
    file = write_benchmark(tmp_path, provider.url, judge='accept_models = ["qwen-vl-a", "qwen-vl-b"]')
    said = salon("run", file, *RUN)
    assert said.code == 0, said.err
    folder = current(tmp_path / "lake").folder
    compared = pl.read_parquet(folder / "comparisons.parquet")
    assert "answering_model_differs" not in compared["reason"].to_list()
    assert compared.filter(pl.col("delta").is_not_null()).height
    health = pl.read_parquet(folder / "health.parquet").filter(measure="n_answered_by")
    assert set(health["word"]) == {"qwen-vl-a", "qwen-vl-b"}, "both names are told"
    assert salon("verify", folder).code == 0


def test_two_deployments_of_a_model_are_two_judges_and_nested_parameters_reach_them(
    tmp_path: Path, salon: Callable[..., Said], provider: Any
) -> None:
    World(tmp_path).make(0)
    provider.then = provider.play(body=completion(SAID, model="qwen"))
    shared = """\
parameters = { temperature = 0, extra_body = { chat_template_kwargs = { enable_thinking = false }, logit_bias = { "5" = -100 } } }
"""
    file = write_benchmark(tmp_path, provider.url, models=["qwen"], judge=f'name = "bf16"\n{shared}')
    twice = file.read_text() + f'[[judges]]\nmodel = "qwen"\nname = "awq"\nbase_url = "{provider.url}"\n{shared}'
    file.write_text(twice)
    refused = salon("run", file, *RUN)
    assert refused.code == 2
    assert "deployment, which says what is served there" in " ".join(refused.err.split())
    file.write_text(twice + 'deployment = "AWQ, 4 bits"\n')
    said = salon("run", file, *RUN)
    assert said.code == 0, said.err
    assert provider.n == 2 * N_SAMPLES
    assert all(body["chat_template_kwargs"] == {"enable_thinking": False} for body in provider.bodies)
    assert all(body["logit_bias"] == {"5": -100} and "extra_body" not in body for body in provider.bodies)
    assert salon("run", file, *RUN).code == 0
    assert provider.n == 2 * N_SAMPLES, "nothing is asked twice"
    assert set(pl.read_parquet(current(tmp_path / "lake").folder / "standings.parquet")["judge_model"]) == {"bf16", "awq"}


def test_an_account_that_is_empty_near_the_end_is_told_beside_what_is_published(
    tmp_path: Path, salon: Callable[..., Said], provider: Any
) -> None:
    """Fewer than eight such requests stop no run: the next one, and not this, would be the first to say so."""
    World(tmp_path).make(0)
    provider.script.extend([provider.play(body=completion(SAID))] * (N_SAMPLES - 2))
    provider.then = provider.play(status=402, body=json.dumps({"error": {"message": "Insufficient Balance"}}).encode())
    said = salon("run", write_benchmark(tmp_path, provider.url), *RUN)
    assert said.code in (0, 1), said.err
    told = " ".join(said.out.split())
    assert 'without a reply: no_credit 2; most frequent messages: "HTTP 402: Insufficient Balance" ×2' in told
    assert "the account behind the environment variable OPENAI_API_KEY has no credit left: top it up" in told


@pytest.mark.parametrize("command", [("run", *RUN), ("doctor", "--ask")], ids=["a run", "doctor"])
def test_a_setting_that_a_server_refuses_is_told_with_what_to_change(
    tmp_path: Path, salon: Callable[..., Said], provider: Any, command: tuple[str, ...]
) -> None:
    World(tmp_path).make(0)
    says = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    error = {"message": says, "type": "invalid_request_error", "param": "max_tokens", "code": "unsupported_parameter"}
    provider.then = provider.play(status=400, body=json.dumps({"error": error}).encode())
    file = write_benchmark(tmp_path, provider.url, judge="parameters = { max_tokens = 600 }")
    said = salon(command[0], file, *command[1:])
    assert said.code == 3
    assert "eplace max_tokens with max_completion_tokens in its parameters" in " ".join((said.out + said.err).split())
    assert provider.n < N_SAMPLES
