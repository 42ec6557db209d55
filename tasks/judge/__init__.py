"""Planning what to ask, asking it, and keeping what was answered: plan, client, engine, ledger, snapshot, recorded replies."""
