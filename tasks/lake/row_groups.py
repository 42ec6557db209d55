"""How much of somebody's Parquet file is held at once, by what its footer says. Salon's own tables are read in reading.py."""

from collections.abc import Collection

import pyarrow.parquet as pq

from schemas.errors import SourceError
from schemas.input_budget import PARQUET_BATCH_BYTES, PARQUET_BATCH_ROWS, PARQUET_CHUNK_BYTES, PARQUET_UNPACKED


def rows_at_once(group: pq.RowGroupMetaData, wanted: Collection[str] | None, name: str, n_rows: int = PARQUET_BATCH_ROWS) -> int:
    """How many of a row group's rows are held at once, `n_rows` at most. `wanted`: the columns read; None: all.

    Raises SourceError where a column unpacks to more than is read; `name` is what it calls the file.
    """
    chunks = [group.column(index) for index in range(group.num_columns)]
    mine = [chunk for chunk in chunks if wanted is None or chunk.path_in_schema.partition(".")[0] in wanted]
    for chunk in mine:
        n_bytes, n_unpacked = chunk.total_compressed_size, chunk.total_uncompressed_size
        if n_unpacked > max(PARQUET_CHUNK_BYTES, n_bytes * PARQUET_UNPACKED):
            raise SourceError(
                f"{name}: column {chunk.path_in_schema} unpacks from {n_bytes:,} bytes to {n_unpacked:,}; at most "
                f"{PARQUET_UNPACKED} times its size is read, or {PARQUET_CHUNK_BYTES:,} bytes; write it in smaller row groups"
            )
    n_bytes_a_row = int(sum(chunk.total_uncompressed_size for chunk in mine) // max(1, group.num_rows))
    return max(1, min(n_rows, PARQUET_BATCH_BYTES // max(1, n_bytes_a_row)))
