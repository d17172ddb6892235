/**
 * The model of the timeline: what a stream program means, and when its ops would run. Pure functions of a program in schema 1.
 *
 * THE SCHEDULE, a contract with refimpl.timeline (both compute the same times from the same program; times in microseconds):
 *  1. The host goes through the ops in issue order. Each op costs it CALL_US (6) once, also one that stands for several actions, such as
 *     stream_wait_stream. Exceptions cost nothing and leave no span: alloc, free, tensor_alloc, tensor_free, record_stream, set_device.
 *     host_work, host_read and host_write take their `us` (0 if none) and no call cost.
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
 *     current before this launch. The stream's tail is then the end of the last node, and not before the begin.
 *  9. host_async_begin costs a call; its agent then runs for `us`, or WORK_US, on the lane "agent ID".
 * 10. stream_write_value takes no time. stream_wait_value ends at max(its start, end of the earliest write of the flag that can run without it).
 * 11. tensor_alloc with a `block` whose last owner was freed after a record_stream holds the host until the marks made by that tensor_free
 *     (one at the tail of each recorded stream) have ended.
 * 12. Lanes: host, schedule, plan, forward, copy, others in program order; the legacy stream of device n > 0 is "legacy n"; agents last.
 *
 * THE ORDER (happens-before) has an edge for each of these: stream order, submit (host op before a later call), a capture to its wait or
 * synchronize, rule 3's barriers, graph deps, a flag's write to its wait. A race is two accesses to one byte, one of them a write, that the
 * edges leave unordered; between two owners of one block it is a lifetime race. An op that can never run makes a deadlock.
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
