"""What each kind of input may take: bytes, parts, seconds and memory, in one table that readers have their limits from.

What becomes of an input that asks for more is its reader's business. docs/untrusted-input.md shows TABLE.
"""

from typing import Any, NamedTuple

_MIB = 1024 * 1024

REPLY_BYTES = 8 * _MIB
REPLY_WAITING_BYTES = _MIB  # past it bodies are read one at a time: each is held several times meanwhile
REPLY_TEXT_BYTES = _MIB
REPLY_TOKENS = 20_000  # of what looks like JSON
REPLY_TEXT_LEVELS = 64
BATCH_RESULTS_BYTES = 2048 * _MIB
JSON_LEVELS = 100  # one in another; the libraries end somewhere between 250 and 1,000, each in its own way

LINE_BYTES = 64 * _MIB
ROW_BYTES = 8 * _MIB  # of JSON: parsed it takes up to twenty times as much memory
JSON_FILE_BYTES = 256 * _MIB  # a .json file is one value: it is read whole
TEXT_CHARACTERS = 1_000_000  # a few megabytes of Parquet can unpack to gigabytes, and each text is looked through for flags
NAME_CHARACTERS = 4000  # of a model or a checkpoint

CSV_COLUMNS = 10_000
CSV_ROW_CHARACTERS = 16 * _MIB  # the library holds a field in four bytes each, and a copy while it grows
PARQUET_TEXT_BYTES = 4 * _MIB  # a million characters
PARQUET_CHUNK_BYTES, PARQUET_UNPACKED = 256 * _MIB, 200  # a column of a row group that unpacks to more than both is not read
PARQUET_LISTED = 8 * _MIB  # values of a column of lists in a row group; more only where each has a byte of the file
PARQUET_USUAL_TEXT_BYTES = 1024  # what is longer is counted: a page of a dictionary stands for any number of rows
PARQUET_BATCH_ROWS, PARQUET_BATCH_BYTES = 32, 64 * _MIB  # held at once: rows may carry pictures

ARCHIVE_TEXT_BYTES = _MIB

PICTURE_BYTES = 64 * _MIB
PICTURE_PIXELS = 25_000_000
PICTURE_READS = 500_000  # of a file's parts by decoders written in Python: a second; 35 MB of GIF are 270,000
PICTURE_CPU_S = 10  # the slowest that is allowed takes 1.4 s (docs/decisions/02-ingest.md)
PICTURE_ADDRESS_BYTES = 512 * _MIB  # beyond what the decoder has before it sees a picture; resident it stays under 300 MB
CELL_PICTURES = 64
SHARD_PICTURE_BYTES = 256 * _MIB  # of pictures that readers hand on in memory

BUNDLE_BYTES, BUNDLE_UNPACKED = 256 * _MIB, 20  # a bundle that unpacks to more than both is not read: Parquet is packed already
BUNDLE_LISTING_BYTES = 16 * _MIB  # of a zip's own list of files, which the library reads whole: some 150,000 names
BUNDLE_JSON_BYTES = 64 * _MIB  # markers and manifests, read whole

RUBRIC_DECLARATION_BYTES = _MIB // 4
RUBRIC_PROMPT_BYTES = _MIB
RUBRIC_EXAMPLE_BYTES = 8 * _MIB
RUBRIC_KEY_PARTS = 16  # a.b.c: the TOML reader takes memory with the square of them, 19 GB for 256 KiB


class Kind(NamedTuple):
    """One kind of input: how much of what is read, and what reading the worst of it may take of a machine."""

    name: str
    n_bytes: dict[str, int]
    n_parts: dict[str, int]
    cpu_s: float
    rss_mb: int
    beyond: str


