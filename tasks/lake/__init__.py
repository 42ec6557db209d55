"""Reading and writing the lake: files, partitions, the object store. What the tables mean is schemas/."""
