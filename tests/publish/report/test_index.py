"""The index lists what stands in the lake, quickly, and shows what no publication may hold: runs, nights, people."""

import hashlib
import json
import re
import shutil
from datetime import timedelta
from html.parser import HTMLParser

import polars as pl
import pytest

from schemas.tables.agreement import AGREEMENT
from schemas.tables.nights import DRIFT
from schemas.tables.published import BENCHMARK_LONG
from schemas.tables.table import conform
from tasks.lake.atomic_files import write_parquet
from tasks.lake.reading import Lake
from tasks.publish.living_tables import write_living_table
from tasks.publish.report.gallery import Gallery
from tasks.publish.report.index import N_RUNS, write_index
from tests.publish.report.night_rows import DAY, drift_row, record
from tests.support.cpu import takes_at_most


def empty(table):
    return table.empty()


class Names(HTMLParser):
    """The names of the elements and attributes of a page."""

    def __init__(self):
        super().__init__()
        self.elements, self.attributes = set(), set()

    def handle_starttag(self, tag, attrs):
        self.elements.add(tag)
        self.attributes |= {name for name, _ in attrs}


def copies(root, published, n):
    """The same publication under other names: what 200 nights leave behind."""
    said = json.loads((published.folder / "manifest.json").read_bytes())
    for index in range(n):
        key = hashlib.sha256(f"copy {index}".encode()).hexdigest()
        folder = published.folder.parent / key
        shutil.copytree(published.folder, folder)
        named = said | {"publication_id": key, "run_date": (DAY - timedelta(days=index + 1)).isoformat()}
        (folder / "manifest.json").write_text(json.dumps(named))


def test_two_hundred_publications_are_listed_within_a_second(tmp_path, small, publish_one):
    first = publish_one(tmp_path, small, 0)
    copies(tmp_path, first, 199)
    write_index(tmp_path)  # the libraries are loaded, as they are after a publication
    assert takes_at_most(40, lambda: write_index(tmp_path))  # 0.45 s where it was measured; opening every report takes far more
    path = write_index(tmp_path)
    page = path.read_text()
    assert "All 200 publications" in page
    links = re.findall(r'href="(\./[^"]+)"', page)
    assert len(links) == 201  # each, and the current one once more
    assert all((path.parent / link).is_file() for link in links)
    assert "not to be opened" not in page
    assert len(page) < 200_000


def test_the_current_publication_and_its_figures_stand_first(tmp_path, small, publish_one):
    old, new = publish_one(tmp_path, small, 0), publish_one(tmp_path, small, 5)
    publish_one(tmp_path, small, 3, benchmark="weekly")
    page = write_index(tmp_path).read_text()
    assert page.index("2026-01-06") < page.index("2026-01-01")
    assert f"./nightly/{new.folder.name}/report.html" in page
    assert f"./nightly/{old.folder.name}/report.html" in page
    macro = small.tables[BENCHMARK_LONG].filter(category="__macro__", dimension="overall_score", estimand="prompts_like_these")
    for estimate in macro["estimate"]:
        assert f">{estimate:.2f}<" in page


