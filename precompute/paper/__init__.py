"""Hold the lists and numbers that the paper printed, and compare printed lists with those of an index. Only numpy and
pydantic are needed."""
