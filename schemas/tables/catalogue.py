"""Every table that is published or quarantined from, by name; and which are of one publication, or of one agreement."""

from schemas.tables.agreement import AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES
from schemas.tables.fields import PUBLISHED
from schemas.tables.nights import BRIDGES, DESIGNS, DRIFT, EXAM, JURY, NIGHTS, RELIABILITY
from schemas.tables.published import (
    BENCHMARK_LONG,
    BENCHMARK_WIDE,
    COMPARISONS,
    DISTRIBUTIONS,
    FAILURES,
    HEALTH,
    POOLED,
    POSITION_BIAS,
    PREFERENCE_RATINGS,
    PREFERENCES,
    STANDINGS,
)
from schemas.tables.stored import CHECKS, JUDGEMENTS, PICTURES, QUARANTINE, REPLIES, REQUESTS, RUNS, SAMPLES, SCORES
from schemas.tables.table import Table

TABLES = {
    t.name: t
    for t in (
        SAMPLES, PICTURES, JUDGEMENTS, REQUESTS, REPLIES, SCORES, CHECKS, QUARANTINE, STANDINGS, BENCHMARK_LONG, BENCHMARK_WIDE,
        COMPARISONS, PREFERENCES, PREFERENCE_RATINGS, POSITION_BIAS, FAILURES, DISTRIBUTIONS, HEALTH, RATINGS, VOTES, AGREEMENT,
        CORRECTED,
        CORRECTED_COMPARISONS, CORRECTED_STANDINGS, NIGHTS, DRIFT, BRIDGES, RELIABILITY, DESIGNS,
        JURY, POOLED, EXAM, RUNS,
    )
}  # fmt: skip

SINGLE = (SAMPLES, PICTURES, JUDGEMENTS, SCORES)
"""Single samples and scores: a partition of the lake each, copied beside every publication made of it."""

OF_PUBLICATION = (
    STANDINGS, BENCHMARK_LONG, BENCHMARK_WIDE, COMPARISONS, FAILURES, DISTRIBUTIONS, HEALTH, POOLED, PREFERENCES,
    PREFERENCE_RATINGS, POSITION_BIAS, EXAM, JURY, RELIABILITY, DESIGNS, CHECKS, QUARANTINE,
)  # fmt: skip
"""The small tables of a benchmark's publication; which of them it has depends on what was judged."""

OF_AGREEMENT = (
    AGREEMENT, CORRECTED, CORRECTED_COMPARISONS, CORRECTED_STANDINGS, RATINGS, VOTES, PREFERENCES, PREFERENCE_RATINGS,
)  # fmt: skip
"""The tables of an agreement. Its win rates are named as a publication's: people's votes stand beside the judges' there."""


def key_of_all(table: Table) -> tuple[str, ...]:
    """What identifies a row where several publications' rows stand together: `publication_id` too, where a table is of one."""
    is_of_one = table in (*SINGLE, *OF_PUBLICATION, *OF_AGREEMENT) and PUBLISHED.name not in table.key
    return (PUBLISHED.name, *table.key) if is_of_one else table.key
