"""`salon new`: folders as people have them become a file that plans as it stands, or a sentence about what is lacking."""

import io
import json
import resource
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from PIL import Image

from tests.flows.flow_support import Said

PROMPTS = ("a red cup", "two dogs", "a bench")
CHECKPOINTS = ("step-900", "step-1000")


def png(number: int) -> bytes:
    found = io.BytesIO()
    Image.new("RGB", (8, 6), (number, 0, 0)).save(found, "PNG")
    return found.getvalue()


def _pictures(folder: Path, names: tuple[str, ...] = ("0", "1", "2")) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for n, name in enumerate(names):
        (folder / f"{name}.png").write_bytes(png(n))


def _lines(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def _named_by_prompt(folder: Path) -> None:
    for name in CHECKPOINTS:
        _pictures(folder / name, PROMPTS)


def _with_metadata(folder: Path) -> None:
    for name in CHECKPOINTS:
        _pictures(folder / "sdxl" / name / "train")
        rows = [{"file_name": f"{n}.png", "Caption": text, "Seed": n} for n, text in enumerate(PROMPTS)]
        _lines(folder / "sdxl" / name / "train" / "metadata.jsonl", rows)


def _with_own_tables(folder: Path) -> None:
    """As a training script leaves them: a table of its own beside a configuration, pictures below."""
    for name in CHECKPOINTS:
        at = folder / "runs" / "sdxl" / name
        _pictures(at / "images")
        (at / "config.json").write_text('{"lr": 1}')
        _lines(
            at / "samples.jsonl", [{"img": f"images/{n}.png", "positive_prompt": "", "text": t} for n, t in enumerate(PROMPTS)]
        )


def _manifest(folder: Path) -> None:
    _pictures(folder)
    rows = [{"image": f"{n}.png", "prompt": t, "model": "sdxl", "step": n} for n, t in enumerate(PROMPTS)]
    _lines(folder / "manifest.jsonl", rows)


def _urls(folder: Path) -> None:
    folder.mkdir()
    url = "https://pics.example.org/{}.png?token=1"
    _lines(folder / "list.jsonl", [{"url": url.format(n), "prompt": t} for n, t in enumerate(PROMPTS)])


def _hugging_face(folder: Path) -> None:
    (folder / "data").mkdir(parents=True)
    rows = {"image": [{"bytes": png(n), "path": f"{n}.png"} for n in range(3)], "caption": list(PROMPTS)}
    pl.DataFrame(rows).write_parquet(folder / "data" / "train-00000-of-00001.parquet")


def _hugging_face_by_checkpoint(folder: Path) -> None:
    for name in CHECKPOINTS:
        _hugging_face(folder / "sdxl" / name)
        (folder / "sdxl" / name / "data" / "train-00000-of-00001.parquet").rename(folder / "sdxl" / name / "train.parquet")


def _named_by_prompt_and_seed(folder: Path) -> None:
    for name in CHECKPOINTS:
        _pictures(folder / name, tuple(f"{prompt}_{seed}" for prompt in PROMPTS for seed in (1, 42)))


def _numbers_of_some_prompts(folder: Path) -> None:
    _pictures(folder, (*PROMPTS, "a car of 1990", "a car of 2000"))


def _geneval(folder: Path) -> None:
    for name in CHECKPOINTS:
        for n, text in enumerate(PROMPTS):
            _pictures(folder / "sdxl" / name / f"{n:05d}" / "samples", ("00000",))
            _lines(folder / "sdxl" / name / f"{n:05d}" / "metadata.jsonl", [{"tag": "single_object", "prompt": text}])


def _by_subject(folder: Path) -> None:
    for name in CHECKPOINTS:
        for subject in ("cups", "dogs"):
            _pictures(folder / name / subject, tuple(f"{prompt} beside {subject}" for prompt in PROMPTS))


def _beside_a_grid(folder: Path) -> None:
    _named_by_prompt(folder)
    (folder / "grid.png").write_bytes(png(9))
    _pictures(folder / "final", PROMPTS)


def _edits(folder: Path) -> None:
    _pictures(folder)
    rows = [{"before": f"{n}.png", "after": f"{2 - n}.png", "prompt": t} for n, t in enumerate(PROMPTS)]
    _lines(folder / "edits.jsonl", rows)


def _answers(folder: Path) -> None:
    _pictures(folder)
    _lines(
        folder / "answers.jsonl", [{"question": t, "text": "Here you are.", "image": f"{n}.png"} for n, t in enumerate(PROMPTS)]
    )


def _answers_in_capitals(folder: Path) -> None:
    _pictures(folder)
    told = enumerate(PROMPTS)
    _lines(folder / "a.jsonl", [{"question": t, "Text": "Here you are.", "instruction": t, "image": f"{n}.png"} for n, t in told])


def _with_texts(folder: Path) -> None:
    _pictures(folder, ("img 0", "img 1"))
    (folder / "img 0.txt").write_text("a red cup")


def _sizes_of_prompts(folder: Path) -> None:
    _pictures(folder, tuple(f"{prompt}_{number}" for prompt in PROMPTS for number in (512, 1024, 1999)))


def _models(folder: Path) -> None:
    for name in ("sdxl", "flux"):
        _pictures(folder / name / "images", PROMPTS)


BY_MODEL = {"path": "pics/{model}/{checkpoint}"}
WORLDS: Mapping[str, tuple[Callable[[Path], None], dict[str, Any], int, str]] = {
    "named by their prompts": (
        _named_by_prompt,
        {"reader": "imagefolder", "path": "pics/{checkpoint}", "model": "pics", "columns": {"prompt": "stem"}},
        6,
        "alignment",
    ),
    "named by prompt and seed": (
        _named_by_prompt_and_seed,
        {
            "reader": "imagefolder",
            "path": "pics/{checkpoint}",
            "model": "pics",
            "columns": {"prompt": "stem_text", "seed": "stem_number"},
        },
        12,
        "alignment",
    ),
    "sizes and years behind the prompts": (
        _sizes_of_prompts, {"reader": "imagefolder", "path": "pics", "model": "pics", "columns": {"prompt": "stem"}}, 9,
        "alignment",
    ),
    "numbers of some prompts": (
        _numbers_of_some_prompts, {"reader": "imagefolder", "path": "pics", "model": "pics", "columns": {"prompt": "stem"}}, 5,
        "alignment",
    ),
    "Hugging Face below checkpoints": (
        _hugging_face_by_checkpoint, {"reader": "huggingface", **BY_MODEL, "columns": {"prompt": "caption"}}, 6, "alignment",
    ),
    "metadata below a split": (
        _with_metadata, {"reader": "imagefolder", **BY_MODEL, "columns": {"prompt": "Caption", "seed": "Seed"}}, 6, "alignment",
    ),
    "a table of one's own": (
        _with_own_tables,
        {
            "reader": "manifest",
            "path": "pics/runs/{model}/{checkpoint}/samples.jsonl",
            "columns": {"prompt": "text", "image": "img"},
        },
        6,
        "alignment",
    ),
    "a manifest": (_manifest, {"reader": "manifest", "path": "pics", "columns": {"checkpoint": "step"}}, 3, "alignment"),
    "URLs": (
        _urls,
        {
            "reader": "manifest",
            "path": "pics/list.jsonl",
            "model": "pics",
            "remote_hosts": ["pics.example.org"],
            "columns": {"image": "url"},
        },
        3,
        "alignment",
    ),
    "Hugging Face": (
        _hugging_face,
        {"reader": "huggingface", "path": "pics", "model": "pics", "columns": {"prompt": "caption"}},
        3,
        "alignment",
    ),
    "GenEval": (_geneval, {"reader": "geneval", **BY_MODEL}, 6, "composition"),
    "subjects below checkpoints": (
        _by_subject,
        {"reader": "imagefolder", "path": "pics/{checkpoint}", "model": "pics", "columns": {"prompt": "stem"}},
        12,
        "alignment",
    ),
    "a grid beside checkpoints": (
        _beside_a_grid,
        {"reader": "imagefolder", "path": "pics/{checkpoint}", "model": "pics", "columns": {"prompt": "stem"}},
        9,
        "alignment",
    ),
    "answers in capitals": (
        _answers_in_capitals,
        {"reader": "manifest", "path": "pics/a.jsonl", "columns": {"prompt": "instruction"}, "model": "pics"}, 3, "alignment",
    ),
    "answers to questions": (_answers, {"reader": "manifest", "path": "pics/answers.jsonl", "model": "pics"}, 3, "interleaved"),
    "models": (
        _models, {"reader": "imagefolder", "path": "pics/{model}", "columns": {"prompt": "stem"}}, 6, "alignment",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", WORLDS)
def test_a_folder_becomes_a_file_that_plans(name: str, salon: Callable[..., Said], tmp_path: Path) -> None:
    make, source, n_samples, rubric = WORLDS[name]
    make(tmp_path / "pics")
    said = salon("new", "b.toml", "--from", "pics")
    assert said.code == 0, said.err
    written = tomllib.loads((tmp_path / "b.toml").read_text())
    assert written["sources"] == [source]
    assert [one["id"] for one in written["rubrics"]] == [rubric]
    assert f"samples  {n_samples} in " in said.out
    assert "salon plan b.toml" in said.out
    if name != "URLs":  # which are fetched
        planned = salon("plan", "b.toml")
        assert planned.code == 0, planned.err
        assert f"b: {n_samples} samples, usable {n_samples}" in planned.out


@pytest.mark.parametrize(
    ("second", "is_told"),
    [(PROMPTS, True), (("a tall green lamp", "a dog on a chair"), False)],
    ids=["two checkpoints of one prompt", "none"],
)
def test_where_pairs_can_be_made_their_rubric_is_named(
    salon: Callable[..., Said], tmp_path: Path, second: tuple[str, ...], *, is_told: bool
) -> None:
    _pictures(tmp_path / "pics" / CHECKPOINTS[0], PROMPTS)
    (tmp_path / "pics" / CHECKPOINTS[1]).mkdir()
    for n, name in enumerate(second):
        (tmp_path / "pics" / CHECKPOINTS[1] / f"{name}.png").write_bytes(png(100 + n))
    said = salon("new", "my own.toml", "--from", "pics")
    assert ('add [[rubrics]] id = "preference"' in said.out) == is_told
    assert "salon plan 'my own.toml'" in said.out
    with (tmp_path / "my own.toml").open("a") as file:
        file.write('[[rubrics]]\nid = "preference"\n')
    assert (salon("plan", "my own.toml").code == 0) == is_told


def test_a_checkpoints_folder_and_a_table_in_it_say_whose_they_are(salon: Callable[..., Said], tmp_path: Path) -> None:
    _with_own_tables(tmp_path / "pics")
    for file, place in {"a.toml": "pics/runs/sdxl/step-900", "b.toml": "pics/runs/sdxl/step-900/samples.jsonl"}.items():
        assert salon("new", file, "--from", place).code == 0
        (source,) = tomllib.loads((tmp_path / file).read_text())["sources"]
        assert (source["model"], source["checkpoint"]) == ("sdxl", "step-900")


def test_the_judge_and_the_rubric_are_as_told(
    salon: Callable[..., Said], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _named_by_prompt(tmp_path / "pics")
    assert salon("rubrics", "new", "my_own").code == 0
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    said = salon("new", "b.toml", "--from", "pics", "--rubric", "my-rubrics/my_own", "--judge", "claude-sonnet-4")
    assert said.code == 0, said.err
    assert "not set yet: export ANTHROPIC_API_KEY=" in said.out
    written = tomllib.loads((tmp_path / "b.toml").read_text())
    assert written["rubric_folders"] == ["my-rubrics"]
    assert written["judges"][0]["provider"] == "anthropic"
    assert salon("plan", "b.toml").code == 0
    local = salon("new", "c.toml", "--from", "pics", "--judge", "qwen", "--base-url", "http://127.0.0.1:8000/v1")
    assert "qwen at http://127.0.0.1:8000/v1" in local.out
    assert tomllib.loads((tmp_path / "c.toml").read_text())["judges"][0]["base_url"] == "http://127.0.0.1:8000/v1"


def test_of_two_pictures_the_named_one_is_judged(salon: Callable[..., Said], tmp_path: Path) -> None:
    _edits(tmp_path / "pics")
    said = salon("new", "b.toml", "--from", "pics", "--image", "after")
    assert said.code == 0, said.err
    assert "picture  column after" in said.out
    assert tomllib.loads((tmp_path / "b.toml").read_text())["sources"][0]["columns"] == {"image": "after"}


def _numbered(folder: Path) -> None:
    _pictures(folder)


def _texts_of_no_pictures(folder: Path) -> None:
    folder.mkdir()
    _lines(folder / "a.jsonl", [{"prompt": "a cup", "image": "gone.png"}])


def _several_tables(folder: Path) -> None:
    _texts_of_no_pictures(folder)
    _lines(folder / "b.jsonl", [{"prompt": "a cup"}])


def _too_deep(folder: Path) -> None:
    for above in ("x", "y"):
        for name in CHECKPOINTS:
            _pictures(folder / above / f"of {above}" / name, PROMPTS)


@pytest.mark.parametrize(
    ("make", "more", "told"),
    [
        (_numbered, (), "name the column that holds it with --prompt, or put a metadata.csv"),
        (_numbered, ("--prompt", "caption"), "there is no column 'caption' for --prompt"),
        (_texts_of_no_pictures, (), "no column names pictures that are there"),
        (_several_tables, (), "It holds several tables; name one of them: a.jsonl, b.jsonl"),
        (lambda folder: folder.mkdir(), (), "holds no pictures that a reader knows"),
        (_too_deep, (), "name a folder nearer to them"),
        (_named_by_prompt, ("--rubric", "composition"), "rubric composition needs category"),
        (_edits, (), "several columns name pictures: before, after; name the judged one with --image"),
        (_edits, ("--image", "prompt"), "no pictures that are there stand in the column 'prompt' of --image; before, after do"),
        (_with_texts, (), "text files beside the pictures are not read"),
    ],
    ids=[
        "numbers",
        "no such column",
        "pictures gone",
        "tables",
        "empty",
        "deep",
        "rubric",
        "two pictures",
        "no picture",
        "texts",
    ],
)
def test_what_cannot_be_judged_is_said_and_nothing_written(
    make: Callable[[Path], None], more: tuple[str, ...], told: str, salon: Callable[..., Said], tmp_path: Path
) -> None:
    make(tmp_path / "pics")
    said = salon("new", "b.toml", "--from", "pics", *more)
    assert said.code == 2
    assert told in " ".join(said.err.split())
    assert not (tmp_path / "b.toml").exists()


def test_a_rubric_that_is_not_there_may_be_named_by_its_folder(salon: Callable[..., Said], tmp_path: Path) -> None:
    _named_by_prompt(tmp_path / "pics")
    said = salon("new", "b.toml", "--from", "pics", "--rubric", "nosuch")
    assert said.code == 2
    assert "Name one of your own by its folder's path" in " ".join(said.err.split()), "the command has no --rubrics"


def test_a_folder_whose_name_has_braces_is_to_be_renamed(salon: Callable[..., Said], tmp_path: Path) -> None:
    _named_by_prompt(tmp_path / "we{ird}")
    said = salon("new", "b.toml", "--from", "we{ird}")
    assert said.code == 2
    assert "own name has braces cannot be named; rename it" in " ".join(said.err.split())


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        ("--base-url", "localhost:8000/v1", "this is not an address; write https://host/v1"),
        ("--base-url", "http://user:secret@h/v1", "it holds a user name or a password"),
        ("--judge", "", "it is blank"),
        ("--judge", "a\nb", "it holds"),
    ],
)
def test_a_judge_that_cannot_be_asked_is_refused(
    salon: Callable[..., Said], tmp_path: Path, option: str, value: str, why: str
) -> None:
    _named_by_prompt(tmp_path / "pics")
    said = salon("new", "b.toml", "--from", "pics", option, value)
    assert (said.code, said.err.startswith(f"salon: {option}: "), why in said.err) == (2, True, True), said
    assert "secret" not in said.err
    assert not (tmp_path / "b.toml").exists()


def test_a_file_that_is_there_stays(salon: Callable[..., Said], tmp_path: Path) -> None:
    _named_by_prompt(tmp_path / "pics")
    (tmp_path / "b.toml").write_text("mine")
    assert salon("new", "b.toml", "--from", "pics").code == 2
    assert (tmp_path / "b.toml").read_text() == "mine"


def test_a_file_that_the_disk_has_no_room_for_is_not_left_in_part(tmp_path: Path, salon: Callable[..., Said]) -> None:
    _named_by_prompt(tmp_path / "outputs")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))
    try:
        said = salon("new", "small.toml", "--from", "outputs")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert (said.code, "cannot be written" in said.err) == (2, True), said
    assert not (tmp_path / "small.toml").exists()
    assert salon("new", "small.toml", "--from", "outputs").code == 0
