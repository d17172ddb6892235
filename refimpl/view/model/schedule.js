/**
 * When ops would run, and what happens when a bad order is forced. The rules stand at the top of model.js.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 * @typedef {import("./lower.js").Access} Access
 * @typedef {import("./order.js").Race} Race
 * @typedef {{submit: number, ready: number, start: number, end: number}} Span   submit..ready: the host makes the call; start..end: it executes
 */
import { HOST, isDrawn, WORK_US } from "./lower.js";
import { covers, rangeEnd, runsWithin, sharedBytes } from "./ranges.js";
import { awaitedFlag, writtenFlag } from "./flags.js";
import { Heap } from "./rules.js";
import { races } from "./order.js";

const UNTIL = new Set(["event", "sync"]), ENDS = new Set([...UNTIL, "value"]);

/** Duration of an op's own work, when `us` overrides durations by key. @param {Compiled} c @param {Op} op @param {Map<string, number>} us */
export function duration(c, op, us) {
	const begin = op.graph === undefined ? null : c.ops[op.graph], own = us.get(op.key) ?? op.us;
	if (begin?.whole === undefined || op.kind !== "run") return op.kind === "run" || op.kind === "host" || op.kind === "agent" ? own : 0;
	return begin.span ? op.us * ((us.get(op.key) ?? begin.whole) / begin.span) : 0;
}

/**
 * List schedule: the host issues op after op, and each is timed as soon as what it comes after is. Only a wait for a flag may have to look ahead,
 * since the write may be issued later: those waits are timed in the order of their ends, so that no write that is still open could have come
 * earlier. `stall` maps an op to a time before which it may not start: a legal delay, used to force an order. An op that never runs gets the time
 * at which all else has ended.
 * @param {Compiled} c @param {{us?: Map<string, number>, stall?: Map<number, number>}} [options] @returns {Span[]}
 */
export function schedule(c, { us = new Map(), stall = new Map() } = {}) {
	/** @type {Span[]} */ const T = new Array(c.ops.length);
	const flags = new Flags(), done = new Uint8Array(c.ops.length), missing = new Int32Array(c.ops.length), followers = new Map();
	let host = 0;
	/** Times an op whose past is timed, and all that only waited for it. */
	const run = (first, at) => {
		for (const todo = [first]; todo.length; at = undefined) {
			const i = todo.pop(), t = T[i], flag = at === undefined ? awaitedFlag(c.ops[i]) : undefined;
			if (at === undefined) t.start = startOf(c.ops[i], T, stall.get(i) ?? 0);
			if (flag !== undefined) { flags.wait(flag, i, t.start); continue; }
			t.end = at ?? endOf(c, c.ops[i], T, us);
			done[i] = 1;
			const sets = writtenFlag(c.ops[i]);
			if (sets !== undefined) flags.set(sets, t.end, T);
			for (const f of followers.get(i) ?? []) if (--missing[f] === 0) todo.push(f);
		}
	};
	const settle = () => {
		const next = flags.earliest(done);
		if (next) run(next.i, next.end);
		return next !== null;
	};
	for (const op of c.ops) {
		const i = op.i, again = i && c.ops[i - 1].src === op.src;
		T[i] = { submit: again ? T[i - 1].submit : host, ready: (host += op.cost), start: host, end: host };
		for (const e of op.after) if (e.kind !== "value" && !done[e.from]) { missing[i]++; followers.has(e.from) ? followers.get(e.from).push(i) : followers.set(e.from, [i]); }
		if (!missing[i]) run(i);
		if (op.lane !== HOST) continue;
		while (!done[i] && settle());
		if (!done[i]) break;
		host = T[i].end;
	}
	while (settle());
	return standing(c, T, done);
}
function startOf(op, T, floor) {
	let at = Math.max(T[op.i].ready, floor);
	if (op.lane !== HOST) for (const e of op.after) if (!ENDS.has(e.kind) && T[e.from].end > at) at = T[e.from].end;
	return at;
}
function endOf(c, op, T, us) {
	let at = T[op.i].start + duration(c, op, us);
	for (const e of op.after) if (UNTIL.has(e.kind) && T[e.from].end > at) at = T[e.from].end;
	return op.kind === "end" ? Math.max(at, wholeGraph(c, op, T, us)) : at;
}
/** Times for the ops that never run: from where what they stand behind ended, to after all else. */
function standing(c, T, done) {
	const end = c.ops.reduce((x, o) => (done[o.i] ? Math.max(x, T[o.i].end) : x), 0) + WORK_US;
	for (const o of c.ops) {
		if (done[o.i]) continue;
		const from = o.after.reduce((x, e) => (done[e.from] ? Math.max(x, T[e.from].end) : x), 0), held = !o.after.some((e) => !ENDS.has(e.kind) && !done[e.from]);
		T[o.i] = { submit: from, ready: from, start: held ? from : end, end };
	}
	return T;
}
/** The waits for flags that hold a stream, and when each could end by the writes that are timed. */
class Flags {
	constructor() {
		/** @type {Map<string, number>} */ this.at = new Map();
		/** @type {Map<string, number[]>} */ this.waiting = new Map();
		this.offers = new Heap();
	}
	set(flag, end, T) {
		if (end >= (this.at.get(flag) ?? Infinity)) return;
		this.at.set(flag, end);
		for (const i of this.waiting.get(flag) ?? []) this.offers.push(Math.max(T[i].start, end), i);
	}
	wait(flag, i, start) {
		this.waiting.has(flag) ? this.waiting.get(flag).push(i) : this.waiting.set(flag, [i]);
		if (this.at.has(flag)) this.offers.push(Math.max(start, this.at.get(flag)), i);
	}
	earliest(done) {
		while (this.offers.size) {
			const { at, what } = this.offers.pop();
			if (!done[what]) return { i: what, end: at };
		}
		return null;
	}
}

