"""What a run tells and whom: terminal, Prefect's pages and events. It decides nothing, and no secret passes it."""
