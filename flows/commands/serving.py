"""`salon serve`, `worker` and `serve-judge`: the servers of one machine. How they run is flows/serving/ and demo/."""

import asyncio
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from flows.commands.app import usable
from flows.observability.terminal import Console, result_console
from flows.run.programs import LocalServer, Program, ProgramOptions, answers, free_port, tied_to_us
from flows.serving import local_login, local_postgres
from schemas.errors import InputError, StoppedError, StoreError
from tasks.stopping import hung_up

DEFAULT_POOL = "salon-process"


UI_PORT, JUDGE_PORT, POSTGRES_PORT = 4200, 4201, 4202
WORKER_GRACE_S = 150.0  # the longest request by default (limits.deadline_s), and 30 s
_DEMO_FILE = Path(__file__).parents[2] / "demo" / "benchmark.toml"


def serve(
    folder: Annotated[Path, typer.Option(help="Where to keep the database, the demo and the logs.")] = Path("serve"),
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The UI's port on loopback; if it is in use, a free one is used.")
    ] = UI_PORT,
    sqlite: Annotated[bool, typer.Option("--sqlite", help="Do not use PostgreSQL even if it is installed.")] = False,
) -> int:
    """Serve Prefect's UI on this machine with the demo's nightly and backfill deployed and a worker to run them, until Ctrl-C."""
    console = result_console()
    folder = folder.resolve()
    with usable(folder):
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".gitignore").write_text("*\n")
        for private in (folder / "logs", folder / "prefect"):  # what runs say, and Prefect's database of it
            private.mkdir(mode=0o700, exist_ok=True)
            private.chmod(0o700)  # of an earlier Salon
    _heed_signals()
    with LocalServer(folder) as local:
        login = _start_prefect(local, port, _database(local, console, is_sqlite=sqlite), console)
        file = _demo(local)
        deployments = _deploy(file, login)
        local.start("worker", _worker_command(DEFAULT_POOL), lambda: True, ProgramOptions(grace_s=WORKER_GRACE_S))
        nightly = next(name for name in deployments if name.endswith("-nightly"))
        console.print(f"\nThe UI: {login.url}", markup=False)
        console.print(f"  its password is the line in {login.file}", markup=False)
        console.print(f"Deployed: {', '.join(deployments)}, of {file}", markup=False)
        console.print("Run the demo's nightly, in another terminal:", markup=False)
        prefect = Path(sys.executable).parent / "prefect"
        console.print(f"  PREFECT_HOME={login.home} {prefect} deployment run '{nightly}' --watch", markup=False)
        console.print("Press Ctrl-C to stop everything.", markup=False)
        try:
            ended = local.wait()
        except KeyboardInterrupt:
            console.print("\nstopping: runs under way finish the requests they have sent ...", markup=False)
            return 0
        raise StoreError(
            f"{ended.name} exited unexpectedly (code {ended.process.returncode}); see {local.log(ended.name)}, then start again"
        )


def worker(
    pool: Annotated[str, typer.Option(help="The work pool whose runs become processes on this machine.")] = DEFAULT_POOL,
    grace_s: Annotated[
        float, typer.Option(min=0, help="Seconds that runs get to drain after SIGTERM; allow limits.deadline_s plus 30.")
    ] = WORKER_GRACE_S,
    healthcheck: Annotated[bool, typer.Option("--healthcheck", help="Answer GET /health on port 8080.")] = False,
) -> int:
    """Run a Prefect worker that lets its runs drain when it is stopped: they store what was sent and send no more."""
    from flows.prefect_server import told_of_settings

    with told_of_settings():
        from flows.serving.deploying import named_server

    named_server()
    _heed_signals()
    command = [*_worker_command(pool), *(["--with-healthcheck"] if healthcheck else [])]
    started = Program("worker", subprocess.Popen(tied_to_us(command), start_new_session=True), ProgramOptions(grace_s=grace_s))
    try:
        code = started.process.wait()
    except KeyboardInterrupt:
        result_console().print("stopping: runs under way finish the requests they have sent ...", markup=False)
        started.stop()
        return StoppedError.exit_code
    raise StoreError(f"the Prefect worker exited unexpectedly (code {code}); its last lines say why")


def _worker_command(pool: str) -> list[str]:
    return [sys.executable, "-m", "prefect", "worker", "start", "--pool", pool, "--type", "process"]


