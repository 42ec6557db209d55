"""`salon agreement` on real ratings: small extracts always, the whole sets where SALON_DATA is set."""

import hashlib
import json
import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import fmean

import duckdb
import polars as pl
import pytest

from benchmarks.agreement_tables import RATERS, VIESCORE, command, lay_out
from tasks.ingest.readers.tables import records
from tests.flows.flow_support import Said

pytestmark = pytest.mark.slow

EXTRACTS = Path(__file__).parents[2] / "data" / "agreement"
SCALE = {"model": "__all__", "category": "__micro__"}

NOTEBOOK = {
    "meteor": (0.33965916777485317, 0.27407599432086477), "bleu": (0.18334016729588443, 0.18791013860699693),
    "rouge": (0.3288894058298478, 0.24485782545105927), "spice": (0.3280527854243443, 0.2317581980131657),
    "clipscore_vitb32": (0.3318181645103688, 0.2314458979024208), "tifa_vilt": (0.4932251792578269, 0.3824088520807112),
    "tifa_git-large": (0.5445007948927731, 0.42550824027221545), "tifa_ofa-large": (0.4961472092111418, 0.37247819040318836),
    "tifa_blip2-flant5xl": (0.5589831246126169, 0.4359972113027652),
    "tifa_mplug-large": (0.5967201059577838, 0.4717164648720951),
}  # fmt: skip
"""What TIFA's authors print in human_annotations/compute_correlation.ipynb: np.corrcoef, and scipy's kendalltau."""

HUMAN_TO_HUMAN = {"SDXL": 0.5807, "SD": 0.5979, "OpenJourney": 0.5321, "DeepFloydIF": 0.5635, "DALLE2": 0.5019}
"""What VIEScore's authors print in analyze_json.ipynb for aspect SC: tanh of the mean of three Spearman correlations."""


def published(folder: Path, name: str, table: str = "agreement") -> pl.DataFrame:
    (path,) = (folder.parent / "lake").glob(f"publish/v1/{name}/agreement/*/{table}.parquet")
    return pl.read_parquet(path)


@pytest.fixture
def lake_under(tmp_path: Path) -> Callable[[Path], Path]:
    """The examples laid out beside some data, their lake in the folder above them."""

    def lay(data: Path) -> Path:
        folder = lay_out(data, tmp_path / "work")
        for path in folder.glob("*.toml"):
            path.write_text('lake = "../lake"\n' + path.read_text())
        return folder

    return lay


def under_one_prompt(rows: Path, key: str) -> None:
    """Figures without intervals, which are drawn by prompts and cost twenty times as much: only the figures are in print."""
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    rows.write_text("".join(json.dumps(row | {key: "a prompt"}) + "\n" for row in found))


def bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


def test_metrics_against_two_raters(salon: Callable[..., Said], lake_under: Callable[[Path], Path], tmp_path: Path) -> None:
    folder = lake_under(EXTRACTS)
    said = salon(*command("tifa", folder))
    assert said.code == 0, said.err
    assert "780: 780 ok" in said.out
    found = published(folder, "tifa").filter(**SCALE)
    assert found.filter(subject_kind="metric", against="__raters_mean__", metric="spearman")["status"].to_list() == ["ok"] * 10
    assert found.filter(subject_kind="metric", metric="bias")["reason"].unique().to_list() == ["scale_not_declared"]
    assert found.filter(subject_kind="judge")["reason"].unique().to_list() == ["no_scores"]

    (home,) = (tmp_path / "work" / "lake").glob("publish/v1/tifa/agreement/*/manifest.json")
    assert set(json.loads(home.read_bytes())["files"]) == {
        "agreement.csv", "agreement.md", "agreement.parquet", "corrected.csv", "corrected.parquet", "corrected_comparisons.csv",
        "corrected_comparisons.parquet", "corrected_standings.csv", "corrected_standings.parquet", "provenance.json",
        "ratings.csv", "ratings.parquet",
    }  # fmt: skip
    with duckdb.connect(str(home.parents[2] / "salon.duckdb"), read_only=True) as database:  # there at once, before any run
        assert database.execute("SELECT DISTINCT publication_id FROM current_ratings").fetchall() == [(home.parent.name,)]
    again = salon(*command("tifa", folder))
    assert "unchanged" in again.out
    first = bytes_of(home.parent)
    (folder / "tifa.toml").write_text((folder / "tifa.toml").read_text().replace('"../lake"', '"../other"'))
    salon(*command("tifa", folder))
    (other,) = (tmp_path / "work" / "other").glob("publish/v1/tifa/agreement/*/manifest.json")
    assert other.parent.name == home.parent.name
    assert bytes_of(other.parent) == first


def test_a_judge_against_three_raters(salon: Callable[..., Said], lake_under: Callable[[Path], Path]) -> None:
    folder = lake_under(EXTRACTS)
    for name in ("viescore_sc", "viescore_pq"):
        said = salon(*command(name, folder))
        assert said.code == 0, said.err
    found = published(folder, "viescore-sc").filter(**SCALE)
    judge = found.filter(subject="gpt-4o", metric="quadratic_kappa")
    assert dict(judge.select("against", "status").iter_rows()) == {"__raters_mean__": "null"} | dict.fromkeys(
        (Path(name).stem for name in RATERS), "ok"
    )  # 0, 0.5 and 1 fall on the judge's 0, 5 and 10
    assert found.filter(subject="__each_other__", metric="krippendorff_alpha")["n_raters"].to_list() == [3]
    order = found.filter(subject="gpt-4o", metric="system_kendall_tau").row(0, named=True)
    assert (order["n_items"], order["against"]) == (5, "__raters_mean__")
    assert -1 <= order["ci_low"] <= order["estimate"] <= order["ci_high"] <= 1
    standings = published(folder, "viescore-sc", "corrected_standings")
    assert set(standings.filter(estimator="labels")["state"]) == {"ranked"}
    assert set(standings.filter(estimator="prediction_powered")["reason"]) == {"all_labelled"}
    assert "judge gpt-4o" in said.out
    assert "cannot be determined" in said.out
    printed = said.out[: said.out.index("cannot be determined")]
    assert not re.search("__|not_on|raters_m", printed), "names of the tables are words here"
    assert [word for word in ("mean of", "raters", "not on", "labels") if word not in printed] == []
    assert set(published(folder, "viescore-pq")["dimension"]) == {"naturalness", "artifacts"}


