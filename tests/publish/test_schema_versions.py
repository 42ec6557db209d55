"""The schema a reader relies on: held against the golden file of its version, and what counts as breaking.

After a change that breaks nothing (a new column, table or word), write the golden file anew and read its diff:
SALON_WRITE_GOLDEN=1 python -m pytest tests/publish/test_schema_versions.py
"""

import json
import os
from pathlib import Path

import pytest

from schemas.tables.catalogue import TABLES
from schemas.tables.stored import PARTITIONS
from schemas.tables.table import SCHEMA_VERSION, Table

GOLDEN = Path(__file__).parent / "golden"


def described(tables: dict[str, Table]) -> dict[str, dict[str, object]]:
    """What readers rely on: keys in order; of each column its type, unit, whether it may be null, and its closed words."""
    return {
        name: {
            "key": list(table.key),
            "columns": {
                field.name: {
                    "type": str(field.arrow_type),
                    "null": field.is_nullable,
                    "unit": field.unit,
                    "words": sorted(member.value for member in field.values) if field.values else None,
                }
                for field in table.fields
            },
        }
        for name, table in sorted(tables.items())
    }


def breaking(old: dict, new: dict) -> list[str]:
    """What would break a reader of `old` that is given `new`, one sentence each."""
    found = []
    for name, table in old.items():
        if name not in new:
            found.append(f"table {name} is gone")
            continue
        if table["key"] != new[name]["key"]:
            found.append(f"{name}: the key was {table['key']} and is {new[name]['key']}")
        for column, was in table["columns"].items():
            now = new[name]["columns"].get(column)
            if now is None:
                found.append(f"{name}.{column} is gone")
                continue
            found += [
                f"{name}.{column}: its {what} was {was[what]} and is {now[what]}"
                for what in ("type", "unit")
                if was[what] != now[what]
            ]
            if now["null"] and not was["null"]:
                found.append(f"{name}.{column} may now be null")
            lost = set(was["words"] or ()) - set(now["words"] or was["words"] or ())
            if lost:
                found.append(f"{name}.{column} lost the words {sorted(lost)}")
    return found


def golden(version: str = SCHEMA_VERSION) -> dict:
    path = GOLDEN / f"schema-v{version}.json"
    assert path.is_file(), f"schema version {version} has no golden file; write it with SALON_WRITE_GOLDEN=1 and review it"
    return json.loads(path.read_text("utf-8"))


def test_the_schema_is_the_golden_one_of_its_version():
    now = described(TABLES | {PARTITIONS.name: PARTITIONS})
    path = GOLDEN / f"schema-v{SCHEMA_VERSION}.json"
    if os.environ.get("SALON_WRITE_GOLDEN"):
        broken = breaking(golden(), now) if path.is_file() else []
        assert not broken, f"raise SCHEMA_VERSION first, see docs/schema-versions.md: {broken}"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(now, indent=1, sort_keys=True) + "\n", "utf-8")
    assert not breaking(golden(), now), "these break readers: raise SCHEMA_VERSION (docs/schema-versions.md)"
    assert now == golden(), "the schema grew; write the golden file anew (see the head of this file) and review its diff"


def test_every_version_has_its_golden_file():
    assert sorted(path.name for path in GOLDEN.glob("schema-v*.json")) == [
        f"schema-v{version}.json" for version in range(1, int(SCHEMA_VERSION) + 1)
    ]


COLUMN = {"type": "double", "null": False, "unit": "s", "words": ["a", "b"]}


def tables(**changes):
    return {"t": {"key": ["k"], "columns": {"c": COLUMN | changes}}}


@pytest.mark.parametrize(
    ("new", "says"),
    [
        ({}, "table t is gone"),
        ({"t": {"key": ["k"], "columns": {}}}, "t.c is gone"),
        ({"t": {"key": ["c"], "columns": {"c": COLUMN}}}, "the key was"),
        (tables(type="int64"), "its type was double and is int64"),
        (tables(unit="ms"), "its unit was s and is ms"),
        (tables(null=True), "t.c may now be null"),
        (tables(words=["a", "c"]), "lost the words ['b']"),
        (tables(words=["a", "b", "c"]), None),
        (tables(words=None), None),
        (tables() | {"u": {"key": [], "columns": {}}}, None),
        ({"t": {"key": ["k"], "columns": {"c": COLUMN, "d": COLUMN}}}, None),
    ],
    ids=["table gone", "column gone", "key", "type", "unit", "null", "word gone", "word added", "opened", "table", "column"],
)
def test_what_breaks_a_reader(new, says):
    found = breaking(tables(), new)
    assert bool(found) is (says is not None)
    assert says is None or says in found[0]
