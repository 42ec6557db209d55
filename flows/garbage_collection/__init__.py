"""Garbage collection (`salon gc`): what stands in a lake, what is wanted and why, taking the rest away. The ledger stays."""
