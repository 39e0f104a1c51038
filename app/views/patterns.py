"""Patterns and messages of a run: a worker's lists without the tokens that were asked for in place of hubs."""

from typing import Any

from lexiscope.precompute.live.wire.answers import ScoredToken


def without_spare(row: dict[str, Any], k: int, hubs: frozenset[int]) -> dict[str, Any]:
    """Return a row of patterns whose lists have k tokens each, beside the hubs that will be left out."""

    def cut(tokens: list[ScoredToken]) -> list[ScoredToken]:
        kept = [rank for rank, token in enumerate(tokens, 1) if token["id"] not in hubs]
        return tokens[: kept[k - 1]] if len(kept) >= k else tokens

    lists: dict[str, Any] = {name: cut(row[name]) for name in ("pattern", "found_by", "message")}
    if "messages" in row:
        lists["messages"] = [{**message, "tokens": cut(message["tokens"])} for message in row["messages"]]
    return {**row, **lists}
