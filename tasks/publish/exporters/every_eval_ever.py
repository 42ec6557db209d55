"""Every Eval Ever: a JSON record for each checkpoint, after the facts of its schema 0.3.0. Which figures: figures.py.

The schema's own text is not here: where the package every_eval_ever is installed, its classes read the records; the facts that
are checked in any case stand in `_check`. A record of 0.3.0 is one of 0.2.1 too: what was added is optional there.
"""

import uuid
from datetime import UTC, datetime
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from schemas.errors import CorruptLakeError, InputError
from schemas.metrics import Metric
from schemas.records import UNNAMED
from tasks.publish.exporters.figures import Cell, Contestant, Exported, Numbers, folder_name

SCHEMA = "0.3.0"
_PACKAGE = "every_eval_ever"
_REQUIRED = {
    "": ("schema_version", "evaluation_id", "retrieved_timestamp", "source_metadata", "model_info", "eval_library",
         "evaluation_results"),
    "source_metadata": ("source_type", "source_organization_name", "evaluator_relationship"),
    "model_info": ("name", "id", "additional_details"),
    "eval_library": ("name", "version"),
}  # fmt: skip
_OF_RESULT = ("evaluation_name", "source_data", "metric_config", "score_details")


class EveryEvalEver:
    """`data/BENCHMARK/DEVELOPER/MODEL/UUID.json`, as the collection's repository keeps them."""

    columns = ("estimate", "se", "ci_low", "ci_high", "n_images")

    @property
    def checked_by(self) -> str:
        """The package's classes where it is installed."""
        return f"{_PACKAGE}'s own classes" if find_spec(_PACKAGE) else f"our own check of the required parts of schema {SCHEMA}"

    def check(self, exported: Exported, *, is_push: bool) -> None:
        """Raise InputError without the organisation's name that each record has to state, and for a push."""
        if is_push:
            raise InputError("--to eee has no --push: the collection takes records by pull request; submit the files in --out")
        if not exported.name or "/" in exported.name:
            raise InputError("--to eee needs --name ORGANISATION, without a slash: a record states who evaluated")

    def write(self, exported: Exported, folder: Path) -> None:
        """A file for each checkpoint; the same publication gives the same bytes."""
        for one in exported.contestants:
            record = _record(exported, one)
            developer, _, model = record["model_info"]["id"].partition("/")
            home = folder / "data" / exported.publication.benchmark / folder_name(developer) / folder_name(model)
            home.mkdir(parents=True, exist_ok=True)
            name = record["evaluation_id"].rpartition("/")[2]
            (home / f"{name}.json").write_bytes(orjson.dumps(record, option=orjson.OPT_INDENT_2) + b"\n")

    def read(self, folder: Path) -> Numbers:
        """Every record's figures, after it was held against the schema. Raises CorruptLakeError, or what the package raises."""
        found = {}
        for path in sorted((folder / "data").rglob("*.json")):
            record = orjson.loads(path.read_bytes())
            _check(record)
            if find_spec(_PACKAGE):
                from every_eval_ever.eval_types import EvaluationLog

                record = EvaluationLog.model_validate(record).model_dump(mode="json", exclude_none=True)
            said = record["model_info"]["additional_details"]
            numbers: dict[str, float] = {}
            for result in record["evaluation_results"]:
                numbers |= _numbers(result)
            found[said["salon_model"], said["checkpoint"]] = numbers
        return found

    def push(self, exported: Exported, folder: Path) -> str:
        """Never called: `check` has refused."""
        raise NotImplementedError


def _record(exported: Exported, contestant: Contestant) -> dict[str, Any]:
    publication, words = exported.publication, exported.words(contestant)
    at_s = str(int(datetime.fromisoformat(publication.run_date).replace(tzinfo=UTC).timestamp()))
    developer, _, tail = contestant.model.rpartition("/")
    model_id = f"{developer or exported.name}/{tail}" + (f"-{contestant.checkpoint}" if contestant.checkpoint != UNNAMED else "")
    # another publication may have the same date, and checkpoint b-c of a the model_id of checkpoint c of a-b
    own = uuid.uuid5(uuid.NAMESPACE_URL, f"{publication.publication_id}\0{contestant.model}\0{contestant.checkpoint}")
    kept = {name: words[name] for name in ("publication_id", "n_cells", "n_blocked_cells", "rubrics", "judges") if name in words}
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    return {
        "schema_version": SCHEMA,
        "evaluation_id": f"{publication.benchmark}/{model_id}/{at_s}/{own}",
        "evaluation_timestamp": publication.run_date,
        "retrieved_timestamp": at_s,
        "source_metadata": {
            "source_name": publication.benchmark,
            "source_type": "evaluation_run",
            "source_organization_name": exported.name,
            "evaluator_relationship": "other",
            "additional_details": kept,
        },
        "eval_library": {
            "name": "salon",
            "version": version("salon"),
            "additional_details": {"code_version": words.get("code_version", "unknown")},
        },
        "model_info": {
            "name": contestant.name,
            "id": model_id,
            "additional_details": unknown | {"salon_model": contestant.model, "checkpoint": contestant.checkpoint},
        },
        "evaluation_results": [_result(exported, cell) for cell in contestant.estimated],
    }


