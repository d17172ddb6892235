/**
 * Where the time goes: what an op waited for, the chain of blame behind a gap, and accounts of a run or of its steps.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 * @typedef {import("./schedule.js").Span} Span
 * @typedef {import("./idle.js").Gap} Gap
 */
import { HOST, stem } from "./lower.js";
import { awaited, endOf, firstWhere, hostDuring } from "./idle.js";

export * from "./idle.js";

/** The ops of i's lane before i, the nearest first, as far as some of them may still run after `since`. @param {Compiled} c @param {Span[]} T @param {number} i @param {number} since */
function* earlier(c, T, i, since) {
	const on = c.on.get(c.ops[i].lane);
	for (let k = firstWhere(on.length, (n) => on[n] >= i) - 1; k >= 0; k--) {
		const o = c.ops[on[k]];
		if (o.graph === undefined && T[o.i].end < since) return; // a stream is first in, first out: all before it has ended too
		yield o;
	}
}
const firstOf = (ops, ok) => { for (const o of ops) if (ok(o)) return o; return undefined; };

/** What an op waited for between its call and its start. @param {Compiled} c @param {Span[]} T @param {number} i */
export function waitedFor(c, T, i) {
	const me = c.ops[i], out = [];
	if (me.lane === HOST || T[i].start - T[i].ready <= 1e-6) return out;
	for (const p of earlier(c, T, i, T[i].ready)) {
		if (p.kind !== "run" && p.kind !== "wait") continue;
		const us = Math.min(T[p.i].end, T[i].start) - Math.max(T[p.i].start, T[i].ready);
		if (us > 1e-6) out.push(p.kind === "wait" ? { why: "event", op: awaited(p, T) ?? p.i, us } : { why: "stream", op: p.i, us });
	}
	return out.reverse();
}

const QUEUED = new Set(["fifo", "legacy", "dep"]);

/** What a mark had to wait for on the device: of all that it stands behind, the one that ended last. @param {Compiled} c @param {Span[]} T @param {number} i @param {(o: Op) => boolean} ok */
function lastBehind(c, T, i, ok) {
	for (let at = i; ;) {
		const from = c.ops[at].after.filter((e) => QUEUED.has(e.kind)).map((e) => e.from);
		if (!from.length) return undefined;
		at = from.reduce((x, f) => (T[f].end > T[x].end ? f : x));
		if (ok(c.ops[at])) return c.ops[at];
	}
}

/**
 * The chain behind a gap, back to what was running when it opened: what the lane waits for, what that waited for, and so on.
 * @param {Compiled} c @param {Span[]} T @param {Gap} g
 */
export function blame(c, T, g) {
	const out = [], real = (o) => o.kind === "wait" && T[o.i].end > T[o.i].start;
	if (g.why === "host") {
		const op = hostDuring(c, T, g.from, g.to);
		if (op === null) return out;
		out.push({ why: c.ops[op].kind === "sync" ? "sync" : "host", op });
		const held = firstOf(earlier(c, T, op, g.from - 1), (o) => o.kind === "sync" && T[o.i].end > T[o.i].start && T[o.i].end >= g.from - 1);
		if (held) out.push({ why: "sync", op: held.i });
	}
	for (let r = g.why === "event" ? g.record : undefined; r !== undefined && out.length < 6;) {
		if (!c.ops[r].implicit) { out.push({ why: "event", op: r }); break; }
		const p = lastBehind(c, T, r, (o) => o.kind === "run" || real(o));
		if (!p) break;
		if (p.kind === "run") out.push({ why: "run", op: p.i });
		if (T[p.i].end <= g.from) break;
		const w = p.kind === "wait" ? p : firstOf(earlier(c, T, p.i, T[p.i].start), (o) => real(o) && T[o.i].end >= T[p.i].start);
		r = w && awaited(w, T);
		if (w && T[w.i].end < g.from - 1e-6) break;
	}
	return out;
}

/** The ops whose starts mark the steps: device work of that name, with a number or without; else none. @param {Compiled} c @param {string} [stepOp] */
export const beatOps = (c, stepOp) => (stepOp ? c.ops.filter((o) => o.kind === "run" && (o.call === stepOp || stem(o.call) === stepOp)) : []);

/**
 * Accounts per step in the steady state, warm-up left out where there are steps enough; else of the whole run. `hero` is the main stream.
 * `calls` are what held the host, longest first, and `lanes` the busy and idle time of each, both over the whole window `from` … `to`, as refimpl's
 * `accounts` has them; the rest is per step.
 * @param {Compiled} c @param {Span[]} T @param {{stepOp?: string, hero?: string}} [options]
 */
export function account(c, T, { stepOp, hero } = {}) {
	const beats = beatOps(c, stepOp).map((o) => T[o.i].start).sort((p, q) => p - q), perStep = beats.length > 2, skip = Math.max(0, Math.min(2, beats.length - 3));
	const from = perStep ? beats[skip] : 0, to = perStep ? beats[beats.length - 1] : Math.max(1e-9, endOf(c, T)), steps = perStep ? beats.length - 1 - skip : 1;
	const within = (o) => Math.min(T[o.i].end, to) - Math.max(T[o.i].start, from);
	/** @type {Object<string, number>} */ const blockedBy = {};
	/** @type {Map<string, {call: string, times: number, us: number}>} */ const calls = new Map();
	for (const o of c.ops) if (o.kind === "sync" && within(o) > 0) {
		const e = stem(o.event.replace(/^tail of /, "")), call = stem(o.call), sum = calls.get(call) ?? { call, times: 0, us: 0 };
		blockedBy[e] = (blockedBy[e] ?? 0) + within(o) / steps;
		calls.set(call, { call, times: sum.times + 1, us: sum.us + within(o) });
	}
	const idle = (ops) => (to > from ? 1 - covered(T, ops.filter((o) => o.kind === "run"), from, to) / (to - from) : 0), on = (lane) => (c.on.get(lane) ?? []).map((i) => c.ops[i]);
	return {
		from, to, step: (to - from) / steps, perStep, beats, blockedBy, blocked: Object.values(blockedBy).reduce((x, y) => x + y, 0),
		idle: idle(c.ops), heroIdle: idle(on(hero)), calls: [...calls.values()].sort((p, q) => q.us - p.us),
		lanes: c.lanes.map((lane) => laneAccount(T, lane, on(lane), from, to)),
	};
}
/** A host that a call holds is neither busy nor idle. */
function laneAccount(T, lane, ops, from, to) {
	const busy = ops.filter((o) => o.kind === "run" || o.kind === "host" || o.kind === "agent");
	return { lane, busy: covered(T, busy, from, to), idle: to - from - covered(T, [...busy, ...ops.filter((o) => o.kind === "sync")], from, to) };
}
/** How much of a window some op covers. @param {Span[]} T @param {Op[]} ops @param {number} from @param {number} to */
function covered(T, ops, from, to) {
	let sum = 0, at = from;
	for (const { start, end } of ops.map((o) => T[o.i]).sort((p, q) => p.start - q.start)) {
		sum += Math.max(0, Math.min(end, to) - Math.max(start, at));
		at = Math.max(at, end);
	}
	return sum;
}
