"""Replies that answer several items: a line for each, or a list by position or by id. One answer's text is numbers.py's."""
