"""expand: placeholders filled from the folders that are there, and what is wrong said before anything is read."""

import pytest

from schemas.errors import SourceError
from tasks.ingest.sources import expand

TREE = ["out/sdxl/base", "out/sdxl/step-200", "out/flux/base", "out/.cache/base", "out/it's [odd] $1/base"]


@pytest.fixture
def tree(tmp_path):
    for place in TREE:
        (tmp_path / place).mkdir(parents=True)
    (tmp_path / "out" / "notes.txt").write_text("a file, no model")
    (tmp_path / "sdxl.jsonl").write_text("{}")
    (tmp_path / "out" / "sdxl" / "step-200" / "sdxl.csv").write_text("image")
    (tmp_path / "out" / "sdxl" / "step-200" / "flux.csv").write_text("image")
    return tmp_path


def found(benchmark, checkpoints=None):
    return [(one.model, one.checkpoint, one.prefix) for one in expand(benchmark, (), checkpoints)]


def test_placeholders_are_filled_from_folders_in_order(tree, benchmark_of):
    assert found(benchmark_of({"reader": "geneval", "path": "out/{model}/{checkpoint}"})) == [
        ("flux", "base", "flux/base"),
        ("it's [odd] $1", "base", "it's [odd] $1/base"),
        ("sdxl", "base", "sdxl/base"),
        ("sdxl", "step-200", "sdxl/step-200"),
    ]


def test_a_placeholder_may_be_part_of_a_name_or_name_a_file(tree, benchmark_of):
    assert found(benchmark_of({"reader": "geneval", "path": "out/sdxl/step-{checkpoint}", "model": "sdxl"})) == [
        ("sdxl", "200", "step-200")
    ]
    assert found(benchmark_of({"reader": "manifest", "path": "{model}.jsonl"})) == [("sdxl", None, "")]
    assert found(benchmark_of({"reader": "manifest", "path": "out/{model}/step-200/{model}.csv"})) == [
        ("sdxl", None, "sdxl/step-200")
    ]


@pytest.mark.parametrize("reader", ["geneval", "imagefolder"])
@pytest.mark.parametrize("stray", ["README.md", "metadata.csv", "a.png"])
def test_for_a_reader_of_folders_a_placeholder_stands_for_no_file(tree, benchmark_of, reader, stray):
    (tree / "out" / "sdxl" / stray).write_text("")
    source = {"reader": reader, "path": "out/sdxl/{checkpoint}", "model": "sdxl"}
    assert [checkpoint for _, checkpoint, _ in found(benchmark_of(source))] == ["base", "step-200"]


def test_a_link_to_a_folder_is_a_folder(tree, benchmark_of):
    (tree / "out" / "sdxl" / "linked").symlink_to(tree / "out" / "sdxl" / "base")
    source = {"reader": "imagefolder", "path": "out/sdxl/l{checkpoint}", "model": "sdxl"}
    assert found(benchmark_of(source)) == [("sdxl", "inked", "linked")]


LINKED_OUT = {
    "a folder": ("out/sdxl/l{checkpoint}", "out/sdxl/linked", "out/flux"),
    "a file": ("out/sdxl/l{checkpoint}.csv", "out/sdxl/linked.csv", "sdxl.jsonl"),
    "a folder between": ("out/{model}/base", "out/linked", "private"),
    "a folder behind": ("out/{model}/samples", "out/flux/samples", "private"),
}


@pytest.mark.parametrize(("path", "link", "to"), LINKED_OUT.values(), ids=LINKED_OUT.keys())
def test_what_a_placeholder_finds_is_below_the_folder_that_is_looked_in(tree, benchmark_of, path, link, to):
    (tree / "private" / "base").mkdir(parents=True)
    (tree / link).symlink_to(tree / to)
    with pytest.raises(SourceError, match=r"is a link out of .* follow_links = true"):
        expand(benchmark_of({"reader": "manifest", "path": path}), ())
    followed = expand(benchmark_of({"reader": "manifest", "path": path, "follow_links": True}), ())
    assert (tree / to).resolve() in {part for one in followed for part in (one.path.resolve(), *one.path.resolve().parents)}
    (tree / "elsewhere").mkdir()
    (tree / "out").rename(tree / "elsewhere" / "out")
    (tree / "out").symlink_to(tree / "elsewhere" / "out")
    (tree / link).unlink()
    assert found(benchmark_of({"reader": "geneval", "path": "out/{model}/base"})), "what the file names may be a link"


def test_without_placeholders_the_constants_hold(tree, benchmark_of):
    assert found(benchmark_of({"reader": "geneval", "path": "out", "model": "m", "checkpoint": "c"})) == [("m", "c", "")]


@pytest.mark.parametrize(("wanted", "n"), [(["base"], 3), (["sdxl/base"], 1), (["step-200", "flux/base"], 2)])
def test_checkpoints_are_chosen_by_name_or_with_their_model(tree, benchmark_of, wanted, n):
    assert len(found(benchmark_of({"reader": "geneval", "path": "out/{model}/{checkpoint}"}), wanted)) == n


WRONG = {
    "nothing matches": ({"path": "out/{model}/ckpt-{checkpoint}"}, ["ckpt-{checkpoint}", "out/{model}/ckpt-{checkpoint}"]),
    "files alone where folders are read": ({"path": "out/{model}.txt"}, ["for folders '{model}.txt', which reader geneval"]),
    "no such folder": ({"path": "outputs"}, ["outputs", "does not exist; fix path"]),
    "unknown placeholder": ({"path": "out/{step}"}, ["{step}", "{model}, {checkpoint}"]),
    "given twice": ({"path": "out/{model}", "model": "m"}, ["model is given twice"]),
    "two in one name": ({"path": "out/{model}-{checkpoint}"}, ["two placeholders"]),
    "a URL": ({"path": "s3://bucket/out"}, ["URL", "download it"]),
    "unknown column": ({"path": "out", "columns": {"promt": "caption"}}, ["'promt'", "prompt"]),
    "no pointer": ({"path": "out", "columns": {"prompt": "a[x"}}, ["columns.prompt", "name[0]"]),
}


@pytest.mark.parametrize(("source", "words"), WRONG.values(), ids=WRONG.keys())
def test_what_is_wrong_is_said_with_what_to_do(tree, benchmark_of, source, words):
    with pytest.raises(SourceError) as error:
        expand(benchmark_of({"reader": "geneval", **source}), ())
    assert "source-0" in str(error.value)
    for word in words:
        assert word in str(error.value)


def test_checkpoints_that_are_not_there_are_listed_beside_those_that_are(tree, benchmark_of):
    with pytest.raises(SourceError, match=r"step-999; available: flux/base.*sdxl/step-200"):
        expand(benchmark_of({"reader": "geneval", "path": "out/{model}/{checkpoint}"}), (), ["step-999"])