/** A graph without kernel nodes takes the launch's time all the same. */
function wholeGraph(c, end, T, us) {
	const begin = c.ops[end.begin];
	return begin.whole !== undefined && !begin.span ? T[begin.i].end + (us.get(begin.key) ?? begin.whole) : 0;
}

/**
 * What each racing read found, byte by byte, against what issue order meant it to find: the first bytes of each of its ranges that are wrong.
 * A read takes its bytes when it starts, a write leaves its own when it ends, and a read that a later write overlaps in time is torn.
 * @param {Compiled} c @param {Span[]} T @param {Race[]} [rs]
 * @returns {{reader: number, range: Access, bytes: {buf: string, off: number, len: number}, got: number|null, want: number|null, how: "stale"|"overwritten"|"torn"}[]}
 */
export function wrongReads(c, T, rs = races(c)) {
	const out = [], racing = new Set(rs.flatMap((r) => [r.a, r.b])), writersOf = writersByRange(c);
	for (const i of [...racing].sort((x, y) => x - y)) {
		for (const range of c.ops[i].reads) {
			const writers = writersOf(range), wrong = inOrder(T, i, writers) ? null : firstWrong(T, i, range, writers);
			if (wrong) out.push({ reader: i, range, ...wrong });
		}
	}
	return out;
}
/** True when all writers came as they were issued, which is the common case and needs no look at bytes. */
function inOrder(T, i, writers) {
	let last = -Infinity;
	for (const { i: w } of writers) {
		if (w === i) continue;
		if (w < i ? T[w].end < last || T[w].end > T[i].start + NEAR : T[w].start < T[i].end - NEAR || T[w].end <= T[i].start + NEAR) return false;
		if (w < i) last = T[w].end;
	}
	return true;
}
const NEAR = 1e-6;
function firstWrong(T, i, range, writers) {
	for (const { off, len, by } of pieces(range, writers)) {
		let want = null, got = null, torn = null;
		for (const w of by) {
			if (w === i) continue;
			if (w < i) want = w;
			else if (torn === null && T[w].start < T[i].end - NEAR && T[w].end > T[i].start + NEAR) torn = w;
			if (T[w].end <= T[i].start + NEAR && (got === null || T[w].end >= T[got].end)) got = w;
		}
		got = torn ?? got;
		if (got !== want) return { bytes: { buf: range.buf, off, len }, got, want, how: torn !== null ? "torn" : got !== null && got > i ? "overwritten" : "stale" };
	}
	return null;
}
/** A range cut wherever its writers change, each piece with its writers in issue order. @param {Access} range @param {{i: number, w: Access}[]} writers */
function* pieces(range, writers) {
	const by = (at) => [...new Set(writers.filter(({ w }) => at === null || sharedBytes({ buf: "", off: at, len: 1 }, w)).map(({ i }) => i))];
	if (writers.every(({ w }) => covers(w, range))) { yield { off: range.off, len: range.len, by: by(null) }; return; }
	for (const [from, to] of runsWithin(range, range.off, rangeEnd(range))) {
		const cuts = new Set([from, to]);
		for (const { w } of writers) for (const run of runsWithin(w, from, to)) for (const at of run) cuts.add(at);
		const at = [...cuts].sort((p, q) => p - q);
		for (let k = 0; k + 1 < at.length; k++) yield { off: at[k], len: at[k + 1] - at[k], by: by(at[k]) };
	}
}
/** The ops that run and write into a range, in issue order; looked up once per range, since a loop comes back to the same ones. */
function writersByRange(c) {
	const byMem = new Map(), known = new Map();
	for (const o of c.ops) if (!c.never.has(o.i)) for (const w of o.writes) byMem.has(w.mem) ? byMem.get(w.mem).push({ i: o.i, w }) : byMem.set(w.mem, [{ i: o.i, w }]);
	return (r) => {
		const key = `${r.mem} ${r.off} ${r.len} ${r.rows} ${r.stride}`;
		if (!known.has(key)) known.set(key, (byMem.get(r.mem) ?? []).filter(({ w }) => sharedBytes(w, r)));
		return known.get(key);
	};
}

