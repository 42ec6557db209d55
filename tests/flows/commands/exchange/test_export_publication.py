"""`salon export --to`: each receiver's own client reads what was published, to the last digit; errors."""

import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml

from schemas.errors import CorruptLakeError, StoreError
from schemas.tables.published import BENCHMARK_LONG
from tasks.publish.exporters.every_eval_ever import EveryEvalEver
from tasks.publish.exporters.exporting import export_publication, exporter_of
from tasks.publish.exporters.figures import Exported, Numbers, read_figures
from tasks.publish.folders import PublicationName
from tasks.publish.publication import Draft, publish
from tasks.publish.reading import current
from tests.flows.commands.printed.test_table_command import DAY, cell, tables_of, tables_of_pairs
from tests.flows.flow_support import Said

pytestmark = pytest.mark.slow

COLUMNS = (
    "estimate", "se", "ci_low", "ci_high", "bound_low", "bound_high", "coverage", "n_prompts", "n_images", "n_judgements",
    "n_scored", "n_failed", "n_not_applicable", "n_rule_violations",
)  # fmt: skip
NAMES = {"wandb": "team/nightly", "mlflow": "nightly", "huggingface": "acme/nightly", "eee": "acme"}


@pytest.fixture
def lake(tmp_path: Path) -> Path:
    """Checkpoints and cells that are awkward to carry: no estimate, names that would be one, 17 digits, tiny numbers."""
    awkward = [
        {"judge_model": "Qwen/Qwen3-VL"}, {"judge_model": "Qwen?Qwen3-VL"}, {"category": "两只猫"}, {"category": "三只狗"},
        {"category": "x" * 90}, {"metric": "share_at_least_4"}, {"dimension": 'a:b = "c"\n- d'}, {"rubric_id": ".."},
    ]  # fmt: skip
    rows = []
    for number, (model, checkpoint) in enumerate(
        [("acme/p: ainter #1", "step-900"), ("acme/p: ainter #1", "step-1000"), ("..", ".")]
    ):
        cells = [{"category": "plain"}, {"category": "tiny"}, {"category": "blocked"}, *awkward]
        values = [0.1 + 0.2, 5e-324, None, *(7 / 3 + index + number for index in range(len(awkward)))]
        for index, (value, changes) in enumerate(zip(values, cells, strict=True)):
            more = {"checkpoint": checkpoint, "cell_id": f"{number}{index:011x}", "se": value, "ci_method": "t"}
            rows.append(cell(model, value, **(more | changes)))
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(rows), {"rubrics": {}}))
    return tmp_path / "lake"


def published(lake: Path, columns: tuple[str, ...]) -> dict[tuple[str, str], list[float]]:
    """What the table holds, by checkpoint, as sorted numbers; a receiver of few columns has no cell without an estimate."""
    found: dict[tuple[str, str], list[float]] = {}
    table = pl.read_parquet(current(lake).folder / f"{BENCHMARK_LONG.name}.parquet")
    for row in table.iter_rows(named=True):
        values = [row[name] for name in columns if row[name] is not None]
        if columns == COLUMNS or row["estimate"] is not None:
            found.setdefault((row["model"], row["checkpoint"]), []).extend(map(float, values))
    return {of: sorted(values) for of, values in found.items()}


def read_mlflow(folder: Path) -> dict[tuple[str, str], list[float]]:
    from mlflow import MlflowClient

    client = MlflowClient(f"sqlite:///{folder}/mlflow.db")
    experiment = client.get_experiment_by_name("nightly")
    assert experiment is not None
    runs = client.search_runs([experiment.experiment_id])
    return {(run.data.tags["salon.model"], run.data.tags["salon.checkpoint"]): sorted(run.data.metrics.values()) for run in runs}


def read_wandb(folder: Path) -> dict[tuple[str, str], list[float]]:
    found = exporter_of("wandb").read(folder)
    return {of: sorted(numbers.values()) for of, numbers in found.items()}


def read_huggingface(folder: Path) -> dict[tuple[str, str], list[float]]:
    from huggingface_hub import parse_eval_result_entries

    files = sorted((folder / "models").rglob("*.yaml"))
    named = {"acme%2Fp%3A ainter %231": "acme/p: ainter #1", "%2E.": "..", "%2E": "."}
    of = [[named.get(part, part) for part in file.parts[-4:-2]] for file in files]
    entries = [parse_eval_result_entries(yaml.safe_load(file.read_text())) for file in files]
    assert {one.dataset_id for some in entries for one in some} == {"acme/nightly"}
    assert all(len({one.task_id for one in some}) == len(some) for some in entries), "a task stands once in a file"
    return {(model, checkpoint): sorted(one.value for one in some) for (model, checkpoint), some in zip(of, entries, strict=True)}


