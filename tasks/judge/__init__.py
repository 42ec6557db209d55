"""Judging: requests claimed, admitted and sent, one at a time or by batches, and what came back handed to the ledger."""
