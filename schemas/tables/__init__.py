"""Every table and every column: table.py says what a table is, catalogue.py lists them all."""
