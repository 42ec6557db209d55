"""Reply text into scores, or the reason for none: `parse_reply`. The policy stands in docs/replies.md."""

from rubrics.replies.read import parse_reply

__all__ = ["parse_reply"]
