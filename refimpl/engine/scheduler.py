"""The scheduler: which requests step next, in which order the streams get their work, and when results are read.

Both loops have SGLang's order, so that the two can be read side by side. Left out: prefix cache, chunked prefill,
grammars with their delayed sampling, tensor parallelism, and of disaggregation all but prebuilt requests. SGLang's
normal loop hands a draft's state on by itself; here both loops run the same ``run_batch``, so that they differ in
nothing but when results are read.

Source: sgl-project/sglang, ``managers/scheduler.py``.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from functools import partial

import torch

from refimpl import device as devices
from refimpl.engine.batch import LaunchedBatch, ScheduleBatch
from refimpl.engine.config import EngineConfig
from refimpl.engine.draft_input import DraftInputs
from refimpl.engine.forward_batch import ForwardBatch, ForwardResult
from refimpl.engine.forward_mode import ForwardMode
from refimpl.engine.future_map import FutureMap
from refimpl.engine.kv_transfer import KVTransferAgent
from refimpl.engine.memory import CacheMemory
from refimpl.engine.output_processor import Output, OutputProcessor
from refimpl.engine.prebuilt import PrebuiltQueue
from refimpl.engine.prefill import upload_prompts
from refimpl.engine.request import FinishReason, Req
from refimpl.engine.results import ResultRing
from refimpl.engine.sampling_table import SamplingTable
from refimpl.engine.staging import DEPTH, Staging
from refimpl.engine.step_lengths import StepLengths
from refimpl.engine.streams import Streams
from refimpl.engine.workers.base import Worker
from refimpl.fences import WarBarrier, apply_war_barrier, barrier_stands, keeps_mailbox
from refimpl.model.sampling import SamplingMode

MOST_FAILED_OPS = 1000
"""Of what is queued when a step fails; a GPU's context fails for good, and says so at the first."""


