"""Who fails unequally, wherever the table is: in the terminal, in every format of `salon table`, and in what is published."""

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from schemas.tables.published import STANDINGS
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tests.flows.commands.printed.test_table_command import DAY, cell, table_of, tables_of
from tests.flows.flow_support import Said


def test_who_fails_unequally_is_marked_wherever_the_table_is(
    tmp_path: Path, salon: Callable[..., Said], monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    cells = [cell("north", 7.0 - n, checkpoint=f"step-{n}", cell_id=f"{n:012}", n_failed=n, why={"refusal": n}) for n in (0, 1)]
    placed = {"is_headline": True, "state": "not_compared", "reason": "alone", "n_prompts_needed": 5}
    rows = [one | placed | {"has_unequal_failures": one["n_failed"] > 0} for one in cells]
    standings = table_of(STANDINGS, [{name: row.get(name) for name in STANDINGS.columns} for row in rows])
    tables = tables_of(cells) | {STANDINGS: standings}
    folder = publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables, {})).folder
    pages = {name: salon("table", "--format", name).out for name in ("table", "markdown", "latex")}
    pages |= {path.name: path.read_text() for path in (folder / "leaderboard.md", folder / "leaderboard.tex")}
    for name, page in pages.items():
        (line,) = (line for line in page.splitlines() if "fails unequally" in line)
        assert "step-1" in line, (name, line)
    as_csv = list(csv.DictReader(io.StringIO(salon("table", "--format", "csv").out)))
    as_json = json.loads(salon("table", "--format", "json").out)
    assert {row["checkpoint"]: row["has_unequal_failures"] for row in as_csv} == {"step-0": "false", "step-1": "true"}
    of = {(row["benchmark"], row["run_date"], row["publication_id"]) for row in (*as_csv, *as_json)}
    assert of == {("nightly", DAY.isoformat(), "f" * 64)}
    assert {row["checkpoint"]: row["has_unequal_failures"] for row in as_json} == {"step-0": False, "step-1": True}
