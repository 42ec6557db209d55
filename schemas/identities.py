"""What names a thing by its content: canonical JSON, of which digests are taken, and the identities of one run."""

import hashlib
from dataclasses import dataclass

import orjson


def canonical_json(value: object) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces: equal values, equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)


def address_id(*address: object) -> str:
    """First 12 hexadecimal characters of the sha256 of an address as canonical JSON: the same every night."""
    return hashlib.sha256(canonical_json(address)).hexdigest()[:12]


@dataclass(frozen=True, slots=True)
class RunIds:
    """What a run has made so far, each named by its content; empty where it is not made yet.

    The dataset, the plan over it, the snapshot of the plan's replies, the reading of the snapshot into scores, and the code's
    version, from which alone a publication follows; the publication itself; and `run_id`, the one name that is drawn: of the
    process that asks and spends. `budget_id` names the money that several runs share, as all starts at one night do; else it is
    the run's own.
    """

    dataset_id: str = ""
    plan_id: str = ""
    snapshot_id: str = ""
    reading_id: str = ""
    code_version: str = ""
    publication_id: str = ""
    run_id: str = ""
    budget_id: str = ""

    @property
    def spends_from(self) -> str:
        """What `max_usd` is counted under."""
        return self.budget_id or self.run_id
