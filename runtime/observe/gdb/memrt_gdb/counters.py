"""Counters of the process, and of each policy and scope."""

from .program import elements, symbol


def shards(account):
    """Yield the counters of all threads for an account, and the shared counters."""
    index = int(account["index"])
    yield account["shared"].dereference()
    for thread in elements(symbol("first_thread", "thread/thread.c"), "next"):
        if index == 0:
            yield thread["first"]
            continue
        chunks = thread["chunks"]
        per_chunk = (symbol("memrt__policies").type.range()[1] + 1) // (chunks.type.range()[1] + 1)
        chunk = chunks[index // per_chunk]
        if chunk:
            yield chunk[index % per_chunk]


class Sums:
    """Counters, added up as in memrt_stats_t."""

    WORDS = ("bytes_in", "bytes_out", "adopted_in", "adopted_out", "realloc", "failed")

    def __init__(self):
        self.words = dict.fromkeys(self.WORDS, 0)
        self.made = self.freed = 0

    def add(self, shard):
        for name in self.WORDS:
            self.words[name] += int(shard[name])
        for kind in range(shard["made"].type.range()[1] + 1):
            self.made += int(shard["made"][kind])
            self.freed += int(shard["freed"][kind])
        return self

    def add_account(self, account):
        for shard in shards(account):
            self.add(shard)
        return self

    def word(self, name):
        return self.words[name] % 2**64

    @property
    def live(self):
        difference = (self.words["bytes_in"] - self.words["bytes_out"]) % 2**64
        return difference if difference < 2**63 else 0

    @property
    def adopted(self):
        return (self.words["adopted_in"] - self.words["adopted_out"]) % 2**64


def accounts():
    return elements(symbol("first_account", "stats/shard.c"), "next")


def process_sums():
    sums = Sums().add(symbol("memrt__process")["past"])
    for account in accounts():
        sums.add_account(account)
    return sums
