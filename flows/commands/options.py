"""Options and arguments that commands in several files share, each declared once. One command's own stand beside it."""

import os
from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from schemas.benchmark.file import MAX_USD, Retry, Runner
from schemas.errors import InputError

BenchmarkFile = Annotated[Path, typer.Argument(help="The benchmark file (TOML).")]
RunDate = Annotated[
    datetime | None,
    typer.Option(formats=["%Y-%m-%d"], help="The run's logical date; default: today in the file's [nightly] timezone, else UTC."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be asked, cost and take; nothing is sent.")]
Checkpoints = Annotated[
    str | None, typer.Option(help="Only these checkpoints, separated by commas; one with a comma in double quotes.")
]
MaxUsd = Annotated[
    float | None, typer.Option(min=0, max=MAX_USD, help="Spend at most this in this run; default: limits.max_usd of the file.")
]
RunnerOption = Annotated[
    Runner | None, typer.Option(help="What runs the shards: local, processes or dask; default: the file's `runner`.")
]
RetryOption = Annotated[
    Retry | None, typer.Option(help="rejected: ask again what the provider rejected, once the cause is fixed.")
]

DEFAULT_LAKE = os.environ.get("SALON_LAKE", "lake")
LakePlace = Annotated[
    str, typer.Option("--lake", help="The lake, a folder or s3://bucket/prefix; default: $SALON_LAKE, or the folder lake.")
]
BenchmarkName = Annotated[str | None, typer.Option("--benchmark", help="The benchmark's name; default: the last one published.")]
PublicationId = Annotated[
    str | None, typer.Option("--publication", help="A publication's id or its beginning; default: the current one.")
]
Good = Annotated[
    bool,
    typer.Option(
        "--good", help="Use the last publication in which no cell is blocked or lacks replies, instead of the current one."
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object instead.")]


def check_forgets_nothing(retry: Retry | None) -> None:
    """Raises InputError where a preview is to ask again what was rejected: it would forget it."""
    if retry is not None:
        raise InputError("--dry-run cannot be combined with --retry: omit one of them")
