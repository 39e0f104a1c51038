"""Read what a file of lists holds, array by array; `shard.Shard` is the door."""
