"""Judge against people: figures, intervals, means corrected by ratings."""
