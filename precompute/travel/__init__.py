"""An index that travels: pull.py takes one from a repository, an address or a folder, push.py publishes one."""
