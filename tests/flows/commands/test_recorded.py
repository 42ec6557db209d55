"""Judgements made elsewhere, on real data: VIEScore's GPT-4o scores, and AnyCap's references and captions."""

import shutil
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from PIL import Image

from rubrics.loading import SHIPPED, load_rubric
from rubrics.replies.read import parse_reply
from tests.flows.flow_support import Said, cells_of, runs_of

EXAMPLES = Path(__file__).parents[3] / "docs" / "examples"


@pytest.fixture
def judged_by(tmp_path: Path) -> Callable[..., None]:
    """Writes the benchmark of one picture with recorded judges, each the lines of its section, and their replies."""

    def write(*judges: str) -> None:
        named = "".join(f"[[judges]]\n{one}\nrecorded = true\n" for one in judges)
        source = '[[sources]]\nreader = "manifest"\npath = "m.jsonl"\nmodel = "m"\n'
        (tmp_path / "b.toml").write_text(f'name = "b"\n{source}[[rubrics]]\nid = "alignment"\n{named}')

    Image.new("RGB", (8, 8), (80, 0, 0)).save(tmp_path / "a.png")
    (tmp_path / "m.jsonl").write_text('{"image": "a.png", "prompt": "a dark red"}\n')
    replies = [f'{{"prompt": "a dark red", "judge_model": "{one}", "reply": "Score: 4"}}\n' for one in ("one", "two", "three")]
    (tmp_path / "r.jsonl").write_text("".join(replies))
    return write


def test_a_judge_in_the_place_of_another_is_announced_by_plan_and_told_by_the_run(
    salon: Callable[..., Said], judged_by: Callable[..., None]
) -> None:
    one, two, three = 'model = "one"', 'model = "two"', 'model = "three"'
    told = "judge three (in place of two)"
    for judges, is_told in (([one], False), ([one, two], False), ([one, three], True), ([one, three], False)):
        judged_by(*judges)
        planned, run = salon("plan", "b.toml"), salon("import", "b.toml", "--replies", "r.jsonl")
        assert (planned.code, run.code) == (0, 0), run.err
        assert (f"{told}: changed requests are paid for again" in " ".join(planned.out.split())) == is_told
        assert (f"{told}: the numbers are not comparable" in " ".join(run.err.split())) == is_told
        assert "in place of" not in planned.out or is_told


@pytest.mark.parametrize("options", [(), ("--dry-run",)])
def test_a_backfill_whose_judges_are_all_recorded_says_what_publishes_instead(
    salon: Callable[..., Said], judged_by: Callable[..., None], options: tuple[str, ...]
) -> None:
    judged_by('model = "one"')
    said = salon("backfill", "b.toml", "--all", *options)
    assert said.code == 2, said.out
    assert "those of this file are all recorded: salon import FILE --replies" in " ".join(said.err.split())


def test_a_night_of_recorded_judges_says_to_import_what_they_lack(
    salon: Callable[..., Said], judged_by: Callable[..., None]
) -> None:
    judged_by('model = "one"')
    Path("b.toml").write_text(Path("b.toml").read_text().replace('model = "m"\n', 'model = "m"\ncheckpoint = "1"\n', 1))
    told = " ".join(salon("nightly", "b.toml").out.split())
    assert "salon import FILE --replies REPLIES takes in what recorded judges lack" in told
    assert "asks again for missing replies" not in told


def test_a_judge_under_another_name_is_told_as_renamed_and_that_its_series_ends(
    salon: Callable[..., Said], judged_by: Callable[..., None]
) -> None:
    plain, named, other = 'model = "one"', 'model = "one"\nname = "ours"', 'model = "one"\nname = "else"'
    told = "judge {1} is {0} renamed: its requests are the same, and stored replies count. But series and alarms go by the name: "
    told += "those of {0} end, also alarms that are open, and {1} has none of its nights. "
    told += "To go on with them, keep the old name ({2})"
    judged_by(plain)
    assert salon("import", "b.toml", "--replies", "r.jsonl").code == 0
    for judge, of in ((named, ("one", "ours", "remove its name")), (named, None), (other, ("ours", "else", 'name = "ours"'))):
        judged_by(judge)
        planned, run = (" ".join((said.out + said.err).split()) for said in (salon("plan", "b.toml"), salon("run", "b.toml")))
        assert "1: 1 stored" in run
        for said in (planned, run):
            assert told.format(*of) in said if of else "renamed" not in said
            assert "not comparable" not in said
            assert "paid for again" not in said


