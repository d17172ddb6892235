"""Random stream programs over the whole format, legal by construction; the same seed gives the same program."""

import random
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

STREAMS: Json = {
    "a": {"kind": "nonblocking"},
    "b": {"kind": "nonblocking"},
    "c": {"kind": "blocking"},
    "d": {"kind": "per_thread"},
    "e": {"kind": "nonblocking", "device": 1},
    "f": {"kind": "blocking", "device": 1},
    "copy": {"kind": "nonblocking", "priority": -1},
}
BUFFERS: Json = {
    "x": {"mem": "device", "bytes": 64},
    "y": {"mem": "device", "bytes": 64},
    "z": {"mem": "device", "bytes": 64, "device": 1},
    "m": {"mem": "managed", "bytes": 64},
    "p": {"mem": "pinned", "bytes": 64},
    "q": {"mem": "pageable", "bytes": 64},
}
EVENTS, FLAGS, BLOCKS, AGENTS = ("E", "F", "copy_done 1"), "UV", "BBC", ("send", "receive")
WORK = ("launch", "memcpy", "memset", "host_work", "host_access", "graph", "agent")


def program(seed: int, flags: bool | None = None) -> Json:
    """One program of 3 to 28 ops; with ``flags``, which every third seed has, it may deadlock."""
    return _Maker(seed, seed % 3 == 0 if flags is None else flags).make()


