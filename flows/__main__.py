"""`python -m flows` is `salon`, where the console script is not on the path."""

from flows.cli import main

main()
