"""Aggregate: scores to published cells. Writing them out is tasks/publish; reading replies into scores is tasks/validate."""
