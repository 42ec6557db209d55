"""Who runs the shards of a stage: this process, processes of this machine, a Dask cluster. What a shard does is its stage's."""
