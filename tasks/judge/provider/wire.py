"""How a request's bytes go out and a response's come in, and who chooses: aiohttp_wire.py, or openai/sdk_wire.py.

Either gives the same for the same server: no redirect is followed, and a reply is read within the bounds of transport.py.
"""

import os
from collections.abc import Mapping
from typing import Protocol

from schemas.errors import InputError
from tasks.judge.provider.exchange import Payload

SETTING = "SALON_TRANSPORT"
Response = tuple[int, Mapping[str, str], bytes]
"""Status, headers whose names are found in any case, body."""


class Wire(Protocol):
    """Connections to one endpoint."""

    async def post(self, url: str, payload: Payload) -> Response:
        """Send a body made as the socket takes it: hundreds of whole ones would stay in memory until their replies come.

        Raises RefusedReplyError, and aiohttp's errors.
        """

    async def get(self, url: str) -> Response:
        """Ask for what stands at an address. Raises as `post` does."""

    async def close(self) -> None:
        """Close the connections."""


def is_by_sdk() -> bool:
    """Whether the environment asks for the SDK's transport. Raises InputError for a word it does not know."""
    chosen = os.environ.get(SETTING, "aiohttp")
    if chosen not in ("aiohttp", "sdk"):
        raise InputError(
            f'the environment variable {SETTING} = "{chosen}" is not a transport; available: aiohttp (the default), sdk'
        )
    return chosen == "sdk"
