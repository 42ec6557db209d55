"""`salon serve-judge`: the demo's judge as a difficult provider. What a scenario may say is in demo/mock_provider/scenario.py."""

import asyncio
from pathlib import Path
from typing import Annotated

import typer

from schemas.errors import InputError

PORT = 8900


def serve_judge(
    scenario: Annotated[Path, typer.Argument(help="The scenario file (TOML); docs/serve-judge.md lists its keys.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on loopback; 0 takes any free one.")] = PORT,
) -> int:
    """Serve the demo's judge as the difficult provider of a scenario file, until Ctrl-C. To try settings and load."""
    from demo.mock_provider.scenario import load_scenario
    from demo.server import serve
    from demo.serving import serving

    played = load_scenario(scenario)
    try:
        asyncio.run(serve(serving(played, port), _say, is_tied_to_stdin=False))
    except OSError as error:
        raise InputError(
            f"port {port} cannot be listened on: {error.strerror}; choose another with --port, or --port 0"
        ) from error
    return 0


def _say(port: int) -> None:
    print(f'base_url = "http://127.0.0.1:{port}/v1"\nwhat it saw: http://127.0.0.1:{port}/stats', flush=True)
