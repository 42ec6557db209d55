"""What every Prefect task of Salon has in common: no result cache, and which failures of a shard are worth another try."""

from typing import Any, Final

from prefect.cache_policies import NO_CACHE

from schemas.errors import SalonError


def is_passing(_task: Any, _run: Any, state: Any) -> bool:
    """Whether the shard failed of something that may pass: a store or a provider that was away, as the error's type says."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, SalonError) and error.may_pass


# Replies live in the ledger and tables in the lake: Prefect's own cache would keep a third copy, written in place and unsynced.
OPTIONS: Final[dict[str, Any]] = {
    "cache_policy": NO_CACHE,
    "persist_result": False,
    "retries": 2,
    "retry_delay_seconds": [2.0, 10.0],
    "retry_condition_fn": is_passing,
}
