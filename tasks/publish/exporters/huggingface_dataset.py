"""Hugging Face: a dataset of the published tables with its card, and `.eval_results` files for the models' own repositories.

Which figures: figures.py.
"""

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import orjson
import pyarrow.parquet as pq
import yaml  # type: ignore[import-untyped]

from schemas.errors import InputError, StoreError
from schemas.metrics import MEAN
from schemas.tables.catalogue import OF_PUBLICATION
from tasks.publish.exporters.figures import Cell, Contestant, Exported, Numbers, folder_name
from tasks.publish.exports import escape_markdown
from tasks.publish.reading import checked_file

DATASET, MODELS, RESULTS = "dataset", "models", ".eval_results"
NAMES = "names.json"
"""Of folders whose names were cut, whose they are; where none was, it is not there."""


class HuggingFaceDataset:
    """`dataset/` goes to a dataset repository as it is; `models/MODEL/CHECKPOINT/.eval_results/` into that model's repository."""

    columns = ("estimate",)
    checked_by = "huggingface_hub's own classes"

    def check(self, exported: Exported, *, is_push: bool) -> None:  # noqa: ARG002 - the name stands in the results too
        """Raise InputError where the dataset's id is not one."""
        from huggingface_hub.errors import HFValidationError
        from huggingface_hub.utils._validators import validate_repo_id

        name = exported.name or ""
        try:
            validate_repo_id(name)
            is_id = name.count("/") == 1
        except HFValidationError:
            is_id = False
        if not is_id:
            raise InputError(
                "--to huggingface needs --name OWNER/DATASET, the dataset the results belong to; given: "
                f"{exported.name or 'none'}"
            )

    def write(self, exported: Exported, folder: Path) -> None:
        """The tables that hold rows, the card, and a file of results for each checkpoint."""
        tables = list(_tables(exported, folder / DATASET / "data"))
        self._write_card(exported, folder / DATASET / "README.md", tables)
        named = {}
        for contestant in exported.contestants:
            home = _write_results(exported, contestant, folder / MODELS)
            if tuple(map(unquote, home.parts[-2:])) != (contestant.model, contestant.checkpoint):
                named["/".join(home.parts[-2:])] = [contestant.model, contestant.checkpoint]
        if named:
            (folder / MODELS / NAMES).write_bytes(orjson.dumps(named, option=orjson.OPT_INDENT_2))

    def read(self, folder: Path) -> Numbers:
        """Every file of results by the hub's parser; the card by its own class. Raises ValueError for a card it refuses."""
        from huggingface_hub import DatasetCard, parse_eval_result_entries

        card = DatasetCard.load(folder / DATASET / "README.md")
        missing = [one["data_files"] for one in card.data.configs if not (folder / DATASET / one["data_files"]).is_file()]
        if missing:
            raise ValueError(f"the card names {missing}, which do not exist")
        found = {}
        names = folder / MODELS / NAMES
        named = orjson.loads(names.read_bytes()) if names.is_file() else {}
        for path in sorted((folder / MODELS).glob(f"*/*/{RESULTS}/*.yaml")):
            entries = parse_eval_result_entries(yaml.safe_load(path.read_bytes()))
            model, checkpoint = named.get("/".join(path.parts[-4:-2])) or map(unquote, path.parts[-4:-2])
            found[model, checkpoint] = {f"{one.task_id}/estimate": float(one.value) for one in entries}
        return found

    def push(self, exported: Exported, folder: Path) -> str:
        """Upload `dataset/` with the user's own HF_TOKEN or login; what is for the models' repositories stays.

        One commit, so that nobody reads two publications mixed: tables of an earlier one that this one has not go in it too.
        """
        from huggingface_hub import CommitOperationAdd, CommitOperationDelete, HfApi
        from huggingface_hub.errors import HfHubHTTPError, LocalTokenNotFoundError

        api, name = HfApi(), str(exported.name)
        said = f"{exported.publication.benchmark} {exported.publication.run_date}, {exported.publication.publication_id[:16]}"
        files = {path.relative_to(folder / DATASET).as_posix(): path for path in (folder / DATASET).rglob("*") if path.is_file()}
        try:
            api.create_repo(name, repo_type="dataset", private=True, exist_ok=True)
            older = _WRITTEN.intersection(api.list_repo_files(name, repo_type="dataset")) - set(files)
            added = [CommitOperationAdd(at, path) for at, path in sorted(files.items())]
            deleted = [CommitOperationDelete(at) for at in sorted(older)]
            api.create_commit(name, [*added, *deleted], commit_message=said, repo_type="dataset")
        except (HfHubHTTPError, LocalTokenNotFoundError) as error:
            told = " ".join(str(error).split())[:500]
            raise StoreError(f"Hugging Face did not take it: {told}; check that HF_TOKEN may write to datasets/{name}") from error
        return f"datasets/{name} (a new one is private); {folder / MODELS} is for the models' own repositories"

    def _write_card(self, exported: Exported, path: Path, tables: list[str]) -> None:
        from huggingface_hub import DatasetCard, DatasetCardData

        publication = exported.publication
        data = DatasetCardData(
            pretty_name=publication.benchmark,
            tags=["benchmark", "text-to-image", "llm-as-a-judge", "salon"],
            configs=[
                {"config_name": name, "data_files": f"data/{name}.parquet", "default": name == "benchmark_long"}
                for name in tables
            ],
        )
        words = exported.words(exported.contestants[0])
        said = "".join(f"| {name} | {escape_markdown(words[name])} |\n" for name in _OF_ALL if name in words)
        page = checked_file(publication, "leaderboard.md").read_text(encoding="utf-8")
        card = DatasetCard(f"---\n{data.to_yaml()}\n---\n\n{page}\n| | |\n|---|---|\n{said}")
        path.write_text(str(card), encoding="utf-8")


