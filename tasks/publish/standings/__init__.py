"""Standings as readers meet them: cells with their ranks beside them, in words, and the answer in sentences."""
