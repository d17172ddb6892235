/**
 * When ops would run, and what happens when a bad order is forced. The rules stand at the top of model.js.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 * @typedef {import("./order.js").Race} Race
 * @typedef {{submit: number, ready: number, start: number, end: number}} Span   submit..ready: the host makes the call; start..end: it executes
 */
import { HOST, WORK_US } from "./lower.js";
import { sharedBytes } from "./ranges.js";
import { races } from "./order.js";

const ENDS = new Set(["event", "value", "sync"]);

/** Duration of an op's own work, when `us` overrides durations by key. @param {Compiled} c @param {Op} op @param {Map<string, number>} us */
export function duration(c, op, us) {
	const begin = op.graph === undefined ? null : c.ops[op.graph], own = us.get(op.key) ?? op.us;
	if (begin?.whole === undefined || op.kind !== "run") return op.kind === "run" || op.kind === "host" || op.kind === "agent" ? own : 0;
	return begin.span ? op.us * ((us.get(op.key) ?? begin.whole) / begin.span) : 0;
}

/**
 * List schedule: one pass over the ops in an order in which they may run. `stall` maps an op to a time before which it may not start: a legal
 * delay, used to force an order. An op that never runs gets the time at which all else has ended.
 * @param {Compiled} c @param {{us?: Map<string, number>, stall?: Map<number, number>}} [options] @returns {Span[]}
 */
export function schedule(c, { us = new Map(), stall = new Map() } = {}) {
	/** @type {Span[]} */ const T = new Array(c.ops.length);
	let host = 0, next = 0;
	const call = (upTo) => {
		for (; next <= upTo; next++) {
			const o = c.ops[next];
			T[next] = { submit: host, ready: host + o.cost, start: host, end: host };
			host += o.cost;
			if (o.lane === HOST) break;
		}
	};
	for (const i of c.order) {
		const op = c.ops[i], t = (call(i), next = Math.max(next, i + 1), T[i]), ends = (want) => op.after.filter((e) => want(e.kind)).map((e) => T[e.from].end);
		t.start = Math.max(t.ready, stall.get(i) ?? 0, ...(op.lane === HOST ? [] : ends((k) => !ENDS.has(k))));
		t.end = Math.max(t.start + duration(c, op, us), ...(op.writers ? [firstWrite(op, T)] : ends((k) => ENDS.has(k))));
		if (op.kind === "end") t.end = Math.max(t.end, wholeGraph(c, op, T, us));
		if (op.lane === HOST) host = t.end;
	}
	const last = Math.max(0, ...c.order.map((i) => T[i].end));
	for (const i of [...c.never].sort((x, y) => x - y)) {
		const o = c.ops[i], from = Math.max(0, ...o.after.filter((e) => !c.never.has(e.from)).map((e) => T[e.from].end)), held = !o.after.some((e) => !ENDS.has(e.kind) && c.never.has(e.from));
		T[i] = { submit: from, ready: from, start: held ? from : last + WORK_US, end: last + WORK_US };
	}
	return T;
}
/** When a flag is first set, by the writes that can run without its wait. */
const firstWrite = (op, T) => Math.min(...op.writers.filter((w) => T[w]).map((w) => T[w].end));

/** A graph without kernel nodes takes the launch's time all the same. */
function wholeGraph(c, end, T, us) {
	const begin = c.ops[end.begin];
	return begin.whole !== undefined && !begin.span ? T[begin.i].end + (us.get(begin.key) ?? begin.whole) : 0;
}

/**
 * What each racing read found, against what issue order meant it to find. A read that overlaps the write in time is torn.
 * @param {Compiled} c @param {Span[]} T @param {Race[]} [rs]
 */
export function wrongReads(c, T, rs = races(c)) {
	const out = [], racing = new Set(rs.flatMap((r) => [r.a, r.b])), writersOf = writersByRange(c);
	for (const i of [...racing].sort((x, y) => x - y)) {
		for (const range of c.ops[i].reads) {
			const writers = writersOf(range).filter((w) => w !== i), last = (x, w) => (x !== null && T[x].end > T[w].end ? x : w);
			const want = writers.filter((w) => w < i).pop() ?? null, torn = writers.find((w) => w > i && T[w].start < T[i].end - 1e-6 && T[w].end > T[i].start + 1e-6);
			const got = torn ?? writers.filter((w) => T[w].end <= T[i].start + 1e-6).reduce(last, null);
			if (got !== want) out.push({ reader: i, range, got, want, how: torn !== undefined ? "torn" : got !== null && got > i ? "overwritten" : "stale" });
		}
	}
	return out;
}
/** The ops that write into a range, in issue order; looked up once per range, since a loop comes back to the same ones. */
function writersByRange(c) {
	const byMem = new Map(), known = new Map();
	for (const o of c.ops) if (!c.never.has(o.i)) for (const w of o.writes) { if (!byMem.has(w.mem)) byMem.set(w.mem, []); byMem.get(w.mem).push({ i: o.i, w }); }
	return (r) => {
		const key = `${r.mem} ${r.off} ${r.len} ${r.rows} ${r.stride}`;
		if (!known.has(key)) known.set(key, [...new Set((byMem.get(r.mem) ?? []).filter(({ w }) => sharedBytes(w, r)).map(({ i }) => i))]);
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
