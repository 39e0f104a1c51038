"""The live worker: a service around precompute/live that computes the requests of many visitors together, within
limits."""
