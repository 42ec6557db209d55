"""`salon open`: the path of the report page, and the page in a browser. The page itself is made when a run publishes."""

import webbrowser
from typing import Annotated

import typer

from flows.commands.reading import DEFAULT_LAKE, BenchmarkName, LakePlace, PublicationId
from schemas.errors import InputError
from tasks.lake.object_store.cache_folder import bring, fresh, working_root
from tasks.lake.reading import open_lake
from tasks.publish.folders import INDEX, LAYOUT, REPORT
from tasks.publish.reading import chosen


def open_page(
    lake: LakePlace = DEFAULT_LAKE,
    benchmark: BenchmarkName = None,
    publication: PublicationId = None,
    is_index: Annotated[bool, typer.Option("--index", help="The index over all publications of the lake instead.")] = False,
    is_shown: Annotated[bool, typer.Option("--browser", help="Open it in the browser too.")] = False,
) -> int:
    """Print the path of the report page; with --browser, open it."""
    root = open_lake(lake).root.resolve()
    page = root / "publish" / LAYOUT / INDEX if is_index else chosen(root, benchmark, publication).folder / REPORT
    if not is_index:
        bring(page)
    elif working_root(page):
        fresh(page)
    if not page.is_file():
        raise InputError(f"{page} is not there: it was published before there were pages; run the benchmark again to publish one")
    typer.echo(page)
    if is_shown and not webbrowser.open(page.as_uri()):
        raise InputError(f"no browser could be started here; open {page.as_uri()} in one")
    return 0
