"""Row order, chunking and thread count change no byte of the table."""

import hashlib
import os
import random
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from schemas.benchmark.file import Statistics
from tasks.aggregate.tables import Settings, aggregated

ROOT = Path(__file__).resolve().parents[2]


def many_rows():
    draw = random.Random(7)
    return [
        {
            "model": f"m{n % 2}", "checkpoint": str(n // 4 % 2), "prompt": f"p{n // 32}", "sample": str(n // 2), "repeat": n % 2,
            "category": f"c{n // 32 % 5}",
            "scores": {"q": draw.choice([0.1, 3.3, 7.7, 9.9, round(draw.uniform(0, 10), 3), "refusal"])},
        }
        for n in range(1600)
    ]  # fmt: skip


def written(judgements, scores, replies, asked, run_arguments) -> str:
    run = Settings(**run_arguments, min_coverage=0.1, statistics=Statistics(at_least={"q": 5}), baseline="m0/0")
    tables = aggregated(judgements.lazy(), scores.lazy(), replies.lazy(), {"plain": asked}, run)
    assert len(tables) == 7
    assert not [table.name for table, frame in tables.items() if frame.is_empty()]
    return hashlib.sha256("".join(frame.write_ndjson() for frame in tables.values()).encode()).hexdigest()


def answered(judgements: pl.DataFrame, answers) -> pl.DataFrame:
    numbers = pl.int_range(pl.len())
    return answers(judgements).with_columns(latency_s=(numbers % 97) / 10, cost_usd=0.0001 + (numbers % 13) / 70)


@pytest.mark.parametrize("seed", range(5))
def test_shuffling_and_rechunking_change_nothing(seed, make_rubric, make_frames, make_answers, run_arguments):
    asked = make_rubric({None: ("q",)}, report_by="category")
    judgements, scores = make_frames(many_rows(), asked)
    frames = (judgements, scores, answered(judgements, make_answers))
    first = written(*frames, asked, run_arguments)
    shuffled = [frame.sample(fraction=1, shuffle=True, seed=seed) for frame in frames]
    chunked = [
        pl.concat([frame[start : start + 97] for start in range(0, frame.height, 97)], rechunk=False) for frame in shuffled
    ]
    assert written(*chunked, asked, run_arguments) == first


SCRIPT = """
import importlib.util, sys
from pathlib import Path
def load(name):
    spec = importlib.util.spec_from_file_location(name, Path(sys.argv[1]) / f"{name}.py")
    module = importlib.util.module_from_spec(spec); spec.loader.exec_module(module); return module
helper, this = load("conftest"), load("test_determinism")
asked = helper.rubric({None: ("q",)}, report_by="category")
judgements, scores = helper.frames(this.many_rows(), asked)
sys.stdout.write(this.written(judgements, scores, this.answered(judgements, helper.answers), asked, helper.RUN))
"""


def test_the_number_of_threads_changes_nothing():
    digests = set()
    for n_threads in ("1", "4"):
        environment = os.environ | {"POLARS_MAX_THREADS": n_threads, "PYTHONPATH": str(ROOT)}
        command = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent)]
        digests.add(subprocess.run(command, env=environment, cwd=ROOT, check=True, capture_output=True, text=True).stdout)
    assert len(digests) == 1
    assert len(digests.pop()) == 64
