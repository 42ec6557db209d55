"""A bundle is verified from what is in it alone, layer by layer; what was changed in it is found at the layer it was changed in.

Bundles that are refused unread are test_hostile_bundle.py.
"""

import json
import re
import shutil
import zipfile
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from pathlib import Path

import polars as pl
import pyarrow.parquet as pq
import pytest

from flows.cli import run
from flows.observability.progress import Reporter
from flows.verification.verifying import Verdict, verify_bundle
from tasks.lake.atomic_files import sha256_of_file
from tasks.ledger.snapshot import SAID, reply_sha256
from tasks.verify.bundle_opening import open_bundle
from tasks.verify.layers import Layer, layer_of
from tests.support.painting import COUNTING, paint, scenes

BENCHMARK = scenes("sent", where=COUNTING)


@pytest.fixture(scope="module")
def sent(tmp_path_factory: pytest.TempPathFactory, judge_url: str) -> Path:
    """A folder with a publication's bundle: `bare.zip`, and `whole` with its pictures. The lake is gone."""
    folder = tmp_path_factory.mktemp("sent")
    paint(folder)
    (folder / "b.toml").write_text(BENCHMARK.format(url=judge_url))
    assert run(["run", str(folder / "b.toml"), "--run-date", "2026-01-02"]) == 0
    of = ["export", "--to", "bundle", "--lake", str(folder / "lake")]
    assert run([*of, "--out", str(folder / "bare.zip")]) == 0
    assert run([*of, "--out", str(folder / "again.zip")]) == 0
    assert run([*of, "--out", str(folder / "whole"), "--with-pictures"]) == 0
    for name in ("lake", "scenes", "captions", "answers"):
        shutil.rmtree(folder / name, ignore_errors=True)
    return folder


def _verified(bundle: Path, scratch: Path) -> Verdict:
    return verify_bundle(open_bundle(bundle, scratch / "unpacked"), Reporter())


