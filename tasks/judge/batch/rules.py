"""What bounds judging through a Batch API: the provider's limits on files, and how patiently it is asked. No logic."""

from dataclasses import dataclass

MAX_FILE_BYTES = 200 * 10**6
MAX_LINES = 50_000
"""The largest input file of a batch. Source of both: the `openai` package 3.52, types/batch_create_params.py, input_file_id."""

AUTO_AT_LEAST = 500
"""Requests from which on `mode = "auto"` goes through the Batch API: fewer are answered online before a batch has begun."""


@dataclass(frozen=True, slots=True)
class BatchRules:
    """Bounds of a run. Tests and other providers have their own."""

    max_file_bytes: int = MAX_FILE_BYTES
    max_lines: int = MAX_LINES
    n_fruitless: int = 2  # rounds of batches in a row without one final reply, after which a run gives up
    poll_s: float = 10.0  # between two looks; grows while nothing changes
    poll_at_most_s: float = 120.0
    # A creation whose reply never came is asked for again only after so long: until then the provider may still be at it.
    settle_s: float = 90.0
    patience_s: float = 900.0  # a provider that has answered before may be away for so long
    first_patience_s: float = 30.0  # and one that never has
