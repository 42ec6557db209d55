"""Replies to scores, and the data checks that decide whether anything is published."""
