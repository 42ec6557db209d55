"""Nights: which checkpoints, which anchors, what was noted, how the series drifts. The flow is flows/nightly.py."""