class Scheduler:
    """Runs requests to their end. A turn of its loops runs on ``schedule_stream``, and keeps no history for gradients.

    Args:
        device: ``"cuda"`` or ``"sim"``.
        config: of the engine.
        streams: the engine's.
        worker: how a step decodes.
        memory: rows and slots.
        future_map: what steps leave for each other on the device.
        sampling: parameters of the running requests.
        eos_token_id: ends a text.
    """

    def __init__(
        self,
        device: str,
        config: EngineConfig,
        streams: Streams,
        worker: Worker,
        memory: CacheMemory,
        future_map: FutureMap,
        sampling: SamplingTable,
        eos_token_id: int,
    ) -> None:
        self.device, self.config, self.streams, self.worker = device, config, streams, worker
        self.memory, self.future_map, self.sampling = memory, future_map, sampling
        self.schedule_stream, self.forward_stream = streams.schedule_stream, streams.forward_stream
        self.results = ResultRing(device, streams, config.max_running_requests, worker.block + 1)
        # Each of a step's uploads has room in it: prompts with their positions, and rows and columns of new slots.
        most = max(min(config.max_prefill_tokens, config.max_running_requests * config.max_context), config.max_context)
        rows = 2 * memory.reserve + 8
        self.ints = Staging(device, torch.int64, 4 * most + rows * (config.max_running_requests + 1))
        self.floats = Staging(device, torch.float32, 2 * config.max_running_requests)
        draft_inputs = DraftInputs(
            device, devices.get(device).Event, config.fences, streams, memory.plan_stream, self.ints
        )
        self.lengths = StepLengths(future_map, draft_inputs, worker.verify_done_at_end)
        self.inbox: deque[Req] = deque()
        self.waiting_queue: deque[Req] = deque()
        self.running_batch = ScheduleBatch(ForwardMode.DECODE, [])
        self.last_batch: ScheduleBatch | None = None
        self.result_queue: deque[tuple[LaunchedBatch, ForwardResult]] = deque()
        self.batch_record_buf: list[object] = [None] * DEPTH
        self.forward_ct = 0
        self.num_retracted = 0
        self._captured = set[SamplingMode]()
        self.outputs = OutputProcessor(memory, eos_token_id)
        self.prebuilt = PrebuiltQueue(
            device,
            config,
            streams,
            memory,
            future_map,
            sampling,
            KVTransferAgent(device, streams, worker, memory),
            self.outputs,
            self.ints,
            self.floats,
        )

    # The loops

    def event_loop_normal(self) -> Iterator[list[Output]]:
        """One step at a time, each read before the next is prepared. Yields what each turn brought."""
        while self.has_work():
            with torch.inference_mode(), self.schedule_stream:
                self.ingest_requests()

                batch = self.get_next_batch_to_run()
                if batch:
                    result = self.run_batch(batch)
                    self.outputs.process_batch_result_blocking(batch.copy(), result)
                else:
                    self.on_idle()

                self.last_batch = batch
            yield self.outputs.take()

    def event_loop_overlap(self) -> Iterator[list[Output]]:
        """Step N+1 is prepared while step N runs; results are read one step late. Yields what each turn brought."""
        while self.has_work():
            with torch.inference_mode(), self.schedule_stream:
                self.ingest_requests()
                self._apply_war_barrier(WarBarrier.LOOP_TOP)

                batch = self.get_next_batch_to_run()
                disable_overlap_for_batch = self.is_disable_overlap_for_batch(batch)

                if disable_overlap_for_batch:
                    self.pop_and_process_blocking()

                if batch:
                    result = self.run_batch(batch)
                    # Result processing writes full_to_swa: it, too, comes behind this forward's reads.
                    self._apply_war_barrier(WarBarrier.AFTER_RUN_BATCH)
                    self.result_queue.append((batch.copy(), result))

                if self.last_batch:
                    if not disable_overlap_for_batch:
                        self.pop_and_process_blocking()
                elif batch is None:
                    self.on_idle()

                self.last_batch = batch
            yield self.outputs.take()

    def is_disable_overlap_for_batch(self, batch: ScheduleBatch | None) -> bool:
        """Whether the last results are read before this batch is launched: of two prefills in a row, if so asked."""
        return (
            self.config.disable_consecutive_prefill_overlap
            and batch is not None
            and batch.forward_mode.is_extend()
            and self.last_batch is not None
            and self.last_batch.forward_mode.is_extend()
        )

    def pop_and_process_blocking(self) -> None:
        """The oldest results not yet read."""
        launched, result = self.result_queue.popleft()
        self.outputs.process_batch_result_blocking(launched, result)

    # Requests

    def has_work(self) -> bool:
        """Whether a turn would do anything."""
        return bool(
            self.inbox
            or self.waiting_queue
            or self.last_batch
            or self.result_queue
            or self.prebuilt
            or not self.running_batch.is_empty()
        )

    def ingest_requests(self) -> None:
        """Takes in what has arrived since the last turn; it waits for its prefill."""
        self.waiting_queue.extend(self.inbox)
        self.inbox.clear()

    def abort(self, req: Req) -> None:
        """Ends a request wherever it is; a forward that still runs it is redundant. Between turns only."""
        if req.finished():
            return
        req.finish_reason = FinishReason.ABORT
        if req.req_pool_idx is not None:
            with torch.inference_mode(), self.schedule_stream:
                self.memory.release(req)
        self.inbox = deque(r for r in self.inbox if r is not req)
        self.waiting_queue = deque(r for r in self.waiting_queue if r is not req)
        self.outputs.ended(req)

    def start_over_blocking(self) -> None:
        """Forgets every request and takes all memory back: after an error within a turn, whatever was done of it.

        Order:
            The host blocks until the device is idle, so nothing in flight uses what is handed out next.
        """
        self._await_idle_blocking()
        self.inbox.clear()
        self.waiting_queue.clear()
        self.prebuilt.clear()
        self.result_queue.clear()
        self.running_batch, self.last_batch = ScheduleBatch(ForwardMode.DECODE, []), None
        self.worker.last_shared_read_runner.shared_read_done_event = None
        self.outputs.take()
        self.ints.next_step()
        self.floats.next_step()
        with torch.inference_mode(), self.schedule_stream:
            self.memory.clear()

    def _await_idle_blocking(self) -> None:
        """Waits for all that is queued, also where some of it fails: on the simulated device each such op says so."""
        for _ in range(MOST_FAILED_OPS):
            with suppress(RuntimeError):
                devices.get(self.device).synchronize()
                return
        devices.get(self.device).synchronize()

    # Batches

    def get_next_batch_to_run(self) -> ScheduleBatch | None:
        """A prefill of waiting requests if some fit, else a decode of the running ones."""
        if self.last_batch and self.last_batch.forward_mode.is_extend():
            self.last_batch.filter_batch()
            self.running_batch.merge_batch(self.last_batch)
        self.running_batch.filter_batch()
        if self.prebuilt:
            self._merge_prebuilt()
        new_batch = self.get_new_batch_prefill()
        if new_batch is not None:
            return new_batch
        if self.running_batch.is_empty():
            return None
        self.update_running_batch(self.running_batch)
        return None if self.running_batch.is_empty() else self.running_batch

    def _merge_prebuilt(self) -> None:
        """Requests whose prefill ran elsewhere decode with the running ones."""
        seeded = self.prebuilt.get_new_prebuilt_batch(self.running_batch.batch_size())
        if seeded is not None:
            self.running_batch.merge_batch(seeded)

    def get_new_batch_prefill(self) -> ScheduleBatch | None:
        """Takes requests off the queue, in order, as long as rows, slots and the prefill's size allow."""
        reqs: list[Req] = []
        tokens = promised = 0
        while self.waiting_queue and self.running_batch.batch_size() + len(reqs) < self.config.max_running_requests:
            req = self.waiting_queue[0]
            tokens += len(req.fill_ids)
            if reqs and tokens > self.config.max_prefill_tokens:
                break
            if not self.memory.can_admit(req, promised) or not self.memory.take_row(req):
                break
            promised += len(req.fill_ids) + self.memory.reserve
            reqs.append(self.waiting_queue.popleft())
        return self.prepare_for_extend(reqs) if reqs else None

    def prepare_for_extend(self, reqs: list[Req]) -> ScheduleBatch:
        """Slots and rows for the prompts, and the prompts themselves to the device. On ``schedule_stream``."""
        lens = [len(req.fill_ids) for req in reqs]
        slots = self.memory.prepare_for_extend(reqs, lens, self.ints)
        extend, seq_lens = upload_prompts(reqs, slots, self.ints)
        for req, length in zip(reqs, lens, strict=True):
            req.kv_committed_len = length
        return ScheduleBatch(ForwardMode.EXTEND, reqs, extend=extend, seq_lens=seq_lens)

    def update_running_batch(self, batch: ScheduleBatch) -> None:
        """Retracts what no longer fits, and reserves the slots of the next step."""
        while not self.memory.can_decode(batch.reqs):
            # Whoever holds slots and does not run yet gives them back first.
            if not self.prebuilt.give_back_blocking():
                self.retract_decode(batch)
        if not batch.is_empty():
            self.prepare_for_decode(batch)

    def retract_decode(self, batch: ScheduleBatch) -> None:
        """Sends the request with the least output back to wait; its prefill will run over that output too.

        A forward of it may be in flight: its tokens do not count, and its slots are free at once.
        """
        victim = min(batch.reqs, key=lambda req: (len(req.output_ids), -len(req.prompt_ids)))
        assert batch.batch_size() > 1, f"request {victim.rid} alone does not fit, which was checked when it came"
        self.memory.release(victim)
        victim.epoch += 1
        self.num_retracted += 1
        self.waiting_queue.appendleft(victim)
        batch.filter_batch()

    def prepare_for_decode(self, batch: ScheduleBatch) -> None:
        """Slots for two blocks ahead: what is committed is known one step late. On ``schedule_stream``."""
        if batch.spec_info is not None:
            batch.spec_info.prepare_for_decode()
        self.memory.prepare_for_decode(batch.reqs, self.ints)

    # Steps

    def run_batch(self, batch: ScheduleBatch) -> ForwardResult:
        """Queues one forward behind its preparation, and the copy of its results behind it.

        Order:
            On ``schedule_stream``. The host does not block but for the first batch of a sampling mode, and for lengths
            where it needs them.
        """
        self.forward_ct += 1
        mode = batch.sampling_mode()
        # Safe because: a capture clears the static inputs, and the relay is gathered into them behind it.
        self.capture_blocking(mode)
        future_indices = batch.upload_rows(self.ints)
        seq_lens = self.lengths.resolve(batch, future_indices)
        seq_lens_cpu = self.lengths.resolve_cpu_blocking(batch) if self.config.needs_cpu_seq_lens else None
        draft_input = self.lengths.draft_input()

        # Safe because: forward reads what schedule prepared after it was written, and it publishes the next lengths
        # after schedule gathered the last ones.
        self.forward_stream.wait_stream(self.schedule_stream)
        with self.forward_stream:
            relay = None
            if batch.extend is None:
                into = self.worker.relay_into(batch.batch_size())
                relay = self.future_map.resolve_forward_inputs(future_indices, self.worker.relayed(mode), into)
            else:
                params = [req.params for req in batch.reqs]
                self.sampling.write(future_indices, params, self.ints, self.floats)
            forward_batch = ForwardBatch(
                batch.forward_mode, future_indices, seq_lens, mode, relay, batch.extend, seq_lens_cpu
            )
            on_publish = partial(self.lengths.publish, forward_batch, draft_input)
            result = self.worker.forward_batch_generation(forward_batch, on_publish)
            self.future_map.stash(future_indices, result.relay)
            self.lengths.end(forward_batch, draft_input)
            self.results.copy_to_cpu(result, self.forward_ct)

        # Safe because: schedule allocated these, and gets their memory again when the host drops them. The ring drops
        # them two steps later, when the host has read this step's results and forward is done with them.
        self.batch_record_buf[self.forward_ct % DEPTH] = (forward_batch, result, batch.spec_info)
        batch.spec_info = draft_input
        self.ints.next_step()
        self.floats.next_step()
        return result

    def capture_blocking(self, mode: SamplingMode) -> None:
        """Captures the graphs of a mode when the first request needs it; the host blocks that once."""
        if mode not in self._captured:
            # Safe because: what forward's warm-up takes may be memory that schedule read last; the host awaits that.
            devices.get(self.device).synchronize()
            self.worker.capture_blocking(mode)
            self._captured.add(mode)

    def _apply_war_barrier(self, place: WarBarrier) -> None:
        """What schedule writes from here on comes after the last forward's last read of the shared tables."""
        fences = self.config.fences
        if not barrier_stands(fences.war_barrier, fences.platform, place):
            return
        runner = self.worker.last_shared_read_runner
        read_done = runner.shared_read_done_event
        if not keeps_mailbox(fences.read_done):
            # Taken and cleared: a forward that publishes nothing must not be fenced by an older one's event.
            runner.shared_read_done_event = None
        apply_war_barrier(read_done, self.schedule_stream, self.forward_stream)

    def on_idle(self) -> None:
        """Nothing runs: every row and slot must be back, but for those of requests that wait for their KV."""
        if self.prebuilt:
            self.prebuilt.wait_blocking()
            return
        slots, rows = self.memory.allocator, self.memory.req_to_token_pool
        if not self.waiting_queue:
            assert rows.available() == rows.rows, f"{rows.rows - rows.available()} rows are not back"
            assert slots.available() == self.memory.num_slots, f"{self.memory.num_slots - slots.available()} slots leak"
