"""What is weighed before a value is a score: whose words it stands in, what follows a word, several values of one dimension."""
