"""Five hundred simulated worlds, a form of `python -m benchmarks.simulations.protocol` short enough for every day."""

import logging
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.simulation.mutations import MUTATIONS, Mutation
from tests.simulation.play import play, play_seed
from tests.simulation.scenario import FAULTS, Command, Fault, Scenario, drawn

N_SEEDS = 500
ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _quiet(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.ERROR, "salon.ledger")  # a server that is away is no news here


def simulated(*options: str) -> str:
    """What the command prints. It ends with 0."""
    command = [sys.executable, "-m", "benchmarks.simulations.protocol", *options]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def test_every_promise_is_kept_in_every_world_and_every_kind_of_fault_struck() -> None:
    told = simulated("--seeds", str(N_SEEDS))
    assert f"{N_SEEDS:,} runs, 0 violations" in told
    n_struck = dict(re.findall(r"^(\S.*?) {2,}([\d,]+) ", told, re.MULTILINE))
    assert {kind for kind, n in n_struck.items() if kind in FAULTS and n != "0"} == set(FAULTS)


def test_a_seed_is_one_history_in_every_process() -> None:
    seeds = range(1, 9)
    code = f"from tests.simulation.play import play_seed; [print(play_seed(seed).history) for seed in {seeds!r}]"
    run = [sys.executable, "-c", code]
    other = subprocess.run(
        run, cwd=ROOT, env={"PYTHONHASHSEED": "7", "PYTHONPATH": "."}, capture_output=True, text=True, check=True
    )
    assert other.stdout == "".join(f"{play_seed(seed).history}\n" for seed in seeds)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["double claim", "attempt recorded after it is sent"])
def test_a_broken_protocol_is_found(name: str) -> None:
    assert "1 of 1 found" in simulated("--mutation", name, "--seeds", "200", "--processes", "1")


@pytest.mark.parametrize("mutation", MUTATIONS.values(), ids=MUTATIONS)
def test_what_a_mutation_changes_is_still_there(mutation: Mutation) -> None:
    source = (ROOT / mutation.module.replace(".", "/")).with_suffix(".py").read_text(encoding="utf-8")
    assert source.count(mutation.old) == 1


def of_one_machine(kinds: tuple[str, ...], *faults: Fault) -> Scenario:
    """Processes of one machine, one after the other, without limits, and these faults."""
    commands = tuple(Command(kind, 0, f"run {i}", tuple(range(5)), 2.0 * i) for i, kind in enumerate(kinds))
    return Scenario(
        seed=0, is_server=False, commands=commands, n_requests=5, concurrency=1, deadline_s=15.0, given_per_minute=None,
        limit=None, tells_limit=False, max_usd=None, attempts_per_run=None, unreadable=0.0, failing=0.0, latency_s=3.0,
        poll_s=0.5, faults=faults,
    )  # fmt: skip


def of_two_machines(*faults: Fault) -> Scenario:
    """Two online processes that share a slow key and a server, the second one some seconds later."""
    commands = tuple(Command("online", host, f"run {host}", (0, 1), begins_s) for host, begins_s in ((1, 2.0), (0, 9.0)))
    there = of_one_machine((), *faults)
    limited = replace(there, limit=12, tells_limit=True, concurrency=8, deadline_s=5.0, max_usd=0.0025, poll_s=9.0)
    return replace(limited, seed=288, is_server=True, commands=commands, n_requests=2)


FOUND = {
    "who hears a 429 is killed before it can tell of it": drawn(37082),
    "a living process on the same machine has not reached its ledger for a minute": drawn(39368),
    "a slow provider, and few tries": drawn(81710),
    "a process slept, and claims anew while it prepares what it had claimed": of_two_machines(
        Fault("pause", process=0, effect=6, seconds=70.0)
    ),
    "the clock is set back while the key is paused": replace(
        of_two_machines(Fault("429", at_s=1.0, seconds=20.0), Fault("server clock", at_s=12.0, seconds=-3600.0)), limit=None
    ),
    "the clock is set while a creation may be under way": of_one_machine(
        ("batch", "batch"), Fault("create lost"), Fault("clock", at_s=8.0, seconds=3600.0)
    ),
    "the clock is set while another has its turn": of_one_machine(
        ("night", "online", "night"), Fault("clock", at_s=1.0, seconds=3600.0)
    ),
    "a second reply, not kept, is asked about once more": replace(
        drawn(1011095),
        faults=(
            Fault("answer lost", 1, effect=11, seconds=3.0),
            Fault("outage", at_s=1.74, seconds=70.0),
            Fault("pause", 1, at_s=1.63, seconds=70.0),
        ),
    ),
    "a second reply is asked about once more when the first one's run is done": replace(
        drawn(1004390), faults=(Fault("provider away", 2, effect=1, seconds=3.0), Fault("server clock", at_s=1.74, seconds=61.0))
    ),
}


@pytest.mark.parametrize("scenario", FOUND.values(), ids=FOUND)
def test_what_was_found_stays_mended(scenario: Scenario) -> None:
    played = play(scenario)
    assert played.broken is None, played.history
    assert {fault.kind for fault in scenario.faults} == set(played.fired)


def test_without_faults_nobody_is_disturbed() -> None:
    """The referee sees nothing where nothing happens, and every request is bought."""
    for seed in range(20):
        calm = replace(drawn(seed), faults=(), unreadable=0.0, failing=0.0, latency_s=0.5)
        played = play(calm)
        assert played.broken is None, played.history
        assert played.n_paid == calm.n_requests, played.history
