"""The simulated device: a PyTorch device on which stream code runs asynchronously, on real CPU tensors, without a GPU.

An operator on `sim` tensors queues on the current stream and returns; it runs when the schedule gets there, so that a
missing fence yields the stale value. `refimpl.device.sim()` installs it; `backend` is the module that programs see.

The way of an operator: `dispatch` (what comes out, from `plans`) → `machine` (issue: host clock, queue, graph
    capture) → `schedules` (when it runs) → the CPU kernel. `copies` says which copies block the host, `streams` has
    CUDA's names and rules, `regions` what a named step costs, `buffers` which bytes an op touches. Observers
    (`ops.Observer`) are told of all of it.

What it models: queues in order and unordered among each other; events as captures; the host as an agent with a clock of
its own, which pays for each call; copies by kind of memory; graphs that freeze addresses; random numbers drawn in issue
order.

What it does not, or not yet:

- An op reads and writes at one instant, its end. A torn value, half old and half new, does not occur.
- Streams do not slow each other, and there is no limit to how many ops run at once.
- A freed block is not handed to the next allocation, so a missing `record_stream` does no harm yet.
`buffers.allocate` is
  the one place where device memory comes from, and is told the stream; `record_stream` keeps its note in the buffer.
- A graph's intermediate memory is its own, not a pool's.
- One device, one host thread, no legacy default stream: the default stream is like any other.
- A host read of a pinned buffer is ordinary CPU code: it sees what has landed by the host's clock.
"""
