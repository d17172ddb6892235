/**
 * The model of the timeline: what a stream program means, and when its ops would run. Pure functions of a program in schema 1. This folder knows
 * nothing of pages, pixels or sentences; refimpl.order and refimpl.timeline say the same in Python.
 *
 * THE SCHEDULE, a contract with refimpl.timeline (both compute the same times from the same program; times in microseconds):
 *  1. The host goes through the ops in issue order. Each op costs it CALL_US (6) once, also one that stands for several actions, such as
 *     stream_wait_stream. Exceptions cost nothing and leave no span: alloc, free, tensor_alloc, tensor_free, record_stream, set_device.
 *     host_work, host_read and host_write take their `us` (0 if none) and no call cost. All that one op of the program does was submitted when
 *     its call began, and is ready when the call's cost is paid; what a staged copy (rule 7) writes is ready when the host has taken the source.
 *  2. A stream is first in, first out. An action on it starts at max(host time after the call, stream's tail, stall given from outside).
 *  3. An action on the legacy stream of a device starts also after the tails of all blocking and per_thread streams of that device; an action
 *     on such a stream starts also after the tail of its device's legacy stream. Records, waits and tail marks are actions.
 *  4. launch, memcpy and memset take `us`, or WORK_US (10). A record takes no time. A wait ends at max(its start, end of the capture that
 *     was current at its call). A wait on a never-recorded event takes no time.
 *  5. stream_wait_stream: a tail mark on `on`, then a wait for it. stream_sync and its query: a tail mark, then the host is held for it.
 *  6. event_sync, stream_sync, device_sync, the queries and host_async_wait hold the host from its return from the call (after the cost)
 *     until what they capture has ended. device_sync captures the tails of all streams of the current device.
 *  7. A sync copy or sync fill runs on the current device's legacy stream. The host is then held until its end for H2H (also async), D2H,
 *     H2D from pinned memory, and a sync fill of pinned memory. Sync H2D from other host memory: the host pays the call, is held until the
 *     legacy stream's tail, takes the source, and goes on; the write starts then and is not waited for. D2D never holds. `Default` goes by the
 *     buffers, managed counting as device.
 *  8. graph_launch: its begin is an action (rule 2). A node starts when all its `deps` have ended, or at the begin when it has none. A kernel
 *     node takes its own `us`, or WORK_US; record and wait nodes take no time of their own. With `us` on the launch, kernel nodes are
 *     stretched by us / (longest path over deps of the nodes' own times), so that the whole takes `us`. A wait node waits for the capture
 *     current before this launch. The stream's tail is then the end of the last node, and not before the begin; with `us` on the launch and no
 *     kernel node's own time, `us` after the begin. Nodes are taken in the order in which they are listed, as far as their deps allow it: of two
 *     records of one event the later one in that order is what the event holds.
 *  9. host_async_begin costs a call; its agent then runs for `us`, or WORK_US, on the lane "agent ID".
 * 10. stream_write_value takes no time. stream_wait_value ends at max(its start, end of the earliest write of the flag). Waits for flags are timed
 *     in the order of their ends, so that no write that is still open could have come earlier.
 * 11. tensor_alloc with a `block` holds the host until the marks have ended that tensor_frees made of that block since it was last handed out: one
 *     at the tail of each stream that was recorded for the buffer since it was handed out, but for the stream that it was handed out on. A buffer
 *     that is freed with a `block` before it is handed out was handed out in that block before the program begins. Such a mark starts as an
 *     action would and is none: no blocking stream waits for one on legacy.
 * 12. Lanes: host, schedule, plan, forward, copy, other streams as the program names them, legacy, the legacy stream of device n > 0 as "legacy n",
 *     agents last. refimpl draws the streams that a program names and does not use as well.
 * 13. An op that never runs has no time in refimpl; here it stands after all else.
 *
 * THE ORDER (happens-before) has an edge for each of these: stream order, submit (host op before a later call), a capture to its wait or
 * synchronize, rule 3's barriers, graph deps, a flag's write to its wait. A wait for a flag that several writes may set comes after what all of
 * them come after. Of two records of one event in a graph that no deps order, either may be the last: what waits for the event comes after the
 * launch's begin alone, though rule 8 times it by the later one. A race is two accesses to one byte, one of them a write, that the edges leave
 * unordered; between two buffers of one block it is a lifetime race. An op that can never run makes a deadlock, and races with nothing.
 *
 * VALUES: a read takes its bytes when it starts, a write leaves its own when it ends. Meant is the last write in issue order before the read. A
 * read is torn when a write issued after it overlaps it in time. The first bytes of a range that are wrong are told.
 *
 * ACCOUNTS: those of refimpl.timeline.accounts and gaps. The window is from the start of a step to that of the last, or the whole Trace. A lane is
 * busy while it runs or the host works, a host that is held is neither busy nor idle. A gap is a stretch without work of that stream (or of any);
 * it is cut where its cause changes: each wait of the stream that runs next has the part that no earlier one has, the rest is the host's, named
 * by what took most of it in sum; after the last work a stream is drained.
 */
import { compile } from "./lower.js";
import { races } from "./order.js";

export * from "./ranges.js";
export * from "./lower.js";
export * from "./order.js";
export * from "./schedule.js";
export * from "./accounts.js";

/**
 * The strict verdict of a program, the racing pairs as indices of its ops, and those of its ops that never run.
 * @param {any} program @returns {{verdict: "race"|"ok"|"deadlock", pairs: [number, number][], stuck: number[]}}
 */
export function verdict(program) {
	const c = compile(program), src = (i) => c.ops[i].src, pairs = new Map();
	for (const r of races(c)) pairs.set(`${src(r.a)} ${src(r.b)}`, [src(r.a), src(r.b)]);
	return { verdict: c.never.size ? "deadlock" : pairs.size ? "race" : "ok", pairs: [...pairs.values()], stuck: [...new Set([...c.never].map(src))] };
}
