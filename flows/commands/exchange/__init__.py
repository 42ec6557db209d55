"""What leaves Salon and comes back: batch lines, publications for others, bundles and their verification."""
