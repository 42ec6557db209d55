"""Rows of a ranking of three, as standings have them, for tests of how they read."""

BETTER = {
    "verdict_predecessor": "higher",
    "delta_predecessor": 0.4249,
    "delta_predecessor_low": 0.1,
    "delta_predecessor_high": 0.74,
}
OPEN = {"verdict_predecessor": "open", "delta_predecessor": 0.1, "delta_predecessor_low": -0.2, "delta_predecessor_high": 0.4}


def row(checkpoint, ranks=(1, 1), **changes):
    """A row of a ranking of three; `ranks` None where it has none."""
    low, high = ranks or (None, None)
    blank = dict.fromkeys(f"{name}_{other}" for name in ("delta", "verdict", "reason") for other in ("predecessor", "baseline"))
    blank |= dict.fromkeys(
        ("delta_predecessor_low", "delta_predecessor_high", "predecessor", "standing_reason", "shared_estimate")
    )
    return blank | {
        "model": "m", "checkpoint": checkpoint, "dimension": "score", "category": "__macro__", "status": "ok", "state": "ranked",
        "rank_low": low, "rank_high": high, "n_ranked": 3, "n_shared_prompts": 40, "n_prompts": 40, "n_prompts_needed": 5,
        "n_failed": 0, "n_judgements": 100, "failures": [], "coverage": 1.0, "coverage_floor": 0.8, "bound_low": 3.31,
        "bound_high": 3.52, "is_reordered": False, "n_family": 9, "adjustment": "bonferroni", "n_prompts_predecessor": 40,
        "n_categories": None, "n_prompts_smallest_category": None, "n_prompts_largest_category": None,
        "estimate": 3.4,
    } | changes  # fmt: skip
