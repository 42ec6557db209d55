"""docs/tables.md, the data dictionary, made from the schemas: a column is described once, where it is declared."""

import inspect
import re
from enum import StrEnum

from schemas.benchmark import exam
from schemas.statuses import cells, nights, people, rows
from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES
from schemas.tables.catalogue import TABLES, key_of_all
from schemas.tables.field import IMAGE_TYPE, Field
from schemas.tables.nights import BRIDGES, DESIGNS, DRIFT, EXAM, JURY, NIGHTS, RELIABILITY
from schemas.tables.stored import (
    CHECKS,
    JUDGEMENTS,
    PARTITIONS,
    PICTURES,
    QUARANTINE,
    REPLIES,
    REQUESTS,
    RUNS,
    SAMPLES,
    SCORES,
)
from schemas.tables.table import SCHEMA_VERSION, Table

_OF_PEOPLE = (AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES)
_OF_JUDGES = (NIGHTS, DRIFT, BRIDGES, RELIABILITY, DESIGNS, JURY, EXAM)
_STORED = (SAMPLES, PICTURES, JUDGEMENTS, REQUESTS, REPLIES, SCORES, CHECKS, QUARANTINE, RUNS, PARTITIONS)


def _links(*names: str) -> str:
    return ", ".join(f"[{name}](#{name})" for name in names)


_INTRODUCTION = f"""\
# Tables

This page describes every column of Salon's tables and every value of their status columns. It is generated from `schemas/` by
`tests/support/data_dictionary.py`; edit the descriptions in `schemas/`.

| to find | look in |
|---|---|
| the ranking, and who is better | {_links("standings", "benchmark_wide", "comparisons")} |
| means with intervals, coverage and failures | {_links("benchmark_long", "pooled", "failures", "distributions", "health")} |
| pairs of pictures: win rates and ratings | {_links("preferences", "preference_ratings", "position_bias")} |
| people's ratings and votes, and figures corrected by them | {_links(*(table.name for table in _OF_PEOPLE))} |
| how reliable the judge is, and whether it drifts | {_links(*(table.name for table in _OF_JUDGES))} |
| what was asked and answered | {_links(*(table.name for table in _STORED))} |

All tables are Parquet files with the Arrow schema below. The schema's field metadata also has each column's description and unit.
The schema version is {SCHEMA_VERSION}. A change that breaks a reader raises it, for example when a column is removed or may newly
be null. Adding a column or a value does not ([schema-versions.md](schema-versions.md)).

**Keys.** A table's key identifies a row within one publication. `salon.duckdb`, and a glob below `tables/`, hold the rows of
several publications. There, add `publication_id` (`publication=` in the glob's paths) to the key and to every join, because the
same cell has the same `cell_id` every night. `current_<table>` in `salon.duckdb` holds the current publication's rows alone
([dashboards.md](dashboards.md)).
"""


_ABOUT_VALUES = """\
A column that links here holds only the values of that list. The other lists give values of open text columns, such as `reason`,
`category`, `metric` or `text_flags`.
"""


def data_dictionary() -> str:
    """The whole page as Markdown."""
    kinds = [
        value
        for module in (rows, cells, people, nights, exam)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StrEnum) and value is not StrEnum
    ]
    sections = [_INTRODUCTION, *(_table(table) for table in (*TABLES.values(), PARTITIONS))]
    sections += ["## Declared values\n", _ABOUT_VALUES, *(_values(kind) for kind in kinds)]
    return "\n".join(sections)


def _table(table: Table) -> str:
    more = ". Across publications, add `publication_id`" if key_of_all(table) != table.key else ""
    lines = [f"## {table.name}\n", *([f"{table.about}\n"] if table.about else [])]
    lines += [f"Key: {', '.join(f'`{name}`' for name in table.key)}{more}.\n"]
    lines += ["| column | type | null | unit | allowed | description |", "|---|---|---|---|---|---|"]
    for field in table.fields:
        null = "yes" if field.is_nullable else "no"
        lines.append(
            f"| `{field.name}` | {_type(field)} | {null} | {field.unit or ''} | {_allowed(field)} | {_cell(field.about)} |"
        )
    return "\n".join(lines) + "\n"


def _type(field: Field) -> str:
    return "image (struct of bytes, path)" if field.arrow_type == IMAGE_TYPE else str(field.arrow_type)


def _allowed(field: Field) -> str:
    if field.values:
        return f"[{field.values.__name__}](#{field.values.__name__.lower()})"
    if field.length:
        return f"{field.length}-digit hex"
    if field.minimum is not None and field.maximum is not None:
        return f"{field.minimum:g} to {field.maximum:g}"
    return f"≥ {field.minimum:g}" if field.minimum is not None else ""


def _values(kind: type[StrEnum]) -> str:
    """The values of an enumeration with the comment beside each in its source."""
    said = dict(re.findall(r'^\s+\w+ = "([^"]+)"(?:  # (.*))?$', inspect.getsource(kind), re.MULTILINE))
    lines = [f"### {kind.__name__}\n", f"{inspect.getdoc(kind)}\n", *(_value(member.value, said) for member in kind)]
    return "\n".join(lines) + "\n"


def _value(value: str, said: dict[str, str]) -> str:
    return f"- `{value}`: {said[value]}" if said.get(value) else f"- `{value}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
