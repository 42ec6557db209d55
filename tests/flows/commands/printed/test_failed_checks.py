"""What a run's last lines say of failed checks that block nothing: which, and of how many rows."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from flows.commands.printed.replies import print_failed_checks
from flows.observability.terminal import result_console
from tests.flows.flow_support import Said

Rows = list[tuple[str, str, int, int]]
TOLD: dict[str, tuple[Rows | None, str]] = {
    "none failed": ([("a.b", "passed", 9, 0)], ""),
    "no table of them": (None, ""),
    "one": (
        [("a.b", "passed", 9, 0), ("c.d", "failed", 1234, 2)],
        "1 failed but block nothing: c.d (2 of 1,234 rows). The report page",
    ),
    "one of the table": ([("c.[b]d", "failed", 9, 0)], "1 failed but block nothing: c.[b]d. The report page"),
    "many": (
        [(f"c.{n}", "failed", 9, n) for n in range(1, 6)],
        "5 failed but block nothing: c.5 (5 of 9 rows); c.4 (4 of 9 rows); c.3 (3 of 9 rows); and 2 more. The report page",
    ),
}


@pytest.mark.parametrize(("rows", "told"), TOLD.values(), ids=TOLD.keys())
def test_failed_checks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str], rows: Rows | None, told: str) -> None:
    if rows is not None:
        columns = ["check", "status", "n_checked", "n_failing"]
        pl.DataFrame(rows, schema=columns, orient="row").write_parquet(tmp_path / "checks.parquet")
    print_failed_checks(result_console(), tmp_path)
    said = " ".join(capsys.readouterr().out.split())
    assert said.startswith(f"checks {told}") if told else not said


def test_a_run_names_the_check_that_failed(salon: Callable[..., Said], tmp_path: Path) -> None:
    """Nobody has answered yet: that no score is there is a warning."""
    Image.new("RGB", (8, 8), (80, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "m.jsonl").write_text('{"image": "a.png", "prompt": "red", "model": "m", "checkpoint": "c"}\n')
    (tmp_path / "b.toml").write_text(
        'name = "b"\n[[sources]]\nreader = "manifest"\npath = "m.jsonl"\n[[rubrics]]\nid = "alignment"\n'
        '[[judges]]\nmodel = "somebody"\nrecorded = true\n'
    )
    said = " ".join(salon("run", "b.toml").out.split())
    assert " checks " in said
    assert "scores.score.is_not_all_null (1 of 1 rows)" in said
