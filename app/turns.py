"""Long work is done piece by piece, and however many visitors ask for it, one piece at a time: in between, all who came
for something short are served. What a piece is is for routes/."""

import asyncio

ROUNDS = 32  # of the event loop between two pieces while others wait: in one round it lets in one new visitor


class Turns:
    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def taken(self) -> None:
        """Returns when it is this visitor's turn: what the caller does up to its next await is one piece."""
        rounds = ROUNDS if self._lock.locked() else 1
        async with self._lock:
            for _ in range(rounds):
                await asyncio.sleep(0)
