"""docs/tables.md, the data dictionary, made from the schemas: a column is described once, where it is declared."""

import inspect
import re
from enum import StrEnum

from schemas.benchmark import exam
from schemas.statuses import cells, nights, people, rows
from schemas.tables.catalogue import TABLES, key_of_all
from schemas.tables.field import IMAGE_TYPE, Field
from schemas.tables.table import SCHEMA_VERSION, Table

_INTRODUCTION = f"""\
# Tables

Every table is Parquet with the Arrow schema below; each column's sentence and unit are in the schema's field metadata too.
Schema version {SCHEMA_VERSION}. This page is made from `schemas/` by `tests/support/data_dictionary.py`; edit it there.

What breaks a reader, and so raises the schema version: removing or renaming a column, changing its type or unit, letting a
column be null that was not, changing a table's key or what a row is. Adding a column or a word of a closed list does not.

A key tells the rows of one publication apart. Where those of several stand together, in `salon.duckdb` and in a glob below
`tables/` (there the path's `publication=`), `publication_id` belongs to it and to every join: the same cell of the next night
has the same `cell_id`. Of the current publication alone `salon.duckdb` has `current_<table>` ([dashboards.md](dashboards.md)).
"""


def data_dictionary() -> str:
    """The whole page as Markdown."""
    used = {field.values for table in TABLES.values() for field in table.fields if field.values}
    words = [
        value
        for module in (rows, cells, people, nights, exam)
        for value in vars(module).values()
        if isinstance(value, type) and issubclass(value, StrEnum) and value is not StrEnum
    ]
    sections = [_INTRODUCTION, *(_table(table) for table in TABLES.values())]
    sections += ["## Closed lists of words\n", *(_words(kind, is_column=kind in used) for kind in words)]
    return "\n".join(sections)


def _table(table: Table) -> str:
    more = "; of several publications with `publication_id`" if key_of_all(table) != table.key else ""
    lines = [f"## {table.name}\n", *([f"{table.about}\n"] if table.about else [])]
    lines += [f"Key: {', '.join(f'`{name}`' for name in table.key)}{more}.\n"]
    lines += ["| column | type | null | unit | allowed | what it is |", "|---|---|---|---|---|---|"]
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
        return f"{field.length} hexadecimal characters"
    if field.minimum is not None and field.maximum is not None:
        return f"{field.minimum:g} to {field.maximum:g}"
    return f"at least {field.minimum:g}" if field.minimum is not None else ""


def _words(kind: type[StrEnum], *, is_column: bool) -> str:
    """The words of an enumeration with the comment that stands beside each in its source."""
    said = dict(re.findall(r'^\s+\w+ = "([^"]+)"(?:  # (.*))?$', inspect.getsource(kind), re.MULTILINE))
    where = "" if is_column else " (not a column's type: words that appear in text columns)"
    lines = [f"### {kind.__name__}\n", f"{inspect.getdoc(kind)}{where}\n", *(_word(member.value, said) for member in kind)]
    return "\n".join(lines) + "\n"


def _word(word: str, said: dict[str, str]) -> str:
    return f"- `{word}`: {said[word]}" if said.get(word) else f"- `{word}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
