"""Every published number derived again. How tables are made is tasks/aggregate."""