class _Maker:
    """Makes one op after the other, over a few of the streams, so that they meet often."""

    def __init__(self, seed: int, flags: bool) -> None:
        self.r = random.Random(seed)
        self.seed = seed
        self.streams = self.r.sample([*STREAMS, "legacy"], self.r.randint(2, 5))
        self.bufs = "".join(self.r.sample("xyzmpq", self.r.randint(1, 4)))
        self.agents: list[str] = []
        self.lives = self.r.choice([0, 0, 0.15])
        kinds = list(WEIGHTS.items())
        if self.r.random() < 0.6:
            kinds = [("launch", 6), *((kind, 4) for kind in self.r.sample(list(WEIGHTS), self.r.randint(2, 6)))]
        self.kinds = [kind for kind, weight in kinds for _ in range(weight)] + FLAG_KINDS * 4 * flags

    def make(self) -> Json:
        ops: list[Json] = []
        for k in range(self.r.randint(3, 26)):
            ops += self.life(k) if self.r.random() < self.lives else [self.op(k)]
        return {"schema": 1, "id": f"seed {self.seed}", "streams": STREAMS, "buffers": BUFFERS, "ops": ops}

    def op(self, k: int) -> Json:
        kind = self.r.choice(self.kinds)
        make: Callable[[int], Json] = getattr(self, kind)
        made = make(k)
        if kind in WORK and self.r.random() < 0.6:
            made["us"] = self.us()
        if self.r.random() < 0.1:
            made["step"] = k // 4
        return made

    def us(self) -> float:
        return self.r.choice([0, 3.5, self.r.randint(1, 40), self.r.randint(1, 300)])

    def stream(self) -> str:
        return self.r.choice(self.streams)

    def range(self, among: str = "xyzmpq") -> Json:
        buf = self.r.choice([b for b in self.bufs if b in among] or among)
        if self.r.random() < 0.3:
            rows, length, stride = self.r.randint(2, 4), self.r.choice([2, 4]), self.r.choice([3, 6, 8, 12])
            return {"buf": buf, "off": self.r.randrange(0, 8), "len": length, "rows": rows, "stride": stride}
        return {"buf": buf, "off": self.r.randrange(0, 6) * 8, "len": self.r.choice([4, 8, 16])}

    def ranges(self) -> list[Json]:
        return [self.range() for _ in range(self.r.choice([0, 1, 1, 2]))]

    def launch(self, k: int) -> Json:
        name = self.r.choice(["verify", f"k{k}", f"draft {k}"])
        return {
            "op": "launch",
            "stream": self.stream(),
            "name": name,
            "reads": self.ranges(),
            "writes": self.ranges(),
        }

    def memcpy(self, k: int) -> Json:
        src, dst = self.range(), self.range()
        side = {"x": "D", "y": "D", "z": "D", "m": self.r.choice("DH"), "p": "H", "q": "H"}
        kind = self.r.choice(["Default", f"{side[src['buf']]}2{side[dst['buf']]}"])
        made = {"op": "memcpy", "api": self.r.choice(["sync", "async"]), "kind": kind, "src": src, "dst": dst}
        return made | {"stream": "legacy" if made["api"] == "sync" else self.stream()}

    def memset(self, k: int) -> Json:
        api = self.r.choice(["sync", "async"])
        return {"op": "memset", "api": api, "dst": self.range(), "stream": "legacy" if api == "sync" else self.stream()}

    def record(self, k: int) -> Json:
        return {"op": "event_record", "stream": self.stream(), "event": self.r.choice(EVENTS)}

    def wait(self, k: int) -> Json:
        return {"op": "stream_wait_event", "stream": self.stream(), "event": self.r.choice(EVENTS)}

    def wait_stream(self, k: int) -> Json:
        return {"op": "stream_wait_stream", "stream": self.stream(), "on": self.stream()}

    def synchronize(self, k: int) -> Json:
        return self.r.choice(
            [
                {"op": self.r.choice(["event_sync", "event_query_until_success"]), "event": self.r.choice(EVENTS)},
                {"op": self.r.choice(["stream_sync", "stream_query_until_success"]), "stream": self.stream()},
                {"op": "device_sync"},
            ]
        )

    def host_work(self, k: int) -> Json:
        return {"op": "host_work", "name": self.r.choice([f"w{k}", "build"])}

    def host_access(self, k: int) -> Json:
        named = {"name": "results"} if self.r.random() < 0.5 else {}
        return {"op": self.r.choice(["host_read", "host_write"]), "range": self.range("mpq"), **named}

    def agent(self, k: int) -> Json:
        if self.agents and self.r.random() < 0.5:
            return {"op": "host_async_wait", "id": self.r.choice([*self.agents, "nobody"])}
        self.agents.append(self.r.choice([*AGENTS, f"n{k}"]))
        access = self.r.choice(["read", "write"])
        return {"op": "host_async_begin", "id": self.agents[-1], "access": access, "range": self.range()}

    def graph(self, k: int) -> Json:
        nodes: list[Json] = []
        self.dense = self.r.choice([0.15, 0.5])
        for n in range(self.r.randint(1, 5)):
            deps = [m["name"] for m in nodes if self.r.random() < self.dense]
            node: Json = {"name": f"n{n}", "deps": deps}
            kind = self.r.random()
            if kind < 0.2:
                node["record"] = self.r.choice(EVENTS)
            elif kind < 0.4:
                node["wait"] = self.r.choice(EVENTS)
            else:
                node |= {"reads": self.ranges(), "writes": self.ranges()}
                node |= {"us": self.us()} if self.r.random() < 0.4 else {}
            nodes.append(node)
        self.r.shuffle(nodes)
        return {"op": "graph_launch", "stream": self.stream(), "nodes": nodes}

    def device(self, k: int) -> Json:
        return {"op": "set_device", "device": self.r.choice([0, 0, 1])}

    def driver(self, k: int) -> Json:
        return {"op": self.r.choice(["alloc", "free"]), "buf": self.r.choice("xyzm")}

    def allocator(self, k: int) -> Json:
        buf = self.r.choice("xyz")
        block = {"block": self.r.choice(BLOCKS)} if self.r.random() < 0.9 else {}
        home = {"stream": self.stream()} if self.r.random() < 0.9 else {}
        return self.r.choice(
            [
                {"op": "tensor_alloc", "buf": buf, **home, **block},
                {"op": "tensor_free", "buf": buf, **block},
                {"op": "record_stream", "buf": buf, "stream": self.stream()},
            ]
        )

    def life(self, k: int) -> list[Json]:
        """A tensor from its block's beginning to the next owner's, with a use that the allocator may not know of."""
        old, new, home, user = self.r.choice("xyz"), self.r.choice("xyz"), self.stream(), self.stream()
        there = {"buf": old, "off": 0, "len": 16}
        told = [{"op": "record_stream", "buf": old, "stream": self.r.choice([user, home, "legacy"])}]
        return [
            {"op": "tensor_alloc", "buf": old, "stream": home, "block": "B"},
            {"op": "launch", "stream": user, "name": f"k{k}", "reads": [there], "writes": [], "us": self.us()},
            *(told if self.r.random() < 0.8 else []),
            {"op": "tensor_free", "buf": old},
            *([self.op(k)] if self.r.random() < 0.5 else []),
            {"op": "tensor_alloc", "buf": new, "stream": home, "block": "B"},
        ]

    def write_value(self, k: int) -> Json:
        return {"op": "stream_write_value", "stream": self.stream(), "flag": self.r.choice(FLAGS)}

    def wait_value(self, k: int) -> Json:
        return {"op": "stream_wait_value", "stream": self.stream(), "flag": self.r.choice(FLAGS)}


FLAG_KINDS = ["write_value", "wait_value"]
# fmt: off
WEIGHTS = {
    "launch": 12, "memcpy": 5, "memset": 2, "graph": 4, "agent": 3, "host_work": 2, "host_access": 3, "record": 5,
    "wait": 5, "wait_stream": 3, "synchronize": 3, "device": 2, "allocator": 6, "driver": 1,
}
