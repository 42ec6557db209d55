"""The rate limiter of a key: GCRA over the ledger, waiters, headers, concurrency."""
