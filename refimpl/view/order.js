/**
 * Happens-before over the lowered ops: clocks, races, deadlocks, and the path between two ops edge by edge.
 *
 * @typedef {import("./lower.js").Compiled} Compiled
 * @typedef {import("./lower.js").Op} Op
 * @typedef {import("./lower.js").Edge} Edge
 * @typedef {import("./lower.js").Access} Access
 * @typedef {"RAW"|"WAR"|"WAW"|"lifetime"} Hazard
 * @typedef {{a: number, b: number, kind: Hazard, range: {buf: string, off: number, len: number}}} Race   a is issued before b
 */
import { covers, sharedBytes } from "./ranges.js";

const WAITS = new Set(["event", "sync"]);

/** One vector clock per op, over chains: a stream, the host, an agent, a branch of a graph. @param {Compiled} c @returns {Int32Array[]} */
export function clocks(c) {
	/** @type {Int32Array[]} */ const V = new Array(c.ops.length);
	for (const i of [...c.order, ...c.never]) {
		const v = (V[i] = new Int32Array(c.chains.length));
		for (const e of c.ops[i].after) V[WAITS.has(e.kind) ? c.ops[e.from].covers ?? e.from : e.from]?.forEach((x, k) => { if (x > v[k]) v[k] = x; });
		v[c.ops[i].k] = c.at[i];
	}
	return V;
}

/** True when op a happens before op b. @param {Compiled} c @param {Int32Array[]} V @param {number} a @param {number} b */
export const before = (c, V, a, b) => a !== b && V[b][c.ops[a].k] >= c.at[a];

const TYPES = [["writes", "reads", "RAW"], ["reads", "writes", "WAR"], ["writes", "writes", "WAW"]];

/** The first conflict of two accesses in issue order, or null. @param {Access} p @param {Access} q @param {Hazard} kind */
function clash(p, q, kind) {
	const hit = p.mem === q.mem ? sharedBytes(p, q) : null;
	return hit && { kind: p.owner === q.owner ? kind : "lifetime", range: { buf: p.buf, ...hit } };
}

/** The conflicting accesses of two ops, a issued first. @param {Op} a @param {Op} b */
export function conflicts(a, b) {
	return TYPES.flatMap(([had, has, kind]) => a[had].flatMap((p) => b[has].map((q) => clash(p, q, kind)).filter(Boolean)));
}

/**
 * Unordered pairs of conflicting accesses: for each op the nearest on every other chain, which is all that a verdict or a picture needs.
 * Accesses are kept by memory and chain, and one that a later access of its chain covers is dropped.
 * @param {Compiled} c @param {Int32Array[]} [V] @returns {Race[]}
 */
export function races(c, V = clocks(c)) {
	/** @type {Race[]} */ const out = [];
	const memory = new Map();
	for (const i of c.order) {
		const b = c.ops[i];
		for (const has of ["reads", "writes"])
			for (const q of b[has]) {
				if (!memory.has(q.mem)) memory.set(q.mem, new Map());
				for (const [k, past] of memory.get(q.mem)) if (k !== b.k) out.push(...nearest(c, V, past, b, q, has));
			}
		for (const has of ["reads", "writes"]) for (const q of b[has]) remember(memory.get(q.mem), b, q, has);
	}
	return out.sort((x, y) => x.b - y.b || x.a - y.a);
}
function nearest(c, V, past, b, q, has) {
	const out = [];
	for (const [had, now, kind] of TYPES) {
		if (now !== has) continue;
		for (let n = past[had].length - 1; n >= 0; n--) {
			const { i, p } = past[had][n], hit = before(c, V, i, b.i) ? null : clash(p, q, kind);
			if (!hit) continue;
			const flip = i > b.i;
			out.push({ a: Math.min(i, b.i), b: Math.max(i, b.i), ...hit, kind: flip && hit.kind === "RAW" ? "WAR" : flip && hit.kind === "WAR" ? "RAW" : hit.kind });
			break;
		}
	}
	return out;
}
function remember(chains, b, q, has) {
	if (!chains.has(b.k)) chains.set(b.k, { reads: [], writes: [] });
	const past = chains.get(b.k);
	past[has] = past[has].filter(({ p }) => p.owner !== q.owner || !covers(q, p));
	past[has].push({ i: b.i, p: q });
}

/** One race per pair of families and buffer, since a loop repeats the same race: those that a reader counts. @param {Compiled} c @param {Race[]} rs */
export function distinct(c, rs) {
	const first = new Map(), family = (i) => `${c.ops[i].lane} ${c.ops[i].key} ${c.ops[i].name.replace(/\d+$/, "")}`;
	for (const r of rs) {
		const key = `${family(r.a)}|${family(r.b)}|${r.kind}|${r.range.buf}`;
		if (!first.has(key)) first.set(key, r);
	}
	return [...first.values()];
}

/** All edges, and for each op those that leave it. @param {Compiled} c @returns {Edge[][]} */
export function leaving(c) {
	/** @type {Edge[][]} */ const out = c.ops.map(() => []);
	for (const o of c.ops) for (const e of o.after) out[e.from].push(e);
	return out;
}

/**
 * Shortest happens-before path between two ops, in whichever direction it exists; else what is missing:
 * `known` is the last op of a's lane that b does come after.
 * @param {Compiled} c @param {number} p @param {number} q @param {Int32Array[]} [V]
 */
export function explainOrder(c, p, q, V = clocks(c)) {
	const back = before(c, V, q, p), [a, b] = back || (!before(c, V, p, q) && q < p) ? [q, p] : [p, q];
	if (!before(c, V, a, b)) {
		const known = c.ops.filter((o) => o.lane === c.ops[a].lane && isWork(o) && o.i !== b && before(c, V, o.i, b)).pop();
		return { ordered: false, a, b, known: known ? known.i : null, conflicts: conflicts(c.ops[a], c.ops[b]), path: [] };
	}
	const next = leaving(c);
	/** @type {Map<number, Edge|null>} */ const came = new Map([[a, null]]);
	for (const queue = [a]; queue.length && !came.has(b);)
		for (const e of next[queue.shift()]) if (!came.has(e.to)) { came.set(e.to, e); queue.push(e.to); }
	/** @type {Edge[]} */ const path = [];
	for (let e = came.get(b); e; e = came.get(e.from)) path.unshift(e);
	return { ordered: true, a, b, known: null, conflicts: [], path };
}

/** Something that takes a place in a lane: work of a stream, of the host, of an agent. @param {Op} o */
export const isWork = (o) => o.kind === "run" || o.kind === "host" || o.kind === "agent";
