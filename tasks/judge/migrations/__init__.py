"""Carrying a ledger of an earlier version forward: upgrading.py runs the scripts in versions/. No table of today."""
