"""What is said when the provider, not a request, is what fails."""

from schemas.benchmark import Judge
from schemas.errors import AccountError, ProviderError
from schemas.statuses import ReplyStatus


def outage(judge: Judge, endpoint: str, status: ReplyStatus, detail: str | None) -> ProviderError:
    """The error that stops a run: who fails, what it said last, what to do. The key is named, never shown."""
    said = f" (it said: {detail})" if detail else ""
    kept = "Replies already stored are kept; the same command asks only what is missing."
    if status == ReplyStatus.UNAUTHORIZED:
        return AccountError(
            f"judge {judge.model} at {endpoint} does not accept the request{said}; check the key in the environment variable "
            f"{judge.api_key_env}, the model's name and base_url. {kept}"
        )
    if status == ReplyStatus.NO_CREDIT:
        return AccountError(
            f"the account behind the environment variable {judge.api_key_env} at {endpoint} has no credit left{said}; "
            f"top it up or name another key. {kept}"
        )
    return ProviderError(
        f"judge {judge.model} at {endpoint} cannot be reached{said}; start it, or check base_url and the network. {kept}"
    )
