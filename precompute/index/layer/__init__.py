"""Read what a file of lists holds, array by array; other modules use `shard.Shard`."""
