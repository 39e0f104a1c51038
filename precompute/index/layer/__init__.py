"""Read the lists of one layer from its file, array by array; other modules use `shard.Shard`."""
