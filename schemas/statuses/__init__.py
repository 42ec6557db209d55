"""The values that status and reason columns may have, by what they are about."""
