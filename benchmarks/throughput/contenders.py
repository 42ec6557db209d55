"""The contenders: what each is called, installed from and started by. Each has a script and a virtual environment of its own."""

import subprocess
import sys
import sysconfig
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.throughput.material import INSTRUCTIONS, MODEL

SCRIPTS = Path(__file__).parent
UV = Path(sysconfig.get_path("scripts")) / "uv"


@dataclass(frozen=True, slots=True)
class Contender:
    """A way to judge pictures. `requirements` are pinned; `options` follow the script's common arguments."""

    name: str
    environment: str
    requirements: Sequence[str]
    script: str
    options: Sequence[str] = ()

    def command(self, environments: Path, items: Path, base_url: str, n_at_once: int, output: Path) -> list[str]:
        """The command that judges these items, whatever it keeps going to `output`."""
        python = environments / self.environment / "bin" / "python"
        arguments = [str(items), str(INSTRUCTIONS), base_url, MODEL, str(n_at_once), str(output), *self.options]
        return [str(python), str(SCRIPTS / self.script), *arguments]


OPENAI = ("openai[aiohttp]==3.52.0", "aiohttp==3.14.5")  # the versions Salon itself is locked to
CONTENDERS = (
    Contender("AsyncOpenAI script", "script", OPENAI, "openai_script.py"),
    Contender("the same on aiohttp", "script", OPENAI, "openai_script.py", ("--aiohttp",)),
    Contender("curator", "curator", ("bespokelabs-curator==0.1.31",), "curator_run.py"),
    Contender("Inspect", "inspect", ("inspect-ai==0.3.285", "openai==3.54.0"), "inspect_run.py"),
)
SETTINGS = {
    "CURATOR_DISABLE_CACHE": "1",  # it would answer from its cache
    "CURATOR_DISABLE_RICH_DISPLAY": "1",  # no terminal is drawn for any contender
    "TELEMETRY_ENABLED": "false",
    "OPENAI_API_KEY": "none",
    "LOCAL_API_KEY": "none",
}


class NotInstalledError(Exception):
    """A contender's environment could not be made; the message holds the installer's error."""


def install(contender: Contender, environments: Path) -> None:
    """Make the contender's virtual environment where it is not there yet. Raises NotInstalledError."""
    folder = environments / contender.environment
    if (folder / "installed").is_file():
        return
    python = folder / "bin" / "python"
    _call([*_uv(), "venv", "-q", "--clear", "--python", sys.executable, str(folder)])
    _call([*_uv(), "pip", "install", "-q", "--compile-bytecode", "--python", str(python), *contender.requirements])
    (folder / "installed").write_text("\n".join(contender.requirements), encoding="utf-8")


def settings_for(contender: Contender, environments: Path) -> dict[str, str]:
    """Its environment variables. curator's tokenizer is fetched from the network unless the copy litellm ships is named."""
    found = (environments / contender.environment).glob("lib/python*/site-packages/litellm/litellm_core_utils/tokenizers")
    shipped = next(found, None)
    return SETTINGS | ({"TIKTOKEN_CACHE_DIR": str(shipped)} if shipped else {})


def _uv() -> list[str]:
    return [str(UV)] if UV.is_file() else ["uv"]


def _call(command: list[str]) -> None:
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    except OSError as error:
        raise NotInstalledError(str(error)) from error
    if done.returncode:
        raise NotInstalledError(" ".join(done.stderr.split())[-600:])
