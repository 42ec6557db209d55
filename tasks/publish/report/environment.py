"""Jinja2 as the pages use it: every value escaped, a missing one an error; style and script inlined under a strict policy.

What a page shows is page.py and index.py, how it looks templates/ and style.css.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from schemas.records import ALL_JUDGES, UNNAMED
from schemas.tables.published import PREFERENCE_RATINGS, PREFERENCES
from schemas.tables.table import Table
from tasks.publish.exports import without_bidi
from tasks.publish.leaderboard import judged_by
from tasks.publish.report import formats
from tasks.publish.report.gallery import Card
from tasks.publish.standings.categories import weights
from tasks.publish.standings.exam import fault_name
from tasks.publish.standings.exam import verdict as exam_verdict
from tasks.publish.standings.pair_boards import counts, verdict
from tasks.publish.standings.wording import made_by, rank, tells_best, verdict_word

_HERE = Path(__file__).parent


def render(template: str, *, script: str = "page.js", pictures: str = "data:", **values: object) -> bytes:
    """The page of this template, with the content security policy that lets in its own style and script alone.

    `script` is a file of this folder, or empty where the page has none; `pictures` are the sources a picture may have.
    """
    style, code = (_HERE / "style.css").read_text(), (_HERE / script).read_text() if script else ""
    allowed = f"'{_hash(code)}'" if code else "'none'"
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {allowed}; "
        f"img-src {pictures}; base-uri 'none'; form-action 'none'"
    )
    own = {"style": Markup(style), "script": Markup(code), "policy": policy}  # noqa: S704  files of this package
    return _environment().get_template(template).render(own | values).encode(errors="replace")  # JSON may hold half a character


def key_of(row: Mapping[str, Any], table: Table) -> str:
    """The row's key as JSON: where a number of the page stands in its Parquet file."""
    return as_key(*(str(row[name]) for name in table.key))


def as_key(*values: str) -> str:
    """As JSON, and a plain text: Jinja's own tojson says it is safe, and in a quoted attribute it is not."""
    return json.dumps(values, ensure_ascii=False)


def asks_of(card: Card) -> str:
    """What the filters look at, as JSON: of each ask its statuses, and its scores beside their dimensions."""
    asks = [
        {
            "statuses": sorted({score.reason or score.status for score in ask.all_scores} or {ask.reason or ask.status}),
            "scores": [[score.dimension, score.score] for score in ask.all_scores if score.score is not None],
        }
        for ask in card.asks
    ]
    return json.dumps(asks, ensure_ascii=False, separators=(",", ":"))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    names = ("number", "signed", "count", "percent", "p_value", "usd", "seconds", "words", "isolated", "isolates")
    environment.filters |= {name: getattr(formats, name) for name in names}
    environment.filters["level"] = without_bidi  # of names inside a sentence: what they turn round would be the sentence
    environment.filters["tells_best"] = tells_best
    used = (rank, verdict_word, weights, key_of, as_key, asks_of)
    environment.globals |= {function.__name__: function for function in used} | {"unnamed": UNNAMED}
    environment.globals |= {
        "exam_verdict": exam_verdict, "fault_name": fault_name,
        "in_a_line": made_by, "judged_by": judged_by, "pair_verdict": verdict, "pair_counts": counts, "all_judges": ALL_JUDGES,
        "pair_tables": {table.name: table for table in (PREFERENCES, PREFERENCE_RATINGS)},
    }  # fmt: skip
    return environment


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
