"""Who asks, for a worker that is fair between visitors: a name that tells nobody their address.
A visitor is an address as uvicorn sees it: that of the connection, or what a trusted proxy says it is for."""

import secrets
from hashlib import blake2b
from ipaddress import IPv6Address, ip_address

from starlette.requests import Request

KEY = secrets.token_bytes(16)  # of this process: no list of addresses gives their names
IPV6_HOST_BITS = 64  # one visitor has them all


def visitor_name(request: Request) -> str:
    host = request.client.host if request.client else ""
    return blake2b(_network(host).encode(), key=KEY, digest_size=12).hexdigest()


def _network(host: str) -> str:
    """What one visitor cannot choose: an IPv4 address, or the first half of an IPv6 one."""
    try:
        address = ip_address(host)
    except ValueError:  # a name, such as test clients have
        return host
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped:
        return str(address.ipv4_mapped)
    return f"{int(address) >> IPV6_HOST_BITS:x}"
