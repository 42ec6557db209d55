"""A PostgreSQL server of this machine's own for `salon serve`: found, made, its command. Starting it is flows/run/programs.py."""

import os
import pwd
import secrets
import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

from flows.run.programs import as_user
from schemas.errors import StoreError

_USER = "salon"
_DATABASE = "prefect"


@dataclass(frozen=True, slots=True)
class Postgres:
    """A database cluster on disk: how its server is started, and where it then is."""

    command: list[str]
    owner: pwd.struct_passwd | None  # who runs it, where that is not who we are
    url: str


def missing(folder: Path) -> str | None:
    """Why no PostgreSQL can keep its data under `folder` here; None where one can."""
    if _program("postgres") is None or _program("initdb") is None:
        return "PostgreSQL's programs (postgres, initdb) are not installed"
    owner = _owner()
    if os.geteuid() == 0 and owner is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    if owner is not None and not _may_enter(owner, folder):
        return f"PostgreSQL does not run as root, and the user {owner.pw_name} has no access to {folder}"
    return None


def prepare(folder: Path, port: int) -> Postgres:
    """The cluster in `folder`, made where there is none: loopback alone, one user with a random password. Raises StoreError."""
    owner, password, data = _owner(), folder / "password", folder / "data"
    folder.mkdir(mode=0o700, exist_ok=True)
    if not data.is_dir():
        half = folder / "data.new"
        shutil.rmtree(half, ignore_errors=True)  # what an initdb that was interrupted left
        password.touch(mode=0o600)
        password.write_text(secrets.token_hex(16))
        if owner is not None:
            for path in (folder, password):
                os.chown(path, owner.pw_uid, owner.pw_gid)
        options = [f"--username={_USER}", "--auth=scram-sha-256", f"--pwfile={password}", "--encoding=UTF8", "--locale=C"]
        made = subprocess.run(
            [str(_program("initdb")), "-D", str(half), *options],
            cwd=folder, capture_output=True, text=True, check=False, **as_user(owner),
        )  # fmt: skip
        if made.returncode:
            raise StoreError(f"PostgreSQL's initdb failed in {folder}: {made.stderr.strip()[-500:]}")
        half.rename(data)
    command = [str(_program("postgres")), "-D", str(data), "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    url = f"postgresql+asyncpg://{_USER}:{password.read_text().strip()}@127.0.0.1:{port}/{_DATABASE}"
    return Postgres(command, owner, url)


def is_ready(postgres: Postgres) -> bool:
    """Whether it answers; makes the database where it is not there yet."""
    import psycopg

    address = postgres.url.replace("+asyncpg", "").removesuffix(_DATABASE) + "postgres"
    try:
        with psycopg.connect(address, connect_timeout=2, autocommit=True) as connection:
            if not connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [_DATABASE]).fetchone():
                connection.execute(f"CREATE DATABASE {_DATABASE}")
    except psycopg.OperationalError:
        return False
    return True


def _program(name: str) -> Path | None:
    """On the path, or where Debian keeps it; the newest version's."""
    found = shutil.which(name)
    if found:
        return Path(found)
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]), default=None)


def _owner() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users.get("nobody")


def _may_enter(owner: pwd.struct_passwd, folder: Path) -> bool:
    probe = subprocess.run(["test", "-x", str(folder)], check=False, **as_user(owner))
    return probe.returncode == 0
