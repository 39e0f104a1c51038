"""`lexiscope worker`: what it says of itself to the server that started it."""

import sys

import pytest

from lexiscope.app.commands.command import say_line


class WritesApart:
    """An output that keeps what each call writes, as an unbuffered pipe does."""

    def __init__(self) -> None:
        self.writes: list[str] = []

    def write(self, text: str) -> int:
        self.writes.append(text)
        return len(text)

    def flush(self) -> None:
        pass


def test_a_line_is_written_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two threads say something: "is loading" and "is ready" on one line would be neither, for ever."""
    output = WritesApart()
    monkeypatch.setattr(sys, "stdout", output)
    say_line("lexiscope worker is ready")
    assert output.writes == ["lexiscope worker is ready\n"]
