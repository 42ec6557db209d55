"""Making a publication again from what the lake stores, offline. The command is commands/verifying.py."""
