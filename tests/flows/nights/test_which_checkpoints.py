"""Which checkpoints a backfill is about: by their names, their dates or a table; what is said where there is none."""

import json
import os
from collections.abc import Callable
from datetime import UTC, date, datetime
from pathlib import Path

import polars as pl
import pytest

from flows.nights.checkpoints import Checkpoint, chosen, find_checkpoints, has_newer, made_until
from flows.run.context import open_run
from schemas.errors import InputError
from tests.flows.flow_support import Said
from tests.support.night_world import MODEL, write_benchmark

URL = "http://127.0.0.1:1/v1"
OLD, NEW, BARE = Checkpoint("m", "9", date(2026, 1, 5)), Checkpoint("m", "10", date(2026, 2, 1)), Checkpoint("n", "10")


@pytest.mark.parametrize(
    ("names", "since", "found"),
    [
        (None, None, [OLD, NEW, BARE]),
        (["10"], None, [NEW, BARE]),
        (["m/10"], None, [NEW]),
        (["n/10", "9"], None, [OLD, BARE]),
        (["11"], None, "checkpoint 11 does not exist; available: m/9, m/10, n/10"),
        (["m"], None, "checkpoint m does not exist"),
        (None, date(2026, 2, 1), "none for n/10"),
    ],
    ids=["all", "of every model", "of one", "several", "not there", "a model is none", "a date is missing"],
)
def test_which_checkpoints(names: list[str] | None, since: date | None, found: list[Checkpoint] | str) -> None:
    if isinstance(found, str):
        with pytest.raises(InputError, match=found):
            chosen([OLD, NEW, BARE], names, since)
    else:
        assert chosen([OLD, NEW, BARE], names, since) == found


def _begin(home: Path, *names: str) -> None:
    """These checkpoints, each with a first picture: none of it is opened."""
    for name in names:
        samples = home / "made" / MODEL / name / "00000" / "samples"
        samples.mkdir(parents=True)
        (samples / "0.png").touch()


def _of_table(home: Path, name: str, timezone: str = "UTC") -> Path:
    nightly = f'checkpoints = "{name}"\ntimezone = "{timezone}"'
    return Path(write_benchmark(home, URL, nightly=nightly))


def test_since_includes_its_day() -> None:
    assert chosen([OLD, NEW], None, date(2026, 2, 1)) == [NEW]
    assert chosen([OLD, NEW], None, date(2026, 1, 5)) == [OLD, NEW]


@pytest.mark.parametrize(
    ("there", "names", "since", "said"),
    [
        ([NEW, OLD], None, date(2026, 2, 2), "made on 2026-02-02 or later; the newest, m/10, is of 2026-02-01"),
        ([OLD], [], None, "no checkpoint is named; available: m/9"),
        ([], None, None, r"the table under \[nightly\] checkpoints lists no checkpoint"),
    ],
    ids=["all are older", "no name", "none is listed"],
)
def test_where_no_checkpoint_is_chosen(there: list[Checkpoint], names: list[str] | None, since: date | None, said: str) -> None:
    with pytest.raises(InputError, match=said):
        chosen(there, names, since)


def test_a_past_night_is_about_what_was_made_on_its_day_or_before() -> None:
    assert made_until([OLD, NEW], date(2026, 2, 1)) == [OLD, NEW]
    assert made_until([OLD, NEW], date(2026, 1, 31)) == made_until([OLD, NEW], date(2026, 1, 5)) == [OLD]
    with pytest.raises(InputError, match="no checkpoint was made on 2026-01-04 or before: the first, m/9, is of 2026-01-05"):
        made_until([OLD, NEW], date(2026, 1, 4))