def read_eee(folder: Path) -> dict[tuple[str, str], list[float]]:
    found = {}
    for path in (folder / "data" / "nightly").rglob("*.json"):
        record = json.loads(path.read_bytes())
        said = [result["score_details"] for result in record["evaluation_results"]]
        details = record["model_info"]["additional_details"]
        values = [one["score"] for one in said] + [one["uncertainty"]["standard_error"]["value"] for one in said]
        methods = {one["uncertainty"]["standard_error"]["method"] for one in said}
        assert methods == {
            "clustered by the units that the rubric declares"
        }  # a prompt, a picture, an instruction and its source
        intervals = [one["uncertainty"]["confidence_interval"] for one in said]
        values += [one[end] for one in intervals for end in ("lower", "upper")]
        values += [float(one["uncertainty"]["num_samples"]) for one in said]
        found[details["salon_model"], details["checkpoint"]] = sorted(values)
    return found


READ = {
    "wandb": (read_wandb, COLUMNS), "mlflow": (read_mlflow, COLUMNS), "huggingface": (read_huggingface, ("estimate",)),
    "eee": (read_eee, ("estimate", "se", "ci_low", "ci_high", "n_images")),
}  # fmt: skip


@pytest.mark.parametrize("to", READ)
@pytest.mark.filterwarnings("default")  # the clients' own
def test_every_number_is_read_back_equal(to: str, lake: Path, tmp_path: Path, salon: Callable[..., Said]) -> None:
    said = salon("export", "ffff", "--to", to, "--out", str(tmp_path / "out"), "--name", NAMES[to])
    assert said.code == 0, said.err
    read, columns = READ[to]
    assert read(tmp_path / "out") == published(lake, columns)
    assert "nothing was sent" in said.out
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lake", "out"], "nothing stands beside the folder"


@pytest.mark.parametrize("to", ["mlflow", "eee"])
@pytest.mark.filterwarnings("default")
def test_a_checkpoint_without_a_name_is_given_none(to: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    rows = [cell("acme/sdxl", 1 / 3, checkpoint="unnamed", se=0.1)]
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(rows), {"rubrics": {}}))
    assert salon("export", "--to", to, "--out", str(tmp_path / "out"), "--name", NAMES[to]).code == 0
    if to == "eee":
        (path,) = (tmp_path / "out" / "data" / "nightly").rglob("*.json")
        said = json.loads(path.read_bytes())["model_info"]
        assert (said["name"], said["id"]) == ("acme/sdxl", "acme/sdxl")
    else:
        from mlflow import MlflowClient

        client = MlflowClient(f"sqlite:///{tmp_path}/out/mlflow.db")
        (run,) = client.search_runs([client.get_experiment_by_name("nightly").experiment_id])
        assert run.info.run_name == "acme/sdxl"


@pytest.mark.parametrize("to", READ)
@pytest.mark.filterwarnings("default")
def test_long_names_in_other_scripts_are_read_back(to: str, tmp_path: Path, salon: Callable[..., Said]) -> None:
    """Two that differ beyond what is kept of them in a folder's name."""
    names = [("画家" * 20, "第一次训练之后的第三个检查点" * 5 + end) for end in ("甲", "乙")]
    rows = [cell(model, 1 / 3 + n, checkpoint=one, cell_id=f"{n:012}", se=0.1) for n, (model, one) in enumerate(names)]
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of(rows), {"rubrics": {}}))
    said = salon("export", "--to", to, "--out", str(tmp_path / "out"), "--name", NAMES[to])
    assert said.code == 0, said.err
    assert set(exporter_of(to).read(tmp_path / "out")) == set(names)


@pytest.mark.parametrize("to", READ)
def test_of_pairs_alone_nothing_is_exported_and_it_is_said_where_their_win_rates_are(
    to: str, tmp_path: Path, salon: Callable[..., Said]
) -> None:
    publish(tmp_path / "lake", Draft(PublicationName("nightly", "f" * 64, DAY), tables_of_pairs(), {"rubrics": {}}))
    said = salon("export", "--to", to, "--out", str(tmp_path / "out"), "--name", NAMES[to])
    assert (said.code, "only pairs; their win rates are in preferences.parquet" in said.err) == (2, True), said
    assert not (tmp_path / "out").exists()


