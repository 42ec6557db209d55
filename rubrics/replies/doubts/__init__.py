"""What a reply says beside its numbers that makes them none: `doubt`, and whether its judge saw nothing. Not: the numbers."""
