"""A checkpoint some of whose replies are by another model fails, by name and with what to do; the others are published."""

from collections.abc import Callable
from pathlib import Path

from tests.flows.flow_support import Said, cells_of
from tests.support.checkpoint_folders import N_PROMPTS, make_folder, write_file
from tests.support.servers.provider import Play, Provider, completion

OTHER = Play(body=completion("Reasoning: plain.\nScore: 3", model="judge-2026-06-01"))


def test_a_checkpoint_of_two_models_is_left_out(tmp_path: Path, salon: Callable[..., Said], scoring: Provider) -> None:
    make_folder(tmp_path, "step-2")
    file, lake = write_file(tmp_path, scoring.url), tmp_path / "lake"
    assert salon("backfill", file, "--all", "--run-date", "2026-03-01").code == 0
    make_folder(tmp_path, "step-1")
    before = scoring.then
    scoring.script.extend([before] * (N_PROMPTS - 1))
    scoring.then = OTHER
    renamed = salon("backfill", file, "--all")
    assert (renamed.code, "judge-2026-06-01" in renamed.err) == (3, True)
    n_asked = scoring.n
    assert n_asked == 2 * N_PROMPTS
    listed = " ".join(salon("backfill", file, "--list").out.split())
    assert ("1 done, 1 failed" in listed, "its replies under alignment by judge" in listed) == (True, True)

    make_folder(tmp_path, "step-3")
    others = salon("backfill", file, "--all")
    told = " ".join(others.err.split())
    assert (others.code, scoring.n) == (3, n_asked + N_PROMPTS)
    assert "m/step-1: its replies under alignment by judge judge-2026-01-01 come from 2 models (judge-2026-01-01, " in told
    assert "accept_models = […]" in told
    assert set(cells_of(lake)["checkpoint"]) == {"step-2", "step-3"}
    whole = salon("run", file)
    assert (whole.code, "They are of m/step-1. The provider changed" in " ".join(whole.err.split())) == (1, True)

    write_file(tmp_path, scoring.url, judge='accept_models = ["judge-2026-01-01", "judge-2026-06-01"]')
    assert salon("backfill", file, "--checkpoints", "step-1").code == 0
    assert set(cells_of(lake)["checkpoint"]) == {"step-1", "step-2", "step-3"}
    assert scoring.n == n_asked + N_PROMPTS, "nothing is bought twice"
    assert "3 done" in salon("backfill", file, "--list").out
