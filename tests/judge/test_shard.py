"""A shard with its stored pictures, and the snapshot taken of it."""

import base64
import io
import shutil
import threading
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import numpy as np
import orjson
import polars as pl
import pytest
from PIL import Image

from rubrics.messages import Example
from rubrics.model import Rubric
from schemas.benchmark.file import Limits
from schemas.benchmark.judges import Judge
from schemas.errors import CorruptLakeError, MissingKeyError, ProviderError
from schemas.records import JudgeReply
from schemas.statuses.rows import ReplyOrigin, ReplyStatus
from schemas.tables.stored import REPLIES, SAMPLES
from schemas.tables.table import conform
from tasks.judge.part_pictures import PartPictures
from tasks.judge.pictures import fitted_px
from tasks.lake.reading import Lake
from tasks.lake.writing import stage
from tasks.ledger.ledger import Ledger
from tasks.ledger.snapshot import part_digest, snapshot_id
from tests.support.asking import ask_shard
from tests.support.contexts import plan_part
from tests.support.ledgers import snapshot_part


@dataclass
class Stored:
    """Makes samples, and stores them."""

    samples: Callable[..., pl.DataFrame]
    store: Callable[[pl.DataFrame], tuple[Lake, str]]


LIMITS = Limits(concurrency=8, deadline_s=2)


@pytest.fixture
def stored(make_samples: Callable[..., pl.DataFrame], store_samples: Callable[..., tuple[Lake, str]]) -> Stored:
    return Stored(make_samples, store_samples)


@pytest.fixture
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/shard.db"


def test_each_request_is_sent_with_its_own_picture(provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str) -> None:
    samples = stored.samples(150)  # three row groups of pictures
    lake, _ = stored.store(samples)
    outcome = ask_shard(lake, plan_part(samples, rubric, judge)[1], rubric, judge, url, LIMITS)
    assert (outcome.n_answered, provider.n) == (150, 150)
    sent = {}
    for body in provider.bodies:
        text, image = body["messages"][1]["content"]
        sent[text["text"]] = image["image_url"]["url"]
    for index, image in enumerate(samples["image"].struct.field("bytes")):
        assert base64.b64decode(sent[f"prompt {index}"].removeprefix("data:image/png;base64,")) == image


def _photo(index: int, size_px: tuple[int, int], image_format: str) -> bytes:
    """A picture with something in it: waves, no two alike."""
    across, down = np.meshgrid(np.linspace(0, 9, size_px[0]), np.linspace(0, 5, size_px[1]))
    waves = np.stack([np.sin(across * (index + 1)), np.cos(down), np.sin(across + down)], axis=-1)
    buffer = io.BytesIO()
    Image.fromarray(((waves + 1) * 127).astype(np.uint8)).save(buffer, image_format, quality=90)
    return buffer.getvalue()


def test_a_judge_is_shown_smaller_pictures_and_the_detail_it_declares(
    provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str
) -> None:
    sizes = [(1024, 768), (300, 200), (500, 2000), (256, 256)]
    kinds = ["JPEG", "PNG", "PNG", "JPEG"]
    contents = [_photo(index, size, kind) for index, (size, kind) in enumerate(zip(sizes, kinds, strict=True))]
    samples = stored.samples(
        4, image=[{"bytes": content, "path": "p"} for content in contents], image_format=kinds,
        image_sha256=[sha256(content).hexdigest() for content in contents],
        width_px=[width for width, _ in sizes], height_px=[height for _, height in sizes],
    )  # fmt: skip
    lake, _ = stored.store(samples)
    small = judge.model_copy(update={"detail": "high", "max_side_px": 256})
    assert ask_shard(lake, plan_part(samples, rubric, small)[1], rubric, small, url, LIMITS).n_answered == 4
    sent = {}
    for body in provider.bodies:
        text, image = body["messages"][1]["content"]
        assert image["image_url"]["detail"] == "high"
        sent[text["text"]] = image["image_url"]["url"].partition(",")
    for index, expected_px in enumerate([(256, 192), (256, 171), (64, 256), None]):
        start, _, encoded = sent[f"prompt {index}"]
        content = base64.b64decode(encoded)
        if expected_px is None:
            assert (start, content) == ("data:image/jpeg;base64", contents[index]), "what is small enough is sent as it is"
            continue
        assert start == "data:image/png;base64"
        with Image.open(io.BytesIO(content)) as shown, Image.open(io.BytesIO(contents[index])) as whole:
            assert shown.size == expected_px == fitted_px(*sizes[index], 256)
            off = np.asarray(shown, float) - np.asarray(whole.resize(expected_px, Image.Resampling.BOX), float)
            assert np.abs(off).mean() < 3, "the same picture, smaller"


def test_a_picture_that_only_its_header_showed_to_be_clean_stops_the_run_when_it_is_to_be_shrunk(
    provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str
) -> None:
    content = _photo(1, (600, 600), "JPEG")[:200]
    image = {"image": [{"bytes": content, "path": "p"}], "image_sha256": [sha256(content).hexdigest()], "image_format": ["JPEG"]}
    samples = stored.samples(1, **image, width_px=[600], height_px=[600])
    lake, _ = stored.store(samples)
    small = judge.model_copy(update={"max_side_px": 256})
    with pytest.raises(CorruptLakeError, match=r'cannot be decoded for resizing: .*decode = "full"'):
        ask_shard(lake, plan_part(samples, rubric, small)[1], rubric, small, url, LIMITS)
    assert provider.n == 0


