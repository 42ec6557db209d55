"""The points a run is killed at: before and after each step that makes something durable or known."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Point:
    """The nth `event` of a function, by its qualified name: call and return of ours, c_call and c_return of the interpreter's."""

    about: str
    name: str
    event: str
    nth: int = 1


POINTS = (
    Point("before a shard of samples is written", "open_and_write_shard", "call", 2),
    Point("Parquet written, not synced", "fsync", "c_call", 3),
    Point("before a rename", "replace", "c_call", 2),
    Point("after a rename", "replace", "c_return", 2),
    Point("before the completion marker of the samples", "Staging.commit", "call"),
    Point("before the first claim and attempt row", "GroupCommit._write", "call"),
    Point("rows executed, not committed", "_write_rows", "return", 3),
    Point("a commit made; on a server sent, not waited for", "commit", "return", 4),
    Point("after a commit, before anyone is told", "_resolve", "call", 4),
    Point("after the response, before it is stored", "read_answer", "return", 5),
    Point("before the response is read", "read_answer", "call", 5),
    Point("a reply is being written down", "row_of", "return", 6),
    Point("before the snapshot is complete", "snapshot_id", "return"),
    Point("while replies are read", "parse_part", "return", 2),
    Point("before the data checks", "validate", "call"),
    Point("before the publication takes its place", "take_place", "call"),
    Point("after the publication took its place", "take_place", "return"),
    Point("before the pointer", "move_pointers", "call"),
    Point("after the pointer", "move_pointers", "return"),
)