def _result(exported: Exported, cell: Cell) -> dict[str, Any]:
    row = cell.row
    low, high = Metric.named(row["metric"]).ends((row["scale_low"], row["scale_high"]))
    uncertainty: dict[str, Any] = {"num_samples": row["n_images"]}
    if row["se"] is not None:
        uncertainty["standard_error"] = {"value": row["se"], "method": "clustered by the units that the rubric declares"}
    if row["ci_low"] is not None and row["ci_high"] is not None:
        ends = {"lower": row["ci_low"], "upper": row["ci_high"], "confidence_level": row["ci_level"]}
        uncertainty["confidence_interval"] = ends | {"method": str(row["ci_method"])}
    told = ("rubric_version", "category", "judge_model", "coverage", "n_prompts", "n_judgements", "n_failed", "blind_to")
    return {
        "evaluation_result_id": row["cell_id"],
        "evaluation_name": f"{exported.publication.benchmark}/{row['rubric_id']}",
        "source_data": {
            "dataset_name": exported.publication.benchmark,
            "source_type": "other",
            "additional_details": {"dataset_id": row["dataset_id"]},
        },
        "metric_config": {
            "metric_id": cell.name,
            "metric_name": f"{row['dimension']}, {row['metric']}, {row['category']}",
            "lower_is_better": False,
            "score_type": "continuous",
            "min_score": low,
            "max_score": high,
            "llm_scoring": _judged_by(exported, row),
        },
        "score_details": {
            "score": row["estimate"],
            "uncertainty": uncertainty,
            "details": {name: str(row[name]) for name in told if row[name] is not None},
        },
    }


def _judged_by(exported: Exported, row: Any) -> dict[str, Any]:
    """The judge, and by which prompt: the rubric's digest, since a publication does not hold its text."""
    rubric = (exported.provenance.get("rubrics") or {}).get(row["rubric_id"]) or {}
    judge = str(row["judge_model"])
    unknown = {"deployment_type": "unknown", "model_availability": "unknown"}
    model = {"name": judge, "id": judge, "additional_details": unknown}
    prompt = f"Salon rubric {row['rubric_id']}, version {row['rubric_version']}, sha256 {rubric.get('digest', 'unknown')}"
    return {"judges": [{"model_info": model}], "input_prompt": prompt}


def _numbers(result: dict[str, Any]) -> dict[str, float]:
    name, said = result["metric_config"]["metric_id"], result["score_details"]["uncertainty"]
    interval = said.get("confidence_interval") or {}
    found = {
        "estimate": result["score_details"]["score"],
        "se": (said.get("standard_error") or {}).get("value"),
        "ci_low": interval.get("lower"),
        "ci_high": interval.get("upper"),
        "n_images": said["num_samples"],
    }
    return {f"{name}/{column}": float(value) for column, value in found.items() if value is not None}


def _check(record: dict[str, Any]) -> None:
    """Raise CorruptLakeError where a part that the schema requires is missing, or a text is none."""
    wrong = [f"{at}.{name}" for at, names in _REQUIRED.items() for name in names if name not in (record[at] if at else record)]
    for result in record["evaluation_results"]:
        wrong += [f"evaluation_results.{name}" for name in _OF_RESULT if name not in result]
        config, details = result["metric_config"], result["score_details"]
        wrong += [f"metric_config.{name}" for name in ("lower_is_better", "min_score", "max_score") if name not in config]
        wrong += ["score_details.score"] if not isinstance(details.get("score"), float | int) else []
        wrong += [f"details.{name}" for name, text in details["details"].items() if not isinstance(text, str)]
    if wrong:
        raise CorruptLakeError(f"a record does not fit Every Eval Ever's schema {SCHEMA}: {', '.join(wrong[:5])}")
