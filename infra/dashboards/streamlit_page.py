# /// script
# requires-python = ">=3.11"
# dependencies = ["streamlit>=1.40", "duckdb>=1.4", "altair>=5", "pandas>=2.2", "pyarrow>=18"]
# ///
"""A dashboard over salon.duckdb: leaderboard, trend and drift, the worst samples. It reads files and knows no Salon code.

Run: streamlit run infra/dashboards/streamlit_page.py -- LAKE BENCHMARK
"""

import sys
from pathlib import Path

import altair as alt
import duckdb
import pandas as pd
import streamlit as st

LAKE = Path(sys.argv[1] if len(sys.argv) > 1 else "lake").resolve()
BENCHMARK = sys.argv[2] if len(sys.argv) > 2 else "demo"
FILE = LAKE / "publish" / "v1" / BENCHMARK / "salon.duckdb"


def ask(question: str, *values: object) -> pd.DataFrame:
    """The rows of a question. Opened anew each time: the file is replaced whole when a run ends."""
    with duckdb.connect(str(FILE), read_only=True) as database:
        return database.execute(question, list(values)).df()


def choose() -> tuple[str, str, str]:
    """The ranking one looks at: rubric, judge, dimension."""
    rankings = ask("SELECT DISTINCT rubric_id, judge_model, dimension FROM leaderboard ORDER BY ALL")
    rubric = st.sidebar.selectbox("Rubric", rankings["rubric_id"].unique())
    rankings = rankings[rankings["rubric_id"] == rubric]
    judge = st.sidebar.selectbox("Judge", rankings["judge_model"].unique())
    dimensions = list(rankings[rankings["judge_model"] == judge]["dimension"].unique())
    start = dimensions.index("overall_score") if "overall_score" in dimensions else 0
    return rubric, judge, st.sidebar.selectbox("Dimension", dimensions, index=start)


def show_leaderboard(ranking: tuple[str, str, str]) -> None:
    """Ranks, and means with intervals, best first; what has no rank keeps its row and says why."""
    rows = ask(
        """SELECT rank_low, rank_high, model, checkpoint, category, estimate AS mean, ci_low AS low, ci_high AS high,
        delta_predecessor AS change, verdict_predecessor AS verdict, n_prompts AS prompts, n_images AS images, n_failed AS failed,
        coverage, state, reason, cell_id AS cell FROM leaderboard
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY category, rank_low NULLS LAST, mean DESC NULLS LAST""",
        *ranking,
    )
    st.dataframe(rows, hide_index=True, width="stretch")
    base = alt.Chart(rows.assign(name=rows["model"] + " / " + rows["checkpoint"])).encode(
        y=alt.Y("name:N", sort=None, title=None, axis=alt.Axis(labelLimit=400))
    )
    scale = alt.Scale(zero=False)
    interval = base.mark_rule(strokeWidth=3, opacity=0.5).encode(
        x=alt.X("low:Q", scale=scale, title="mean, 95 % interval for prompts like these"), x2="high:Q"
    )
    st.altair_chart(interval + base.mark_point(filled=True, size=90).encode(x="mean:Q"), width="stretch")


def show_trend(ranking: tuple[str, str, str]) -> None:
    """Each checkpoint over the nights, and the nights on which a series left its limits."""
    rows = ask(
        """SELECT run_date, model || ' / ' || checkpoint AS name, estimate, ci_low, ci_high FROM trend
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY run_date""",
        *ranking,
    )
    base = alt.Chart(rows).encode(x=alt.X("run_date:T", title=None), color=alt.Color("name:N", title=None))
    scale = alt.Scale(zero=False)
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("ci_low:Q", scale=scale, title="mean, 95 % interval for these prompts"), y2="ci_high:Q"
    )
    st.altair_chart(band + base.mark_line(point=True).encode(y="estimate:Q"), width="stretch")
    st.caption("The interval is for these prompts, night after night; the leaderboard's is for prompts like these.")
    alarms = ask(
        "SELECT run_date, model, checkpoint, verdict, estimate, limit_low, limit_high FROM drift "
        "WHERE is_alarm AND rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY run_date DESC",
        *ranking,
    )
    st.write("No alarm." if alarms.empty else alarms)


def show_lowest(ranking: tuple[str, str, str]) -> None:
    """The lowest scores of the current publication, and what the judge wrote: salon_judged reads the large tables."""
    rows = ask(
        """SELECT score, model, checkpoint, category, prompt, note, sample_id FROM salon_judged(?, publication_id := ?)
        WHERE status = 'scored' AND rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY score, sample_id LIMIT 20""",
        str(LAKE),
        now["publication_id"],
        *ranking,
    )
    st.dataframe(rows, hide_index=True, width="stretch")


st.set_page_config(page_title=f"Salon: {BENCHMARK}", layout="wide")
if not FILE.is_file():
    st.error(f"{FILE} is not there; give the lake and the benchmark: streamlit run {Path(__file__).name} -- LAKE BENCHMARK")
    st.stop()
now = ask("SELECT run_date, publication_id FROM current_publication").iloc[0]
st.title(BENCHMARK)
st.caption(f"Current: {now['run_date']:%Y-%m-%d}, publication {now['publication_id'][:16]}")
chosen = choose()
for heading, show in (("Leaderboard", show_leaderboard), ("Nights", show_trend), ("Lowest scores", show_lowest)):
    st.subheader(heading)
    show(chosen)
