"""The report: one self-contained HTML page per publication, and the index over all of them. Tables are publication.py's."""
