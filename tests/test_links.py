"""What pages and docstrings point to is there: links and their anchors, files named in prose, modules named in commands."""

import ast
import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TOPS = ("benchmarks", "demo", "docs", "flows", "infra", "rubrics", "salon", "schemas", "tasks", "tests")
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "infra").rglob("*.md")])
SOURCES = sorted(path for top in TOPS for path in (ROOT / top).rglob("*.py"))
NOT_PROSE = (".py", ".pyc", ".md", ".svg", ".png")
CONFIGURATIONS = [
    ROOT / "Makefile",
    *sorted(path for path in (ROOT / "infra").rglob("*") if path.is_file() and path.suffix not in NOT_PROSE),
]

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^```.*?^```", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
NAMED = re.compile(r"(?<![\w/.<>{}*$~-])((?:\.\./)*(?:[\w-]+/)*[\w*-]+\.(?:py|md))\b(?![\w/])")
FOLDER = re.compile(rf"(?<![\w/.<>{{}}*$~-])((?:{'|'.join(TOPS)})(?:/[a-z_]+)+)/(?![\w<{{*.])")
MODULE = re.compile(r"(?:python -m |`)((?:benchmarks|demo|flows|rubrics|schemas|tasks)(?:\.[A-Za-z_]\w*)+)")
NOT_OURS = frozenset({"leaderboard.md", "superset_config.py", "types/batch_create_params.py"})
"""Files that a run writes, or that belong to others."""


@cache
def ends() -> frozenset[str]:
    """Every path of the tree, whole and without its first folders."""
    own = [path for top in TOPS for path in (ROOT / top).rglob("*.*") if "__pycache__" not in path.parts]
    parts = [path.relative_to(ROOT).parts for path in [*own, *ROOT.glob("*.*")]]
    return frozenset("/".join(each[start:]) for each in parts for start in range(len(each)))


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found: list[str] = []
    for heading in HEADING.findall(FENCE.sub("", page.read_text("utf-8"))):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        found.append(slug if slug not in found else f"{slug}-{found.count(slug)}")
    return frozenset(found)


def broken_links(page: Path, text: str) -> list[str]:
    """The relative links of a page's text that lead nowhere."""
    missing = []
    for target in LINK.findall(re.sub(r"`[^`\n]*`", "", FENCE.sub("", text))):
        if "://" in target or target.startswith("mailto:"):
            continue
        name, _, anchor = target.partition("#")
        path = (page.parent / name).resolve() if name else page
        if not path.exists() or (anchor and anchor not in anchors(path)):
            missing.append(target)
    return missing


def is_there(name: str, folder: Path) -> bool:
    """Whether a file named in prose exists: from its own folder, from the root, or as the end of some path of the tree."""
    if "*" in name:
        return any(True for base in (ROOT, folder) for _ in base.glob(name))
    return name in ends() or (folder / name).is_file()


def missing_names(text: str, folder: Path) -> list[str]:
    """Files, folders and modules that a text names and the tree does not hold."""
    files = [name for name in NAMED.findall(text) if name not in NOT_OURS and not is_there(name, folder)]
    folders = [name for name in FOLDER.findall(text) if not (ROOT / name).is_dir()]
    return [*files, *folders, *(name for name in MODULE.findall(text) if not is_module(name))]


def is_module(name: str) -> bool:
    """Whether a dotted name leads to a folder, a module, or a word that stands in that module."""
    path = ROOT
    for part in name.split("."):
        if (path / part).is_dir():
            path /= part
        elif (path / f"{part}.py").is_file():
            path = path / f"{part}.py"
        else:
            within = path / "__init__.py" if path.is_dir() else path
            return within.is_file() and re.search(rf"\b{part}\b", within.read_text("utf-8")) is not None
    return True


def prose(source: str) -> Iterator[str]:
    """The docstrings and comments of a module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
            yield node.value.value
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.string


def listed(found: Iterable[tuple[Path, str]]) -> str:
    return "\n".join(f"{path.relative_to(ROOT)}: {name}" for path, name in found)


def test_every_link_of_a_page_leads_somewhere() -> None:
    found = [(page, target) for page in PAGES for target in broken_links(page, page.read_text("utf-8"))]
    assert not found, listed(found)


def test_every_file_a_page_names_is_there() -> None:
    found = [(page, name) for page in [*PAGES, *CONFIGURATIONS] for name in missing_names(page.read_text("utf-8"), page.parent)]
    assert not found, listed(found)


def test_every_file_a_docstring_names_is_there() -> None:
    suspect = [path for path in SOURCES if missing_names(path.read_text("utf-8"), path.parent)]  # parsing takes longer
    texts = [(path, text) for path in suspect for text in prose(path.read_text("utf-8"))]
    found = [(path, name) for path, text in texts for name in missing_names(text, path.parent)]
    assert not found, listed(found)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[there](ledger.md#versions) and [out](https://example.org/a.md)", []),
        ("[gone](no-such-page.md)", ["no-such-page.md"]),
        ("[no such heading](ledger.md#nowhere)", ["ledger.md#nowhere"]),
        ("`[code](is-no-link.md)`\n```\n[nor](this.md)\n```\n", []),
    ],
)
def test_a_broken_link_is_found(text: str, found: list[str]) -> None:
    assert broken_links(ROOT / "docs/README.md", text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("see tasks/ledger/ledger.py, ledger.py and docs/ledger.md; `python -m benchmarks.growth`; tasks/ledger/", []),
        ("see tasks/ledger/purse.py", ["tasks/ledger/purse.py"]),
        ("tables.py is there, no_such_file.py is not", ["no_such_file.py"]),
        ("all in tasks/no_such_room/", ["tasks/no_such_room"]),
        ("`python -m benchmarks.no_such_measure`, `tasks.ledger.ledger.NoSuchWord`",
         ["benchmarks.no_such_measure", "tasks.ledger.ledger.NoSuchWord"]),
    ],
)  # fmt: skip
def test_a_name_without_a_file_is_found(text: str, found: list[str]) -> None:
    assert missing_names(text, ROOT / "docs") == found
