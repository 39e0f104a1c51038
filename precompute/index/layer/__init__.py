"""Read what a file of lists holds, array by array; `shard_reader.Shard` is the door."""
