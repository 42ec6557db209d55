"""What was asked and bought: attempts, replies, claims, batches, limits, in one transactional database."""