@pytest.mark.parametrize(("max_side_px", "shown_px"), [(None, (80, 40)), (64, (64, 32)), (100, (80, 40))])
def test_an_example_picture_has_the_size_that_its_header_says(
    stored: Stored, max_side_px: int | None, shown_px: tuple[int, int]
) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (80, 40), "red").save(buffer, "PNG")
    broken = b"\x89PNG\r\n\x1a\nno more of it"
    examples = [Example(sha256(content).hexdigest(), "PNG", content) for content in (buffer.getvalue(), broken)]
    lake, dataset_id = stored.store(stored.samples(1))
    pictures = PartPictures(lake.part(SAMPLES, dataset_id, 0), max_side_px, examples=examples)
    sizes_px = [(shown.width_px, shown.height_px) for shown in (pictures(example.sha256) for example in examples)]
    assert sizes_px == [shown_px, (None, None)]
    pictures.close()


def test_one_byte_of_one_picture_asks_exactly_its_request_again_and_a_new_name_none(
    provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str
) -> None:
    samples = stored.samples(6)
    lake, dataset_id = stored.store(samples)
    ask_shard(lake, plan_part(samples, rubric, judge)[1], rubric, judge, url, LIMITS)
    images = samples["image"].to_list()
    images[4] = {"bytes": images[4]["bytes"] + b"!", "path": "4.png"}
    images[2]["path"] = "renamed.png"
    changed = stored.samples(6, image=images, image_sha256=[sha256(image["bytes"]).hexdigest() for image in images])
    lake = Lake(lake.root.with_name("second"))
    staging = stage(lake, SAMPLES)
    staging.write_part(0, changed)
    staging.commit(dataset_id)
    outcome = ask_shard(lake, plan_part(changed, rubric, judge)[1], rubric, judge, url, LIMITS)
    assert (outcome.n_cached, outcome.n_asked, provider.n) == (5, 1, 7)


def test_a_shard_that_is_all_cached_needs_no_key_and_no_pictures(
    provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str
) -> None:
    samples = stored.samples(3)
    lake, dataset_id = stored.store(samples)
    requests = plan_part(samples, rubric, judge)[1]
    remote = judge.model_copy(update={"base_url": "https://judge.example/v1", "api_key_env": "SALON_NO_SUCH_KEY"})
    with pytest.raises(MissingKeyError):
        ask_shard(lake, requests, rubric, remote, url, LIMITS)
    ask_shard(lake, requests, rubric, judge, url, LIMITS)
    shutil.rmtree(lake.partition(SAMPLES, dataset_id))
    outcome = ask_shard(lake, requests, rubric, remote, url, LIMITS)
    assert (outcome.n_cached, outcome.n_asked) == (3, 0)


def test_a_part_without_the_picture_is_a_corrupt_lake(judge: Judge, rubric: Rubric, stored: Stored, url: str) -> None:
    lake, _ = stored.store(stored.samples(2))
    requests = plan_part(stored.samples(1, image_sha256=["9" * 64]), rubric, judge)[1]
    with pytest.raises(CorruptLakeError, match="does not hold the picture 999999999999"):
        ask_shard(lake, requests, rubric, judge, url, LIMITS)


def test_a_stop_from_another_thread_ends_the_shard(provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str) -> None:
    samples = stored.samples(60)
    lake, _ = stored.store(samples)
    provider.then = provider.play(body=provider.complete('{"score": 1}'), delay_s=0.1)
    stop = threading.Event()
    threading.Timer(0.3, stop.set).start()
    requests = plan_part(samples, rubric, judge)[1]
    outcome = ask_shard(lake, requests, rubric, judge, url, LIMITS, stop=stop)
    assert outcome.is_stopped
    with Ledger(url) as ledger:
        assert len(ledger.known(requests["request_key"])) == provider.n < 60


def test_a_snapshot_has_a_row_for_every_request(provider: Any, judge: Judge, rubric: Rubric, stored: Stored, url: str) -> None:
    samples = stored.samples(5)
    lake, _ = stored.store(samples)
    requests = plan_part(samples, rubric, judge)[1]
    provider.script.append(provider.play(body=provider.complete("no")))
    provider.script.append(provider.play(body=provider.complete('{"score": 2}')))
    provider.script.append(provider.play(status=400, body=orjson.dumps({"error": {"message": "bad"}})))
    one_by_one = Limits(concurrency=1, deadline_s=2)
    ask_shard(lake, requests[:2], rubric, judge, url, one_by_one)
    provider.then = provider.play(status=401)
    with Ledger(url) as ledger:
        with pytest.raises(ProviderError):
            ask_shard(lake, requests[2:4], rubric, judge, url, one_by_one)
        snapshot = snapshot_part(ledger, requests)
        conform(snapshot, REPLIES)
        order = {key: index for index, key in enumerate(requests["request_key"])}
        by_request = sorted(
            (order[row["request_key"]], row["ask_index"], row["status"], row["n_attempts"]) for row in snapshot.to_dicts()
        )
        assert by_request == [
            (0, 0, "answered", 1), (0, 1, "answered", 1), (1, 0, "rejected", 1), (2, 0, "unauthorized", 1),
            (3, 0, "unauthorized", 1), (4, 0, "not_asked", 0),
        ]  # fmt: skip
        assert snapshot["request_key"].to_list() == sorted(snapshot["request_key"])
        assert part_digest(snapshot) == part_digest(snapshot_part(ledger, requests.reverse()))


def test_ids_tell_parts_apart(ledger: Ledger) -> None:
    reply = JudgeReply("1" * 64, 0, ReplyStatus.ANSWERED, "m", ReplyOrigin.RECORDED, text="a")
    ledger.store([reply])
    frame = snapshot_part(ledger, pl.DataFrame({"request_key": ["1" * 64], "judge_model": ["m"]}))
    changed = frame.with_columns(reply_text=pl.lit("b"))
    assert part_digest(frame) != part_digest(changed)
    assert snapshot_id(["a", "b"]) != snapshot_id(["b", "a"])
