// Reads a JSON list of {program, seed} from standard input; prints for each what the component's model says, in the words of expected.py.
import fs from "node:fs";
import * as M from "../../refimpl/view/model/model.js";

/** The names by which both sides know the ops of a compiled program: op of the program and part of it. What only one side has gets none. */
function labels(c) {
	const nodes = new Map();
	return c.ops.map((o) => {
		if (o.graph !== undefined) { const k = nodes.get(o.graph) ?? 0; nodes.set(o.graph, k + 1); return `${o.src} node ${k}`; }
		if (o.kind === "begin" || o.kind === "agent") return `${o.src} ${o.kind}`;
		if (o.kind === "end") return null;
		if (o.kind === "host") return `${o.src} host`;
		if (o.kind === "sync") return c.ops.some((x) => x.src === o.src && x.kind === "host") ? null : `${o.src} host`;
		if (o.kind !== "record" || !o.implicit) return `${o.src} device`;
		return c.ops.some((x) => x.src === o.src && x.kind === "wait") ? `${o.src} mark` : null;
	});
}
const random = (seed) => () => ((seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32);

/** Every pair of ops that conflict and that nothing orders, by comparing all with all. */
function allRaces(c, V) {
	const runs = [...c.order].sort((p, q) => p - q), out = [];
	runs.forEach((b, k) => {
		for (const a of runs.slice(0, k)) {
			if (M.before(c, V, a, b) || M.before(c, V, b, a)) continue;
			const [hit] = M.conflicts(c.ops[a], c.ops[b]);
			if (hit) out.push([a, b, hit.kind, hit.range.buf, hit.range.off, hit.range.len]);
		}
	});
	return out;
}
/** Questions for the order of two ops, each with the answer and the labels along its path; a path that is none is said to be broken. */
function answers(c, V, name, r) {
	const known = c.ops.filter((o) => name[o.i] && !c.never.has(o.i)), out = [];
	for (let n = 0; n < 24 && known.length > 1; n++) {
		const [p, q] = [0, 0].map(() => known[Math.floor(r() * known.length)].i);
		if (p === q) continue;
		const x = M.explainOrder(c, p, q, V), ok = x.path.every((e, k) => c.ops[e.to].after.includes(e) && !e.loose && (k === 0 ? e.from === x.a : e.from === x.path[k - 1].to)) && (!x.ordered || x.path.at(-1).to === x.b);
		out.push({ ordered: x.ordered, a: name[x.a], b: name[x.b], known: x.known === null ? null : name[x.known], ok, path: x.path.map((e) => name[e.to]).filter(Boolean), lengths: x.path.length - shortest(c, x) });
	}
	return out;
}
/** The length of the shortest path, by one sweep over all edges for each step. */
function shortest(c, x) {
	if (!x.ordered) return 0;
	let reached = new Set([x.a]), n = 0;
	for (; !reached.has(x.b); n++) reached = new Set([...reached, ...c.ops.filter((o) => o.after.some((e) => !e.loose && reached.has(e.from))).map((o) => o.i)]);
	return n;
}
const judge = ({ program, seed }) => {
	const c = M.compile(program), V = M.clocks(c), T = M.schedule(c), name = labels(c), rs = M.races(c, V), { verdict, stuck } = M.verdict(program);
	const heads = [...c.never].filter((i) => c.ops[i].after.every((e) => e.loose || !c.never.has(e.from)) && !c.ops[i].implicit).map((i) => c.ops[i].src);
	const account = M.account(c, T, { stepOp: "verify", hero: "a" });
	return {
		verdict, stuck, heads, name, all: allRaces(c, V), near: rs.map((r) => [r.a, r.b, r.kind, r.range.buf, r.range.off, r.range.len]),
		before: c.ops.map((o) => (name[o.i] ? c.ops.filter((x) => name[x.i] && M.before(c, V, x.i, o.i)).map((x) => name[x.i]) : [])), answers: answers(c, V, name, random(seed)),
		lanes: c.lanes, spans: M.traceSpans(c, T), account, gpuIdle: M.gpuIdle(c, T, [account.from, account.to]),
		gaps: M.gaps(c, T).map((g) => [g.lane, g.from, g.to, M.causeOf(c, T, g)]),
		wrong: M.wrongReads(c, T, rs).map((w) => ({ ...w, reader: name[w.reader], got: name[w.got] ?? null, want: name[w.want] ?? null })),
		accessors: c.ops.filter((o) => o.reads.length || o.writes.length).map((o) => [name[o.i], T[o.i].start, T[o.i].end]),
	};
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(judge)));
