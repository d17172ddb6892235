import test from "node:test";
import assert from "node:assert/strict";
import * as M from "../../refimpl/view/model/model.js";

// ── random programs ──
const random = (seed) => () => ((seed = (seed * 1664525 + 1013904223) >>> 0) / 2 ** 32);
function program(seed) {
	const r = random(seed), pick = (xs) => xs[Math.floor(r() * xs.length)], ops = [], STREAMS = ["a", "b", "c", "s", "legacy"];
	const range = () => (r() < 0.3 ? { buf: pick("xy"), off: Math.floor(r() * 8), len: 4, rows: 3, stride: pick([8, 12]) } : { buf: pick("xy"), off: Math.floor(r() * 6) * 8, len: 16 });
	const access = () => ({ reads: r() < 0.6 ? [range()] : [], writes: r() < 0.6 ? [range()] : [] });
	for (let k = 0, n = 5 + Math.floor(r() * 18); k < n; k++) {
		const stream = pick(STREAMS), t = r();
		if (t < 0.4) ops.push({ op: "launch", stream, name: `k${k}`, us: 10 + Math.floor(r() * 200), ...access() });
		else if (t < 0.5) ops.push({ op: "graph_launch", stream, nodes: [{ name: "s", deps: [], ...access() }, { name: "l", deps: ["s"], ...access() }, { name: "r", deps: pick([[], ["s"]]), ...access() }] });
		else if (t < 0.62) ops.push({ op: "event_record", stream, event: pick("ef") });
		else if (t < 0.76) ops.push({ op: "stream_wait_event", stream, event: pick("ef") });
		else if (t < 0.83) ops.push({ op: "stream_wait_stream", stream, on: pick(STREAMS) });
		else if (t < 0.9) ops.push({ op: "event_sync", event: pick("ef") });
		else ops.push({ op: "host_read", range: range(), us: 15 });
	}
	const streams = Object.fromEntries(["a", "b", "c", "s"].map((s) => [s, { kind: s === "s" ? "blocking" : "nonblocking" }]));
	return { schema: 1, id: `seed ${seed}`, streams, buffers: { x: { mem: "managed", bytes: 64 }, y: { mem: "managed", bytes: 64 } }, ops };
}
const SEEDS = Array.from({ length: 300 }, (_, k) => k + 1);
const withOps = (p, ops) => ({ ...p, ops });

