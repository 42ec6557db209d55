"""Which cell a reader means: by its id, or by the path model/checkpoint/rubric/dimension; which row of another table, by its id.

What is said of it is in the other files.
"""

import difflib
import re
from typing import Any

import polars as pl

from schemas.errors import InputError
from schemas.metrics import means_for_prompts_like_these
from schemas.statuses.cells import Total
from schemas.tables.table import Table
from tasks.lake.object_store.cache_folder import bring
from tasks.publish.reading import Publication

_ADDRESS = ("model", "checkpoint", "rubric_id", "dimension", "category")


def find_cell(cells: pl.DataFrame, address: str, where: str = "this publication") -> dict[str, Any]:
    """The cell with this id (a prefix of 4 characters or more) or path model/checkpoint/rubric/dimension[/category].

    A path means the mean for prompts like these; without a category, `__macro__`. Names may hold slashes: the joined
    texts are compared.
    Raises InputError that lists what it can be, and says `where` it was looked for.
    """
    joined = cells.with_columns(path=pl.concat_str(_ADDRESS, separator="/"))
    found = means_for_prompts_like_these(joined).filter(pl.col("path").is_in([address, f"{address}/{Total.MACRO.value}"]))
    if found.is_empty() and re.fullmatch(r"[0-9a-f]{4,12}", address):
        found = joined.filter(pl.col("cell_id").str.starts_with(address))
    if found.height == 1:
        return found.drop("path").row(0, named=True)
    if found.is_empty():
        close = difflib.get_close_matches(address, joined["path"].to_list(), n=5, cutoff=0.3)
        found = means_for_prompts_like_these(joined).filter(pl.col("path").is_in(close))
        raise InputError(
            f"there is no cell {address!r} in {where}; write four characters or more of a cell's id, eight of a sample's, or "
            f"model/checkpoint/rubric/dimension[/category]; similar:\n{_listed(found)}"
        )
    raise InputError(f"{address!r} matches {found.height} cells; write the id of one:\n{_listed(found)}")


def find_row(publication: Publication, table: Table, name: str, address: str) -> dict[str, Any] | None:
    """The row of a table whose `name`, its id, begins so; None where there is none, or more than one."""
    path = publication.folder / f"{table.name}.parquet"
    if len(address) < 4 or not bring(path).is_file():
        return None
    found = pl.read_parquet(path).filter(pl.col(name).str.starts_with(address))
    return found.row(0, named=True) if found.height == 1 else None


def _listed(found: pl.DataFrame) -> str:
    rows = found.select("cell_id", "path", "judge_model").head(20).iter_rows()
    return "\n".join(f"  {cell_id}  {path}  (judge {judge})" for cell_id, path, judge in rows) or "  none"