def test_without_its_pictures_all_but_them_is_derived_again(sent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(sent / "bare.zip") as archive:
        names = archive.namelist()
        held = {name: archive.read(name) for name in names}
    assert not [name for name in names if name.endswith((".html", ".jpg")) or ".." in name]
    assert not [name for name, content in held.items() if b"IDAT" in content or b"\xff\xd8\xff" in content]
    assert (sent / "bare.zip").read_bytes() == (sent / "again.zip").read_bytes()
    capsys.readouterr()
    assert run(["verify", str(sent / "bare.zip")]) == 4
    said = capsys.readouterr().out
    assert "picture     0 of 60 pictures derived again; could not: 60, their bytes are not in it" in said, said
    for line in ("request     60 of 60", "reply       60 of 60", "reading     60 of 60"):
        assert line in said
    assert "the same is installed" in said
    assert "nothing differs" in said
    assert run(["verify", str(sent / "bare.zip"), "--json"]) == 4
    told = json.loads(capsys.readouterr().out)
    assert [layer["n_differences"] for layer in told["layers"]] == [0, 0, 0, 0, 0]
    assert (told["is_verified"], told["is_whole"]) == (True, False)


def test_with_its_pictures_everything_is(sent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["verify", str(sent / "whole")]) == 0
    said = capsys.readouterr().out
    assert "picture     60 of 60 pictures derived again, all the same" in said, said
    assert "could not" not in said


def _change(path: Path, change: Callable[[pl.DataFrame], pl.DataFrame]) -> None:
    schema = pq.read_schema(path)
    pq.write_table(change(pl.read_parquet(path, hive_partitioning=False)).to_arrow().cast(schema), path, compression="zstd")


def _at(column: str, row: int, change: Callable[[object], object]) -> Callable[[pl.DataFrame], pl.DataFrame]:
    def changed(frame: pl.DataFrame) -> pl.DataFrame:
        values = frame[column].to_list()
        values[row] = change(values[row])
        return frame.with_columns(pl.Series(column, values, dtype=frame.schema[column]))

    return changed


def _in_part(table: str, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Callable[[Path], None]:
    """Change a partition's first file, and let its marker say so."""

    def change_part(root: Path) -> None:
        path = min((root / table).glob("*/part-*.parquet"))
        _change(path, change)
        marker = next((root / "complete" / table).iterdir())
        entries = json.loads(marker.read_text())["parts"]
        changed = next(entry for entry in entries if entry["name"] == path.name)
        changed |= {"n_rows": pq.read_metadata(path).num_rows, "n_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
        marker.write_text(json.dumps({"parts": entries}))

    return change_part


def _published(root: Path) -> Path:
    return next((root / "publish/v1/sent").iterdir())


def _in_folder(name: str, change: Callable[[Path], None]) -> Callable[[Path], None]:
    """Change a file of the published folder, and let its manifest say so."""

    def changed(root: Path) -> None:
        path = _published(root) / name
        change(path)
        manifest = json.loads((path.parent / "manifest.json").read_text())
        if path.exists():
            manifest["files"][name] = {"n_bytes": path.stat().st_size, "sha256": sha256_of_file(path)}
        else:
            del manifest["files"][name]
        text = json.dumps(manifest, ensure_ascii=False, sort_keys=True, indent=2)
        (path.parent / "manifest.json").write_text(text + "\n")

    return changed


def _edited(before: str, after: str) -> Callable[[Path], None]:
    def change(path: Path) -> None:
        assert before in path.read_text()
        path.write_text(path.read_text().replace(before, after, 1))

    return change


def _other_text(frame: pl.DataFrame) -> pl.DataFrame:
    """Another score in a reply, and the digest of what was received with it."""
    text = frame["reply_text"][0]
    score = text[text.rindex("Score: ") + 7]
    changed = _at("reply_text", 0, lambda _: text.replace(f"Score: {score}", f"Score: {'1' if score != '1' else '5'}"))(frame)
    return _at("reply_sha256", 0, lambda _: _digest_of(changed))(changed)


def _digest_of(frame: pl.DataFrame) -> str:
    return reply_sha256(frame.select(*SAID).row(0, named=True))


def _swapped(frame: pl.DataFrame) -> pl.DataFrame:
    """A snapshot in which two replies stand under one another's requests, each with its digest."""
    order = [1, 0, *range(2, frame.height)]
    moved = frame[order]
    return moved.with_columns(frame["request_key"], frame["ask_index"])


def _renamed(root: Path) -> None:
    folder = _published(root)
    name = folder.name[::-1]
    folder.rename(folder.with_name(name))
    declared = json.loads((root / "bundle.json").read_text()) | {"folder": f"sent/{name}"}
    (root / "bundle.json").write_text(json.dumps(declared))


def _in_rubric(change: Callable[[Path], None], name: str | None = None) -> Callable[[Path], None]:
    def changed(root: Path) -> None:
        folder = root / "rubrics/alignment"
        change(folder / name if name else next(path for path in folder.iterdir() if path.name != "rubric.toml"))

    return changed


def _picture_byte(value: object) -> object:
    assert isinstance(value, dict)
    content = bytearray(value["bytes"])
    content[len(content) // 2] ^= 1
    return value | {"bytes": bytes(content)}


def _no_bytes(value: object) -> object:
    assert isinstance(value, dict)
    return None


Evidence = tuple[str, str]
"""A difference's place and the beginning of its column, that nothing else of the group brings about."""
IN_PROVENANCE = "provenance.json"

# Changes made together in one bundle: what is changed, how, the layer it is found at, and by what.
TAMPERED: tuple[dict[str, tuple[Callable[[Path], None], Layer, Evidence]], ...] = (
    {
        "a byte of a picture": (_in_part("pictures", _at("image", 0, _picture_byte)), Layer.PICTURE, ("pictures", "image")),
        "a question": (
            _in_part("requests", _at("messages_json", 0, lambda text: str(text).replace("1", "2", 1))),
            Layer.REQUEST, ("requests", "messages_json"),
        ),
        "what a reply cost": (
            _in_part("replies", _at("n_output_tokens", 0, lambda n: int(str(n)) + 1)),
            Layer.REPLY, (IN_PROVENANCE, "snapshot_id"),
        ),
        "a score": (
            _in_part("scores", _at("score", 1, lambda score: 1.0 if score != 1.0 else 5.0)), Layer.READING, ("scores", "score"),
        ),
        "a table's figure": (
            _in_folder("benchmark_long.parquet", lambda at: _change(at, _at("estimate", 0, lambda old: float(str(old)) + 0.01))),
            Layer.STATISTICS, ("benchmark_long", "estimate"),
        ),
        "a page": (_in_folder("report.html", _edited("</h1>", "!</h1>")), Layer.STATISTICS, ("report.html", "")),
        "a digest of the tables beside": (
            _in_folder("tables.json", _edited('"sha256": "', '"sha256": "0')), Layer.STATISTICS, ("tables.json", "files"),
        ),
        "a table's row dropped": (
            _in_folder("standings.parquet", lambda at: _change(at, lambda rows: rows.slice(1))),
            Layer.STATISTICS, ("standings", ""),
        ),
        "a table dropped": (_in_folder("health.csv", Path.unlink), Layer.STATISTICS, ("health.csv", "")),
    },
    {
        "a picture's bytes gone": (_in_part("pictures", _at("image", 0, _no_bytes)), Layer.PICTURE, ("pictures", "image")),
        "a question dropped": (_in_part("requests", lambda rows: rows.slice(1)), Layer.REQUEST, ("requests", "")),
        "a reply dropped": (_in_part("replies", lambda rows: rows.slice(1)), Layer.REPLY, (IN_PROVENANCE, "snapshot_id")),
        "a score dropped": (_in_part("scores", lambda rows: rows.slice(3)), Layer.READING, ("scores", "")),
    },
    {
        "a picture's row dropped": (_in_part("pictures", lambda rows: rows.slice(1)), Layer.PICTURE, ("pictures", "image")),
        "a sample's prompt": (
            _in_part("samples", _at("prompt", 0, lambda text: f"{text}!")), Layer.REQUEST, ("samples", "sample_id"),
        ),
        "a rubric's text": (
            _in_rubric(lambda path: path.write_bytes(path.read_bytes() + b"Be kind. ")),
            Layer.REQUEST, (IN_PROVENANCE, "rubrics.alignment.digest"),
        ),
        "a swapped snapshot": (_in_part("replies", _swapped), Layer.REPLY, (IN_PROVENANCE, "snapshot_id")),
        "another publication's name": (_renamed, Layer.STATISTICS, (IN_PROVENANCE, "publication_id")),
    },
    {
        "a sample dropped": (_in_part("samples", lambda rows: rows.slice(1)), Layer.REQUEST, (IN_PROVENANCE, "dataset_id")),
        "whose sample a question is of": (
            _in_part("judgements", _at("checkpoint", 1, lambda _: "step-9")), Layer.REQUEST, ("judgements", "checkpoint"),
        ),
        "a reply, its digest forged": (_in_part("replies", _other_text), Layer.REPLY, (IN_PROVENANCE, "snapshot_id")),
        "a setting": (
            _in_folder("provenance.json", _edited('"exit_1": "headline"', '"exit_1": "any"')),
            Layer.STATISTICS, (IN_PROVENANCE, "publication_id"),
        ),
    },
    {
        "a rubric that cannot be read": (_in_rubric(_edited("[", "[[["), "rubric.toml"), Layer.REQUEST, ("rubrics", "")),
    },
)  # fmt: skip


@pytest.fixture(scope="module")
def verdicts(sent: Path, tmp_path_factory: pytest.TempPathFactory) -> Callable[[int], Verdict]:
    """The verdict on each group of changes, verified once."""

    @cache
    def verdict(group: int) -> Verdict:
        folder = tmp_path_factory.mktemp("tampered")
        shutil.copytree(sent / "whole", folder / "whole")
        for change, _, _ in TAMPERED[group].values():
            change(folder / "whole")
        return _verified(folder / "whole", folder)

    return verdict


@pytest.mark.parametrize(("group", "name"), [(n, name) for n, group in enumerate(TAMPERED) for name in group])
def test_what_is_changed_is_found_at_its_layer(verdicts: Callable[[int], Verdict], group: int, name: str) -> None:
    """Layers below the lowest that was changed differ in nothing."""
    _, layer, (place, column) = TAMPERED[group][name]
    verdict = verdicts(group)
    found = [one for one in verdict.differences if one.place == place and one.column.startswith(column)]
    assert [one for one in found if layer_of(one) is layer], verdict.differences[:9]
    lowest = min([*Layer].index(layer) for _, layer, _ in TAMPERED[group].values())
    assert [result.layer for result in verdict.layers[:lowest] if result.n_differences] == []


def test_a_changed_bundle_ends_with_1_and_says_what_differs(
    sent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(sent / "whole", tmp_path / "whole")
    TAMPERED[0]["a score"][0](tmp_path / "whole")
    assert run(["verify", str(tmp_path / "whole")]) == 1
    said = capsys.readouterr().out
    assert "reading     59 of 60 scores derived again; 1 difference" in said
    assert "reply       60 of 60 replies derived again, all the same" in said, said
    assert "score: published" in said


def test_of_other_code_it_is_said_first_which_and_whether_a_number_differs(
    sent: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As if it read the same scores at other places of the replies."""
    root = tmp_path / "whole"
    shutil.copytree(sent / "whole", root)
    (code,) = re.findall(r'"code_version": "([0-9a-f]{64})"', (_published(root) / "provenance.json").read_text())
    _in_folder("provenance.json", _edited(code, "0" * 64))(root)
    _in_part("scores", _at("score_span", 1, lambda _: "[0, 1]"))(root)
    assert run(["verify", str(root)]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("code        000000000000 published it, ")
    assert lines[1].endswith(f" is installed: differences may come from that; release {version('salon')} wrote the bundle")
    assert lines[2].startswith("values      of the ")
    assert lines[2].endswith("rebuilt tables share, none differs")
    assert [line for line in lines if line.endswith("59 of 60 scores derived again; 2 differences in reading_id, score_span")], (
        lines
    )
    assert [line for line in lines if line.startswith("differs ") and "as this code derives it; 000000000000 can tell" in line]


def test_a_table_that_another_version_of_the_library_wrote_is_a_note(sent: Path, tmp_path: Path) -> None:
    """Its bytes are others, and so are its digests in manifest and listing; its values are not."""
    shutil.copytree(sent / "whole", tmp_path / "whole")

    def rewritten(path: Path) -> None:
        content = path.read_bytes()
        at = content.index(b"parquet-cpp-arrow version ") + 26
        path.write_bytes(content[:at] + b"1" + content[at + 1 :])

    _in_folder("benchmark_long.parquet", rewritten)(tmp_path / "whole")
    verdict = _verified(tmp_path / "whole", tmp_path)
    assert verdict.differences == []
    assert [note[:22] for note in verdict.notes] == ["benchmark_long.parquet"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["export", "--to", "bundle", "--push", "--out", "x"], "sends nothing"),
        (["export", "--to", "eee", "--with-pictures", "--out", "x"], "need --to bundle"),
        (["export", "b.toml", "--batch-files", "x", "--with-pictures"], "--with-pictures belongs to --to"),
        (["verify", "bare.zip", "--file", "b.toml"], "a bundle contains its own"),
    ],
    ids=["pushed", "another receiver", "batch files", "verified with a file"],
)
def test_options_that_do_not_go_together(
    sent: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    monkeypatch.chdir(sent)
    assert run(words) == 2
    assert said in " ".join(capsys.readouterr().err.split())
