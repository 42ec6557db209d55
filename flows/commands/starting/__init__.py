"""What begins with a command: a benchmark file from a folder of pictures, a rubric. Nothing is asked, nothing stored."""
