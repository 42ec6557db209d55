"""The difficult provider as a server on loopback: one socket; chat requests go to protocol.py, all else to admin_api.py."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from aiohttp import web

from demo.mock_provider.admin_api import make_admin_api
from demo.mock_provider.batches import Batches
from demo.mock_provider.protocol import ChatProtocol
from demo.mock_provider.provider import Provider
from demo.mock_provider.scenario import Scenario
from demo.world import HOST


@asynccontextmanager
async def serving(scenario: Scenario, port: int = 0) -> AsyncIterator[int]:
    """Serve the scenario for as long as the block lasts; yields the port (0 asks for any free one). Raises OSError."""
    provider = Provider(scenario)
    with TemporaryDirectory(prefix="salon-provider-") as folder:
        batches = Batches(provider, Path(folder))
        runner = web.AppRunner(make_admin_api(provider, batches), access_log=None)
        await runner.setup()
        admin_api = runner.server
        assert admin_api is not None
        connections: set[ChatProtocol] = set()
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: ChatProtocol(provider, connections, admin_api), HOST, port, backlog=4096)
        try:
            yield int(server.sockets[0].getsockname()[1])
        finally:
            server.close()
            for connection in list(connections):
                connection.close()
            await batches.close()
            await runner.cleanup()
