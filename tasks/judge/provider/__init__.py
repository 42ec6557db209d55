"""The providers of judges, a folder each, behind base.py. What is asked, and when, is decided above."""
