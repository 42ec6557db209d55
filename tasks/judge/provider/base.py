"""What a judge provider is: its protocol, and how one is chosen by its name. What crosses the border is exchange.py.

A provider is a folder here, named as `judges.provider` names it; all that knows its wire format stands in that folder.
"""

from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib import import_module
from ipaddress import ip_address
from pathlib import Path
from pkgutil import iter_modules
from typing import Any, ClassVar, Protocol
from urllib.parse import urlsplit

from schemas.benchmark.judges import Judge
from schemas.errors import InputError
from tasks.judge.provider.batch_api import BatchApi, BatchFiles
from tasks.judge.provider.exchange import Answer, Payload, RequestPicture


class Provider(Protocol):
    """One judge at one endpoint. Made, it raises MissingKeyError or InputError, before anything is sent."""

    has_detail: ClassVar[bool]  # whether `judges.detail` means something there
    batch_files: ClassVar[BatchFiles | None]  # None where its batches are made and fetched by calls alone
    judge: Judge
    endpoint: str  # as it may be shown

    def __init__(self, judge: Judge, concurrency: int, deadline_s: float) -> None: ...

    @staticmethod
    def check_parameters(parameters: Mapping[str, object]) -> None:
        """Raise InputError where a judge's `parameters` hold what the provider does not take from there. Needs no key."""

    @staticmethod
    def check_detail(judge: Judge) -> None:
        """Raise InputError where it has a `detail` that means nothing there. Needs no key."""

    @staticmethod
    def check(judge: Judge) -> None:
        """Raise MissingKeyError or InputError where the judge cannot be asked as the benchmark file has it."""

    @staticmethod
    def remedy(detail: str) -> str | None:
        """What to change about an error with these words of the provider's; None where nothing is known of it."""

    @staticmethod
    def output_bound(parameters: Mapping[str, object]) -> int | None:
        """The longest reply, in tokens, that a judge's `parameters` allow; None where they do not say."""

    @staticmethod
    def prompt_cache_tokens(judge: Judge) -> int | None:
        """Tokens that requests must begin with alike to be billed as repeated; None where that is not known of the endpoint."""

    @property
    def key_digest(self) -> str:
        """Stands for the key where requests of one key are counted together: it says nothing about the key."""

    @property
    def batch(self) -> BatchApi | None:
        """The Batch API; None where the provider has none."""

    def payload(
        self, parameters: Mapping[str, object], messages: Sequence[Mapping[str, Any]], pictures: Sequence[RequestPicture]
    ) -> Payload:
        """The body of a request, a picture for each image part in order. Raises what their `read` raises."""

    async def ask(self, payload: Payload) -> Answer:
        """Send one body and wait, at most the deadline, for the whole reply. Never raises."""

    async def shutdown_date(self) -> date | None:
        """When the provider will retire the judge; None where it does not say so in time."""

    async def close(self) -> None:
        """Close the connections."""


def check_provider(judge: Judge) -> None:
    """Raise InputError where there is no provider of the judge's `provider`."""
    if judge.provider not in _names():
        raise InputError(
            f'judges.provider = "{judge.provider}" of {judge.model} is not a provider; available: {", ".join(_names())}'
        )


def provider_of(judge: Judge) -> type[Provider]:
    """The class of the judge's provider. Raises InputError where there is none."""
    check_provider(judge)
    found: type[Provider] = import_module(f"{__package__}.{judge.provider}").PROVIDER
    return found


@cache
def _names() -> tuple[str, ...]:
    return tuple(sorted(module.name for module in iter_modules([str(Path(__file__).parent)]) if module.ispkg))


def is_loopback(address: str) -> bool:
    """Whether an address is this machine's."""
    host = urlsplit(address).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")
