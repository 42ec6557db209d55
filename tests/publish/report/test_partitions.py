"""The page of partitions: states, prices, moments, commands; hostile names stay texts; nothing is loaded from outside."""

import re
import shlex
from datetime import UTC, datetime, timedelta
from html import unescape

import pytest

from flows.commands.running import words_in
from schemas.tables.stored import PARTITIONS
from tasks.publish.report.partitions import partitions_page

NOW = datetime(2026, 3, 5, 12, tzinfo=UTC)
HOSTILE = """<img src=https://evil.example/x onerror=alert(1)>'"; rm -rf ~ #"""


def row(checkpoint, rubric="alignment", **said):
    filled = {
        "partition_id": "p" * 64, "benchmark": "nightly", "model": "lab", "checkpoint": checkpoint, "dataset_id": "d" * 64,
        "rubric_id": rubric, "rubric_version": "1", "rubric_digest": "r" * 64, "judge_model": "eye", "judge_digest": "j" * 64,
        "sources_json": "[]", "state": "done", "n_requests": 1200, "n_left": 0, "asked_by": "nightly", "pid": 1,
        "changed_at": NOW - timedelta(days=3), "process_started": "1",
    }  # fmt: skip
    return filled | said


def page_of(rows, checkpoints=(), benchmark="nightly", command="salon backfill b.toml --checkpoints ", **more):
    asked = [("alignment", "eye"), ("caption", "eye")]
    frame = PARTITIONS.frame(rows)
    return partitions_page(benchmark, frame, asked, list(checkpoints), NOW, command, **more).decode()


def lines_of(page):
    """The rows of the table, tags left out."""
    rows = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)[1:]
    return [" ".join(re.sub(r"<[^>]+>", " ", one).replace("\u202f", "").split()) for one in rows]


def test_a_line_says_state_price_when_and_what_fills_it():
    rows = [
        row("step-9"), row("step-9", "caption", n_requests=40),
        row("step-10", state="planned", n_left=1100, online_usd=12.5, batch_usd=6.25, changed_at=NOW - timedelta(hours=5)),
        row("step-10", "caption", state="failed", n_left=3, detail="the judge is down", changed_at=NOW - timedelta(minutes=7)),
    ]  # fmt: skip
    page = page_of(rows, [("lab", "step-9"), ("lab", "step-10"), ("lab", "step-11")])
    assert lines_of(page) == [
        "step-11 lab not asked not asked salon backfill b.toml --checkpoints lab/step-11",
        (
            "step-10 lab planned 100 of 1200 $12.50, $6.25 by batch nightly, 2026-03-05 07:00 UTC "
            "failed 1197 of 1200 price not known nightly, 2026-03-05 11:53 UTC salon backfill b.toml --checkpoints lab/step-10"
        ),
        "step-9 lab done 1200 of 1200 nightly, 2026-03-02 12:00 UTC done 40 of 40 nightly, 2026-03-02 12:00 UTC –",
    ]
    assert 'title="the judge is down"' in page
    assert "1 failed, 1 planned, 2 done" in page


@pytest.mark.parametrize(
    ("states", "shown"),
    [
        (("stale", "done"), "done"), (("done", "planned"), "planned"), (("planned", "failed"), "failed"),
        (("failed", "running"), "running"), (("stale", "planned"), "planned"),
    ],
)  # fmt: skip
def test_of_datasets_that_followed_one_another_the_open_one_is_shown(states, shown):
    rows = [row("step-1", state=state, changed_at=NOW - timedelta(days=9 - n)) for n, state in enumerate(states)]
    for order in (rows, rows[::-1]):
        assert lines_of(page_of(order))[0].startswith(f"step-1 lab {shown} ")


def test_a_checkpoint_that_is_no_longer_among_the_sources_has_no_command():
    assert lines_of(page_of([row("gone", state="failed", n_left=1)], [("lab", "step-1")]))[0].endswith("step-1")
    (line,) = lines_of(page_of([row("gone", state="failed", n_left=1)]))
    assert line.endswith("not asked –")
    page = page_of([row("there", state="failed", n_left=1)], is_known=False)
    assert lines_of(page)[0].endswith("--checkpoints lab/there")
    assert "could not be looked through" in page


@pytest.mark.parametrize(("model", "checkpoint"), [("mo del", "a,b"), ('"x"', 'y"z'), ('a"b', "step-1,"), ("lab", "step 1")])
def test_the_command_names_its_checkpoint_alone(model, checkpoint):
    page = page_of([], [(model, checkpoint)])
    (command,) = re.findall("<code>(salon backfill[^<]*)</code>", page)
    assert words_in(shlex.split(unescape(command))[-1]) == [f"{model}/{checkpoint}"]


def test_a_file_with_braces_in_its_name_is_named_as_it_is():
    page = page_of([], [("lab", "step-1")], command="salon backfill 'night{a}{}%s.toml' --checkpoints ")
    assert lines_of(page)[0].endswith("night{a}{}%s.toml&#39; --checkpoints lab/step-1")


def test_hostile_names_stay_texts_and_nothing_is_loaded():
    rows = [row(HOSTILE, HOSTILE, model=HOSTILE, judge_model=HOSTILE, state="failed", n_left=1, detail=HOSTILE, asked_by=HOSTILE)]
    page = page_of(rows, [(HOSTILE, HOSTILE)], benchmark=HOSTILE)
    assert "<img" not in page
    assert not re.search(r"<(script|iframe|object|embed|form)\b", page)
    assert re.findall(r'(?:href|src)="([^"]*)"', page) == ["data:,", "#main", "../index.html"]
    policy = re.search(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    assert policy is not None
    assert policy[1].startswith("default-src &#39;none&#39;;")
    said = "salon backfill b.toml --checkpoints &#39;&lt;img"
    assert said in page, "a shell is given one word"


def test_what_a_stale_partition_lacks_now_is_not_known():
    said = lines_of(page_of([row("step-1", state="stale", n_requests=100, n_left=40, online_usd=0.5)], [("lab", "step-1")]))[0]
    assert " stale nightly, " in said


def test_an_empty_table_says_so():
    assert "no partition was written down yet" in page_of([])
