"""Turns of those who ask for whole lists: however many they are, others are served in between."""

import asyncio

from app.turns import ROUNDS, Turns


def test_no_two_pieces_follow_each_other_while_somebody_comes_in() -> None:
    done: list[str] = []

    async def long(turns: Turns) -> None:
        for _ in range(3):
            await turns.taken()
            done.append("piece")

    async def newcomer() -> None:
        for _ in range(ROUNDS // 2):  # of being let in, read and answered
            await asyncio.sleep(0)
        done.append("short")

    async def all_of_them() -> None:
        turns = Turns()
        await asyncio.gather(*(long(turns) for _ in range(20)), newcomer())

    asyncio.run(all_of_them())
    assert done.count("piece") == 60
    assert done.index("short") <= 2


def test_one_who_leaves_while_waiting_keeps_nobody() -> None:
    async def left() -> None:
        turns = Turns()
        waiting = [asyncio.create_task(turns.taken()) for _ in range(3)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        waiting[1].cancel()
        await asyncio.wait_for(waiting[2], 10)

    asyncio.run(left())
