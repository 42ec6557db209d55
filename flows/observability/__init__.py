"""What people and machines are told of a run: progress, artifacts, events, alerts; and that no secret is in it."""