/**
 * True when these times show the bad order of a race: a read of the pair finds the wrong value, or b is done before a begins.
 * @param {Compiled} c @param {Span[]} T @param {Race} race
 */
export function goesWrong(c, T, race) {
	const { a, b } = race;
	return T[b].end <= T[a].start || wrongReads(c, T, [race]).some((w) => (w.reader === b && w.want === a) || (w.reader === a && w.got === b));
}

/**
 * A legal schedule in which a race goes wrong: the free one if it does so already, else one that holds a's lane until b has ended. Sound because
 * b does not depend on a.
 * @param {Compiled} c @param {Race} race @param {Map<string, number>} [us]
 */
export function forceBadOrder(c, race, us = new Map()) {
	const free = schedule(c, { us });
	if (goesWrong(c, free, race)) return { T: free, stalled: 0 };
	const T = schedule(c, { us, stall: new Map([[race.a, free[race.b].end + 60]]) });
	return { T, stalled: T[race.a].start - free[race.a].start };
}

const DRAWN = { run: "run", record: "record", wait: "wait", sync: "blocked", host: "host", agent: "host" };

/**
 * The same times as refimpl.timeline's Trace of the program: its spans in issue order, with its names. Our own marks, and the host's taking of a
 * pageable source, are no spans there.
 * @param {Compiled} c @param {Span[]} T
 * @returns {{lane: string, name: string, kind: "run"|"wait"|"record"|"blocked"|"host", start: number, end: number, submit: number, ready: number, op: number}[]}
 */
export function traceSpans(c, T) {
	return c.ops.filter(isDrawn).map((o) => ({ lane: o.lane, name: o.call, kind: DRAWN[o.kind], start: T[o.i].start, end: T[o.i].end, submit: T[o.i].submit, ready: T[o.i].ready, op: o.src }));
}
