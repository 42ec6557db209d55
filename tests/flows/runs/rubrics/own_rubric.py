"""A benchmark that asks an own rubric, in the folder `mine`, about the rows of `m.jsonl`, and its pages. No tests here."""

import re
from pathlib import Path


def write_rubric(home: Path, name: str, rubric: str, prompt: str) -> Path:
    """The rubric's folder, `mine/NAME`, with its declaration and its prompt."""
    folder = home / "mine" / name
    folder.mkdir(parents=True)
    (folder / "rubric.toml").write_text(rubric)
    (folder / "prompt.txt").write_text(prompt)
    return folder


def own_rubric(name: str, rubric: str, source: str, more: str) -> str:
    """The benchmark file, whose `{url}` is to be filled in. `source` stands behind the source's path, `more` at the end."""
    return (
        f'name = "{name}"\nrubric_folders = ["mine"]\n[[sources]]\nreader = "manifest"\npath = "m.jsonl"\n{source}\n'
        f'[[rubrics]]\nid = "{rubric}"\n[[judges]]\nmodel = "judge-2026-01-01"\nbase_url = "{{url}}"\n{more}\n'
    )


def shown_items(page: str) -> list[list[str]]:
    """The questions of each list on a page, as they are read there with their answers."""
    listed = [
        re.findall(r"<li>(.*?)</li>", one, re.DOTALL)
        for one in re.findall(r'<details class="items">(.*?)</details>', page, re.DOTALL)
    ]
    return [[" ".join(re.sub(r"<[^>]+>", " ", item).split()) for item in items] for items in listed]
