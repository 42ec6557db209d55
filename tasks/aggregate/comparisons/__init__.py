"""Checkpoints held against each other: which, by what tests, corrected for how many, and when enough is known."""
