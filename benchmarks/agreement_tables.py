"""Make the tables of docs/agreement.md: the four examples of docs/examples/agreement on the real data, and print them.

python -m benchmarks.agreement_tables DATA [--folder FOLDER], DATA holding the folders tifa, viescore_t2i and agiqa3k.
"""

import argparse
import csv
import json
import shutil
import tempfile
from pathlib import Path

from flows.cli import run

EXAMPLES = Path(__file__).parents[1] / "docs" / "examples"
TIFA, VIESCORE, AGIQA = "human_annotations_with_scores.json", "gpt4o_judgements.jsonl", "data.csv"
RATERS = tuple(f"Text-To-Image_rater{number}.tsv" for number in (1, 2, 3))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", type=Path)
    parser.add_argument("--folder", type=Path, help="where the lake and the rows are written; default: a temporary folder")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = lay_out(arguments.data, arguments.folder or Path(temporary))
        codes = [run(command(name, folder)) for name in ("tifa", "viescore_sc", "viescore_pq", "agiqa3k")]
        for page in sorted((folder / "lake").glob("publish/v1/*/agreement/*/agreement.md")):
            print(page.read_text())
    return max(codes)


def command(name: str, folder: Path) -> list[str]:
    """`salon agreement` for one of the examples, laid out in `folder`."""
    given = {"tifa": ["tifa.jsonl"], "agiqa3k": ["agiqa3k.jsonl"]}.get(name, list(RATERS))
    ratings = [word for path in given for word in ("--ratings", str(folder / path))]
    replies = ["--replies", str(folder / VIESCORE)] if name.startswith("viescore") else []
    return ["agreement", str(folder / f"{name}.toml"), *ratings, *replies, "--run-date", "2026-01-01"]


def lay_out(data: Path, folder: Path) -> Path:
    """Copy the examples beside the data they read; returns the folder they stand in."""
    shutil.copytree(EXAMPLES / "rubrics", folder / "rubrics", dirs_exist_ok=True)
    home = folder / "agreement"
    shutil.copytree(EXAMPLES / "agreement", home, dirs_exist_ok=True)
    for name in (VIESCORE, *RATERS):
        shutil.copyfile(data / "viescore_t2i" / name, home / name)
    write_rows(home / "tifa.jsonl", tifa_rows(data / "tifa" / TIFA))
    write_rows(home / "agiqa3k.jsonl", agiqa_rows(data / "agiqa3k" / AGIQA))
    return home


def tifa_rows(path: Path) -> list[dict[str, object]]:
    """Each row with its key as item_id, what follows the text's id in it as the model, and the text's set as the category."""
    rows = json.loads(path.read_text())
    return [
        row | {"item_id": key, "model": key.removeprefix(f"{row['text_id']}_"), "category": row["text_id"].split("_")[0]}
        for key, row in rows.items()
    ]


def agiqa_rows(path: Path) -> list[dict[str, object]]:
    """Each row with the generator and its setting, all of the picture's name before its number, as the model."""
    with path.open(newline="") as file:
        return [dict(row) | {"model": row["name"].rsplit("_", 1)[0]} for row in csv.DictReader(file)]


def write_rows(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
