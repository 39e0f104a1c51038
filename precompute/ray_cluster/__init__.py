"""Connect to a Ray cluster, for builds and for workers. Environment variables that Ray reads when it is imported are
set here."""

import os
import secrets
import sys

os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # nothing is sent to anybody
# Serve starts an HTTP proxy again that is not ready within 5 seconds: on a busy machine it would never be.
os.environ.setdefault("RAY_SERVE_PROXY_READY_CHECK_TIMEOUT_S", "60")

LOCAL = "local"  # the address of a cluster of this machine alone, which ends with the command


def keep_others_out() -> None:
    """Protect a cluster of this machine alone, because Ray lets it listen at all addresses and run whatever it is sent:
    only programs that have the token of this process may send. If Ray is imported already it is too late, and the
    program that imported it has decided."""
    if "ray" not in sys.modules and "RAY_AUTH_MODE" not in os.environ:
        os.environ["RAY_AUTH_MODE"] = "token"
        os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
