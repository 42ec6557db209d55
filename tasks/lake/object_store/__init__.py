"""A lake on an object store behind a working folder; the one place that knows obstore."""
