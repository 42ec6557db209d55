"""Samples beside which a changed copy is judged: the exam's planted faults, the probe's hostile texts."""
