"""Visitors by their addresses: who is one, who is another."""

import pytest
from starlette.requests import Request

from lexiscope.app.live.client import visitor_name


def name(host: str | None) -> str:
    return visitor_name(Request({"type": "http", "client": host and (host, 1234)}))


@pytest.mark.parametrize(("one", "other", "same"), [
    ("192.0.2.1", "192.0.2.1", True),
    ("192.0.2.1", "192.0.2.2", False),
    ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),  # whoever has one of these has all
    ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
    ("::ffff:192.0.2.1", "192.0.2.1", True),
    ("fe80::1%eth0", "fe80::2", True),
    ("testclient", "testclient", True),
    ("testclient", None, False),
    (None, None, True),
])  # fmt: skip
def test_who_is_one_visitor(one: str | None, other: str | None, same: bool) -> None:
    assert (name(one) == name(other)) == same
