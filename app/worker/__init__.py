"""The live worker: a service around precompute/live that gathers what many ask into batches, within limits."""
