"""The simulated device: a PyTorch device on which stream code runs asynchronously, on real CPU tensors, without a GPU.

An operator on `sim` tensors queues on the current stream and returns; it runs when the schedule gets there, so that a
missing fence yields the stale value. `refimpl.device.sim()` installs it; `backend` is the module that programs see.

The way of an operator: `operators.dispatch` (what comes out, from `plans`) → `machine` (issue: host clock, queue, graph
capture) → a schedule of `schedules` (when it runs) → the CPU kernel (`operators.effects`). `operators.copies` says
which copies block the host, `streams` and `graphs` have CUDA's names and rules, `names` the rest of them, `adapted`
stands in PyTorch's own places, `regions` and `costs` say what things cost, `memory` where tensors lie, `runs` what a
run of a schedule begins with. Observers (`ops.Observer`) are told of all of it.

What it models: queues in order and unordered among each other; events as captures; the host as an agent with a clock of
its own, which pays for each call; copies by kind of memory; graphs that freeze addresses, whose branches interleave;
random numbers drawn in issue order; memory, of the device and pinned, that is handed on as by PyTorch's allocators, so
that a missing `record_stream` does harm; under an adversary or a replay, ops that are torn: what they write lands piece
by piece, and others see half of it. Every run under a schedule has an id that gives its order again.

What it does not:

- In virtual time an op reads and writes at one instant, its end: `Timed` shows stale values and no torn ones.
- A torn op reads all of its inputs at its first piece; a kernel goes on reading while it runs. What it writes lands in
  the order of memory, element by element; an element that is rewritten with its old value is not stored.
- Streams do not slow each other, and there is no limit to how many ops run at once.
- Memory has no limit but the host's. Each run of a schedule begins with an empty cache of zeros, and the default
  generator as it was last seeded. Python's garbage collector, which frees tensors in reference cycles, is not part of a
  schedule.
- A graph that outlives memory which went back to the system reads the old bytes, where CUDA would fault.
- A tensor is dense, neither sparse nor nested nor quantized, and keeps its memory: `resize_` is refused.
- The backward pass runs on the stream that is current when it is called; on CUDA each of its ops runs on the stream of
  its forward. `torch.compile` compiles nothing: operators arrive one by one.
- In a graph capture every call for which the host waits is an error, those of streams outside of the capture too.
- One device, one host thread, no legacy default stream: the default stream is like any other.
- A pageable source is read at the call, as drivers do. The checker does not count on it, and may report a race there
  which no order of this device shows.
- The LSTM and GRU cells that PyTorch fuses, and other operators without a CPU kernel, are refused when they are issued.
- A host read of a pinned buffer is ordinary CPU code: it sees what has landed by the host's clock.
"""
