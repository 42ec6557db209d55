"""`salon gc`: what stands in a lake, what of it is still wanted and why, and taking the rest away. The ledger is not touched."""
