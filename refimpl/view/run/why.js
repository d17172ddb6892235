/** Why a stream stood idle, and why work waited after its launch: the answers that the recording itself holds. */
import { BLOCKED, RECORD, RUN, WAIT, above, busyOf, covered, families, launchLane, once, workOf } from "./index.js";
import { edgesOf } from "./path.js";

const ENDS_NEAR_US = 10, LATENCY_US = 20, ROUNDING = 0.0015;

/**
 * @typedef {{cause: "host" | "call" | "event" | "stream" | "latency" | "queued" | "launch" | "busy" | "drained" | "hidden", from: number, to: number, by?: number, name?: string}} Part a stretch of waiting, its cause, and the span to blame
 * @typedef {{lane: number, from: number, to: number, next: number, last: number}} Gap of a stream: the work after it and before it, -1 for none
 */

/** The stretch around a time in which a stream does not work; null where it works, and on a lane of the host. @param {any} run @param {number} lane @param {number} t @returns {Gap | null} */
export function gapAt(run, lane, t) {
	if (run.host[lane]) return null;
	const u = workOf(run, lane), k = above(u.start, t) - 1;
	if (!u.start.length || (k >= 0 && t < u.end[k])) return null;
	const from = k >= 0 ? u.end[k] : run.from, to = k + 1 < u.start.length ? u.start[k + 1] : run.to, runs = runsOf(run, lane), next = k + 1 < u.start.length ? runs.find(u.start[k + 1]) : -1;
	return to > from ? { lane, from, to, next, last: k >= 0 ? runs.before(u.end[k]) : -1 } : null;
}
/** The spans of work on a lane, by time. */
function runsOf(run, lane) {
	const ids = run.byLane[lane], upTo = (t) => above(run.start, t), place = (i) => above(ids, i - 1);
	return {
		find: (t) => { let k = place(above(run.start, t - 1e-9)); while (k < ids.length && run.kind[ids[k]] !== RUN) k++; return k < ids.length ? ids[k] : -1; },
		before: (t) => { let k = place(upTo(t)) - 1; while (k >= 0 && (run.kind[ids[k]] !== RUN || run.end[ids[k]] > t + ROUNDING)) k--; return k >= 0 ? ids[k] : -1; },
	};
}

