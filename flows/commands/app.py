"""The commands' names, and how Salon's own errors become a line and an exit code. All else that can go wrong: flows/cli.py.

A command's module is imported when the command is called: a help text and a table are not to wait for what a run needs.
"""

import ast
import errno
import functools
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from pathlib import Path
from typing import Annotated, Any, cast

import typer
from typer.core import TyperGroup

from flows.observability.log_lines import complain
from schemas.errors import InputError, SalonError, StoreError

PREFECT_AWAY = (
    "the Prefect server does not answer ({}); {}, or {} to run without one. "
    "Replies already paid for are stored; run the same command again to continue"
)
SECTIONS: dict[str, dict[str, str | dict[str, str]]] = {
    "Run": {
        "demo": "running.demo",
        "new": "starting.benchmark_file.new",
        "plan": "running.plan",
        "run": "running.run",
        "nightly": "nights.nightly",
        "backfill": "backfilling.backfill",
        "export": "exchange.exporting.export",
        "import": "running.import_",
    },
    "Read": {
        "table": "reading.table",
        "open": "reading.open_page",
        "explain": "explaining.explain",
        "verify": "exchange.verifying.verify",
        "gate": "gating.gate",
    },
    "Operate": {
        "doctor": "doctor.doctor",
        "check": "doctor.check",
        "gc": "garbage_collection.gc",
        "pin": "garbage_collection.pin",
        "withdraw": "garbage_collection.withdraw",
        "deploy": "deploying.deploy",
        "worker": "serving.worker",
        "serve": "serving.serve",
        "judge-server": "judge_server.judge_server",
        "serve-judge": "serving.serve_judge",
    },
    "Instruments": {
        "rubrics": {
            "list": "instruments.list_",
            "show": "instruments.show",
            "lint": "instruments.lint",
            "new": "starting.rubrics.new",
            "try": "starting.rubrics.try_",
        },
        "parse": "instruments.parse",
        "agreement": "agreement.agreement",
        "anchors": {"freeze": "anchors.freeze", "list": "anchors.list_", "bridge": "anchors.bridge"},
        "exam": "probing.exam",
        "probe-injection": "probing.probe_injection",
    },
}
"""Under each heading of the help, a command's name and its function in this folder, or a group's commands."""
GROUPS = {
    "rubrics": "List, show, check, create and try rubrics.",
    "anchors": "Freeze and list the samples that are judged again every night, and bridge a judge to its successor.",
}


class _Commands(Mapping[str, Any]):
    """Commands by name, each imported when it is asked for."""

    def __init__(self, functions: Mapping[str, str | dict[str, str]]) -> None:
        self._functions = functions

    def __getitem__(self, name: str) -> Any:
        of = self._functions[name]
        if isinstance(of, Mapping):
            return _group(_Commands(of), help=GROUPS[name], callback=lambda: None)
        module, _, function = of.rpartition(".")
        one = typer.Typer(add_completion=False, rich_markup_mode=None)
        one.command(name)(_exiting(getattr(import_module(f"flows.commands.{module}"), function)))
        return typer.main.get_command(one)

    def __iter__(self) -> Iterator[str]:
        return iter(self._functions)

    def __len__(self) -> int:
        return len(self._functions)

    def about(self, name: str) -> str:
        """The command's first sentences, read from its source: nothing is imported for a list of commands."""
        of = self._functions[name]
        return GROUPS[name] if isinstance(of, Mapping) else _docstrings(of.rpartition(".")[0])[of.rpartition(".")[2]]


class _Group(TyperGroup):
    """A group whose help lists its commands under headings, each with all of its first line."""

    listed: _Commands
    sections: Mapping[str, Iterable[str]] = {}

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - as the base class calls it
        for heading, names in (self.sections or {"Commands": self.listed}).items():
            with formatter.section(heading):
                formatter.write_dl([(name, self.listed.about(name)) for name in names])


@functools.cache
def _docstrings(module: str) -> dict[str, str]:
    tree = ast.parse(Path(__file__).parent.joinpath(*module.split(".")).with_suffix(".py").read_text("utf-8"))
    of = {node.name: ast.get_docstring(node) or "" for node in tree.body if isinstance(node, ast.FunctionDef)}
    return {name: text.partition("\n\n")[0].replace("\n", " ") for name, text in of.items()}


def _exiting(command: Callable[..., int]) -> Callable[..., None]:
    """The command, ending with its exit code; what went wrong becomes one line and a code."""

    @functools.wraps(command)
    def called(*arguments: object, **options: object) -> None:
        try:
            code = command(*arguments, **options)
        except SalonError as error:
            _tell(str(error))
            raise typer.Exit(error.exit_code) from error
        except Exception as error:
            from flows.observability.terminal import PREFECT_IS_AWAY, is_prefect_away

            if is_prefect_away(error):
                from flows.prefect_server import how_to_do_without, remedy

                PREFECT_IS_AWAY.set()
                _tell(PREFECT_AWAY.format(error, remedy(error), how_to_do_without()))
                raise typer.Exit(StoreError.exit_code) from error
            raise
        raise typer.Exit(code)

    return called


@contextmanager
def usable(folder: Path) -> Iterator[None]:
    """What is written into the folder that --folder names. Raises InputError where it cannot be."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS, errno.EEXIST, errno.ENOTDIR):
            raise
        said = f"--folder {folder} cannot be used: {error.strerror} ({error.filename})"
        raise InputError(f"{said}; name a folder that you can write to, such as --folder ~/{folder.name}") from error


def _tell(text: str) -> None:
    from flows.observability import redaction
    from flows.observability.terminal import hanging

    complain(hanging(redaction.redacted(text)))


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        from tasks.publish.identity import code_version

        print(f"salon {version('salon')}, code {code_version()[:12]}")
        raise typer.Exit


def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_tell_version,
            is_eager=True,
            help="Print the release and the code digest that publications record.",
        ),
    ] = False,
) -> None:
    """The nightly jury for generated images: no number in a published table was invented."""


def _group(commands: _Commands, **options: Any) -> _Group:
    of = typer.Typer(cls=_Group, no_args_is_help=True, add_completion=False, rich_markup_mode=None, **options)
    group = cast("_Group", typer.main.get_group(of))
    group.listed, group.commands = commands, cast("Any", commands)
    return group


app = _group(_Commands({name: of for section in SECTIONS.values() for name, of in section.items()}), callback=_options)
app.sections = SECTIONS
