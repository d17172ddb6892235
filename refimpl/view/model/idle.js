/**
 * Why a stream, or the whole GPU, stands idle: pieces of time, each with its cause. The rules of refimpl/timeline/idle.py.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./schedule.js").Span} Span
 * @typedef {{lane: string, from: number, to: number, why: "host"|"event"|"drained", before: number|null, wait?: number, record?: number}} Gap
 *   before: the op that runs next; wait: the wait that holds its stream, and record: what that one waits for
 */
import { HOST, isDrawn, stem } from "./lanes.js";

const NEAR = 1e-6;

/** The record, write or op whose end a wait or synchronize stood for, if it stood for one. @param {import("./lower.js").Op} op @param {Span[]} T */
export function awaited(op, T) {
	if (op.writers) return op.writers.reduce((x, w) => (x === undefined || T[w].end < T[x].end ? w : x), undefined);
	return op.after.find((e) => e.kind === "event" || e.kind === "value" || e.kind === "sync")?.from;
}

/** Of ascending things, how many are not yet `enough`. @param {number} n @param {(k: number) => boolean} enough */
export function firstWhere(n, enough) {
	let low = 0;
	for (let high = n; low < high;) { const mid = (low + high) >> 1; if (enough(mid)) high = mid; else low = mid + 1; }
	return low;
}

/** When the last op ends that a Trace shows. @param {Compiled} c @param {Span[]} T */
export const endOf = (c, T) => c.ops.reduce((x, o) => (isDrawn(o) ? Math.max(x, T[o.i].end) : x), 0);

/** The parts of a window that no interval covers; the intervals by their starts. @param {[number, number][]} covered @param {[number, number]} window */
function rest(covered, [from, to]) {
	/** @type {[number, number][]} */ const out = [];
	let at = from;
	for (const [start, end] of covered) {
		if (Math.min(start, to) - at > NEAR) out.push([at, Math.min(start, to)]);
		at = Math.max(at, Math.min(end, to));
	}
	return to - at > NEAR ? [...out, /** @type {[number, number]} */ ([at, to])] : out;
}

/** Why each stream stands idle, piece by piece. @param {Compiled} c @param {Span[]} T @returns {Gap[]} */
export function gaps(c, T) {
	const window = /** @type {[number, number]} */ ([0, endOf(c, T)]), waits = waitsByLane(c, T);
	return c.lanes.filter((l) => l !== HOST && !l.startsWith("agent ")).flatMap((lane) => holes(c, T, lane, c.on.get(lane).map((i) => c.ops[i]), waits, window));
}

/**
 * Why no stream runs anything, piece by piece, with the cause in refimpl's words.
 * @param {Compiled} c @param {Span[]} T @param {[number, number]} [window] @returns {(Gap & {cause: string})[]}
 */
export function gpuIdle(c, T, window = [0, endOf(c, T)]) {
	return holes(c, T, "", c.ops, waitsByLane(c, T), window).map((g) => ({ ...g, cause: causeOf(c, T, g) }));
}

/** The cause of a gap in refimpl's words. @param {Compiled} c @param {Span[]} T @param {Gap} g */
export function causeOf(c, T, g) {
	if (g.why === "drained") return "no more work";
	return g.why === "event" ? stem(c.ops[g.wait].call) : hostMost(c, T, g.from, g.to)?.cause ?? "host: issuing calls";
}

/** What of a window the runs among `ops` leave, cut where the cause changes: the waits of the stream that runs next, else the host. */
function holes(c, T, lane, ops, waits, window) {
	/** @type {Gap[]} */ const out = [];
	const byStart = (p, q) => T[p.i].start - T[q.i].start || p.i - q.i, runs = ops.filter((o) => o.kind === "run").sort(byStart);
	for (const [from, to] of rest(runs.map((o) => [T[o.i].start, T[o.i].end]).filter(([start, end]) => end > start), window)) {
		const next = runs[firstWhere(runs.length, (k) => T[runs[k].i].start >= to - 1e-9)];
		if (!next) { out.push({ lane, from, to, why: "drained", before: null }); continue; }
		let at = from;
		const piece = (end, g) => { if (end - at > NEAR) out.push({ lane, from: at, to: end, before: next.i, ...g }); at = Math.max(at, end); };
		const held = waits.get(next.lane) ?? [];
		for (let k = firstWhere(held.length, (n) => held[n].until > from); k < held.length && T[held[k].i].start < to; k++) {
			const w = held[k].i;
			piece(Math.min(T[w].start, to), { why: "host" });
			piece(Math.min(T[w].end, to), { why: "event", wait: w, record: awaited(c.ops[w], T) });
		}
		piece(to, { why: "host" });
	}
	return out;
}
/** The waits of each stream that held it, by their starts; `until`: when the last of those so far had ended. */
function waitsByLane(c, T) {
	const out = new Map();
	for (const [lane, on] of c.on) {
		const held = on.filter((i) => c.ops[i].kind === "wait" && T[i].end > T[i].start).sort((p, q) => T[p].start - T[q].start || p - q);
		let until = 0;
		out.set(lane, held.map((i) => ({ i, until: (until = Math.max(until, T[i].end)) })));
	}
	return out;
}

/** What the host spent most of an interval with: in words, and the longest op of it. @param {Compiled} c @param {Span[]} T @param {number} from @param {number} to */
export function hostMost(c, T, from, to) {
	const on = c.on.get(HOST), shares = new Map();
	for (let k = firstWhere(on.length, (n) => T[on[n]].end > from); k < on.length && T[on[k]].start < to; k++) {
		const o = c.ops[on[k]], us = Math.min(T[o.i].end, to) - Math.max(T[o.i].start, from), cause = `${o.kind === "sync" ? "host held by" : "host:"} ${stem(o.call)}`;
		if (us <= 0) continue;
		const s = shares.get(cause) ?? { cause, us: 0, op: o.i, most: 0 };
		shares.set(cause, { cause, us: s.us + us, op: us > s.most ? o.i : s.op, most: Math.max(us, s.most) });
	}
	return [...shares.values()].reduce((x, s) => (x === null || s.us > x.us ? s : x), null);
}

/** The op that the host mostly was at in an interval. @param {Compiled} c @param {Span[]} T @param {number} from @param {number} to @returns {number|null} */
export const hostDuring = (c, T, from, to) => hostMost(c, T, from, to)?.op ?? null;
