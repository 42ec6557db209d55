"""`salon gc`, `pin` and `withdraw`: what a lake needs no more, keeps whatever happens, takes back. Rules: retention.py."""

from collections import defaultdict
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.table import Table

from flows.commands.options import DEFAULT_LAKE, BenchmarkFile, LakePlace
from flows.observability.progress import shown_progress
from flows.observability.terminal import Console, name_of, result_console
from schemas.errors import InputError
from tasks.lake.reading import Lake, open_lake

if TYPE_CHECKING:
    from flows.garbage_collection.inventory import Item
    from flows.garbage_collection.retention import Rule, Weighed

Days = Annotated[int, typer.Option("--older-than", min=0, help="Days; anything younger is kept.")]
Yes = Annotated[bool, typer.Option("--yes", help="Delete it; without this, only show what would go.")]
Thin = Annotated[
    bool,
    typer.Option(
        "--thin-nights",
        help="Keep only the published tables of older nights and what drift needs; delete their pictures, requests and "
        "replies. salon verify and explain then no longer work for them.",
    ),
]
File = Annotated[Path | None, typer.Argument(help="A benchmark file (TOML) of the lake; default: the lake of --lake.")]


def gc(file: File = None, lake: LakePlace = DEFAULT_LAKE, days: Days = 30, thin: Thin = False, yes: Yes = False) -> int:
    """Show what the lake no longer needs, and what stays and why; with --yes delete it. The ledger keeps every reply."""
    from flows.garbage_collection.bucket import seen
    from flows.garbage_collection.collecting import clear
    from flows.garbage_collection.retention import Rule, weighed

    place, ledger_url = _opened(file, lake)
    rule = Rule(days, thin)
    if not yes:
        with seen(place) as view:
            _tell(place, weighed(view, rule), "would go")
            _tell_of_nights(view, rule)
        result_console().print("\nnothing was deleted; add --yes to delete it")
        return 0
    if ledger_url is None:
        raise InputError(
            f"the lake {place.place} has no ledger.db of its own, and only the ledger shows whether a run is under way: name a "
            "benchmark file of the lake, as in `salon gc FILE --yes`"
        )
    clear(place, ledger_url, rule, lambda found: _tell(place, found, "goes"))
    result_console().print("deleted")
    return 0


def pin(
    publication: Annotated[
        str | None, typer.Argument(help="A publication's id or its beginning; without it, list the pins.")
    ] = None,
    lake: LakePlace = DEFAULT_LAKE,
    because: Annotated[str, typer.Option(help="Why it is kept, in a few words.")] = "",
    is_off: Annotated[bool, typer.Option("--off", help="Remove the pin.")] = False,
) -> int:
    """Protect a publication, and everything it is made from, from salon gc."""
    from tasks.publish import pins
    from tasks.publish.folders import LAYOUT, MANIFEST, is_published
    from tasks.verify.publication import find_folder

    if publication is None and (because or is_off):
        raise InputError(f"name the publication: salon pin PUBLICATION {'--off' if is_off else '--because WHY'}")
    root, out = _folder(open_lake(lake)).root, result_console()
    if publication is None:
        for one in pins.pins(root):
            out.print(name_of(f"{one.publication_id[:12]}  since {one.pinned_at[:10]}  {one.because}".rstrip()))
        return 0
    if is_off:
        named = [one.publication_id for one in pins.pins(root) if one.publication_id.startswith(publication)]
        if len(named) != 1 or not pins.unpin(root, named[0]):
            raise InputError(f"{len(named)} pins match {publication!r}, and exactly one must; `salon pin` lists them")
        out.print(f"no longer pinned: {named[0][:12]}")
        return 0
    folder = find_folder(root, publication)
    home = (root / "publish" / LAYOUT).resolve()
    if not folder.resolve().is_relative_to(home) or not (folder / MANIFEST).is_file():
        raise InputError(f"{publication!r} is not in the lake {lake}; name a publication in {home}, or its lake with --lake")
    made = pins.pin(root, folder.name, because)
    if not is_published(folder):
        pins.unpin(root, folder.name)
        raise InputError(f"salon gc has just deleted {folder.name[:12]}; `salon table` shows what the lake still has")
    out.print(f"pinned: {made.publication_id[:12]}")
    return 0


