"""What is asked and how an answer is read: rubric folders, rendering, reading, rules. No network, no database."""