@pytest.mark.parametrize(
    ("before", "now", "is_newer"),
    [
        ({"m": "9"}, {"m": "10"}, True), ({"m": "9"}, {"m": "9"}, False), ({"m": "10"}, {"m": "9"}, False),
        ({"m": "9", "n": "10"}, {"m": "9"}, False), ({"m": "9"}, {"m": "9", "n": "10"}, True), ({"m": "11"}, {"m": "10"}, False),
        ({"m": "8"}, {"m": "9"}, True), ({}, {"m": "9"}, True), ({"m": "9"}, {}, False),
    ],
    ids=[
        "newer", "the same", "gone back", "a model is gone", "a model came", "gone back, removed", "on, the old one removed",
        "the first night", "none is left",
    ],
)  # fmt: skip
def test_a_night_has_something_newer_where_a_model_went_on(before: dict[str, str], now: dict[str, str], is_newer: bool) -> None:
    assert has_newer(before, now, [OLD, NEW, BARE], {}) == is_newer


@pytest.mark.parametrize(
    ("old", "days", "is_newer"),
    [
        ("v2", {("m", "v2"): date(2026, 1, 4)}, True),
        ("step-1", {("m", "step-1"): date(2026, 1, 6)}, False),
        ("v2", {("m", "v2"): None}, True),
        ("v2", {}, False),
        ("step-1", {}, True),
    ],
    ids=["an older date", "a newer date", "no date", "not listed, by name", "not listed, an older name"],
)
def test_a_checkpoint_that_is_gone_is_older_by_the_date_that_the_table_still_gives(
    old: str, days: dict[tuple[str, str], date | None], *, is_newer: bool
) -> None:
    now = Checkpoint("m", "step-9", date(2026, 1, 5))
    assert has_newer({"m": old}, {"m": "step-9"}, [now], days | ({("m", "step-9"): now.made_on} if days else {})) == is_newer


def _write_nothing(folder: Path) -> None:
    folder.mkdir(parents=True)


def _write_a_readme(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "readme.txt").write_text("to come")


def _write_prompts(folder: Path) -> None:
    (folder / "00000" / "samples").mkdir(parents=True)
    (folder / "00000" / "metadata.jsonl").write_text('{"prompt": "a cup"}')


def _begin_to_write_prompts(folder: Path) -> None:
    (folder / "00000" / "samples").mkdir(parents=True)
    (folder / "00000" / "metadata.jsonl").write_text("{")
    (folder / "00001" / "samples").mkdir(parents=True)


def _write_weights(folder: Path) -> None:
    folder.mkdir(parents=True)
    for name in ("model.safetensors", "run.out", "DONE"):
        (folder / name).touch()


def _write_hidden(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / ".0.png").touch()


def _write_a_picture_of_no_reader(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "0.avif").touch()


def _write_a_broken_table(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "manifest.csv").write_text("none,of,these\n1,2,3\n")


def _write_a_table(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / "manifest.csv").write_text("image,prompt\n../0.png,a cup\n")


READERS = ["geneval", "imagefolder", "manifest", "webdataset", "huggingface"]


@pytest.mark.parametrize(
    ("reader", "write", "counts"),
    [
        *(
            (reader, write, False)
            for reader in READERS
            for write in (_write_nothing, _write_a_readme, _write_hidden, _write_weights)
        ),
        ("geneval", _write_prompts, False),
        ("geneval", _begin_to_write_prompts, False),
        ("imagefolder", _write_a_picture_of_no_reader, True),
        ("manifest", _write_a_broken_table, True),
        ("manifest", _write_a_table, True),
    ],
)
def test_a_folder_counts_from_its_first_picture_on(
    tmp_path: Path, reader: str, write: Callable[[Path], None], *, counts: bool
) -> None:
    """What is there and cannot be read counts too: the night then says what is wrong with it."""
    write(tmp_path / "made" / MODEL / "step-9")
    _begin(tmp_path, "step-1")
    file = Path(write_benchmark(tmp_path, URL))
    file.write_text(file.read_text().replace("geneval", reader))
    assert [one.checkpoint for one in find_checkpoints(open_run(file))] == ["step-1", *["step-9"][:counts]]


