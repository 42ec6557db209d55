"""Tables in the terminal, one a file: categories, pairs, a plan, the exam. The leaderboard is tables.py."""
