"""How a long command ends when it is interrupted: it says how to go on, and leaves at once."""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

GOES_ON = "Finished {} are kept; the same command goes on from here"


@contextmanager
def exit_on_signals(state: str) -> Iterator[None]:
    """Says how to go on, on Ctrl-C, SIGTERM or a closed terminal, and leaves with the exit code that a shell expects.

    `state` says what is kept, and what the same command would do, as GOES_ON does. Threads that still search cannot be
    interrupted and Python would wait for them; they have nothing to lose.
    """
    exit_code: int | None = None

    def interrupt(number: int, _: object) -> None:
        nonlocal exit_code
        exit_code = 128 + number
        raise KeyboardInterrupt

    former_handlers: dict[signal.Signals, Any] = {}
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:  # as nohup has it
            former_handlers[number] = signal.signal(number, interrupt)
    try:
        yield
    except BaseException:  # code in C may turn the interrupt into an error of its own
        if exit_code is None:
            raise
        for number in former_handlers:
            signal.signal(number, signal.SIG_IGN)
        print(f"Stopped. {state}.", file=sys.stderr)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(exit_code)
    finally:
        for number, handler in former_handlers.items():
            signal.signal(number, handler)
