"""The login of `salon serve`'s own Prefect server: made once, kept in files of mode 0600, and what a program needs to use it.

Without one any page that a browser of this machine shows could send the server a run: CORS lets simple requests through.
"""

import os
import secrets
from dataclasses import dataclass
from pathlib import Path

_PROFILE = "salon-serve"


@dataclass(frozen=True, slots=True)
class Login:
    """Where the server is and what it asks for; `file` holds the latter, `home` is a PREFECT_HOME whose profile says both."""

    url: str
    words: str
    file: Path
    home: Path

    def client(self) -> dict[str, str]:
        """The settings of all that talks to the server: they go before a profile, and before what is set for another server."""
        return {
            "PREFECT_HOME": str(self.home), "PREFECT_PROFILE": _PROFILE,
            "PREFECT_PROFILES_PATH": str(self.home / "profiles.toml"),
            "PREFECT_API_URL": f"{self.url}/api", "PREFECT_API_AUTH_STRING": self.words,
        }  # fmt: skip

    def server(self) -> dict[str, str]:
        """The settings of the server itself: who may ask, and whose pages are answered."""
        pages = ",".join([self.url, self.url.replace("127.0.0.1", "localhost")])
        return {"PREFECT_SERVER_API_AUTH_STRING": self.words, "PREFECT_SERVER_CORS_ALLOWED_ORIGINS": pages}


def prepare(folder: Path, url: str) -> Login:
    """The login kept under `folder`, made where there is none, and a profile that names this address of the server."""
    file, home = folder / "login", folder / "prefect"
    words = file.read_text(encoding="utf-8").strip() if file.is_file() else ""
    if not words.isascii() or len(words) < 16 or not words.replace(":", "").isalnum():  # not one of ours, or half of one
        words = f"salon:{secrets.token_hex(16)}"
    home.mkdir(mode=0o700, exist_ok=True)
    _write(file, f"{words}\n")
    said = {"PREFECT_API_URL": f"{url}/api", "PREFECT_API_AUTH_STRING": words}
    lines = "".join(f'{name} = "{value}"\n' for name, value in said.items())
    _write(home / "profiles.toml", f'active = "{_PROFILE}"\n\n[profiles.{_PROFILE}]\n{lines}')
    return Login(url, words, file, home)


def _write(path: Path, text: str) -> None:
    """For its owner's eyes from its first byte on; a file that was there gets the mode too."""
    path.unlink(missing_ok=True)  # neither a link nor a file that others hold open is written through
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
