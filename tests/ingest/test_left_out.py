"""What of an image folder no row stands for is told, in one bounded sentence a source; also where nothing is read again."""

import pytest

from schemas.errors import SourceError
from schemas.identities import RunIds
from tasks.ingest.known_sources import KnownSources
from tasks.ingest.left_out import left_out_of
from tasks.ingest.readers import left_out
from tasks.ingest.samples import find_dataset
from tasks.ingest.sources import expand
from tests.support.ingesting import ingest

FOLDERS = {"reader": "imagefolder", "path": "ds/{checkpoint}", "model": "m"}
PICTURES = ".bmp .gif .jfif .jpeg .jpg .png .tif .tiff .webp"


@pytest.fixture
def told(tmp_path, benchmark_of, lake, picture):
    """told(source, {place: text or None for a picture}): the notes of ingest, and those where nothing is read again."""

    def run(source, files):
        for number, (place, text) in enumerate(files.items()):
            path = tmp_path / "ds" / place
            path.parent.mkdir(parents=True, exist_ok=True)
            if not place.endswith("/"):
                path.write_bytes(picture(number) if text is None else text.encode())
            else:
                path.mkdir(exist_ok=True)
        benchmark = benchmark_of(source)
        known = KnownSources(lake, RunIds(code_version="code"), 500, 0)
        first = ingest(benchmark, lake, known=known)
        again = find_dataset(benchmark, KnownSources(lake, RunIds(code_version="code"), 500, 0))
        assert again is not None
        assert again.notes == first.notes
        return first.notes

    return run


NO_NOTE = ["README", "README.md", "notes.txt", "x.json", "Thumbs.db", ".DS_Store", "desktop.ini", "LICENSE", ".hidden.avif"]
CASES = {
    "pictures alone": (FOLDERS, {"a/1.png": None, "a/2.JPG": None, "a/3.jfif": None}, []),
    "what is no picture": (FOLDERS, {"a/1.png": None} | {f"a/{name}": "" for name in NO_NOTE}, []),
    "other suffixes and none": (
        FOLDERS,
        {"a/1.png": None} | {f"{place}": "" for place in ["a/1.avif", "a/2.HEIC", "a/none", "b/0001", "b/x. a cup", "b/t.001"]},
        [f"6 files are not read (no suffix 4, .avif 1, .heic 1); pictures are {PICTURES}; 1 folder holds no picture: 'b'"],
    ),
    "one file": (FOLDERS, {"a/1.png": None, "a/2.avif": ""}, [f"1 file is not read (.avif 1); pictures are {PICTURES}"]),
    "hidden pictures": (
        FOLDERS,
        {
            "a/1.png": None,
            "a/.2.PNG": None,
            "a/__MACOSX/._1.png": "",
            "b/.cache/sub/3.jpg": None,
            "b/4.png": None,
            "a/.x.txt": "",
        },
        ["source 'source-0': 3 hidden pictures are not read (the name, or a folder's, begins with a dot)"],
    ),
    "a hidden picture with a row": (
        FOLDERS,
        {"a/metadata.csv": "file_name\n.1.png\n", "a/.1.png": None, "a/.2.png": None},
        ["source 'source-0': 1 hidden picture is not read"],
    ),
    "folders without a picture": (
        FOLDERS,
        {"a/1.png": None, "b/": None, "c/sub/": None},
        ["source 'source-0': 2 folders hold no picture: 'b', 'c'"],
    ),
    "pictures without a row": (
        FOLDERS,
        {"a/metadata.csv": "file_name\n1.png\n./2.png\nsub/3.png\n9.avif\n", "a/4.png": None, "a/sub/5.png": None}
        | {f"a/{place}": None for place in ["1.png", "2.png", "sub/3.png", "9.avif"]}
        | {"a/10.avif": ""},
        [f"1 file is not read (.avif 1); pictures are {PICTURES}; 2 pictures have no row in 'a/metadata.csv'"],
    ),
    "a row that is left out is a row": (
        FOLDERS | {"where": {"use": "yes"}},
        {"a/metadata.csv": "file_name,use\n1.png,yes\n2.png,no\n", "a/1.png": None, "a/2.png": None},
        [],
    ),
    "pictures of several roles": (
        FOLDERS | {"pictures": {"image": "out", "source": "in"}},
        {"a/metadata.jsonl": '{"file_name": "x", "out": "1.png", "in": ["2.png", "3.png"]}\n'}
        | {f"a/{number}.png": None for number in range(1, 5)},
        ["source 'source-0': 1 picture has no row in 'a/metadata.jsonl'"],
    ),
    "no picture is wanted": (
        FOLDERS | {"columns": {"image": "", "prompt": "file_name"}},
        {"a/metadata.csv": "file_name\nx\n", "a/1.png": None, "b/metadata.csv": "file_name\nx\n"},
        [],
    ),
    "a row that is refused is a row": (
        FOLDERS,
        {"a/metadata.csv": "file_name\nsub/../1.png\n", "a/in/metadata.csv": "file_name\n../2.png\n"}
        | {f"a/{number}.png": None for number in range(1, 4)},
        ["source 'source-0': 1 picture has no row in 'a/metadata.csv', 'a/in/metadata.csv'"],
    ),
    "a name that is none": (
        FOLDERS,
        {"a/metadata.jsonl": '{"file_name": "\\u0000/1.png"}\n{"file_name": "/"}\n{"file_name": "%s/1.png"}\n' % ("x" * 5000)}
        | {"a/1.png": None},
        ["source 'source-0': 1 picture has no row in 'a/metadata.jsonl'"],
    ),
    "a name in another spelling": (FOLDERS, {"a/metadata.csv": "file_name\ncafe\u0301.png\n", "a/caf\u00e9.png": None}, []),
}


