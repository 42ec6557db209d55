"""The judge's own noise: variance components, designs, juries."""
