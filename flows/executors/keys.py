"""Keys by name: the environment first, then the Prefect Secret block of that name. What a key is sent to is tasks/judge."""

from collections.abc import Iterable
from typing import Any

from flows.observability.terminal import keep_prefect_quiet
from flows.prefect_server import server_url
from tasks.api_keys import hold, key_named

_looked_up: set[str] = set()


def fetch_keys(names: Iterable[str], api_url: str | None = None) -> None:
    """Fetch keys that the environment lacks from Prefect's Secret blocks, where PREFECT_API_URL names a server.

    `api_url` is asked where this process knows no server of its own: a worker is told of the flow's. A block's name is the
    variable's in small letters, with hyphens: OPENAI_API_KEY is openai-api-key. It is looked for until the server has
    answered once, and what is not there stays missing: who needs the key says so. Raises what Prefect's client does.
    """
    missing = [name for name in names if not key_named(name) and name not in _looked_up]
    if not missing:
        return
    server = server_url() or api_url
    if not server:
        return
    from prefect.blocks.system import Secret
    from prefect.settings import PREFECT_API_URL, temporary_settings

    keep_prefect_quiet()
    with temporary_settings({PREFECT_API_URL: server}):
        for name in missing:
            try:
                block: Any = Secret.load(block_name(name), _sync=True)  # type: ignore[call-arg]  # what makes it synchronous
            except ValueError as error:
                if type(error) is not ValueError:  # an answer that is none, such as a page of a proxy's
                    raise
                _looked_up.add(name)  # there is no such block
                continue
            _looked_up.add(name)
            value = str(block.get()).strip()
            if value:
                hold(name, value)


def block_name(variable: str) -> str:
    """The name of the Secret block that stands for an environment variable; Prefect allows small letters, digits, hyphens."""
    return variable.strip("_").lower().replace("_", "-")