TABLE = (
    Kind(
        "a judge's reply, and a line of a batch's results",
        {"of the body": REPLY_BYTES, "of a body read beside others": REPLY_WAITING_BYTES, "of a batch": BATCH_RESULTS_BYTES},
        {"levels of JSON": JSON_LEVELS}, 5, 300, "`bad_response`",
    ),
    Kind(
        "the text of a reply",
        {"of the text": REPLY_TEXT_BYTES}, {"parts of JSON": REPLY_TOKENS, "levels of JSON": REPLY_TEXT_LEVELS}, 0.5, 100,
        "`malformed`",
    ),
    Kind(
        "JSON Lines, JSON",
        {"of a row": ROW_BYTES, "of a line that is looked at": LINE_BYTES, "of a `.json`": JSON_FILE_BYTES},
        {"levels of JSON": JSON_LEVELS, "characters of a text": TEXT_CHARACTERS, "of a model's name": NAME_CHARACTERS}, 5, 300,
        "the row is `bad_value`; a `.json` refused",
    ),
    Kind(
        "CSV, TSV",
        {"of a row": ROW_BYTES, "characters of a row that is looked at": CSV_ROW_CHARACTERS},
        {"columns": CSV_COLUMNS, "characters of a text": TEXT_CHARACTERS, "of a model's name": NAME_CHARACTERS}, 5, 300,
        "the row is `bad_value`; a longer one, or a header, refuses the file",
    ),
    Kind(
        "Parquet",
        {
            "of a text": PARQUET_TEXT_BYTES, "of a text that is not counted": PARQUET_USUAL_TEXT_BYTES,
            "of a column of a row group": PARQUET_CHUNK_BYTES, "held at once": PARQUET_BATCH_BYTES,
        },
        {
            "times its size, unpacked": PARQUET_UNPACKED, "values in lists": PARQUET_LISTED,
            "rows held at once": PARQUET_BATCH_ROWS,
        }, 5, 300,
        "the row is `bad_value`; a row group refused",
    ),
    Kind(
        "an archive (tar) of a million samples",
        {"of a picture": PICTURE_BYTES, "of a text or a long name": ARCHIVE_TEXT_BYTES},
        {"levels of JSON": JSON_LEVELS}, 100, 300, "the row says why",
    ),
    Kind(
        "a picture",
        {"of the file": PICTURE_BYTES, "of address space": PICTURE_ADDRESS_BYTES, "of a shard's pictures": SHARD_PICTURE_BYTES},
        {"pixels": PICTURE_PIXELS, "reads": PICTURE_READS, "in a cell that lists them": CELL_PICTURES}, PICTURE_CPU_S, 300,
        "the sample's status",
    ),
    Kind(
        "a bundle that is verified (zip, folder)",
        {"unpacked": BUNDLE_BYTES, "of its list of files": BUNDLE_LISTING_BYTES, "of a file of JSON": BUNDLE_JSON_BYTES},
        {"times its size, unpacked": BUNDLE_UNPACKED, "rows a byte of a table": 1}, 40, 300, "the bundle is refused",
    ),
    Kind(
        "a rubric",
        {
            "of rubric.toml": RUBRIC_DECLARATION_BYTES, "of a prompt": RUBRIC_PROMPT_BYTES,
            "of an example picture": RUBRIC_EXAMPLE_BYTES,
        },
        {"parts of a key": RUBRIC_KEY_PARTS},
        5, 100, "the rubric is refused",
    ),
)  # fmt: skip


def is_too_deep(value: Any) -> bool:
    """Whether lists and objects read from JSON stand in one another more than JSON_LEVELS deep. Never recurses."""
    level = [value]
    for _ in range(JSON_LEVELS + 1):
        level = [inner for outer in level for inner in _inside(outer)]
        if not level:
            return False
    return True


def object_of(found: Any) -> dict[str, Any] | str:
    """A row read from JSON, or what is wrong with it: no object, or one more than JSON_LEVELS deep."""
    if not isinstance(found, dict):
        return f"is a JSON {type(found).__name__}, not an object"
    return f"is nested in more than {JSON_LEVELS} levels" if is_too_deep(found) else found


def _inside(value: Any) -> Any:
    match value:
        case dict():
            return value.values()
        case list():
            return value
        case _:
            return ()