@pytest.mark.filterwarnings("default")
def test_the_datasets_library_reads_the_tables_by_the_card(lake: Path, tmp_path: Path, salon: Callable[..., Said]) -> None:
    from datasets import load_dataset

    assert salon("export", "--to", "huggingface", "--out", str(tmp_path / "out"), "--name", "acme/nightly").code == 0
    rows = load_dataset(str(tmp_path / "out" / "dataset"), "benchmark_long", cache_dir=str(tmp_path / "cache"))["train"]
    table = pl.read_parquet(current(lake).folder / "benchmark_long.parquet")
    assert rows["estimate"] == table["estimate"].to_list()
    assert rows["n_failed"] == table["n_failed"].to_list()


def test_what_wandb_wrote_its_own_command_would_send(lake: Path, tmp_path: Path, salon: Callable[..., Said]) -> None:
    import subprocess

    assert salon("export", "--to", "wandb", "--out", str(tmp_path / "out")).code == 0
    command = [sys.executable, "-m", "wandb", "sync", "--dry-run", *map(str, (tmp_path / "out" / "wandb").glob("offline-run-*"))]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert (done.stdout + done.stderr).count("offline-run-") == 3


@pytest.mark.filterwarnings("default")
def test_a_push_to_mlflow_is_there_once(
    lake: Path, tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server").mkdir()
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{tmp_path}/server/mlflow.db")
    for time, ends in (("first", "3 runs"), ("second", "0 runs, 3 there already")):
        said = salon("export", "--to", "mlflow", "--out", str(tmp_path / time), "--push")
        assert said.code == 0, said.err
        assert said.out.strip().endswith(f"sent        experiment nightly: {ends}")
    assert read_mlflow(tmp_path / "server") == published(lake, COLUMNS)


@pytest.mark.parametrize(
    ("to", "name", "variable"),
    [("wandb", "p", "WANDB_BASE_URL"), ("mlflow", "p", "MLFLOW_TRACKING_URI")],
)
@pytest.mark.filterwarnings("default")
def test_nobody_at_the_address_is_said_and_the_folder_stays(
    to: str, name: str, variable: str, lake: Path, tmp_path: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, "http://127.0.0.1:9")
    said = salon("export", "--to", to, "--out", str(tmp_path / "out"), "--name", name, "--push")
    assert said.code == 3
    assert "http://127.0.0.1:9 does not answer" in said.err
    assert "out is complete: send it by hand" in said.err
    assert READ[to][0](tmp_path / "out") if to == "wandb" else (tmp_path / "out" / "mlflow.db").is_file()


def test_each_record_has_an_id_of_its_own(tmp_path: Path, salon: Callable[..., Said]) -> None:
    """Of names that are one where they are joined, and of two publications of one day."""
    names = [("acme/a", "b-c"), ("acme/a-b", "c")]
    rows = [cell(model, 1 / 3, checkpoint=one, cell_id=f"{n:012}", se=0.1) for n, (model, one) in enumerate(names)]
    for id_ in "ef":
        publish(tmp_path / "lake", Draft(PublicationName("nightly", id_ * 64, DAY), tables_of(rows), {"rubrics": {}}))
        assert salon("export", id_ * 4, "--to", "eee", "--out", str(tmp_path / id_), "--name", "acme").code == 0
    paths = [*tmp_path.glob("[ef]/data/**/*.json")]
    ids = [json.loads(path.read_bytes())["evaluation_id"] for path in paths]
    assert (len(set(ids)), len({path.name for path in paths})) == (4, 4)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ((), "give either --batch-files DIR"),
        (("--to", "mlflow", "--batch-files", "d"), "give either --batch-files DIR"),
        (("--to", "mlflow"), "--to mlflow needs --out DIR"),
        (("--to", "bundle"), "--to bundle needs --out FILE.zip"),
        (("--to", "eee"), "which you send by pull request"),
        (("--to", "huggingface", "--out", "o"), "needs --name OWNER/DATASET"),
        (("--to", "huggingface", "--out", "o", "--name", "a/b/c"), "given: a/b/c"),
        (("--to", "eee", "--out", "o"), "needs --name ORGANISATION"),
        (("--to", "eee", "--out", "o", "--name", "a", "--push"), "by pull request"),
        (("--to", "wandb", "--out", "o", "--name", "a b"), "is not a W&B project"),
        (("--to", "mlflow", "--out", "o", "--push"), "MLFLOW_TRACKING_URI"),
        (("--to", "mlflow", "--out", "lake"), "is not an empty folder"),
        (("b.toml", "--to", "mlflow", "--out", "o"), "b.toml is a file; --to takes a publication"),
        (("eeee", "--to", "mlflow", "--out", "o"), "no publication begins with 'eeee'"),
        (("--batch-files", "d"), "needs the benchmark file"),
        (("b.toml", "--batch-files", "d", "--push"), "--push belongs to --to"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_done_is_said_first(
    arguments: tuple[str, ...], says: str, lake: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(lake.parent)
    monkeypatch.delenv("MLFLOW_TRACKING_URI", raising=False)
    (lake.parent / "b.toml").write_text("")
    said = salon("export", *arguments)
    assert said.code == 2
    assert says in said.err
    assert not (lake.parent / "o").exists()


@pytest.mark.parametrize(("to", "package"), [("wandb", "wandb"), ("mlflow", "mlflow"), ("huggingface", "huggingface_hub")])
def test_a_package_that_is_not_installed_is_named_with_its_extra(
    to: str, package: str, lake: Path, salon: Callable[..., Said], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    said = salon("export", "--to", to, "--out", "o")
    assert said.code == 2
    assert f"pip install 'salon[{to}]'" in said.err


class Rounded(EveryEvalEver):
    """A receiver that keeps a float's first seven digits alone."""

    def read(self, folder: Path) -> Numbers:
        return {of: {name: float(f"{value:.7g}") for name, value in some.items()} for of, some in super().read(folder).items()}


def test_a_receiver_that_loses_digits_leaves_no_folder(lake: Path, tmp_path: Path) -> None:
    with pytest.raises(CorruptLakeError, match="was published, but"):
        export_publication(current(lake), Rounded(), tmp_path / "out", "acme", is_push=False)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


class Dying(EveryEvalEver):
    """A client that raises what is no error of ours."""

    def write(self, exported: Exported, folder: Path) -> None:  # noqa: ARG002
        (folder / "half").write_text("")
        raise self.error

    error: Exception = RuntimeError("out of\nluck")


class TooOld(Dying):
    """A client of another version than the one that Salon's extra names."""

    error = ImportError("cannot import name 'service'")


@pytest.mark.parametrize(
    ("client", "said"),
    [(Dying, "failed: RuntimeError: out of luck$"), (TooOld, "cannot import name 'service'; .* install it by Salon's extra")],
)
def test_what_a_client_raises_is_a_store_error_and_leaves_nothing(
    client: type[Dying], said: str, lake: Path, tmp_path: Path
) -> None:
    with pytest.raises(StoreError, match=said):
        export_publication(current(lake), client(), tmp_path / "out", "acme", is_push=False)
    assert [path.name for path in tmp_path.iterdir()] == ["lake"]


def test_names_stay_from_night_to_night(lake: Path) -> None:
    """A tracker's chart is by name: a name that moved would begin another line."""
    one = read_figures(current(lake)).contestants[-1]
    names = [cell.name for cell in one.cells]
    assert len(set(names)) == len(names)
    assert "small/eye/score/plain/mean" in names
    assert sorted(name for name in names if "Qwen" in name) == [
        "small/Qwen_Qwen3-VL/score/__macro__/mean-100000000003", "small/Qwen_Qwen3-VL/score/__macro__/mean-100000000004",
    ]  # fmt: skip
    assert all(len(name) < 230 and not any(part in ("", ".", "..") for part in name.split("/")) for name in names)
    assert not any(math.isnan(value) for value in one.numbers().values())


def test_an_every_eval_ever_record_that_lacks_a_part_is_refused(lake: Path, tmp_path: Path) -> None:
    export_publication(current(lake), EveryEvalEver(), tmp_path / "out", "acme", is_push=False)
    path = next((tmp_path / "out").rglob("*.json"))
    whole: dict[str, Any] = json.loads(path.read_bytes())
    for part, name in (("source_metadata", "source_type"), ("eval_library", "version"), ("model_info", "id")):
        path.write_text(json.dumps(whole | {part: {key: value for key, value in whole[part].items() if key != name}}))
        with pytest.raises(CorruptLakeError, match=f"{part}.{name}"):
            EveryEvalEver().read(tmp_path / "out")


def test_every_eval_evers_own_validator_finds_nothing(lake: Path, tmp_path: Path) -> None:
    validate = pytest.importorskip("every_eval_ever.validator.validate", reason="every-eval-ever needs Python 3.12").validate_file
    export_publication(current(lake), EveryEvalEver(), tmp_path / "out", "acme", is_push=False)
    reports = [validate(path) for path in (tmp_path / "out").rglob("*.json")]
    assert len(reports) == 3
    assert [error for report in reports for error in (*report.errors, *report.warnings)] == []