_WRITTEN = frozenset(f"data/{table.name}.parquet" for table in OF_PUBLICATION)
"""Where any publication's tables go. Other files of the repository are its owner's."""
_OF_ALL = ("benchmark", "publication_id", "run_date", "judges", "blind", "rubrics", "code_version")


def _tables(exported: Exported, folder: Path) -> Iterator[str]:
    """Copy the publication's tables that hold rows; a reader cannot tell the columns of one that has none from its rows."""
    folder.mkdir(parents=True)
    for file in sorted(name for name in exported.publication.files if name.endswith(".parquet")):
        path = checked_file(exported.publication, file)
        if pq.read_metadata(path).num_rows:
            (folder / file).write_bytes(path.read_bytes())
            yield file.removesuffix(".parquet")


def _write_results(exported: Exported, contestant: Contestant, folder: Path) -> Path:
    """The checkpoint's folder, with its file of results."""
    from huggingface_hub import EvalResultEntry, eval_result_entries_to_yaml

    entries = [
        EvalResultEntry(
            str(exported.name), cell.name, cell.row["estimate"], date=exported.publication.run_date, notes=_note(cell)
        )
        for cell in contestant.estimated
    ]
    home = folder / folder_name(contestant.model) / folder_name(contestant.checkpoint)
    (home / RESULTS).mkdir(parents=True)
    said = yaml.safe_dump(eval_result_entries_to_yaml(entries), sort_keys=False, allow_unicode=True)
    (home / RESULTS / f"{exported.publication.benchmark}.yaml").write_text(said, encoding="utf-8")
    return home


def _note(cell: Cell) -> str:
    row = cell.row
    what = "mean" if row["metric"] == MEAN else row["metric"]
    low, high = row["ci_low"], row["ci_high"]
    interval = "" if low is None or high is None else f", {row['ci_level']:.0%} interval [{low:.4g}, {high:.4g}]"
    return (
        f"{what} of {row['n_prompts']} prompts, {row['n_images']} images{interval}; {row['n_failed']} of {row['n_judgements']} "
        f"judgements without a score; judge {row['judge_model']}{f'; {cell.blind}' if cell.blind else ''}"
    )