@pytest.mark.parametrize(("source", "files", "notes"), CASES.values(), ids=CASES.keys())
def test_what_is_not_read_is_told(told, source, files, notes):
    said = told(source, files)
    assert len(said) == len(notes)
    assert all(note in one for note, one in zip(notes, said, strict=True)), said


def test_a_picture_has_a_row_that_names_it_through_a_linked_folder_or_absolutely(tmp_path, benchmark_of):
    (tmp_path / "ds" / "real").mkdir(parents=True)
    (tmp_path / "ds" / "link").symlink_to("real")
    for number in range(1, 4):
        (tmp_path / "ds" / "real" / f"{number}.png").touch()
    (tmp_path / "ds" / "metadata.csv").write_text(f"file_name\nlink/1.png\n{tmp_path}/ds/real/2.png\n")
    (source,) = expand(benchmark_of({"reader": "imagefolder", "path": "ds", "model": "m"}), ())
    assert left_out(source).said() == "1 picture has no row in 'metadata.csv'"


def test_a_note_is_short_whatever_the_files_are_called(told):
    files = {"good/1.png": None} | {f"{'folder' * 30} {number}/x.s{number:03}": "" for number in range(60)}
    (note,) = told(FOLDERS, files)
    assert "60 files are not read (.s000 1, .s001 1, .s002 1, .s003 1, .s004 1, others 55)" in note
    assert "60 folders hold no picture: " in note
    assert note.endswith(", …")
    assert len(note) < 700


def test_a_source_in_which_nothing_can_be_read_says_what_is_there(told):
    with pytest.raises(SourceError, match=r"is empty: .*path = 'ds'; 2 files are not read \(\.heic 2\); pictures are \.bmp"):
        told({"reader": "imagefolder", "path": "ds", "model": "m"}, {"1.heic": "", "2.heic": ""})


def test_a_million_suffixes_are_not_kept(tmp_path, benchmark_of):
    (tmp_path / "ds").mkdir()
    for number in range(1100):
        (tmp_path / "ds" / f"x.s{number}").touch()
    (source,) = expand(benchmark_of({"reader": "imagefolder", "path": "ds", "model": "m"}), ())
    counts = left_out_of(source, None).n_by_suffix
    assert (len(counts), counts["others"]) == (1001, 100)


def test_folders_a_thousand_deep_are_read(told, tmp_path):
    folders = [tmp_path / "ds" / "a" / "/".join("d" * n) for n in range(1101)]
    folders[0].parent.mkdir()
    for folder in folders:
        folder.mkdir()
    try:
        assert told(FOLDERS, {f"a/{'d/' * 1100}1.png": None}) == []
    finally:  # by hand: what deletes trees recurses, too
        (folders[-1] / "1.png").unlink(missing_ok=True)
        for folder in reversed(folders):
            folder.rmdir()
