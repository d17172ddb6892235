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
import { sharedBytes } from "./ranges.js";

/** One vector clock per op, over chains: a stream, the host, an agent, a branch of a graph. @param {Compiled} c @returns {Int32Array[]} */
export function clocks(c) {
	/** @type {Int32Array[]} */ const V = new Array(c.ops.length), n = c.chains.length;
	for (const i of c.never.size ? [...c.order, ...c.never] : c.order) {
		const v = (V[i] = new Int32Array(n));
		for (const e of c.ops[i].after) {
			const from = e.loose ? undefined : V[e.from];
			if (from) for (let k = 0; k < n; k++) if (from[k] > v[k]) v[k] = from[k];
		}
		v[c.ops[i].k] = c.at[i];
	}
	return V;
}

/** True when op a happens before op b. @param {Compiled} c @param {Int32Array[]} V @param {number} a @param {number} b */
export const before = (c, V, a, b) => a !== b && V[b][c.ops[a].k] >= c.at[a];

const TYPES = /** @type {const} */ ([["writes", "reads", "RAW"], ["reads", "writes", "WAR"], ["writes", "writes", "WAW"]]);

/** The first conflict of two accesses in issue order, or null. @param {Access} p @param {Access} q @param {Hazard} kind */
function clash(p, q, kind) {
	const hit = p.mem === q.mem ? sharedBytes(p, q) : null;
	return hit && { kind: p.buf === q.buf ? kind : "lifetime", range: { buf: p.buf, ...hit } };
}

/** The conflicting accesses of two ops, a issued first. @param {Op} a @param {Op} b */
export function conflicts(a, b) {
	return TYPES.flatMap(([had, has, kind]) => a[had].flatMap((p) => b[has].map((q) => clash(p, q, kind)).filter(Boolean)));
}

/**
 * Unordered pairs of conflicting accesses: for each op the nearest of those issued before it on every other chain, which is all that a verdict or
 * a picture needs. Accesses are kept by memory and chain, in the order of the chain, so that the ones that come before an op are not looked at.
 * @param {Compiled} c @param {Int32Array[]} [V] @returns {Race[]}
 */
export function races(c, V = clocks(c)) {
	/** @type {Race[]} */ const out = [];
	/** @type {Map<string, Map<number, {reads: Past, writes: Past}>>} */ const memory = new Map();
	for (const b of c.ops) {
		if (c.never.has(b.i)) continue;
		for (const has of SIDES) for (const q of b[has]) {
			if (!memory.has(q.mem)) memory.set(q.mem, new Map());
			for (const [k, past] of memory.get(q.mem)) if (k !== b.k) nearest(c, V, past, k, b, q, has, out);
		}
		for (const has of SIDES) for (const q of b[has]) remember(c, memory.get(q.mem), b, q, has);
	}
	return out.sort((x, y) => x.b - y.b || x.a - y.a);
}
const SIDES = /** @type {const} */ (["reads", "writes"]);

function nearest(c, V, past, k, b, q, has, out) {
	for (const [had, now, kind] of TYPES) {
		if (now !== has) continue;
		const later = (i) => V[i][b.k] >= c.at[b.i], found = past[had].last(V[b.i][k], (i, p) => (later(i) ? null : clash(p, q, kind)));
		if (found) out.push({ a: found.i, b: b.i, ...found.hit });
	}
}
function remember(c, chains, b, q, has) {
	if (!chains.has(b.k)) chains.set(b.k, { reads: new Past(), writes: new Past() });
	chains.get(b.k)[has].add(c.at[b.i], b.i, q);
}

/** Accesses of one chain to one memory, in its order. One that a later access to the same bytes stands for is dropped. */
class Past {
	constructor() {
		/** @type {({at: number, i: number, p: Access} | null)[]} */ this.items = [];
		/** @type {Map<string, number>} */ this.where = new Map();
	}
	add(at, i, p) {
		const key = `${p.buf} ${p.off} ${p.len} ${p.rows} ${p.stride}`, old = this.where.get(key);
		if (old !== undefined) this.items[old] = null;
		if (this.items.length > 2 * this.where.size + 16) this.close();
		this.where.set(key, this.items.length);
		this.items.push({ at, i, p });
	}
	close() {
		const place = new Map();
		let n = 0;
		this.items.forEach((x, k) => { if (x) { place.set(k, n); this.items[n++] = x; } });
		this.items.length = n;
		for (const [key, k] of this.where) this.where.set(key, place.get(k));
	}
	/** The last access after the place `seen` of the chain that hits. */
	last(seen, clash) {
		for (let n = this.items.length - 1; n >= 0; n--) {
			const x = this.items[n], hit = x && (x.at <= seen ? undefined : clash(x.i, x.p));
			if (hit) return { i: x.i, hit };
			if (hit === undefined) return null;
		}
		return null;
	}
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

/** For each op the edges of the order that leave it. @param {Compiled} c @returns {Edge[][]} */
export function leaving(c) {
	/** @type {Edge[][]} */ const out = c.ops.map(() => []);
	for (const o of c.ops) for (const e of o.after) if (!e.loose) out[e.from].push(e);
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
	for (let queue = [a], k = 0; k < queue.length && !came.has(b); k++)
		for (const e of next[queue[k]]) if (!came.has(e.to)) { came.set(e.to, e); queue.push(e.to); }
	/** @type {Edge[]} */ const path = [];
	for (let e = came.get(b); e; e = came.get(e.from)) path.unshift(e);
	return { ordered: true, a, b, known: null, conflicts: [], path };
}

/** Something that takes a place in a lane: work of a stream, of the host, of an agent. @param {Op} o */
export const isWork = (o) => o.kind === "run" || o.kind === "host" || o.kind === "agent";