def withdraw(
    file: BenchmarkFile,
    publication: Annotated[str, typer.Argument(help="The publication's id or its beginning.")],
    because: Annotated[str, typer.Option(help="Why, in a few words; it is recorded.")],
) -> int:
    """Withdraw a publication: another becomes current, and its night can be run again. Its files and paid replies stay."""
    from flows.run.context import RunContext, open_run
    from flows.withdrawing import withdraw

    with shown_progress() as reporter:
        run = RunContext.of(open_run(file), reporter=reporter)
        found = withdraw(run, publication, because)
    out, taken = result_console(), found.withdrawal
    out.print(name_of(f"withdrawn: {taken.publication_id[:12]}, of {taken.run_date}: {taken.because}"))
    if found.nights:
        out.print(f"no longer a night: {', '.join(found.nights)}")
    for day in found.nights:
        until = run.benchmark.nightly.gives_up_at(date.fromisoformat(day))
        if until is not None and until > datetime.now(UTC):
            out.print(f"a start of {day} that still tries (until {until:%H:%M %Z}) publishes it again: stop it if it must not")
    now = "nothing" if found.current is None else f"{found.current[0][:12]}, of {found.current[1]}"
    out.print(f"current: {now}")
    return 0


def _opened(file: Path | None, place: str) -> tuple[Lake, str | None]:
    """The lake, and its ledger's address where that is known."""
    if file is None:
        lake = _folder(open_lake(place))
        there = lake.root / "ledger.db"
        return lake, f"sqlite:///{there}" if there.is_file() and not lake.bucket else None
    from flows.run.context import ledger_url
    from schemas.benchmark.file import load_benchmark

    benchmark = load_benchmark(file)
    lake = _folder(open_lake(benchmark.lake, benchmark.folder.resolve()))
    return lake, ledger_url(benchmark, lake)


def _folder(lake: Lake) -> Lake:
    is_there = bool(lake.bucket.folders("complete")[0]) if lake.bucket else (lake.root / "complete").is_dir()
    if not is_there:
        raise InputError(f"there is no lake in {lake.place}; give its location with --lake, or a benchmark file that uses it")
    return lake


def _tell(lake: Lake, found: "list[Weighed]", word: str) -> None:
    from flows.garbage_collection.inventory import LOCK, NOTE, PUBLICATION, n_bytes_of

    out = result_console()
    out.print(name_of(f"lake {lake.place}"), end="\n\n")
    going = [one.item for one in found if one.why is None]
    for item in (one for one in going if one.kind == PUBLICATION):
        day = datetime.fromtimestamp(item.changed_at_s, UTC).date()
        out.print(name_of(f"{word}  {_bytes(n_bytes_of([item])):>9}  {item.benchmark} {item.name[:12]}, of {day}"))
    groups: dict[tuple[str, str], list[Item]] = defaultdict(list)
    for one in found:
        if one.why is None or one.item.kind not in (NOTE, LOCK):
            groups[one.why or "", one.item.kind].append(one.item)
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for name in ("", "what", "items", "bytes", "why"):
        table.add_column(name, justify="right" if name in ("items", "bytes") else "left", overflow="fold")
    for (why, kind), items in sorted(groups.items(), key=lambda one: (one[0][0] != "", one[0])):
        table.add_row("stays" if why else word, name_of(kind), f"{len(items):,}", _size(items), name_of(why))
    Console(highlight=False).print(table)
    out.print(f"\n{word}: {len(going):,} items, {_bytes(n_bytes_of(going))}")


def _tell_of_nights(lake: Lake, rule: "Rule") -> None:
    from dataclasses import replace

    from flows.garbage_collection.inventory import n_bytes_of
    from flows.garbage_collection.retention import weighed

    if rule.is_thinning:
        return
    sizes = [
        n_bytes_of(one.item for one in weighed(lake, replace(rule, is_thinning=is_thin)) if one.why is None)
        for is_thin in (False, True)
    ]
    if sizes[1] > sizes[0]:
        result_console().print(
            f"--thin-nights: {_bytes(sizes[1] - sizes[0])} more: pictures, requests and replies of older nights"
        )


def _size(items: "list[Item]") -> str:
    from flows.garbage_collection.inventory import n_bytes_of

    return _bytes(n_bytes_of(items, is_linked_too=True))


def _bytes(n: int) -> str:
    for unit, size in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if n >= size:
            return f"{n / size:.1f} {unit}"
    return f"{n} B"