def test_viescore_means_are_those_of_the_raw_rows(needs_salon_data: Path, salon: Callable[..., Said], tmp_path: Path) -> None:
    raw = needs_salon_data / "viescore_t2i" / "gpt4o_judgements.jsonl"
    shutil.copytree(EXAMPLES / "rubrics", tmp_path / "mine")
    (tmp_path / "b.toml").write_text(f"""\
name = "viescore"
rubric_folders = ["mine"]
[[sources]]
reader = "manifest"
path = "{raw}"
columns = {{ item_id = "uid", model = "generator" }}
where = {{ aspect = "SC" }}
[[rubrics]]
id = "viescore_sc"
[[judges]]
model = "gpt-4o"
recorded = true
[recorded]
columns = {{ item_id = "uid", model = "generator", judge_model = "judge" }}
where = {{ aspect = "SC" }}
template = '{{"score": {{score}}, "reasoning": {{reasoning}}}}'
""")
    said = salon("import", "b.toml", "--replies", raw)
    assert said.code in (0, 1), said.err
    assert "982 rows: 982 stored" in said.out

    rows = pl.read_ndjson(raw).filter(pl.col("aspect") == "SC")
    by_hand = rows.group_by("generator").agg(pl.col("score").list.first().mean(), pl.len()).sort("generator")
    long = cells_of(tmp_path / "lake")
    cells = long.filter(category="__micro__", metric="mean", estimand="prompts_like_these").sort("model")
    assert cells["model"].to_list() == by_hand["generator"].to_list()
    assert cells["n_judgements"].to_list() == by_hand["len"].to_list()
    assert cells["estimate"].to_list() == pytest.approx(by_hand["score"].to_list(), abs=1e-12)

    again = salon("import", "b.toml", "--replies", raw)
    assert "0 stored, 982 there already" in again.out
    assert "unchanged" in again.out
    assert runs_of(tmp_path / "lake")["publication_id"].n_unique() == 1


def test_a_list_of_another_length_is_wrong_type(needs_salon_data: Path) -> None:
    """Perceptual quality stands as a list of two: no one number, so no score."""
    rows = pl.read_ndjson(needs_salon_data / "viescore_t2i" / "gpt4o_judgements.jsonl").filter(pl.col("aspect") == "PQ")
    rubric = load_rubric(EXAMPLES / "rubrics" / "viescore_sc")
    said = {str(parse_reply(rubric, f'{{"score": {score}}}', {}).as_dict()) for score in rows["score"].to_list()}
    assert said == {"{'error': 'wrong_type'}"}


REFERENCES = """\
name = "anycap"
[[sources]]
name = "references"
reader = "manifest"
path = "{path}"
model = "none-yet"
columns = {{ reference = "conversations[1].value", caption_type = "restriction[0]", item_id = "id", image = "" }}
[[rubrics]]
id = "caption"
[[judges]]
model = "never-asked"
base_url = "http://127.0.0.1:9/v1"
"""


def test_references_without_outputs_or_pictures_stop_before_asking(
    needs_salon_data: Path, salon: Callable[..., Said], tmp_path: Path
) -> None:
    path = needs_salon_data / "anycap" / "anycapeval_image_ref_style.jsonl"
    (tmp_path / "b.toml").write_text(REFERENCES.format(path=path))
    said = salon("run", "b.toml")
    assert said.code == 2
    assert "rubric caption needs image and output" in said.err
    samples = pl.read_parquet(tmp_path / "lake" / "samples" / "*" / "*.parquet")
    assert samples.height == 223
    assert samples["reference"].null_count() == 0
    assert set(samples["caption_type"]) == {"brief", "detail", "narrative", "poem", "theme"}
    assert load_rubric(SHIPPED / "caption").value_maps["caption_type"] == {"theme": "style"}


@pytest.mark.parametrize(
    ("recorded", "rows", "why"),
    [
        ('columns = { answer = "reply" }', '{"item_id": "a", "reply": "4"}', "answer is not a name Salon knows"),
        ("", '{"item_id": "a", "reply": \n{"item_id": "b"', "replies.jsonl, row 2: is not a JSON object on one line"),
        ("", '{"picture": "a", "reply": "4"}', "does not name a sample"),
        ("", '{"item_id": "a", "verdict": "4"}', "holds no reply text"),
    ],
    ids=["an unknown name", "no line is whole", "no sample is named", "no reply in any row"],
)
def test_what_is_wrong_with_replies_is_said_before_anything_is_ingested(
    salon: Callable[..., Said], tmp_path: Path, recorded: str, rows: str, why: str
) -> None:
    (tmp_path / "m.jsonl").write_text('{"item_id": "a", "prompt": "p", "image": "there is none.png"}\n')
    (tmp_path / "replies.jsonl").write_text(rows + "\n")
    (tmp_path / "b.toml").write_text(f"""\
name = "b"
[[sources]]
reader = "manifest"
path = "m.jsonl"
model = "m"
[[rubrics]]
id = "alignment"
[[judges]]
model = "somebody"
recorded = true
[recorded]
{recorded}
""")
    said = salon("import", "b.toml", "--replies", "replies.jsonl")
    assert said.code == 2
    assert why in said.err
    assert not (tmp_path / "lake" / "samples").exists()


