"""Replies recorded elsewhere, taken into the ledger as those of a named judge."""
