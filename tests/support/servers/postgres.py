"""A private PostgreSQL server for as long as a block lasts, where its programs are installed. No tests here."""

import importlib.util
import os
import pwd
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import uuid4

START_LIMIT_S = 60.0


@dataclass(slots=True)
class PostgresServer:
    """A running server on loopback; anyone there may do anything with it."""

    process: subprocess.Popen[bytes]
    port: int
    _begin: Callable[[], subprocess.Popen[bytes]]

    def stop(self) -> None:
        """End it at once, as `pg_ctl stop -m immediate` does: its clients lose their connections, its log is what is left."""
        self.process.send_signal(signal.SIGQUIT)
        self.process.wait(120)

    def start(self) -> None:
        """Start it again on the same data and port; it recovers first."""
        self.process = self._begin()

    def new_database(self) -> str:
        """The SQLAlchemy URL of a new, empty database."""
        import psycopg

        name = f"ledger_{uuid4().hex}"
        with psycopg.connect(host="127.0.0.1", port=self.port, user="salon", dbname="postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
        return f"postgresql+psycopg://salon@127.0.0.1:{self.port}/{name}"


def why_not() -> str | None:
    """Why no server can be started here; None where one can."""
    if _program("postgres") is None or _program("initdb") is None:
        return "PostgreSQL's programs (postgres, initdb) are not installed"
    if importlib.util.find_spec("psycopg") is None:
        return "the driver psycopg is not installed"
    if os.geteuid() == 0 and _other_user() is None:
        return "PostgreSQL does not run as root, and there is no user postgres or nobody to run it as"
    return None


@contextmanager
def running_postgres(*, is_synced: bool = False, n_connections: int = 100) -> Iterator[PostgresServer]:
    """Start a server on a free port with an empty cluster of its own; both are gone when the block ends.

    Unless `is_synced`, its commits do not wait for the disk: they are as visible and as isolated, and quicker.
    """
    user = _other_user() if os.geteuid() == 0 else None
    folder = Path(tempfile.mkdtemp(prefix="salon-postgres-", dir="/tmp"))  # tests' own folders are closed to other users
    try:
        if user is not None:
            os.chown(folder, user.pw_uid, user.pw_gid)
        identity: dict[str, Any] = {} if user is None else {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}
        quiet = ["--auth=trust", "--username=salon", "--encoding=UTF8", "--locale=C", "--no-sync"]
        made = subprocess.run(
            [str(_program("initdb")), "-D", str(folder / "data"), *quiet],
            cwd=folder,
            capture_output=True,
            check=False,
            **identity,
        )
        if made.returncode:
            raise RuntimeError(f"initdb: {made.stderr.decode(errors='replace')[-500:]}")
        port = _free_port()
        options = [
            "-h",
            "127.0.0.1",
            "-p",
            str(port),
            "-k",
            "",
            "-c",
            f"fsync={'on' if is_synced else 'off'}",
            "-c",
            f"max_connections={n_connections}",
        ]

        def begin() -> subprocess.Popen[bytes]:
            command = [str(_program("postgres")), "-D", str(folder / "data"), *options]
            with (folder / "log.txt").open("ab") as log:
                process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, **identity)
            try:
                _wait_until_ready(process, port, folder / "log.txt")
            except BaseException:
                process.kill()
                raise
            return process

        server = PostgresServer(begin(), port, begin)
        try:
            yield server
        finally:
            server.stop()  # its clients are gone or meant to lose it
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _program(name: str) -> Path | None:
    """On the path, or where Debian keeps it; the newest version's."""
    found = shutil.which(name)
    if found:
        return Path(found)
    return max(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), key=lambda path: int(path.parts[-3]), default=None)


def _other_user() -> pwd.struct_passwd | None:
    users = {user.pw_name: user for user in pwd.getpwall()}
    return users.get("postgres") or users.get("nobody")


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def _wait_until_ready(process: subprocess.Popen[bytes], port: int, log: Path) -> None:
    import psycopg

    give_up_at = time.monotonic() + START_LIMIT_S
    while True:
        try:
            psycopg.connect(host="127.0.0.1", port=port, user="salon", dbname="postgres", connect_timeout=2).close()
        except psycopg.OperationalError as error:
            if process.poll() is not None or time.monotonic() > give_up_at:
                raise RuntimeError(f"PostgreSQL did not start: {log.read_text(errors='replace')[-500:]}") from error
            time.sleep(0.05)
        else:
            return


def at_once(*works: Callable[[], Any]) -> list[Any]:
    """What these return that run in threads of their own; raises what the first to fail raised."""
    found: list[Any] = [None] * len(works)

    def run(place: int, work: Callable[[], Any]) -> None:
        try:
            found[place] = work()
        except BaseException as error:  # noqa: BLE001 - it is raised below
            found[place] = error

    threads = [threading.Thread(target=run, args=pair, daemon=True) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive(), "it waits for ever"
    for one in found:
        if isinstance(one, BaseException):
            raise one
    return found
