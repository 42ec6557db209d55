"""A publication in a notebook: headline standings and win rates as HTML, every text of it escaped; and its page, as published."""

import webbrowser
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from html import escape
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import TYPE_CHECKING, Any

from salon.errors import SalonError
from salon.places import Place

if TYPE_CHECKING:
    import polars as pl

    from salon.publication import Publication

_SHOWN = ("rank", "checkpoint", "mean [95 %]", "vs. predecessor", "prompts", "coverage", "state")
_WON = ("checkpoint", "against", "wins, % [95 %]", "verdict", "prompts")
_BOARD = ["rubric_id", "judge_model", "dimension"]


def as_html(published: "Publication") -> str:
    """The headline standings, and the win rates of pairs, as tables; every text escaped."""
    named = f"{escape(published.run_date)}, publication <code>{escape(published.publication_id[:12])}</code>"
    taken_back = f", <b>{escape(published.withdrawn)}</b>" if published.withdrawn else ""
    title = f"<p><b>{escape(published.benchmark)}</b>, {named}{taken_back}</p>"
    if "standings.parquet" not in published.files:
        what = "published by an older release, without standings" if published.is_older else "agreement with people or a judge"
        return f"{title}<p>{what}; its tables: {escape(', '.join(published.tables))}</p>"
    parts = [title]
    rows = published.standings()
    for key, mine in rows.group_by(_BOARD, maintain_order=True):
        blind_to = mine["blind_to"][0] if "blind_to" in mine.columns else None
        blind = f", <b>blind to {escape(blind_to)}</b>" if blind_to else ""
        parts.append(f"<p>{escape(str(key[0]))}, {escape(str(key[2]))}, judged by {escape(str(key[1]))}{blind}</p>")
        parts.append(_table([_standing(row) for row in mine.iter_rows(named=True)]) + _weights(mine))
    return "".join(parts) + _pairs(published)


def _pairs(published: "Publication") -> str:
    """Who won how often, of the dimensions that claims are made of; empty where nothing was compared in pairs."""
    if "preferences.parquet" not in published.files:
        return ""
    parts = []
    rows = published.table("preferences").filter(category="__macro__")
    claimed = rows.filter("is_primary")
    for key, mine in (rows if claimed.is_empty() else claimed).group_by(_BOARD, maintain_order=True):
        parts.append(f"<p>{escape(str(key[0]))}, {escape(str(key[2]))}, pairs judged by {escape(str(key[1]))}</p>")
        parts.append(_table([_won(row) for row in mine.iter_rows(named=True)], _WON))
    return "".join(parts)


def _won(row: Mapping[str, Any]) -> tuple[str, ...]:
    corrected = "" if row["ci_low_adjusted"] is None else "_adjusted"
    rate, low, high = (row[name] for name in ("win_rate", f"ci_low{corrected}", f"ci_high{corrected}"))
    rate, low, high = (None if value is None else 100 * value for value in (rate, low, high))
    names = (f"{row[f'model_{end}']} / {row[f'checkpoint_{end}']}" for end in "ab")
    return *names, _numbers(rate, low, high), str(row["verdict"] or row["reason"] or "").replace("_", " "), str(row["n_prompts"])


def _weights(rows: "pl.DataFrame") -> str:
    """How totals over categories of unequal size are made; nothing where the sizes are equal, or an older table lacks them."""
    names = ("n_categories", "n_prompts_smallest_category", "n_prompts_largest_category")
    known = rows.drop_nulls(names[0]) if set(names) <= set(rows.columns) else rows.clear()
    sizes = sorted({int(n) for name in names[1:] for n in known[name]}) if not known.is_empty() else []
    if len(sizes) < 2:
        return ""
    told = f"the smallest has {sizes[0]} prompts, the largest {sizes[-1]}"
    return f"<p>{max(known[names[0]])} categories weigh the same; {told}</p>"


def _standing(row: Mapping[str, Any]) -> tuple[str, ...]:
    low, high = row["rank_low"], row["rank_high"]
    delta, delta_low, delta_high = (row[f"delta_predecessor{end}"] for end in ("", "_low", "_high"))
    verdict = "" if row["verdict_predecessor"] is None else f" {row['verdict_predecessor']}".replace("_", " ")
    return (
        "–" if low is None else str(low) if low == high else f"{low}–{high}",
        f"{row['model']} / {row['checkpoint']}",
        _numbers(row["estimate"], row["ci_low"], row["ci_high"]),
        _numbers(delta, delta_low, delta_high, _signed) + verdict,
        str(row["n_prompts"]),
        "–" if row["coverage"] is None else _percent(row["coverage"]),
        str(row["state"]).replace("_", " "),
    )


def _number(value: float, n_digits: int = 2) -> str:
    """As the terminal writes it: there is no "-0.00"."""
    return f"{round(value, n_digits) + 0.0:.{n_digits}f}"


def _signed(value: float) -> str:
    """A difference, with up to four digits where it would read as 0."""
    n = next((n for n in range(2, 5) if round(value, n) != 0), 2)
    return ("+" if round(value, n) > 0 else "") + _number(value, n)


def _percent(share: float) -> str:
    """With more digits where it would read as nothing or as all, and is neither."""
    ends = [100 * end for end in (0.0, 1.0) if end != share]
    n = next((n for n in range(1, 8) if round(100 * share, n) not in ends), 1)
    return f"{_number(100 * share, n)} %"


def _numbers(value: float | None, low: float | None, high: float | None, write: Callable[[float], str] = _number) -> str:
    if value is None:
        return "–"
    return write(value) + ("" if low is None or high is None else f" [{write(low)}, {write(high)}]")


def _table(rows: list[tuple[str, ...]], names: tuple[str, ...] = _SHOWN) -> str:
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(value)}</td>' for value in row)}</tr>" for row in rows)
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


@dataclass(frozen=True)
class Report:
    """The page's bytes, and where they stand."""

    html: bytes
    place: Place
    name: str

    @property
    def path(self) -> Path:
        """The file; from an object store a copy in the folder for temporary files."""
        if not self.place.is_remote:
            return Path(self.place.root, self.name)
        with NamedTemporaryFile(prefix="salon-report-", suffix=".html", delete=False) as file:
            file.write(self.html)
        return Path(file.name)

    def open(self) -> None:
        """Show it in the browser. Raises SalonError where none can be started."""
        if not webbrowser.open(self.path.as_uri()):
            raise SalonError(f"no browser could be started; open {self.path} yourself")

    def __repr__(self) -> str:
        return f"Report({self.place.root}/{self.name})"

    def _repr_html_(self) -> str:
        """A frame without rights of its own but to run the page's script, which the page's own policy pins by its digest."""
        page = escape(self.html.decode(), quote=True)
        rights = 'sandbox="allow-scripts" title="Salon report" style="width:100%;height:80vh;border:0"'
        return f'<iframe {rights} srcdoc="{page}"></iframe>'
