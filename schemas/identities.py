"""What names a thing by its content: canonical JSON, of which digests are taken."""

import orjson


def canonical_json(value: object) -> bytes:
    """UTF-8 JSON with sorted keys and no spaces: equal values, equal bytes."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
