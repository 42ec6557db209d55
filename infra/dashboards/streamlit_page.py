# /// script
# requires-python = ">=3.11"
# dependencies = ["streamlit>=1.51", "duckdb>=1.4", "altair>=5", "pandas>=2.2", "pyarrow>=18"]
# ///
"""A dashboard over salon.duckdb: leaderboard or win rates, trend and drift, the worst samples. It reads files, no Salon code.

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
# Of the publications that stand the newest, which is held back where it is not current.
NEWEST = """SELECT publication_id, run_date FROM publications LEFT JOIN (
        SELECT publication_id, min(finished_at) AS made_at FROM runs GROUP BY publication_id
    ) USING (publication_id)
    WHERE NOT is_withdrawn OR is_current ORDER BY run_date DESC, made_at DESC NULLS LAST, is_current DESC LIMIT 1"""


def ask(question: str, *values: object) -> pd.DataFrame:
    """The rows of a question. Opened anew each time: the file is replaced whole when a run ends."""
    with duckdb.connect(str(FILE), read_only=True) as database:
        return database.execute(question, list(values)).df()


def choose() -> tuple[str, str, str]:
    """The ranking one looks at: rubric, judge, dimension."""
    rankings = ask(
        """SELECT rubric_id, judge_model, dimension FROM leaderboard
        UNION SELECT rubric_id, judge_model, dimension FROM pair_leaderboard ORDER BY ALL"""
    )
    rubric = st.sidebar.selectbox("Rubric", rankings["rubric_id"].unique())
    rankings = rankings[rankings["rubric_id"] == rubric]
    judges = sorted(
        rankings["judge_model"].unique(), key=lambda name: (name.startswith("__"), name)
    )  # __pooled__ has no win rates
    judge = st.sidebar.selectbox("Judge", judges)
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
    """Each checkpoint over the nights under each version of the rubric, and the nights on which a series left its limits."""
    rows = ask(
        """SELECT run_date, model || ' / ' || checkpoint ||
            CASE WHEN count(DISTINCT rubric_version) OVER () > 1 THEN ', version ' || rubric_version ELSE '' END AS name,
            estimate, ci_low, ci_high FROM trend
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY run_date""",
        *ranking,
    )
    if rows.empty:
        st.write("No night has a total of this yet.")
    else:
        draw_trend(rows)
    show_alarms(ranking)


def draw_trend(rows: pd.DataFrame) -> None:
    """A line of means in its band for each name."""
    base = alt.Chart(rows).encode(
        x=alt.X("run_date:T", title=None, axis=alt.Axis(format="%Y-%m-%d", tickCount="day")),
        color=alt.Color("name:N", title=None),
    )
    scale = alt.Scale(zero=False)
    band = base.mark_area(opacity=0.15).encode(
        y=alt.Y("ci_low:Q", scale=scale, title="mean, 95 % interval for these prompts"), y2="ci_high:Q"
    )
    st.altair_chart(band + base.mark_line(point=True).encode(y="estimate:Q"), width="stretch")
    st.caption("The interval is for these prompts, night after night; the leaderboard's is for prompts like these.")


def show_alarms(ranking: tuple[str, str, str]) -> None:
    """The alarms; where there are none, of how many nights that can be said, and why not of the others.

    A bridge joins nights that another judge measured, shifted to this one's scale; the means they were published with differ.
    """
    nights = ask(
        """SELECT run_date, model, checkpoint, category, measured_by, measured_by <> judge_model AS is_shifted, is_alarm, verdict,
        reason, estimate, limit_low, limit_high FROM drift
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY run_date DESC""",
        *ranking,
    )
    is_watched = nights["is_alarm"] | (nights["verdict"] != "unknown")
    alarms = nights[nights["is_alarm"]]
    if not alarms.empty:
        st.dataframe(alarms, hide_index=True, width="stretch")
        if others := sorted(alarms[alarms["is_shifted"]]["measured_by"].unique()):
            st.caption(
                f"Nights measured by {', '.join(others)} (is_shifted): a bridge shifted them to the scale of {ranking[1]}. "
                "Their own publications have the means as measured."
            )
    elif is_watched.any():
        st.write(f"No alarm in {nights_of_series(is_watched.sum())}.")
    else:
        st.write("Nothing was watched: no word on alarms.")
    if nights.empty:
        st.caption("There is no drift before a second night.")
    elif not is_watched.all():
        why = nights[~is_watched]["reason"].value_counts()
        st.caption("Not watched: " + ", ".join(f"{nights_of_series(n)}, {reason}" for reason, n in why.items()))


def nights_of_series(n: int) -> str:
    """How many, of all series together."""
    return f"{n} {'night' if n == 1 else 'nights'} of series"


def show_ratings(ranking: tuple[str, str, str]) -> None:
    """What pairs say of each checkpoint: rating with its interval, best first."""
    rows = ask(
        """SELECT rank_low, rank_high, model, checkpoint, rating, ci_low AS low, ci_high AS high, anchor, n_win AS won,
        n_tie AS tied, n_loss AS lost, n_prompts AS prompts, state, reason FROM pair_leaderboard
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ? ORDER BY rank_low NULLS LAST, rating DESC NULLS LAST""",
        *ranking,
    )
    st.dataframe(rows, hide_index=True, width="stretch")


def show_win_rates(ranking: tuple[str, str, str]) -> None:
    """Who wins how often against whom; of all judges together there are ratings alone."""
    rows = ask(
        """SELECT category, model_a, checkpoint_a, model_b, checkpoint_b, win_rate, coalesce(ci_low_adjusted, ci_low) AS low,
        coalesce(ci_high_adjusted, ci_high) AS high, verdict, n_win AS won, n_tie AS tied, n_loss AS lost,
        n_order_dependent AS by_order_alone, n_unjudged AS unjudged, n_prompts AS prompts, reason FROM win_rates
        WHERE rubric_id = ? AND judge_model = ? AND dimension = ?
        ORDER BY category, model_a, checkpoint_a, model_b, checkpoint_b""",
        *ranking,
    )
    if rows.empty:
        st.write("Win rates are each judge's own: choose one.")
    else:
        st.dataframe(rows, hide_index=True, width="stretch")


def show_lowest(ranking: tuple[str, str, str]) -> None:
    """The lowest scores of the current publication, and what the judge wrote: salon_judged reads the large tables."""
    rows = ask(
        """SELECT score, model, checkpoint, category, prompt, note, sample_id FROM salon_judged(?, publication_id := ?)
        WHERE status = 'scored' AND occasion = '' AND rubric_id = ? AND judge_model = ? AND dimension = ?
        ORDER BY score, sample_id LIMIT 20""",
        str(LAKE),
        now["publication_id"],
        *ranking,
    )
    st.dataframe(rows, hide_index=True, width="stretch")


st.set_page_config(page_title=f"Salon: {BENCHMARK}", layout="wide")
if not FILE.is_file():
    st.error(f"{FILE} is not there; give the lake and the benchmark: streamlit run {Path(__file__).name} -- LAKE BENCHMARK")
    st.stop()
st.title(BENCHMARK)
current = ask("SELECT run_date, publication_id FROM current_publication")
if current.empty:
    listed = ask("SELECT run_date, publication_id, is_withdrawn FROM publications ORDER BY ALL")
    none = "all were taken back" if listed["is_withdrawn"].all() else "none that stands was good enough yet"
    st.warning(f"No publication is current: {none}. `salon table` shows the newest, and why. What there is:")
    st.dataframe(listed, hide_index=True, width="stretch")
    st.stop()
now, newest = current.iloc[0], ask(NEWEST).iloc[0]
st.caption(f"Current: {now['run_date']:%Y-%m-%d}, publication {now['publication_id'][:16]}")
if newest["publication_id"] != now["publication_id"]:
    held_back = f"{newest['publication_id'][:16]} of {newest['run_date']:%Y-%m-%d}"
    st.warning(f"A newer publication, {held_back}, did not become current: `salon table` says why.")
chosen = choose()
is_pairs = not ask("SELECT 1 FROM pair_leaderboard WHERE rubric_id = ? LIMIT 1", chosen[0]).empty
of_scores = (("Leaderboard", show_leaderboard), ("Nights", show_trend), ("Lowest scores", show_lowest))
of_pairs = (("Ratings", show_ratings), ("Win rates", show_win_rates))
for heading, show in of_pairs if is_pairs else of_scores:
    st.subheader(heading)
    show(chosen)