/** Causes of a gap, in order of time; their times add up to it. @param {any} run @param {Gap} gap @returns {Part[]} */
export function whyIdle(run, gap) {
	const { from, to, next, last } = gap;
	if (next < 0) return [{ cause: "drained", from, to }];
	const { submit, ready } = run, parts = [], cut = (us) => Math.min(to, Math.max(from, us));
	if (Number.isNaN(submit[next])) return [{ cause: "host", from, to, ...hostBetween(run, from, to) }];
	const called = cut(submit[next]), free = cut(ready[next]);
	if (called > from) parts.push({ cause: "host", from, to: called, ...hostBetween(run, from, called) });
	if (free > called) parts.push({ cause: "call", from: called, to: free });
	return to > free ? [...parts, ...outside(run, next, free, to, ready[next] > from, last)] : parts;
}
/** Causes of the time between the end of a launch call and the start of its work; none where the call is unknown. @param {any} run @param {number} i @returns {Part[]} */
export function whyWaits(run, i) {
	const from = run.ready[i], to = run.start[i];
	if (Number.isNaN(from) || to - from <= ROUNDING || run.kind[i] !== RUN) return [];
	const own = workOf(run, run.lane[i]), last = runsOf(run, run.lane[i]).before(to), free = last < 0 ? from : Math.min(to, Math.max(from, run.end[last]));
	const busy = covered(own, from, free);
	const parts = busy > ROUNDING ? [{ cause: /** @type {const} */ ("busy"), from, to: free, by: last }] : [];
	return to - free > ROUNDING ? [...parts, ...outside(run, i, free, to, free === from, last)] : parts;
}
/** After the launch, with the stream free: an event, nodes of one launch, work of another stream that ended then, or the launch's own way. */
function outside(run, i, from, to, late, last) {
	const source = awaited(run, i, from);
	if (source >= 0) {
		const end = Math.min(to, run.end[source]), parts = [{ cause: "event", from, to: end, by: source }];
		return to - end > LATENCY_US ? [...parts, { cause: "hidden", from: end, to }] : [{ ...parts[0], to }];
	}
	if (last >= 0 && run.launches.of[i] >= 0 && run.launches.of[last] === run.launches.of[i]) return [{ cause: "launch", from, to }];
	const near = endedNear(run, i, from, to);
	if (near >= 0 && to - from > ENDS_NEAR_US) return [{ cause: "stream", from, to, by: near }];
	return [{ cause: to - from > LATENCY_US ? "hidden" : late ? "latency" : "queued", from, to }];
}
/** What a span waited for by an edge: the latest to end of all that the span, or a wait right before it on its lane, comes after; -1 for none that ended in the gap. */
function awaited(run, i, from) {
	const { into } = edgesOf(run), ids = run.byLane[run.lane[i]];
	let best = -1;
	for (let k = above(ids, i) - 1; k >= 0; k--) {
		const j = ids[k];
		if (j !== i && run.kind[j] === RUN) break;
		for (const e of into.get(j) ?? []) {
			const s = worker(run, e.from);
			if (run.end[s] > from + ROUNDING && (best < 0 || run.end[s] > run.end[best])) best = s;
		}
	}
	return best;
}
/** The work behind a mark: what its stream did right before the record. */
export function worker(run, i) {
	if (run.kind[i] !== RECORD && run.kind[i] !== WAIT) return i;
	const ids = run.byLane[run.lane[i]];
	for (let k = above(ids, i) - 2; k >= 0; k--) if (run.kind[ids[k]] === RUN) return ids[k];
	return i;
}
/** Work of another stream that ended shortly before a span began, inside the gap. */
function endedNear(run, i, from, to) {
	let best = -1;
	run.lanes.forEach((_, lane) => {
		if (run.host[lane] || lane === run.lane[i] || !run.byLane[lane].length) return;
		const j = runsOf(run, lane).before(run.start[i]);
		if (j >= 0 && run.end[j] > from + ROUNDING && run.end[j] <= to + ROUNDING && to - run.end[j] <= ENDS_NEAR_US && (best < 0 || run.end[j] > run.end[best])) best = j;
	});
	return best;
}
/** What the thread that launches did for most of a stretch of time: a blocking call, an annotation, or launches of other work. @param {any} run @param {number} from @param {number} to @returns {{by?: number, name?: string}} */
function hostBetween(run, from, to) {
	const lane = launchLane(run), sums = new Map(), { of } = families(run);
	if (lane < 0) return {};
	for (const track of run.tracks[lane])
		for (let k = above(track.reach, from); k < track.ids.length && track.start[k] < to; k++) {
			const i = track.ids[k], us = Math.min(to, run.end[i]) - Math.max(from, run.start[i]), x = sums.get(of[i]) ?? { us: 0, most: 0, by: i };
			x.us += us;
			if (us > x.most) { x.most = us; x.by = i; }
			sums.set(of[i], x);
		}
	const top = [...sums.values()].sort((p, q) => q.us - p.us)[0], calls = covered(callsOf(run), from, to), known = covered(busyOf(run, lane, [BLOCKED, 4, RUN]), from, to), idle = to - from - known - calls;
	if (top && top.us >= Math.max(calls, idle)) return { by: top.by, name: run.kind[top.by] === BLOCKED ? "blocked" : "work" };
	return calls > idle ? { name: "launches" } : {};
}
/** Launch calls outside the host's spans: what only the calls show. */
const callsOf = (run) => once(run, "calls", () => {
	const { start, end } = run.launches, out = { start: [], end: [], sum: [] }, host = busyOf(run, launchLane(run), [BLOCKED, 4, RUN]);
	let total = 0, reach = -Infinity;
	for (let k = 0; k < start.length; k++) {
		const from = Math.max(start[k], reach);
		if (end[k] <= from || covered(host, from, end[k]) > 0) continue;
		out.start.push(from);
		out.end.push((reach = end[k]));
		out.sum.push(total);
		total += end[k] - from;
	}
	return out;
});

/** The next gap of a lane that is long for the run: over 20 µs, from a time on; null where there is none. @param {any} run @param {number} lane @param {number} t @returns {Gap | null} */
export function nextIdle(run, lane, t) {
	const u = workOf(run, lane);
	for (let k = Math.max(1, above(u.start, t - ROUNDING)); k < u.start.length; k++) if (u.start[k] - u.end[k - 1] > LATENCY_US) return gapAt(run, lane, (u.start[k] + u.end[k - 1]) / 2);
	return null;
}
/** The gap before a span on its lane, if any. @param {any} run @param {number} i @returns {Gap | null} */
export function gapBefore(run, i) {
	const gap = run.kind[i] === RUN ? gapAt(run, run.lane[i], run.start[i] - ROUNDING) : null;
	return gap && gap.to <= run.start[i] + ROUNDING ? gap : null;
}
/** For how long a lane works, and is held, in a window. @param {any} run @param {number} lane @param {number} from @param {number} to */
export function shares(run, lane, from, to) {
	const us = to - from || 1;
	return { busy: covered(workOf(run, lane), from, to) / us, held: covered(busyOf(run, lane, [run.host[lane] ? BLOCKED : WAIT]), from, to) / us };
}
