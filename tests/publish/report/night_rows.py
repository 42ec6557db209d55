"""Rows that nights leave in a lake, for the index page: of `runs` and of `drift`."""

from datetime import UTC, date, datetime, timedelta

from tasks.publish.machine_tables import record_run

DAY = date(2026, 1, 1)


def record(lake, index, **said):
    """One night of the benchmark `nightly`, of nine minutes; `index` counts the nights."""
    started = datetime(2026, 1, 1, 2, tzinfo=UTC) + timedelta(days=index)
    record_run(
        lake,
        {
            "started_at": started,
            "finished_at": started + timedelta(minutes=9),
            "benchmark": "nightly",
            "run_date": started.date(),
            "publication_id": "a" * 64,
            "outcome": "published",
            "dataset_id": "d" * 64,
            "n_samples": 100,
            "n_samples_ok": 99,
            "n_requests": 1234,
            "n_cached": 1000,
            "n_asked": 234,
            "n_input_tokens": 5,
            "n_output_tokens": 6,
            "cost_usd": 1.5,
            "code_version": "c" * 64,
        }
        | said,
    )


def drift_row(index, **said):
    """A quiet night of north's overall score; `index` counts the nights."""
    return {
        "benchmark": "nightly",
        "run_date": DAY + timedelta(days=index),
        "rubric_id": "small",
        "rubric_version": "1",
        "judge_model": "eye",
        "measured_by": "eye",
        "model": "north",
        "checkpoint": "1",
        "dimension": "overall_score",
        "category": "__macro__",
        "n_judgements": 9,
        "estimate": 7.0,
        "bridge_se": 0.0,
        "n_baseline": 30,
        "ewma": 7.0,
        "limit_low": 6.9,
        "limit_high": 7.1,
        "n_family": 1,
        "is_alarm": False,
        "verdict": "quiet",
    } | said
