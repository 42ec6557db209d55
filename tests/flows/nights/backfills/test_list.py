"""`--list` and `--dry-run`: after a kill, and for a program; and a checkpoint whose pictures are gone: what takes it out."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from flows.partitions.table import judge_digest
from schemas.benchmark.judges import Judge
from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion


def test_a_killed_partition_says_what_is_left_now(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    for name in ("step-1", "step-10", "step-2"):
        make_folder(tmp_path, name)
    file, n_answered = write_file(tmp_path, scoring.url), 5
    scoring.script.extend([scoring.then] * n_answered)
    answer, scoring.then = scoring.then, Play(body=scoring.then.body, delay_s=600)
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[4])}
    command = [sys.executable, "-m", "flows", "backfill", str(file), "--all", "--at-once", "1"]
    killed = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end = time.monotonic() + 120
    while scoring.n < n_answered + 4:  # all that may be in flight hangs: what was answered is stored
        assert killed.poll() is None, "it ended before it was killed"
        assert time.monotonic() < end
        time.sleep(0.1)
    time.sleep(1)
    killed.kill()
    killed.wait()
    rows = [line.split() for line in salon("backfill", file, "--list").out.splitlines() if line.startswith("m/")]
    assert [row[0] for row in rows] == ["m/step-1", "m/step-2", "m/step-10"]
    assert rows[-1][5:8] == ["failed", str(N_PROMPTS), str(N_PROMPTS - n_answered)]
    *_, whole, begun = json.loads(salon("backfill", file, "--list", "--json").out)["partitions"]
    assert whole["online_usd"] == pytest.approx(2 * whole["batch_usd"])
    assert whole["online_usd"] > 0
    for name in ("online_usd", "batch_usd"):  # as much of it as is left
        assert begun[name] / whole[name] == pytest.approx((N_PROMPTS - n_answered) / N_PROMPTS)
    scoring.then = answer


def test_pictures_that_are_gone_make_no_table_and_a_run_takes_them_out(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    make_folder(tmp_path, "step-1")
    gone = make_folder(tmp_path, "step-2")
    file, lake = write_file(tmp_path, scoring.url), tmp_path / "lake"
    assert salon("backfill", file, "--all").code == 0
    gone.rename(tmp_path / "elsewhere")
    again = salon("backfill", file, "--all")
    told = " ".join(again.err.split())
    assert (again.code, "not in this table" in told, "`salon run FILE` makes one from what the sources contain now" in told) == (
        0, False, True,
    )  # fmt: skip
    assert "m/step-2" in told
    assert set(cells_of(lake)["checkpoint"]) == {"step-1", "step-2"}
    assert salon("run", file).code == 0
    assert set(cells_of(lake)["checkpoint"]) == {"step-1"}


def test_a_program_is_given_what_the_table_says_in_full(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    for name in ("step-2", "step-10"):
        make_folder(tmp_path, name)
    file = write_file(tmp_path, scoring.url)
    none = json.loads(salon("backfill", file, "--list", "--json").out)
    n_none = {"n": 0, "n_asked": 0, "cost_usd": None, "is_at_least": False}
    nothing = {"benchmark": "folders", "publication_id": None, "partitions": [], "n_replaced": 0}
    assert none == nothing | {"backfills": n_none}
    assert salon("backfill", file, "--checkpoints", "step-2").code == 0
    refused = Play(401, b'{"error": {"message": "no such key"}}')
    answer, scoring.then = scoring.then, refused
    assert salon("backfill", file, "--all").code == 3
    scoring.then = answer
    said = json.loads(salon("backfill", file, "--list", "--json").out)
    assert said["publication_id"] == cells_of(tmp_path / "lake")["publication_id"][0]
    assert (said["backfills"]["n"], said["backfills"]["n_asked"]) == (2, scoring.n)
    done, failed = said["partitions"]
    assert set(done) == {
        "partition_id", "model", "checkpoint", "rubric_id", "rubric_version", "judge_model", "dataset_id", "state", "n_requests",
        "n_left", "online_usd", "batch_usd", "asked_by", "changed_at", "detail",
    }  # fmt: skip
    assert [(one["checkpoint"], one["state"], one["n_left"]) for one in (done, failed)] == [
        ("step-2", "done", 0), ("step-10", "failed", N_PROMPTS),
    ]  # fmt: skip
    assert (done["detail"], "no such key" in failed["detail"], failed["online_usd"] > 0) == (None, True, True)
    alone = salon("backfill", file, "--all", "--json")
    assert (alone.code, alone.err) == (2, "salon: --json prints what --list shows: add --list, or omit it\n")


def test_what_a_stale_partition_lacks_is_not_called_nothing(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    assert salon("backfill", file, "--all").code == 0
    file.write_text(file.read_text().replace("max_tokens = 16", "max_tokens = 17"))
    listed = salon("backfill", file, "--list").out
    (row,) = (line.split() for line in listed.splitlines() if line.startswith("m/"))
    assert row[5:8] == ["stale", str(N_PROMPTS), "?"]
    assert "salon backfill FILE --all --dry-run" in listed
    (one,) = json.loads(salon("backfill", file, "--list", "--json").out)["partitions"]
    assert [one[name] for name in ("state", "n_left", "online_usd", "batch_usd")] == ["stale", None, None, None]
    assert f"{N_PROMPTS} requests" in " ".join(salon("backfill", file, "--all", "--dry-run").out.split())


def test_what_backfills_cost_of_which_one_is_not_known_is_a_least(
    tmp_path: Path, salon: Callable[..., Said], scoring: Provider
) -> None:
    for name in ("step-1", "step-2"):
        make_folder(tmp_path, name)
    file = write_file(tmp_path, scoring.url)
    priced = file.read_text()
    file.write_text("".join(line for line in priced.splitlines(keepends=True) if not line.startswith("price")))
    assert salon("backfill", file, "--checkpoints", "step-1").code == 0
    assert f"cost unknown in 1 backfill, {N_PROMPTS} requests sent" in " ".join(salon("backfill", file, "--list").out.split())
    (row,) = (tmp_path / "lake" / "runs").glob("*.parquet")
    pl.read_parquet(row).with_columns(is_at_least=pl.lit(value=False)).write_parquet(row)  # as an earlier version wrote it
    file.write_text(priced)
    assert salon("backfill", file, "--checkpoints", "step-2").code == 0
    cost = json.loads(salon("backfill", file, "--list", "--json").out)["backfills"]
    assert (cost["n"], cost["cost_usd"] > 0, cost["is_at_least"]) == (2, True, True)
    assert "at least $" in salon("backfill", file, "--list").out


def test_a_dry_run_names_the_judge_without_a_price(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    priced = salon("backfill", file, "--all", "--dry-run").out
    file.write_text("".join(line for line in file.read_text().splitlines(keepends=True) if not line.startswith("price")))
    said = " ".join(salon("backfill", file, "--all", "--dry-run").out.split())
    assert "price no price of judge-2026-01-01 is known; write [judges.price] below that judge" in said
    assert "no price of" not in priced


def test_a_table_whose_cells_are_blocked_is_no_success(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    """All was asked and answered, and no answer can be read: the exit code says so, as that of a run."""
    scoring.then = Play(body=completion("A nice picture."))
    make_folder(tmp_path, "step-1")
    file = write_file(tmp_path, scoring.url)
    blocked, listed = (salon("backfill", file, choice) for choice in ("--all", "--list"))
    assert (blocked.code, "1 done" in listed.out) == (1, True), blocked.out + blocked.err + listed.out


@pytest.mark.parametrize(
    ("said", "is_another"),
    [
        ({"model": "n"}, True),
        ({"repeats": 2}, True),
        ({"structured_output": True}, True),
        ({"parameters": {"temperature": 1}}, True),
        ({"detail": "low"}, True),
        ({"share": 0.5}, True),
        ({"deployment": "d"}, True),
        ({"provider": "anthropic"}, True),
        ({"provider": "openai"}, False),
        ({"name": "eye", "base_url": "http://127.0.0.1:1/v1", "mode": "batch", "api_key_env": "KEY"}, False),
        ({"price": {"input_usd_per_million": 1.0, "output_usd_per_million": 2.0}}, False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, dict) else "",
)
def test_what_makes_a_judge_another_whose_partitions_are_stale(said: dict[str, Any], *, is_another: bool) -> None:
    plain = judge_digest(Judge.model_validate({"model": "m"}))
    assert (judge_digest(Judge.model_validate({"model": "m"} | said)) != plain) == is_another