@pytest.mark.slow
def test_a_run_counts_recorded_replies_as_stored(salon: Callable[..., Said], tmp_path: Path) -> None:
    for n in range(3):
        Image.new("RGB", (8, 8), (80 * n, 0, 0)).save(tmp_path / f"{n}.png")
    rows = [f'{{"image": "{n}.png", "prompt": "shade {n}", "model": "m", "checkpoint": "c"}}' for n in range(3)]
    (tmp_path / "m.jsonl").write_text("\n".join(rows))
    (tmp_path / "replies.jsonl").write_text("\n".join(f'{{"prompt": "shade {n}", "reply": "Score: {n + 1}"}}' for n in (0, 1)))
    (tmp_path / "b.toml").write_text("""\
name = "shades"
[[sources]]
reader = "manifest"
path = "m.jsonl"
[[rubrics]]
id = "alignment"
[[judges]]
model = "gpt-4o"
recorded = true
""")
    assert "requests    3: 0 stored already, 0 sent" in salon("run", "b.toml").out
    assert "2 rows: 2 stored" in salon("import", "b.toml", "--replies", "replies.jsonl").out
    for _ in range(2):
        assert "requests    3: 2 stored already, 0 sent" in salon("run", "b.toml").out
    (tmp_path / "replies.csv").write_text('prompt;reply\nshade 2;"Score: 3"\nshade 2\n')
    said = salon("import", "b.toml", "--replies", "replies.csv")
    assert "2 rows: 1 stored, 0 there already, 1 left out" in said.out
    assert "left out: replies.csv, row 2: has 1 cells, but the header has 2" in said.out
    assert "replies.csv is read with a semicolon as separator" in said.err
    assert "requests    3: 3 stored already, 0 sent" in salon("run", "b.toml").out
    board = (cells_of(tmp_path / "lake")).filter(metric="mean")["estimate"].to_list()
    for name in ("ledger.db", "ledger.db-wal", "ledger.db-shm"):
        (tmp_path / "lake" / name).unlink(missing_ok=True)
    said = salon("run", "b.toml")
    assert "requests    3: 3 stored already, 0 sent" in said.out
    assert "the ledger lacked 3 replies that the lake has" in said.err
    assert cells_of(tmp_path / "lake").filter(metric="mean")["estimate"].to_list() == board


@pytest.mark.slow
def test_a_wrong_template_is_mended_by_a_deployment(salon: Callable[..., Said], tmp_path: Path) -> None:
    for n in range(3):
        Image.new("RGB", (8, 8), (80 * n, 0, 0)).save(tmp_path / f"{n}.png")
    rows = [f'{{"image": "{n}.png", "prompt": "shade {n}", "score": {n + 1}}}' for n in range(3)]
    (tmp_path / "m.jsonl").write_text("\n".join(rows))

    def imported(template: str, judge: str = "") -> Said:
        (tmp_path / "b.toml").write_text(
            'name = "b"\n[[sources]]\nreader = "manifest"\npath = "m.jsonl"\nmodel = "m"\n[[rubrics]]\nid = "alignment"\n'
            f'[[judges]]\nmodel = "gpt-4o"\nrecorded = true\n{judge}\n[recorded]\ntemplate = "{template}"\n'
        )
        return salon("import", "b.toml", "--replies", "m.jsonl")

    assert "3 rows: 3 stored" in imported("I like {score}").out
    refused = imported("Score: {score}").out
    assert "0 stored, 0 there already, 0 left out, 3 contradicting" in refused
    assert " ".join(refused.split()).count('set deployment = "template 2" for the judge and import again') == 1
    mended = imported("Score: {score}", 'deployment = "template 2"')
    assert "3 rows: 3 stored, 0 there already, 0 left out" in mended.out
    means = cells_of(tmp_path / "lake").filter(metric="mean", category="__micro__", judge_model="gpt-4o")["estimate"]
    assert 2.0 in means.to_list()
    assert "0 stored, 3 there already" in imported("I like {score}").out, "what was rebuilt before is where it was"
