"""Naming a data set by its samples' ids: the definition, however many are sorted at once, and how little a shard hands on."""

import hashlib
import pickle

from hypothesis import given, settings
from hypothesis import strategies as st

from schemas.records import Sample
from schemas.tables.stored import SAMPLES
from tasks.ingest.identity import ID_BYTES, dataset_id, in_order
from tasks.ingest.samples import OpenShard, SampleList, open_and_write_shard
from tasks.lake.writing import stage

# Ids that begin alike, and ids that end in the zeros which numpy takes off a text.
IDS = st.builds(lambda first, last: bytes([first]) + bytes(ID_BYTES - 2) + bytes([last]), *[st.integers(0, 255)] * 2)
N_ROWS = 500


@settings(max_examples=200, deadline=None)
@given(st.lists(st.lists(IDS | st.binary(min_size=ID_BYTES, max_size=ID_BYTES), max_size=6), max_size=6), st.integers(1, 9))
def test_the_id_is_that_of_the_sorted_ids_however_many_are_sorted_at_once(shards, n_at_once):
    ids = [b"".join(shard) for shard in shards]
    expected = sorted(one for shard in shards for one in shard)
    assert b"".join(some.tobytes() for some in in_order(ids, n_at_once)) == b"".join(expected)
    assert dataset_id(ids, n_at_once=n_at_once) == hashlib.sha256("\n".join(one.hex() for one in expected).encode()).hexdigest()


def test_some_are_sorted_at_a_time():
    ids = [hashlib.sha256(bytes([number])).digest() for number in range(200)]
    assert max(some.size for some in in_order(ids, 20)) < 60


def test_what_a_shard_hands_on_is_little_more_than_its_ids(lake):
    """It travels from worker to flow and stays there until the data set is named."""
    keys = [f"checkpoint-1000/images/{row:05}.jpg" for row in range(N_ROWS)]
    samples = [Sample("s", key, "m", "c", {"prompt": "a photo of a bench"}, seed=row) for row, key in enumerate(keys)]
    result = open_and_write_shard(OpenShard(stage(lake, SAMPLES), 0, SampleList(samples), lake.root))
    assert result.source_keys() == keys
    assert len(pickle.dumps(result)) < 48 * N_ROWS
