"""Move indexes between machines: pull.py takes one from a repository, an address or a folder, push.py publishes one."""
