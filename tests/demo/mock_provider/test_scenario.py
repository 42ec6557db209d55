"""The scenario file: what is refused, and by which key; and the command that serves it."""

import json
import signal
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path

import pytest

from demo.mock_provider.billing import Price
from demo.mock_provider.faults import Fault
from demo.mock_provider.scenario import (
    Answer,
    BatchRules,
    Change,
    Faults,
    ItemRules,
    Latency,
    Limits,
    Model,
    Scenario,
    ScenarioFileError,
    load_scenario,
)
from demo.running import running_judge
from flows.cli import run
from schemas.errors import InputError, ProviderError

ROOT = Path(__file__).resolve().parents[3]
PLAIN = ROOT / "docs" / "examples" / "scenarios" / "plain.toml"

REFUSED = {
    "unknown key": ("sed = 1", r"sed is not a key here; allowed: seed, answer"),
    "unknown key of a section": ("[faults]\nshare = 1", r"faults\.share is not a key here; allowed: shares, first_attempts"),
    "unknown fault": ("[faults.shares]\nerror_501 = 0.1", r"faults\.shares\.error_501: .*'rate_limited'"),
    "share above one": ("[faults.shares]\nreset = 1.5", r"faults\.shares\.reset: .*less than or equal to 1"),
    "shares above one": ("[faults.shares]\nreset = 0.6\ndrip = 0.6", r"faults: shares sum to 1\.2"),
    "spread the wrong way": ("[faults]\nretry_after_s = [2, 1]", r"faults: retry_after_s is \[least, most\]"),
    "no such form": ('[faults]\nretry_after = ["soon"]', r"faults\.retry_after\[0\]: .*'seconds'"),
    "canned without text": ('[answer]\nmode = "canned"', r"answer: text belongs to mode"),
    "text without canned": ('[answer]\ntext = "x"', r"answer: text belongs to mode"),
    "half the tokens": ('[answer]\nmode = "canned"\ntext = "x"\nprompt_tokens = 1', r"answer: .*go together"),
    "model without price": ('[[models]]\nid = "mine"', r"models\[0\]: no price of 'mine' is known; add usd_per"),
    "half a price": ('[[models]]\nid = "mine"\nusd_per_million_input_tokens = 1', r"models\[0\]: .*go together"),
    "a model twice": ('[[models]]\nid = "gpt-4o"\n[[models]]\nid = "gpt-4o"', r"models: duplicate id in"),
    "change without start": ("[[changes]]\nrequests_per_minute = 5", r"changes\[0\]: a change has either"),
    "line fault of a socket": ("[batch.line_faults]\nreset = 0.1", r"batch: line_faults: reset cannot happen to a line"),
    "faults of nothing": (
        '[stats]\nitems = "none"\n[faults.shares]\nreset = 0.1',
        r"items = \"none\" cannot tell requests apart",
    ),
    "no limit": ("[limits]\nrequests_per_minute = 0", r"limits\.requests_per_minute: .*greater than or equal to 1"),
    "no TOML": ("seed: 1", r"not valid TOML"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_file_is_refused_and_the_key_named(tmp_path, name):
    text, message = REFUSED[name]
    path = tmp_path / "scenario.toml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ScenarioFileError, match=message) as caught:
        load_scenario(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert "Value error" not in str(caught.value)
    assert isinstance(caught.value, InputError)


def test_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ScenarioFileError, match=r"absent\.toml: cannot be read as a scenario file"):
        load_scenario(tmp_path / "absent.toml")


def test_an_empty_file_is_the_honest_judge_without_any_difficulty(tmp_path):
    (tmp_path / "empty.toml").write_text("", encoding="utf-8")
    scenario = load_scenario(tmp_path / "empty.toml")
    assert (scenario.answer.mode, scenario.faults.shares, scenario.latency.median_s) == ("judge", {}, 0)
    assert scenario.limits.requests_per_minute is None


def test_every_key_is_explained_in_the_documentation():
    text = (ROOT / "docs" / "serve-judge.md").read_text(encoding="utf-8")
    for section in (Scenario, Answer, Model, Latency, Limits, Faults, Change, BatchRules, ItemRules):
        for key in section.model_fields:
            assert f"`{key}`" in text or f"`[{key}]`" in text or f"`[[{key}]]`" in text, (section.__name__, key)
    for fault in Fault:
        assert f"`{fault}`" in text


def test_running_judge_plays_a_scenario_in_a_process_of_its_own():
    with running_judge(PLAIN) as base_url, urllib.request.urlopen(f"{base_url.removesuffix('/v1')}/stats", timeout=60) as answer:
        assert json.load(answer)["n_requests"] == 0


def test_running_judge_says_what_is_wrong_with_a_scenario(tmp_path):
    path = tmp_path / "wrong.toml"
    path.write_text("sed = 1", encoding="utf-8")
    with pytest.raises(ProviderError, match=r"sed is not a key here"), running_judge(path):
        pass


def test_the_command_serves_until_it_is_told_to_stop():
    command = [sys.executable, "-m", "flows", "serve-judge", str(PLAIN), "--port", "0"]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        base_url = process.stdout.readline().partition('"')[2].rstrip('"\n')
        with urllib.request.urlopen(f"{base_url}/models", timeout=60) as answer:
            assert json.load(answer)["data"][0]["id"] == "salon-demo-judge"
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_the_command_names_a_wrong_key_and_a_port_that_is_taken(tmp_path, capsys):
    path = tmp_path / "wrong.toml"
    path.write_text("sed = 1", encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as taken:
        tries = [(path, 0, "sed is not a key here"), (PLAIN, taken.getsockname()[1], "cannot listen on port")]
        for scenario, port, message in tries:
            assert run(["serve-judge", str(scenario), "--port", str(port)]) == 2
            assert message in capsys.readouterr().err


def test_the_default_model_may_be_written_down(tmp_path):
    """Its price is known: nobody bills it."""
    path = tmp_path / "scenario.toml"
    path.write_text('[[models]]\nid = "salon-demo-judge"\n', encoding="utf-8")
    assert load_scenario(path).models == Scenario().models
    assert load_scenario(path).models[0].price == Price(0, 0)
