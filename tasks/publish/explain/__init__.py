"""What a published number is made of, down to messages and replies: a cell or a sample, a pair, a row of the exam."""
