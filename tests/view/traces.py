"""Random chrome traces from a seed: everything that a profiler may write, in odd combinations and with equal times."""

from random import Random
from typing import Any

Json = dict[str, Any]
KERNELS = (
    "void at::native::gather<long, 4>(long*)",
    "ampere_gemm",
    "(anonymous namespace)::scan<int>(int)",
    "verify 3",
)
COPIES = ("Memcpy DtoH (Device -> Pageable)", "Memcpy DtoH (Device -> Pinned)", "Memcpy HtoD (Pinned -> Device)")
HOLDS = ("cudaEventSynchronize", "cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaMemcpy", "cuCtxSynchronize_v2")
NOTES = (
    "build 0",
    "build 1",
    "process 7",
    "synchronize(verify_done 2)",
    "lane:forward",
    "lane:plan",
    "ProfilerStep#3",
    "",
)
OPERATORS = ("aten::copy_", "aten::item", "aten::add 3")


class _Maker:
    """A profile in the making: calls on threads, work on the GPUs' streams."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.events: list[list[Any]] = []  # of one slice, or a pair that belongs together
        self.correlation = 0
        self.gpus = self.random.choice([1, 1, 1, 2, 3])
        self.processes = self.random.choice([1, 1, 2])
        self.step = self.random.choice([1.0, 0.25, 0.001, 0.0625])
        self.begin = self.random.choice([0.0, 5_109_979_240_000.0, 1e6])

    def all(self) -> list[Any]:
        return [event for group in self.events for event in group]

    def time(self, most: int = 400) -> float:
        return self.random.randint(0, most) * self.step

    def add(self, category: str, name: str, start: float, us: float, place: tuple[Any, Any], **args: Any) -> None:
        head = {"cat": category, "name": name, "pid": place[0], "tid": place[1], "ts": self.begin + start}
        if self.random.random() < 0.05:
            end = {"ph": "E", "pid": place[0], "tid": place[1], "ts": self.begin + start + us}
            self.events.append([{"ph": "B", **head, "args": args}, end])
        else:
            self.events.append([{"ph": "X", **head, "dur": us, "args": args}])

    def nest(
        self, category: str, names: tuple[str, ...], place: tuple[Any, Any], start: float, end: float, deep: int
    ) -> None:
        """A slice of a thread, and slices in it."""
        self.add(category, self.random.choice(names), start, end - start, place)
        at = start
        while deep and self.random.random() < 0.7 and at < end:
            inner = min(end, at + self.time(60))
            self.nest(category, names, place, at, inner, deep - 1)
            at = inner + self.time(10)

    def call(self, place: tuple[Any, Any], at: float) -> float:
        """A call that blocks, one that queues work, or one that does neither; returns when it ends."""
        self.correlation += 1
        kind, us, number = self.random.random(), self.time(30), {"correlation": self.correlation}
        if kind < 0.25:
            self.add("cuda_runtime", self.random.choice(HOLDS), at, us, place, **number)
            if self.random.random() < 0.5:
                waited = {"wait_on_cuda_event_id": self.random.randint(0, 3)} if self.random.random() < 0.7 else {}
                self.add("cuda_sync", "Event Sync", at, us, (0, 7), stream=7, device=0, **number, **waited)
        elif kind < 0.9:
            name = self.random.choice(["cudaLaunchKernel", "cudaGraphLaunch", "cudaMemcpyAsync", "cuLaunchKernelEx"])
            self.add(self.random.choice(["cuda_runtime", "cuda_driver"]), name, at, us, place, **number)
            for _ in range(self.random.choice([1, 1, 1, 3])):
                self.work(at + self.time(), number if self.random.random() < 0.95 else {})
        else:
            self.add("cuda_runtime", "cudaEventRecord", at, us, place, **(number if self.random.random() < 0.5 else {}))
        return at + us

    def work(self, at: float, number: Json) -> None:
        gpu, stream = self.random.randrange(self.gpus), self.random.choice([7, 20, 24, 0])
        category, names = self.random.choice([("kernel", KERNELS), ("kernel", KERNELS), ("gpu_memcpy", COPIES)])
        device = {"device": gpu} if self.gpus < 3 else {}
        us = self.random.choice([0.0, self.time(20), self.time(200)])
        self.add(category, self.random.choice(names), at, us, (gpu, stream), stream=stream, **device, **number)

    def thread(self, place: tuple[Any, Any]) -> None:
        length = 600 * self.step
        for category, names, share in (("user_annotation", NOTES, 0.8), ("cpu_op", OPERATORS, 0.5)):
            if self.random.random() < share:
                self.nest(category, names, place, self.time(20), length, 3)
        at = self.time(50)
        for _ in range(self.random.randint(0, 25)):
            at = self.call(place, at) + self.random.choice([0.0, self.time(10), self.time(60)])


def profile(seed: int) -> Json:
    """A file as the profiler writes it."""
    maker = _Maker(seed)
    for process in range(maker.processes):
        for thread in range(maker.random.choice([1, 2, 3])):
            place = (400 + process, f"{process}{thread}" if maker.random.random() < 0.3 else 4000 + thread)
            maker.thread(place)
            if maker.random.random() < 0.3:
                named = {"ph": "M", "name": "thread_name", "pid": place[0], "tid": place[1]}
                maker.events.append([{**named, "args": {"name": f"thread worker {thread}"}}])
    extras = [{"ph": "X", "cat": "python_function", "name": "f", "pid": 400, "ts": 1}, 7, None, [], {"ph": "i"}]
    maker.events += [[extra] for extra in maker.random.sample(extras, maker.random.randint(0, 3))]
    if maker.random.random() < 0.5:
        maker.random.shuffle(maker.events)
    named = [{"id": gpu, "name": f"GPU model {gpu % 2}"} for gpu in range(maker.gpus)]
    head = {"schemaVersion": 1, "deviceProperties": named} if maker.random.random() < 0.8 else {}
    return {**head, "traceEvents": maker.all()}


def foreign(seed: int) -> Any:
    """A trace that some other tool wrote: nested slices of threads, perhaps of a process called a GPU."""
    maker = _Maker(seed)
    for process in range(maker.random.choice([1, 2])):
        for thread in range(maker.random.choice([1, 2, 3])):
            maker.nest("toplevel", KERNELS, (process, thread), maker.time(40), maker.time(400) + 40 * maker.step, 3)
        name = maker.random.choice(["GPU Process", "Browser"])
        maker.events.append([{"ph": "M", "name": "process_name", "pid": process, "args": {"name": name}}])
        said = {"ph": "M", "name": "thread_name", "pid": process, "tid": 1, "args": {"name": "main"}}
        maker.events += [[said]] * maker.random.randint(0, 1)
    return maker.all() if maker.random.random() < 0.5 else {"traceEvents": maker.all()}


def odd() -> list[tuple[str, Any]]:
    """What no seed gives."""
    kernel = {"ph": "X", "cat": "kernel", "name": "a\nb", "pid": 0, "tid": 7, "ts": 5, "dur": 2, "args": {"stream": 7}}
    notes = [
        {"ph": "X", "cat": "user_annotation", "name": "n", "pid": 4, "tid": n, "ts": n, "dur": 3} for n in (1, 2, 3)
    ]
    names = [{"ph": "M", "name": "thread_name", "pid": 4, "tid": n, "args": {"name": "worker"}} for n in (1, 2, 3)]
    places = [{"ph": "M", "name": "thread_name", "pid": 1, "tid": n, "args": {"name": n}} for n in ("host", "forward")]
    run = {"ph": "X", "cat": "run", "name": "verify", "pid": 1, "tid": "forward", "ts": -9, "dur": 3}
    call = {"ph": "X", "cat": "call", "name": "call: verify", "pid": 1, "tid": "host", "ts": -20, "dur": 4}
    begun = {"ph": "s", "cat": "submit", "id": 1, "pid": 1, "tid": "host", "ts": -16}
    ended = {"ph": "f", "cat": "submit", "id": 1, "pid": 1, "tid": "forward", "ts": -9}
    told = {"source": "measured", "device": {"not": "words"}}
    exported = {"otherData": told, "traceEvents": [*places, call, run, begun, ended]}
    unnamed = {**exported, "traceEvents": [*places, call, run, {**begun, "id": [1]}, {**ended, "id": [1]}]}
    return [
        ("threads", {"traceEvents": [kernel, *notes, *names]}),
        ("exported", exported),
        ("unnamed-arrow", unnamed),
        ("unknown-source", {**exported, "otherData": {"source": ["measured"]}}),
        ("far-apart", {"traceEvents": [kernel, {**kernel, "ts": 1.7e18}]}),
        ("beyond-numbers", {"traceEvents": [{**kernel, "ts": -1.7e308}, {**kernel, "ts": 1.7e308}]}),
        ("no-gpu", {"traceEvents": notes}),
        ("no-time", {"traceEvents": [{**kernel, "dur": 0}]}),
    ]
