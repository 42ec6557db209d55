"""Decoding in a bounded process: the same answers as without, and whatever ends the process is one row's status."""

import io
import os
import signal
import sys
import threading
from contextlib import suppress
from pathlib import Path

import orjson
import pytest
from PIL import Image

from schemas.errors import StoreError
from schemas.input_budget import PICTURE_PIXELS
from schemas.records import Sample
from tasks.ingest.images.decode import HEADER, Decoder, _checked, decoder, open_bounded
from tasks.ingest.images.limits import RefusedImage
from tasks.ingest.images.open import OpenedImage, open_image
from tests.support.ingesting import opened_rows


def save(image: Image.Image, kind: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


SMALL = Image.new("RGB", (9, 7), (1, 200, 3))
LARGE = save(Image.new("RGBA", (4096, 2160)), "PNG")
ALIKE = {
    "clean": save(SMALL, "JPEG"),
    "treated": save(SMALL.convert("RGBA"), "PNG"),
    "trailing": save(SMALL, "PNG") + b"PK\x03\x04",
    "broken": save(SMALL, "PNG")[:-9],
    "no image": b"<svg/>",
    "empty": b"",
    "text that is not UTF-8": b"\xff\xfe" * 9,
}


@pytest.mark.parametrize("content", ALIKE.values(), ids=ALIKE.keys())
def test_it_answers_as_without_a_process(content):
    assert open_bounded(content) == open_image(content)


def test_a_clean_picture_does_not_come_back_as_a_copy():
    content = ALIKE["clean"]
    assert open_bounded(content).shown is content


def test_memory_over_the_limit_is_a_status_and_the_process_lives_on():
    one = Decoder(memory_limit_bytes=32 * 1024 * 1024)
    try:
        refused = one.open(LARGE)
        assert isinstance(refused, RefusedImage)
        assert (refused.status, "MemoryError" in refused.detail) == ("broken_image", True)
        assert isinstance(one.open(ALIKE["clean"]), OpenedImage)
    finally:
        one.close()


def test_time_over_the_limit_is_a_status():
    one = Decoder(cpu_limit_s=0)  # none: what crosses a full second ends
    for _ in range(20):
        found = one.open(LARGE)
        if isinstance(found, RefusedImage):
            break
    assert (found.status, found.detail) == ("broken_image", "decoding was stopped: it took more than 0 s of processor time")
    assert not one.is_living


def test_a_process_that_stands_still_is_a_status():
    one = Decoder()
    one.open(ALIKE["clean"])
    os.kill(one._process.pid, signal.SIGSTOP)
    refused = one.open(ALIKE["clean"], deadline_s=0.2)
    assert refused == RefusedImage(refused.status, "decoding was stopped: it took more than 0.2 s")


def test_what_kills_the_process_costs_one_row_and_no_more(tmp_path):
    with decoder() as one:
        one.open(ALIKE["clean"])
        os.kill(one._process.pid, signal.SIGSEGV)
        one._process.wait()
    samples = [Sample("s", str(n), "m", "c", {"prompt": str(n)}, image_bytes=ALIKE["clean"]) for n in range(3)]
    table, _ = opened_rows(samples, tmp_path)
    rows = table.to_pylist()
    assert [row["status"] for row in rows] == ["broken_image", "ok", "ok"]
    assert "SIGSEGV" in rows[0]["detail"]


def test_a_process_whose_answer_was_not_taken_answers_no_later_picture():
    """Its answer would be taken for that to the picture after it."""
    with suppress(KeyboardInterrupt), decoder() as one:
        one.open(ALIKE["clean"])
        one._socket.sendall(HEADER.pack(0, len(ALIKE["treated"])) + ALIKE["treated"])
        raise KeyboardInterrupt
    assert open_bounded(ALIKE["clean"]) == open_image(ALIKE["clean"])


def test_a_process_that_never_begins_is_no_picture_s_fault():
    """Its installation is broken, or there is no memory: each of a million pictures would be called broken."""
    one = Decoder(memory_limit_bytes=1 << 80)
    with pytest.raises(StoreError, match="decodes pictures does not start: it ended"):
        one.open(ALIKE["clean"])
    assert not one.is_living


def test_threads_have_a_process_each():
    found, barrier = [], threading.Barrier(2, timeout=60)

    def work() -> None:
        with decoder() as one:
            barrier.wait()
            found.append(one)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found[0] is not found[1]


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the environment is read from /proc")
def test_the_process_knows_no_secret(monkeypatch):
    monkeypatch.setenv("OPENAI_API_KEY", "canary-8c1f")
    one = Decoder()
    one.open(ALIKE["clean"])
    environment = Path(f"/proc/{one._process.pid}/environ").read_bytes()
    one.close()
    assert b"PYTHONPATH" in environment
    assert b"canary" not in environment


GOOD = {"format": "PNG", "treatment": "reencoded_png", "width_px": 3, "height_px": 3}
LIES = {
    "another format": GOOD | {"format": "SVG"},
    "no size": GOOD | {"width_px": 0},
    "too large": GOOD | {"width_px": PICTURE_PIXELS},
    "no number": GOOD | {"width_px": "wide"},
    "treated, and its own bytes": GOOD | {"treatment": "none"},
    "a status that is none": {"status": "fine", "detail": ""},
    "nothing": {},
    "a list": [],
}


@pytest.mark.parametrize("said", LIES.values(), ids=LIES.keys())
def test_what_the_process_says_is_checked(said):
    with pytest.raises((ValueError, TypeError, KeyError)):
        _checked(orjson.loads(orjson.dumps(said)), b"asked", b"shown")
    assert _checked(GOOD, b"asked", b"shown").shown == b"shown"
