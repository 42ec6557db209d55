"""Closed lists of words that tables have in their columns, by what they are about."""
