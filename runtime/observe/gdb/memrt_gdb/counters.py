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
        if chunk and chunk[index % per_chunk]:
            yield chunk[index % per_chunk].dereference()


class Sums:
    """Counters, added up as in memrt_stats_t."""

    WORDS = ("bytes_in", "bytes_out", "adopted_in", "adopted_out", "realloc", "failed")

    def __init__(self):
        self.words = dict.fromkeys(self.WORDS, 0)
        self.made = self.freed = 0

    def add(self, shard):
        self._add_words(shard, ("adopted_in", "adopted_out", "realloc", "failed"))
        if int(shard["sequence"]) % 2:  # the owner is on the slow path, or the shard is shared
            self._add_words(shard, ("bytes_in", "bytes_out"))
        else:
            self.words["bytes_in"] += int(shard["in_limit"]) - int(shard["alloc_left"])
            self.words["bytes_out"] += int(shard["out_limit"]) - int(shard["free_left"])
        self._add_blocks(shard)
        return self

    def add_past(self, sums):
        """Add the counts of accounts that no longer exist."""
        self._add_words(sums, self.WORDS)
        self._add_blocks(sums)
        return self

    def _add_words(self, shard, names):
        for name in names:
            self.words[name] += int(shard[name])

    def _add_blocks(self, shard):
        for place in range(shard["made"].type.range()[1] + 1):
            self.made += int(shard["made"][place])
            self.freed += int(shard["freed"][place])

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
    return elements(symbol("first_account", "stats/account.c"), "next")


def process_sums():
    sums = Sums().add_past(symbol("memrt__process")["past"])
    for account in accounts():
        sums.add_account(account)
    return sums
