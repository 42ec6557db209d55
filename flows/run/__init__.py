"""The main job: from a benchmark file to a published table, stage by stage. The flow around it is flows/benchmark.py."""
