"""What the data is: fields, tables, records, statuses, the benchmark file and the error tree. Imports nothing of ours."""
