"""What a file of lists holds, read array by array; `shard_reader.Shard` is the door."""
