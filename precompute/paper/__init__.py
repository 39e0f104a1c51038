"""What the paper printed, as data, and how much of a printed list is in ours. Read with numpy and pydantic alone."""