@pytest.mark.parametrize("options", [("--dry-run",), ()], ids=["a preview", "asked"])
@pytest.mark.parametrize(
    ("path", "which", "said"),
    [
        ("made/{model}/{checkpoint}", ("--since", "2999-01-01"), "no checkpoint was made on 2999-01-01 or later"),
        ("made/none", ("--all",), "source 'source-0' is empty: reader geneval finds no rows at path = 'made/none'"),
    ],
    ids=["a day to come", "an empty folder"],
)
def test_a_backfill_of_nothing_says_so(
    salon: Callable[..., Said], tmp_path: Path, path: str, which: tuple[str, str], said: str, options: tuple[str, ...]
) -> None:
    _begin(tmp_path, "step-1")
    (tmp_path / "made" / "none").mkdir()
    file = write_benchmark(tmp_path, URL)
    file.write_text(file.read_text().replace("made/{model}/{checkpoint}", path))
    done = salon("backfill", file, *which, *options)
    assert (done.code, said in done.err) == (2, True), done.err


def test_a_table_says_which_checkpoints_are_ready_and_in_which_order(tmp_path: Path) -> None:
    _begin(tmp_path, "step-9", "step-10", "step-11")
    by_name = find_checkpoints(open_run(Path(write_benchmark(tmp_path, URL))))
    assert [one.checkpoint for one in by_name] == ["step-9", "step-10", "step-11"]  # numbers as numbers
    assert all(one.made_on is not None for one in by_name)  # the folders' own dates

    rows = ["step-10,2026-01-01", "step-9,2026-01-02", "gone,2026-01-03"]
    (tmp_path / "ready.csv").write_text("\n".join(["model,checkpoint,date", *(f"{MODEL},{row}" for row in rows)]))
    listed = find_checkpoints(open_run(_of_table(tmp_path, "ready.csv")))
    assert listed == [
        Checkpoint(MODEL, "step-10", date(2026, 1, 1)),
        Checkpoint(MODEL, "step-9", date(2026, 1, 2)),  # step-11 is not ready, `gone` is not there
    ]


def test_a_checkpoint_in_two_sources_is_of_the_day_of_the_later_folder(tmp_path: Path) -> None:
    for number, home in enumerate(("made", "more", "most")):
        (folder := tmp_path / home / MODEL / "step-1").mkdir(parents=True)
        (folder / "0.png").touch()
        os.utime(folder, 2 * (datetime(2026, 3, (1, 5, 3)[number], 12, tzinfo=UTC).timestamp(),))
    file = write_benchmark(tmp_path, "http://127.0.0.1:1/v1")
    section = file.read_text().partition("[[rubrics]]")[0].partition("[[sources]]")[2]
    more = "".join(f"[[sources]]{section.replace('made/', home)}" for home in ("more/", "most/"))
    file.write_text(file.read_text().replace("[[rubrics]]", f"{more}[[rubrics]]", 1))
    assert find_checkpoints(open_run(file)) == [Checkpoint(MODEL, "step-1", date(2026, 3, 5))]


def test_names_in_a_table_are_texts_also_where_they_look_like_numbers(tmp_path: Path) -> None:
    names = ["001000", "1.10", "1.1", "final"]
    _begin(tmp_path, *names)
    (tmp_path / "ready.csv").write_text("\n".join(["model,checkpoint,date", *(f"{MODEL},{name}," for name in names)]))
    listed = find_checkpoints(open_run(_of_table(tmp_path, "ready.csv")))
    assert {one.checkpoint for one in listed} == {*names}


