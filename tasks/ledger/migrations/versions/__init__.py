"""One script for each version of the ledger's tables, as it was: none imports the tables of today."""