def test_labels_are_asked_for_filled_in_and_read(salon: Callable[..., Said], lake_under: Callable[[Path], Path]) -> None:
    folder = lake_under(EXTRACTS)
    assert salon(*command("viescore_sc", folder)).code == 0
    file, sheet = str(folder / "viescore_sc.toml"), folder / "eve.csv"
    ask = ("agreement", file, "--label-next", str(sheet), "--run-date", "2026-01-01")
    assert "name the two checkpoints that the labels should tell apart: " in salon(*ask).err
    between = ("--between", "SDXL/unnamed", "--between", "SD/unnamed", "--label-count", "20")
    said = salon(*ask, *between)
    assert said.code == 0, said.err
    assert "20 samples of 10 prompts" in said.out
    assert "SDXL/unnamed minus SD/unnamed" in said.out
    rows = pl.read_csv(sheet)
    assert rows.columns == ["sample_id", "image", "prompt", "dimension", "rater", "rating"]
    assert set(rows.group_by("prompt").len()["len"]) == {2}
    assert "already exists and may contain ratings" in salon(*ask, *between).err
    rows.with_columns(rating=pl.when(pl.int_range(pl.len()) > 0).then(0.5)).write_csv(sheet)
    said = salon("agreement", file, "--ratings", str(sheet), "--run-date", "2026-01-01")
    assert said.code == 0, said.err
    assert "20: 1 missing, 19 ok" in said.out
    assert "no ratings given: give --ratings TABLE" in salon("agreement", file).err


def test_ratings_without_a_judge(salon: Callable[..., Said], lake_under: Callable[[Path], Path]) -> None:
    folder = lake_under(EXTRACTS)
    said = salon(*command("agiqa3k", folder))
    assert said.code == 0, said.err
    found = published(folder, "agiqa3k").filter(**SCALE)
    of_judge = found.filter(subject_kind="judge")
    assert set(of_judge.select("estimate", "status", "reason").rows()) == {(None, "null", "no_scores")}
    between = found.filter(against_dimension="alignment", metric="spearman").row(0, named=True)
    assert between["status"] == "ok"
    means = published(folder, "agiqa3k", "corrected").filter(dimension="quality", estimator="labels")
    rows = [row for _, row, _ in records(folder / "agiqa3k.jsonl", "", set())]
    for model in ("AttnGAN_normal", "xl2.2_normal"):
        mean = means.filter(model=model).row(0, named=True)
        by_hand = fmean(float(row["mos_quality"]) for row in rows if row["model"] == model)
        assert mean["estimate"] == pytest.approx(by_hand, abs=1e-9)
        assert mean["ci_low"] < by_hand < mean["ci_high"]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (('at = "human_scores[0]"', 'at = "scores[0]"'), "row 1 has no column 'scores[0]', which [ratings] names"),
        (('dimension = "faithfulness"', 'dimension = "charm"'), "dimension 'charm', which no rubric of the benchmark has"),
        (('rater = "rater1"', 'rator = "rater1"'), "ratings.values[0].rator is not a key here"),
    ],
    ids=["column", "dimension", "key"],
)
def test_a_wrong_file_is_said(
    salon: Callable[..., Said], lake_under: Callable[[Path], Path], change: tuple[str, str], said: str
) -> None:
    folder = lake_under(EXTRACTS)
    (folder / "tifa.toml").write_text((folder / "tifa.toml").read_text().replace(*change))
    found = salon(*command("tifa", folder))
    assert found.code == 2
    assert said in found.err


def test_tifas_printed_correlations(
    needs_salon_data: Path, salon: Callable[..., Said], lake_under: Callable[[Path], Path]
) -> None:
    folder = lake_under(needs_salon_data)
    under_one_prompt(folder / "tifa.jsonl", "text")
    assert salon(*command("tifa", folder)).code == 0
    found = published(folder, "tifa").filter(pl.col("against") == "__raters_mean__", **SCALE)
    for metric, (pearson, tau) in NOTEBOOK.items():
        figures = dict(found.filter(subject=metric).select("metric", "estimate").iter_rows())
        assert figures["pearson"] == pytest.approx(pearson, abs=1e-9)
        assert figures["kendall_tau_b"] == pytest.approx(tau, abs=1e-9)


def test_viescores_printed_human_correlations(
    needs_salon_data: Path, salon: Callable[..., Said], lake_under: Callable[[Path], Path]
) -> None:
    """The authors average three correlations and take tanh of the mean: so do we here, of the figures of our table."""
    folder = lake_under(needs_salon_data)
    under_one_prompt(folder / VIESCORE, "prompt")
    assert salon(*command("viescore_sc", folder)).code == 0
    found = published(folder, "viescore-sc").filter(against="__other_raters_mean__", metric="spearman", category="__micro__")
    for model, printed in HUMAN_TO_HUMAN.items():
        mine = math.tanh(fmean(found.filter(model=model)["estimate"]))
        assert mine == pytest.approx(printed, abs=6e-3 if model in {"DALLE2", "SDXL"} else 5e-5)