def test_a_date_that_comes_after_many_rows_without_one_is_read(tmp_path: Path) -> None:
    old = [f"old-{number:03}" for number in range(120)]
    _begin(tmp_path, *old, "z-older", "a-newest")
    rows: list[dict[str, str]] = [{"model": MODEL, "checkpoint": name} for name in old]
    rows += [{"model": MODEL, "checkpoint": "a-newest", "date": "2026-11-01"}]
    rows += [{"model": MODEL, "checkpoint": "z-older", "date": "2026-10-01"}]
    (tmp_path / "ready.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = find_checkpoints(open_run(_of_table(tmp_path, "ready.jsonl")))
    assert [one.checkpoint for one in found][-2:] == ["z-older", "a-newest"]


LATE = datetime(2026, 10, 30, 23, 30, tzinfo=UTC)
TIMES = {
    "a time of another zone": (LATE, date(2026, 10, 31)),
    "a time of no zone": (LATE.replace(tzinfo=None), date(2026, 10, 30)),
    "the same as a text": ("2026-10-30T23:30:00Z", date(2026, 10, 31)),
    "a text of no zone": ("2026-10-30 23:30:00", date(2026, 10, 30)),
    "a text of UTC by its name": ("2026-10-30 23:30:00 UTC", date(2026, 10, 31)),
    "a date": (date(2026, 10, 30), date(2026, 10, 30)),
}


@pytest.mark.parametrize(("said", "day"), TIMES.values(), ids=TIMES)
def test_a_time_in_the_table_is_of_the_day_that_it_was_here(tmp_path: Path, said: object, day: date) -> None:
    _begin(tmp_path, "step-1")
    frame = pl.DataFrame({"model": [MODEL, MODEL], "checkpoint": ["step-1", "step-1"], "date": [said, said]})
    frame.write_parquet(tmp_path / "ready.parquet")
    file = _of_table(tmp_path, "ready.parquet", "Europe/Berlin")
    assert find_checkpoints(open_run(file)) == [Checkpoint(MODEL, "step-1", day)]


@pytest.mark.parametrize("kind", [pl.Date, pl.Datetime("us")])
def test_a_date_after_the_year_9999_is_no_fault_of_salons_own(tmp_path: Path, kind: pl.DataType) -> None:
    """As times are that were written in a wrong unit."""
    _begin(tmp_path, "step-1")
    far = pl.Series([10**8 if kind == pl.Date else 10**18]).cast(pl.Int32 if kind == pl.Date else pl.Int64).cast(kind)
    pl.DataFrame({"model": [MODEL], "checkpoint": ["step-1"], "date": far}).write_parquet(tmp_path / "ready.parquet")
    with pytest.raises(InputError, match=r"the column date, of type Date.*holds what is no date .*right unit\?"):
        find_checkpoints(open_run(_of_table(tmp_path, "ready.parquet")))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("ready.csv", f'"model","checkpoint","date"\n"{MODEL}","step-1",""\n'),
        ("ready.jsonl", f'{{"model":"{MODEL}","checkpoint":"step-1","date":" "}}\n'),
    ],
)
def test_a_date_may_be_an_empty_text(tmp_path: Path, name: str, text: str) -> None:
    _begin(tmp_path, "step-1")
    (tmp_path / name).write_text(text)
    assert find_checkpoints(open_run(_of_table(tmp_path, name))) == [Checkpoint(MODEL, "step-1")]


@pytest.mark.parametrize(
    ("name", "text", "said"),
    [
        ("ready.txt", "", "must be one of .csv, .jsonl, .parquet"),
        ("ready.csv", "name,when\na,b\n", "required: model, checkpoint"),
        *(
            ("ready.csv", f"model,checkpoint,date\n{MODEL},step-1,{date}\n", f"'{date}' is not a date")
            for date in ("soon", "2026-11-12 to 2026-11-14", "2026-04-01T99:00", "2026-03-31garbage")
        ),
        ("ready.jsonl", f'{{"model":["{MODEL}"],"checkpoint":"step-1"}}\n', "model must be a text in each row"),
        ("ready.jsonl", f'{{"model":"{MODEL}","checkpoint":{{"a":1}}}}\n', "checkpoint must be a text in each row"),
        (
            "ready.csv",
            f"model,checkpoint,date\n{MODEL},step-1,2026-01-01\n{MODEL},a,\n{MODEL},step-1,\n{MODEL},step-1,2026-01-02\n",
            f"rows 1 and 4 give {MODEL}/step-1 two dates",
        ),
    ],
)
def test_a_table_that_cannot_be_used(tmp_path: Path, name: str, text: str, said: str) -> None:
    _begin(tmp_path, "step-1")
    (tmp_path / name).write_text(text)
    with pytest.raises(InputError, match=said):
        find_checkpoints(open_run(_of_table(tmp_path, name)))