def _heed_signals() -> None:
    """Ctrl-C, SIGTERM and a lost terminal interrupt, once: a second one would leave running what is being stopped.

    Also where SIGINT is ignored, as a shell has it in what it starts in the background; SIGHUP stays so (nohup).
    """
    for heeded in (signal.SIGTERM, signal.SIGINT):
        signal.signal(heeded, _interrupt)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        signal.signal(signal.SIGHUP, hung_up(_interrupt))


def _interrupt(*_: object) -> None:
    for heeded in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(heeded, signal.SIG_IGN)
    raise KeyboardInterrupt


def _database(local: LocalServer, console: Console, *, is_sqlite: bool) -> str | None:
    """The address of a PostgreSQL started for this; None where Prefect's own SQLite has to do."""
    why_not = "--sqlite was given" if is_sqlite else local_postgres.missing(local.folder)
    if why_not is not None:
        console.print(f"Prefect uses SQLite for its database: {why_not}.", markup=False)
        return None
    postgres = local_postgres.prepare(local.folder / "postgres", free_port(POSTGRES_PORT))
    ready = lambda: local_postgres.is_ready(postgres)  # noqa: E731
    local.start("postgresql", postgres.command, ready, ProgramOptions(owner=postgres.owner, stop_signal=signal.SIGINT))
    console.print(f"PostgreSQL is running; its data is in {local.folder / 'postgres'}", markup=False)
    return postgres.url


def _start_prefect(local: LocalServer, port: int, database: str | None, console: Console) -> local_login.Login:
    port = free_port(port)
    url = f"http://127.0.0.1:{port}"
    login = local_login.prepare(local.folder, url)
    os.environ.update(login.client())  # of all that is started from here on: nothing in the home folder changes
    pages = str(local.folder / "ui")  # by default the server writes them into the installed package
    environment = {"PREFECT_SERVER_UI_API_URL": f"{url}/api", "PREFECT_SERVER_UI_STATIC_DIRECTORY": pages, **login.server()}
    if database is not None:
        environment["PREFECT_API_DATABASE_CONNECTION_URL"] = database
    console.print("Starting the Prefect server ...", markup=False)
    command = [sys.executable, "-m", "prefect", "server", "start", "--host", "127.0.0.1", "--port", str(port)]
    local.start("prefect", command, lambda: answers(f"{url}/api/health"), ProgramOptions(environment))
    return login


def _demo(local: LocalServer) -> Path:
    """The demo, painted, its judge running, its benchmark file naming that judge."""
    from demo import paint
    from demo.world import JUDGE

    folder, port = local.folder / "demo", free_port(JUDGE_PORT)
    paint(folder)
    text = _DEMO_FILE.read_text(encoding="utf-8")
    named = f'model = "{JUDGE}"'
    (folder / "benchmark.toml").write_text(
        text.replace(named, f'{named}\nbase_url = "http://127.0.0.1:{port}/v1"'), encoding="utf-8"
    )
    judge = [sys.executable, "-m", "demo.server", "--port", str(port)]
    local.start("judge", judge, lambda: answers(f"http://127.0.0.1:{port}/v1/models"))
    return folder / "benchmark.toml"


def _deploy(file: Path, login: local_login.Login) -> list[str]:
    from flows.prefect_server import told_of_settings

    with told_of_settings():
        from prefect.settings import PREFECT_API_AUTH_STRING, PREFECT_API_URL, temporary_settings

        from flows.serving import deploying

    ours = {PREFECT_API_URL: f"{login.url}/api", PREFECT_API_AUTH_STRING: login.words}
    with temporary_settings(ours):  # whatever server the user's own profile names
        return deploying.deploy(file, deploying.DeployOptions(DEFAULT_POOL, is_taking_over=True)).deployments  # serve/ was moved


PORT = 8900


def serve_judge(
    scenario: Annotated[Path, typer.Argument(help="The scenario file (TOML); docs/serve-judge.md lists its keys.")],
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port on loopback; 0 takes any free one.")] = PORT,
) -> int:
    """Serve the demo's judge as the misbehaving provider of a scenario file, until Ctrl-C; for trying settings and load."""
    from demo.mock_provider.admin_api import serving
    from demo.mock_provider.scenario import load_scenario
    from demo.server import serve

    played = load_scenario(scenario)
    try:
        asyncio.run(serve(serving(played, port), _say, is_tied_to_stdin=False))
    except OSError as error:
        raise InputError(f"cannot listen on port {port}: {error.strerror}; choose another with --port, or --port 0") from error
    return 0


def _say(port: int) -> None:
    print(f'base_url = "http://127.0.0.1:{port}/v1"\nwhat it saw: http://127.0.0.1:{port}/stats', flush=True)
