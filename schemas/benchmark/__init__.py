"""The benchmark file, section by section; file.py is the whole."""
