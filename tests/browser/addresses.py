"""One address of every kind of page of the small indexes; short lists, because axe looks at every element."""

from tests.support.site import GPT2, LLAMA, SCRIPT

PAGES = {
    "home": "/",
    "model": f"/{LLAMA}",
    "model-unfinished": f"/{GPT2}?lens=cosine&preset=words",
    "layer": f"/{LLAMA}/layer/1?sort=coherence&token={SCRIPT}",
    "neuron": f"/{GPT2}/ff/1/3?k=8",
    "neuron-gated": f"/{LLAMA}/ff/1/3?lens=cosine&k=8",
    "head": f"/{LLAMA}/head/1/2",
    "pairs": f"/{LLAMA}/head/1/2/vo?preset=distinct&k=10",
    "pairs-grouped": f"/{LLAMA}/head/1/2/qk?group=from&k=10",
    "subhead": f"/{LLAMA}/head/1/2/sub/0?k=8",
    "token": f"/{LLAMA}/token/{SCRIPT}",
    "token-kind": f"/{LLAMA}/token/{SCRIPT}?kind=ff_key",
    "search": f"/{LLAMA}/search?q=e",
    "search-nothing": f"/{LLAMA}/search?q=d%C3%B6g%20%3Cscript%3E",
    "help": "/-/help",
    "settings": "/-/settings",
    "docs": "/docs",
    "error": f"/{LLAMA}/ff/1/999999",
}
