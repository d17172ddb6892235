"""Random stream programs over the whole format, legal by construction; the same seed gives the same program."""

import random
from typing import Any

STREAMS = {
    "a": {"kind": "nonblocking"},
    "b": {"kind": "nonblocking"},
    "c": {"kind": "blocking"},
    "d": {"kind": "per_thread"},
    "e": {"kind": "nonblocking", "device": 1},
    "f": {"kind": "blocking", "device": 1},
}
BUFFERS = {
    "x": {"mem": "device", "bytes": 64},
    "y": {"mem": "device", "bytes": 64},
    "m": {"mem": "managed", "bytes": 64},
    "p": {"mem": "pinned", "bytes": 64},
    "q": {"mem": "pageable", "bytes": 64},
}


def program(seed: int, flags: bool = False) -> dict[str, Any]:
    """One program of 4 to 22 ops; with ``flags`` it may deadlock."""
    return _Maker(seed, flags).make()


class _Maker:
    def __init__(self, seed: int, flags: bool) -> None:
        self.r = random.Random(seed)
        self.seed, self.flags = seed, flags
        self.agents: list[str] = []
        self.kinds = [kind for kind, weight in WEIGHTS.items() for _ in range(weight)] + (
            ["write_value", "wait_value"] * 4 if flags else []
        )

    def make(self) -> dict[str, Any]:
        ops = [self.op(k) for k in range(self.r.randint(4, 22))]
        return {"schema": 1, "id": f"seed {self.seed}", "streams": STREAMS, "buffers": BUFFERS, "ops": ops}

    def op(self, k: int) -> dict[str, Any]:
        kind = self.r.choice(self.kinds)
        made: dict[str, Any] = getattr(self, kind)(k)
        if kind in ("launch", "memcpy", "memset", "host_work", "host_access", "graph") and self.r.random() < 0.6:
            made["us"] = self.r.randint(1, 200)
        return made

    def stream(self) -> str:
        return self.r.choice([*STREAMS, "legacy"])

    def range(self, bufs: str = "xxxyymp") -> dict[str, Any]:
        buf = self.r.choice(bufs)
        if self.r.random() < 0.25:
            return {
                "buf": buf,
                "off": self.r.randrange(0, 8),
                "len": 4,
                "rows": self.r.randint(2, 4),
                "stride": self.r.choice([6, 8, 12]),
            }
        off = self.r.randrange(0, 6) * 8
        return {"buf": buf, "off": off, "len": self.r.choice([4, 8, 16])}

    def ranges(self) -> list[dict[str, Any]]:
        return [self.range() for _ in range(self.r.choice([0, 1, 1, 2]))]

    def launch(self, k: int) -> dict[str, Any]:
        return {
            "op": "launch",
            "stream": self.stream(),
            "name": f"k{k}",
            "reads": self.ranges(),
            "writes": self.ranges(),
        }

    def memcpy(self, k: int) -> dict[str, Any]:
        api = self.r.choice(["sync", "async"])
        src, dst = self.range("xympq"), self.range("xympq")
        return {
            "op": "memcpy",
            "api": api,
            "kind": "Default",
            "src": src,
            "dst": dst,
            "stream": "legacy" if api == "sync" else self.stream(),
        }

    def memset(self, k: int) -> dict[str, Any]:
        api = self.r.choice(["sync", "async"])
        return {
            "op": "memset",
            "api": api,
            "dst": self.range("xmp"),
            "stream": "legacy" if api == "sync" else self.stream(),
        }

    def record(self, k: int) -> dict[str, Any]:
        return {"op": "event_record", "stream": self.stream(), "event": self.r.choice("EFG")}

    def wait(self, k: int) -> dict[str, Any]:
        return {"op": "stream_wait_event", "stream": self.stream(), "event": self.r.choice("EFG")}

    def wait_stream(self, k: int) -> dict[str, Any]:
        return {"op": "stream_wait_stream", "stream": self.stream(), "on": self.stream()}

    def synchronize(self, k: int) -> dict[str, Any]:
        return self.r.choice(
            [
                {"op": self.r.choice(["event_sync", "event_query_until_success"]), "event": self.r.choice("EFG")},
                {"op": self.r.choice(["stream_sync", "stream_query_until_success"]), "stream": self.stream()},
                {"op": "device_sync"},
            ]
        )

    def host_work(self, k: int) -> dict[str, Any]:
        return {"op": "host_work", "name": f"w{k}"}

    def host_access(self, k: int) -> dict[str, Any]:
        return {"op": self.r.choice(["host_read", "host_write"]), "range": self.range("mpqm")}

    def agent(self, k: int) -> dict[str, Any]:
        if self.agents and self.r.random() < 0.5:
            return {"op": "host_async_wait", "id": self.agents.pop()}
        self.agents.append(f"n{k}")
        return {
            "op": "host_async_begin",
            "id": f"n{k}",
            "access": self.r.choice(["read", "write"]),
            "range": self.range("mpqx"),
        }

    def graph(self, k: int) -> dict[str, Any]:
        nodes: list[dict[str, Any]] = []
        for n in range(self.r.randint(1, 4)):
            deps = [m["name"] for m in nodes if self.r.random() < 0.45]
            node: dict[str, Any] = {"name": f"n{n}", "deps": deps}
            kind = self.r.random()
            if kind < 0.15:
                node["record"] = self.r.choice("EFG")
            elif kind < 0.3:
                node["wait"] = self.r.choice("EFG")
            else:
                node |= {"reads": self.ranges(), "writes": self.ranges()}
            nodes.append(node)
        return {"op": "graph_launch", "stream": self.stream(), "nodes": nodes}

    def device(self, k: int) -> dict[str, Any]:
        return {"op": "set_device", "device": self.r.choice([0, 0, 1])}

    def allocator(self, k: int) -> dict[str, Any]:
        buf = self.r.choice("xy")
        return self.r.choice(
            [
                {"op": "tensor_alloc", "buf": buf, "stream": "a", "block": "B"},
                {"op": "tensor_free", "buf": buf},
                {"op": "record_stream", "buf": buf, "stream": self.stream()},
            ]
        )

    def write_value(self, k: int) -> dict[str, Any]:
        return {"op": "stream_write_value", "stream": self.stream(), "flag": self.r.choice("UV")}

    def wait_value(self, k: int) -> dict[str, Any]:
        return {"op": "stream_wait_value", "stream": self.stream(), "flag": self.r.choice("UV")}


# fmt: off
WEIGHTS = {
    "launch": 12, "memcpy": 4, "memset": 2, "graph": 4, "agent": 3, "host_work": 1, "host_access": 3,
    "record": 5, "wait": 5, "wait_stream": 3, "synchronize": 3, "device": 2, "allocator": 4,
}
