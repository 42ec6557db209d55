"""What each `salon` command does: reads its options, calls stages or readers, prints. The commands' names are in cli.py."""
