"""What pairs of pictures say of two checkpoints: win rates, ratings, position bias, and which pair to ask next."""
