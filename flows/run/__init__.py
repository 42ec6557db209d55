"""The main job: from a benchmark file to a published table, stage by stage. The Prefect flow around it is flows/benchmark.py."""