def test_the_index_answers_what_the_report_answers_and_marks_each_models_newest(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    page, report = write_index(tmp_path).read_text(), small.page(Gallery((), 48)).decode()
    told, first = (re.findall(r'<p class="answer">.*?: (.*?)</p>', one) for one in (page, report))
    assert told == first
    assert "is best" in told[0]
    rows = re.findall(r'<tr><th scope="row">(.*?)</th>', page[page.index('<table class="glance') :])
    marked = [re.findall(r'class="checkpoint">(.*?)<', row)[0] for row in rows if ">newest<" in row]
    assert marked == ["step-1000"]  # south has only one


def test_a_publication_without_a_page_has_no_link(tmp_path, small, publish_one):
    published = publish_one(tmp_path, small, 0)
    (published.folder / "report.html").unlink()
    page = write_index(tmp_path).read_text()
    assert published.folder.name[:16] in page
    assert "report.html" not in page


def test_where_none_is_current_it_is_not_said_that_none_has_a_figure(tmp_path, small, publish_one):
    published = publish_one(tmp_path, small, 0)
    (published.folder / "../latest.json").unlink()
    page = write_index(tmp_path).read_text()
    assert ("No publication is current." in page, "No publication has a figure yet." in page) == (True, False)


def test_an_empty_lake_says_so(tmp_path):
    assert "Nothing has been published yet." in write_index(tmp_path).read_text()


def test_it_is_replaced_whole_and_is_the_same_bytes_for_the_same_lake(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    first = write_index(tmp_path).read_bytes()
    assert write_index(tmp_path).read_bytes() == first
    publish_one(tmp_path, small, 1)
    assert write_index(tmp_path).read_bytes() != first
    assert [path.name for path in (tmp_path / "publish" / "v1").iterdir() if path.is_file()] == ["index.html"]


@pytest.mark.parametrize("broken", ["manifest.json", "../latest.json"])
def test_a_benchmark_whose_current_publication_cannot_be_read_is_named_and_not_shown(tmp_path, small, publish_one, broken):
    """Older ones can be read: none of them is the current one."""
    published = [publish_one(tmp_path, small, number) for number in (0, 1)][-1]
    (published.folder / broken).write_text("{")
    page = write_index(tmp_path).read_text()
    assert page.count(broken.removeprefix("../")) == 1
    assert "All 1 publications" not in page


SPOILED = ["nightly/{}/benchmark_long.parquet", "nightly/{}/comparisons.parquet", "nightly/{}/standings.parquet",
           "nightly/drift.json", "nightly/agreement/latest.json", "nightly/agreement/{}/agreement.parquet"]  # fmt: skip


@pytest.mark.parametrize("spoiled", SPOILED)
def test_what_one_benchmark_lost_is_named_and_the_others_are_shown(tmp_path, small, publish_one, spoiled):
    """Every run, of any benchmark, ends with the index."""
    published = publish_one(tmp_path, small, 0)
    publish_one(tmp_path, small, 0, benchmark="weekly")
    agreement = published.folder.parent / "agreement"
    agreement.mkdir()
    shutil.copy(published.folder / "../latest.json", agreement)
    path = published.folder.parents[1] / spoiled.format(published.folder.name)
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"garbage")
    page = write_index(tmp_path).read_text()
    assert (page.count(str(path)), page.count('class="chip bad">not read<')) == (1, 1)
    assert [">weekly</h2>" in page, ">nightly</h2>" in page] == [True, False]


def test_a_spoiled_row_of_runs_is_named(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    record(Lake(tmp_path), 0)
    (path,) = (tmp_path / "runs").glob("*.parquet")
    path.write_bytes(b"garbage")
    page = write_index(tmp_path).read_text()
    assert (page.count(str(path)), ">nightly</h2>" in page) == (1, True)


def test_runs_are_shown_newest_first_with_cost_and_what_was_stored(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    lake = Lake(tmp_path)
    for index in range(N_RUNS + 3):
        record(lake, index)
    record(lake, N_RUNS + 3, outcome="blocked", publication_id=None, cost_usd=None)
    page = write_index(tmp_path).read_text()
    started = re.findall(r">(2026-\d\d-\d\d) 02:00<", page)
    assert started == sorted(started, reverse=True)
    assert len(started) == N_RUNS
    for text in (">blocked<", ">1\u202f000<", ">234<", ">$1.50<", ">9.0<"):
        assert text in page, text


def test_a_run_that_may_have_cost_more_says_at_least(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    lake = Lake(tmp_path)
    record(lake, 0, cost_usd=1.25, is_at_least=True)
    record(lake, 1, cost_usd=1.5, is_at_least=False)
    record(lake, 2, cost_usd=None, is_at_least=True)
    runs = write_index(tmp_path).read_text().partition('<h2 id="runs-title"')[2]
    assert re.findall(r'<td class="n">((?:at least )?\$[^<]*|–)</td>', runs) == ["–", "$1.50", "at least $1.25"]


def test_nights_show_their_alarms_and_stand_nowhere_else(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    late = {
        "is_alarm": True,
        "verdict": "judge",
        "changed_on": DAY,
        "shift": -0.25,
        "ewma": 6.7,
        "estimate": 6.6,
        "alpha_spent": 0.12,
    }
    rows = [
        *(drift_row(index) for index in range(40)),
        drift_row(40, **late),
        drift_row(41, estimate=None, ewma=None, limit_low=None),
    ]
    schema = empty(DRIFT).schema
    write_living_table(tmp_path, DRIFT, "nightly", pl.DataFrame(rows, schema=schema))
    page = write_index(tmp_path).read_text()
    allowed = "the limits allow 0.12 false alarms of all series and their anchors together"
    for text in (">1 alarm<", allowed, ">judge<", ">−0.25<", "2026-02-10", "<svg"):
        assert text in page, text


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ({"north": 6}, "Not watched yet: 6 of the 30 nights that limits need. Points are"),
        ({"north": 6, "south": 31}, "No alarm. 1 of 2 series not watched yet: 6 of the 30 nights that limits need. Points are"),
        ({"south": 31}, "No alarm. Points are"),
    ],
    ids=["none is", "one of two", "all are"],
)
def test_no_alarm_is_said_only_of_what_is_watched(tmp_path, small, publish_one, models, says):
    publish_one(tmp_path, small, 0)
    young = {"verdict": "unknown", "reason": "baseline_incomplete", "n_baseline": 6, "limit_low": None, "limit_high": None}
    rows = [drift_row(n, model=model, **(young if last < 30 else {})) for model, last in models.items() for n in range(last)]
    write_living_table(tmp_path, DRIFT, "nightly", pl.DataFrame(rows, schema=empty(DRIFT).schema, infer_schema_length=None))
    assert says in write_index(tmp_path).read_text()


@pytest.mark.parametrize("reason", ["nothing_new", "refusal"])
@pytest.mark.parametrize(
    ("n_young", "n_old", "size", "says"),
    [
        (2, 0, 9, "Not watched yet: 2 of the 30 nights that limits need. Points are"),
        (0, 3, 9, "No alarm. The last night could not be looked at: {}. Points are"),
        (2, 3, 9, "that limits need. The last night of 1 of 2 series could not be looked at: {}. Points are"),
        (0, 3, 8, "Not watched yet: 2 of the 30 nights that limits need. Points are"),
    ],
    ids=["never watched", "watched before", "one of each", "a dataset of another size"],
)
def test_a_last_night_that_is_no_observation_does_not_make_a_series_watched(
    tmp_path, small, publish_one, reason, n_young, n_old, size, says
):
    publish_one(tmp_path, small, 0)
    no_limits = {"verdict": "unknown", "reason": "baseline_incomplete", "n_baseline": 2, "limit_low": None, "limit_high": None}
    rows = [drift_row(n, model="young", **no_limits) for n in range(n_young)] + [drift_row(n) for n in range(n_old)]
    last = no_limits | {"reason": reason, "estimate": None, "n_judgements": size}
    rows += [drift_row(9, model=model, **last) for model in {row["model"] for row in rows}]
    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame(rows))
    assert says.format(reason.replace("_", " ")) in write_index(tmp_path).read_text()


def test_the_anchors_are_drawn_once_and_stand_in_the_table(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    moved = {"anchor_set": "a" * 64, "anchor_limit_low": 4.9, "anchor_limit_high": 5.1, "anchor_estimate": 4.125}
    rows = [
        drift_row(index, model=model, is_alarm=index == 8, anchor_ewma=4.375 if index == 8 else 5.0, **moved)
        for model in ("north", "south")
        for index in range(9)
    ]
    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame(rows))
    page = write_index(tmp_path).read_text()
    drawn = re.findall(r"<figcaption[^>]*>([^<]*)<", page)
    assert [name.partition(":")[0] for name in drawn] == ["north", "the frozen anchors", "south"], drawn
    for text in (">4.12 <", "weighted 4.38", ">4.90 to 5.10<"):
        assert text in page, text


def test_of_several_judges_each_drawing_says_whose_it_is_and_no_anchors_stand_below_anothers_series(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    anchored = {"anchor_set": "a" * 64, "anchor_estimate": 4.0}
    rows = [drift_row(n, judge_model=judge, measured_by=judge, **anchored) for judge in ("eye", "ear") for n in range(3)]
    blocked = {"judge_model": "ear", "measured_by": "ear", "rubric_id": "mine", "estimate": None, "ewma": None}
    rows += [drift_row(n, **blocked, **anchored) for n in range(3)]
    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame(rows))
    drawn = re.findall(r"<figcaption[^>]*>([^<]*)<", write_index(tmp_path).read_text())
    assert drawn == [
        f"{who}: overall score under small, version 1, judged by {judge}"
        for judge in ("ear", "eye")
        for who in ("north", "the frozen anchors")
    ]


def test_two_versions_of_a_rubric_are_two_drawings(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    rows = [drift_row(index, rubric_version="1" if index < 5 else "2") for index in range(9)]
    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame(rows))
    drawn = re.findall(r"<figcaption[^>]*>([^<]*)<", write_index(tmp_path).read_text())
    assert drawn == [f"north: overall score under small, version {version}" for version in "12"]


def test_nights_that_a_bridge_carried_over_are_hollow_and_say_who_measured_them(tmp_path, small, publish_one):
    publish_one(tmp_path, small, 0)
    late = {"is_alarm": True, "verdict": "judge", "changed_on": DAY + timedelta(days=3), "shift": -1.0, "anchor_estimate": 5.0}
    carried = {"judge_model": "new", "measured_by": "old"}
    rows = [drift_row(index, **carried) for index in range(4)]
    rows += [drift_row(4, **carried, **late), drift_row(5, judge_model="new", measured_by="new", **late)]
    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame(rows))
    page = write_index(tmp_path).read_text()
    (svg,) = [one for one in re.findall("<svg.*?</svg>", page, re.DOTALL) if "frozen anchors" not in one]
    points = re.findall(r'<path [^>]*?d="M([^"]*A[^"]*)"([^>]*)>', svg)  # circles
    assert sorted('fill="var(--quiet)"' in one for _, one in points) == [False] * 5 + [True], svg
    shifted = 'shifted to the scale of new</span></td>\n<td class="n">7.00 <span class="sub">shifted</span>'
    alarms = page[page.index("The newest alarms") : page.index("The last night of each series")]
    assert alarms.count(f'<code>old</code> <span class="sub">{shifted}') == 1
    assert alarms.count('<code>new</code></td>\n<td class="n">7.00</td>') == 1
    assert alarms.count('2026-01-04 <span class="sub">old judged</span>') == 1
    assert "a bridge shifted them to the scale of the judge that took over" in page

    write_living_table(tmp_path, DRIFT, "nightly", DRIFT.frame([drift_row(index) for index in range(6)]))
    assert not re.search("shifted|hollow", write_index(tmp_path).read_text())


@pytest.mark.parametrize("is_published", [True, False])
def test_agreement_is_shown_also_where_nothing_else_was_published(tmp_path, small, publish_one, is_published):
    if is_published:
        publish_one(tmp_path, small, 0)
    home = tmp_path / "publish" / "v1" / "nightly" / "agreement"
    row = {
        "publication_id": "a" * 64,
        "run_date": DAY,
        "benchmark": "nightly",
        "dataset_id": "d" * 64,
        "rubric_id": "small",
        "rubric_version": "1",
        "dimension": "overall_score",
        "subject_kind": "judge",
        "subject": "eye",
        "against": "__raters_mean__",
        "model": "__all__",
        "checkpoint": "__all__",
        "category": "__micro__",
        "metric": "spearman",
        "estimate": 0.7149,
        "ci_low": 0.6,
        "ci_high": 0.8,
        "ci_level": 0.95,
        "n_items": 40,
        "n_prompts": 20,
        "n_raters": 3,
        "status": "ok",
    }
    frame = pl.DataFrame([row, row | {"metric": "pearson", "estimate": 0.99}], schema=empty(AGREEMENT).schema)
    write_parquet(conform(frame, AGREEMENT), home / ("b" * 64) / "agreement.parquet", tmp_path / "staging")
    (home / "latest.json").write_text(
        json.dumps({"publication_id": "b" * 64, "run_date": DAY.isoformat(), "manifest_sha256": "c" * 64})
    )
    page = write_index(tmp_path).read_text()
    assert ">0.71<" in page
    assert ">0.99<" not in page
    told = ("No publication has a figure yet." in page, "All 0 publications" in page, "Nothing has been published" in page)
    assert told == (not is_published, False, False)


def test_hostile_names_are_texts(tmp_path, hostile, publish_one):
    publish_one(tmp_path, hostile, 0, benchmark="<b>&\"'")
    record(Lake(tmp_path), 0, benchmark="<script>window.pwned=1</script>")
    page = write_index(tmp_path).read_text()
    names = Names()
    names.feed(page)
    assert "script" not in names.elements
    assert not {name for name in names.attributes if name.startswith("on") or name == "style"}
    assert "./%3Cb%3E%26%22%27/" in page