test("clocks agree with reachability over the edges, and time agrees with both", () => {
	for (const s of SEEDS) {
		const c = M.compile(program(s)), V = M.clocks(c), T = M.schedule(c), reach = c.ops.map(() => new Set());
		for (const op of c.ops) for (const e of op.after) { reach[op.i].add(e.from); reach[e.from].forEach((x) => reach[op.i].add(x)); }
		for (const a of c.ops) for (const b of c.ops) {
			assert.equal(M.before(c, V, a.i, b.i), reach[b.i].has(a.i), `seed ${s}: ${a.id} → ${b.id}`);
			if (reach[b.i].has(a.i)) assert.ok(T[a.i].end <= T[b.i].end + 1e-9, `seed ${s}: time of ${a.id} → ${b.id}`);
			if (reach[b.i].has(a.i) && M.isWork(a) && M.isWork(b)) assert.ok(T[a.i].end <= T[b.i].start + 1e-9, `seed ${s}: time of ${a.id} → ${b.id}`);
		}
	}
});
test("an indexed search for races finds what comparing all pairs finds", () => {
	for (const s of SEEDS) {
		const c = M.compile(program(s)), V = M.clocks(c), all = new Set();
		for (const b of c.ops) for (const a of c.ops.slice(0, b.i)) if (a.chain !== b.chain && !M.before(c, V, a.i, b.i) && M.conflicts(a, b).length) all.add(b.i);
		const found = M.races(c, V);
		assert.deepEqual(new Set(found.map((r) => r.b)), all, `seed ${s}`);
		for (const r of found) assert.ok(M.conflicts(c.ops[r.a], c.ops[r.b]).some((x) => x.kind === r.kind), `seed ${s}`);
	}
});
test("adding a fence never adds a race", () => {
	const fence = { op: "stream_wait_stream", stream: "a", on: "b" };
	for (const s of SEEDS) {
		const p = program(s), pos = Math.floor(random(s + 9999)() * p.ops.length), more = withOps(p, [...p.ops.slice(0, pos), fence, ...p.ops.slice(pos)]);
		const racy = new Set(M.verdict(p).pairs.map(String)), back = (i) => (i > pos ? i - 1 : i);
		if (!racy.size) assert.equal(M.verdict(more).verdict, "ok", `seed ${s}`);
		const c = M.compile(p), V = M.clocks(c), nodes = (src) => c.ops.filter((o) => o.src === src);
		for (const [a, b] of M.verdict(more).pairs.map((x) => x.map(back))) assert.ok(nodes(a).some((x) => nodes(b).some((y) => x !== y && !M.before(c, V, x.i, y.i) && M.conflicts(x, y).length)), `seed ${s}: ${a} ${b}`);
	}
});
test("the forced order is legal and is the bad one", () => {
	let n = 0;
	for (const s of SEEDS) {
		const c = M.compile(program(s));
		for (const race of M.races(c).slice(0, 3)) {
			const { T, stalled } = M.forceBadOrder(c, race);
			assert.ok(stalled ? T[race.b].end <= T[race.a].start + 1e-9 : M.goesWrong(c, T, race), `seed ${s}`);
			for (const op of c.ops) for (const e of op.after) assert.ok(T[e.from].end <= T[e.to].end + 1e-9, `seed ${s}: ${e.from} → ${e.to}`);
			n++;
		}
	}
	assert.ok(n > 200);
});
test("relabelling streams changes nothing", () => {
	const map = { a: "c", b: "a", c: "b" }, named = (o) => ({ ...o, ...(o.stream && { stream: map[o.stream] ?? o.stream }), ...(o.on && { on: map[o.on] ?? o.on }) });
	for (const s of SEEDS) { const p = program(s); assert.deepEqual(M.verdict(withOps(p, p.ops.map(named))), M.verdict(p), `seed ${s}`); }
});
test("idle plus busy is the whole of every stream", () => {
	for (const s of SEEDS) {
		const c = M.compile(program(s)), T = M.schedule(c), end = Math.max(...T.map((t) => t.end)), G = M.gaps(c, T);
		for (const lane of c.lanes.slice(1)) {
			let busy = 0, at = 0;
			for (const t of c.ops.filter((o) => o.lane === lane && o.kind === "run").map((o) => T[o.i]).sort((p, q) => p.start - q.start)) { busy += Math.max(0, t.end - Math.max(t.start, at)); at = Math.max(at, t.end); }
			const idle = G.filter((g) => g.lane === lane).reduce((x, g) => x + g.to - g.from, 0);
			assert.ok(Math.abs(busy + idle - end) < 1e-6, `seed ${s} lane ${lane}: ${busy} + ${idle} != ${end}`);
		}
	}
});
test("what an op waited for is all that its lane did between its call and its start", () => {
	for (const s of SEEDS) {
		const c = M.compile(program(s)), T = M.schedule(c);
		for (const op of c.ops) {
			const pieces = c.ops.filter((p) => p.i < op.i && p.lane === op.lane && op.lane !== "host" && (p.kind === "run" || p.kind === "wait"))
				.map((p) => ({ p, us: Math.min(T[p.i].end, T[op.i].start) - Math.max(T[p.i].start, T[op.i].ready) })).filter(({ us }) => us > 1e-6);
			assert.deepEqual(M.waitedFor(c, T, op.i).map((w) => [w.why, w.us]), pieces.map(({ p, us }) => [p.kind === "wait" ? "event" : "stream", us]), `seed ${s}: ${op.id}`);
		}
	}
});
test("a chain of blame names what was still at work in its gap, each link before the one in front of it, and the first before the op that the lane waits to run", () => {
	let named = 0;
	for (let s = 1; s <= 2000; s++) {
		const c = M.compile(program(s)), T = M.schedule(c), V = M.clocks(c);
		for (const g of M.gaps(c, T)) {
			const chain = M.blame(c, T, g);
			if (g.why === "drained") assert.deepEqual(chain, [], `seed ${s}`);
			if (g.why === "event") {
				assert.ok(chain.length && T[g.wait].start <= g.from + 1e-6 && T[g.wait].end >= g.to - 1e-6, `seed ${s}: the wait covers its gap`);
				assert.ok(M.before(c, V, g.record, g.before), `seed ${s}`);
				chain.forEach((e, k) => assert.ok(T[e.op].end > g.from - 1e-6 && M.before(c, V, e.op, k ? chain[k - 1].op : g.before), `seed ${s}: ${c.ops[e.op].id}`));
				named += chain.length;
			}
			if (g.why === "host") for (const e of chain) assert.ok(c.ops[e.op].lane === "host" && T[e.op].start < g.to && T[e.op].end >= g.from - 1, `seed ${s}: ${c.ops[e.op].id}`);
		}
	}
	assert.ok(named > 80, String(named));
});
test("a gap for want of a call ends when the call returns, if nothing else held the stream", () => {
	for (const s of SEEDS) {
		const c = M.compile(program(s)), T = M.schedule(c);
		for (const g of M.gaps(c, T)) if (g.why === "host" && c.ops[g.before].graph === undefined) assert.ok(g.to <= T[g.before].start + 1e-6 && g.from >= 0, `seed ${s}`);
	}
});
