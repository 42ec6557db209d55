"""Ingest: what sources hold becomes `samples`. Readers find rows, images opens pictures, samples writes the table."""
