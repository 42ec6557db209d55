"""How a ledger goes from one version of its tables to the next."""
