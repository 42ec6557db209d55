"""The commands' names, and how Salon's own errors become a line and an exit code. All else that can go wrong: flows/cli.py."""

import functools
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Annotated

import typer

from flows.commands import agreement, anchors, doctor, instruments, nights, probing, reading, running, serving, verifying
from flows.observability import redaction
from flows.observability.terminal import PREFECT_IS_AWAY, is_prefect_away, printable
from flows.prefect_server import how_to_do_without
from schemas.errors import SalonError, StoreError
from tasks.publish.identity import code_version

PREFECT_AWAY = (
    "the Prefect server does not answer ({}); start it, or {} to run without one. "
    "What was bought is stored; the same command goes on from there"
)

app = typer.Typer(
    name="salon",
    help="The nightly jury for generated images: no number in a published table was invented.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=False,
    rich_markup_mode=None,
)
COMMANDS: dict[str, Callable[..., int]] = {
    "demo": running.demo,
    "run": running.run,
    "plan": running.plan,
    "nightly": nights.nightly,
    "backfill": nights.backfill,
    "import": running.import_,
    "table": reading.table,
    "open": reading.open_page,
    "explain": reading.explain,
    "verify": verifying.verify,
    "probe-injection": probing.probe_injection,
    "agreement": agreement.agreement,
    "parse": instruments.parse,
    "doctor": doctor.doctor,
    "deploy": serving.deploy,
    "serve": serving.serve,
    "worker": serving.worker,
    "serve-judge": serving.serve_judge,
}


def _tell_version(is_asked: bool) -> None:
    if is_asked:
        print(f"salon {version('salon')}, code {code_version()[:12]}")
        raise typer.Exit


@app.callback()
def _options(
    _version: Annotated[
        bool,
        typer.Option(
            "--version",
            callback=_tell_version,
            is_eager=True,
            help="Print the release, and the digest of the code as publications name it.",
        ),
    ] = False,
) -> None:
    pass


def _exiting(command: Callable[..., int]) -> Callable[..., None]:
    """The command, ending with its exit code; what went wrong becomes one line and a code."""

    @functools.wraps(command)
    def called(*arguments: object, **options: object) -> None:
        try:
            code = command(*arguments, **options)
        except SalonError as error:
            print(f"salon: {printable(redaction.redacted(str(error)))}", file=sys.stderr)
            raise typer.Exit(error.exit_code) from error
        except BrokenPipeError as error:  # the reader of our output, such as `head`, has gone
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(0) from error
        except Exception as error:
            if is_prefect_away(error):
                PREFECT_IS_AWAY.set()
                print(f"salon: {printable(redaction.redacted(PREFECT_AWAY.format(error, how_to_do_without())))}", file=sys.stderr)
                raise typer.Exit(StoreError.exit_code) from error
            raise
        raise typer.Exit(code)

    return called


for _name, _function in COMMANDS.items():
    app.command(_name)(_exiting(_function))
rubrics = typer.Typer(help="List, show and check rubrics.", no_args_is_help=True, rich_markup_mode=None)
RUBRIC_COMMANDS: dict[str, Callable[..., int]] = {"list": instruments.list_, "show": instruments.show, "lint": instruments.lint}
for _name, _function in RUBRIC_COMMANDS.items():
    rubrics.command(_name)(_exiting(_function))
app.add_typer(rubrics, name="rubrics")
anchor_sets = typer.Typer(
    help="Freeze and list the samples that are judged anew every night, and bridge a judge to its successor.",
    no_args_is_help=True,
    rich_markup_mode=None,
)
ANCHOR_COMMANDS: dict[str, Callable[..., int]] = {"freeze": anchors.freeze, "list": anchors.list_, "bridge": anchors.bridge}
for _name, _function in ANCHOR_COMMANDS.items():
    anchor_sets.command(_name)(_exiting(_function))
app.add_typer(anchor_sets, name="anchors")
