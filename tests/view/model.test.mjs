import test from "node:test";
import assert from "node:assert/strict";
import * as M from "../../refimpl/view/model/model.js";

const whole = (buf, bytes = 64) => ({ buf, off: 0, len: bytes });
const part = (buf, off, len, more = {}) => ({ buf, off, len, ...more });
const ranges = (rs) => rs.map((r) => (typeof r === "string" ? whole(r) : r));
const P = (ops, streams = { a: "nonblocking", b: "nonblocking", c: "nonblocking" }, mem = {}) => ({
	schema: 1, id: "t", ops, streams: Object.fromEntries(Object.entries(streams).map(([s, v]) => [s, typeof v === "string" ? { kind: v } : v])),
	buffers: Object.fromEntries(["x", "y", "p", "q"].map((b) => [b, { bytes: 64, mem: mem[b] ?? "device" }])),
});
const run = (stream, name, reads = [], writes = [], us = 100) => ({ op: "launch", stream, name, reads: ranges(reads), writes: ranges(writes), us });
const rec = (stream, event) => ({ op: "event_record", stream, event });
const wait = (stream, event) => ({ op: "stream_wait_event", stream, event });
const sync = (event) => ({ op: "event_sync", event });
const join = (stream, on) => ({ op: "stream_wait_stream", stream, on });
const read = (buf, name = "read") => ({ op: "host_read", range: whole(buf), name });
const copy = (api, kind, src, dst, stream = "legacy") => ({ op: "memcpy", api, kind, src: whole(src), dst: whole(dst), stream, us: 50 });
const node = (name, fields = {}) => ({ name, reads: [], writes: [], deps: [], ...fields });
const graph = (stream, nodes, more = {}) => ({ op: "graph_launch", stream, nodes, ...more });
const found = (ops, ...more) => { const c = M.compile(P(ops, ...more)); return M.races(c).map((r) => `${c.ops[r.a].name}-${c.ops[r.b].name} ${r.kind}`); };
const times = (ops, ...more) => { const c = M.compile(P(ops, ...more)); return { c, T: M.schedule(c), of: (name) => { const t = M.schedule(c)[c.ops.find((o) => o.name === name).i]; return [t.start, t.end]; } }; };

// ── when ──
test("a stream is first in, first out and a launch costs the host its call", () => {
	const { T } = times([run("a", "p"), run("a", "q")]);
	assert.deepEqual(T.map((t) => [t.submit, t.ready, t.start, t.end]), [[0, 6, 6, 106], [6, 12, 106, 206]]);
});
test("a wait holds the stream, not the host", () => {
	const { of } = times([run("a", "p"), rec("a", "e"), wait("b", "e"), run("b", "q"), { op: "host_work", name: "h", us: 10 }]);
	assert.deepEqual(of("q"), [106, 206]);
	assert.deepEqual(of("h"), [24, 34]);
});
test("a synchronize holds the host until the capture has passed", () => {
	const { T } = times([run("a", "p"), rec("a", "e"), sync("e"), run("b", "q")]);
	assert.deepEqual([T[2].start, T[2].end, T[3].start], [18, 106, 112]);
});
test("wait_stream costs one call", () => {
	assert.deepEqual(times([join("b", "a"), run("b", "q")]).of("q"), [12, 112]);
});
test("graph nodes run by their dependencies, side by side where there are none", () => {
	const { of } = times([graph("a", [node("s"), node("l", { deps: ["s"], us: 30 }), node("r", { deps: ["s"] }), node("t", { deps: ["l", "r"] })]), run("a", "after")]);
	assert.deepEqual([of("s"), of("l"), of("r"), of("t"), of("after")[0]], [[6, 16], [16, 46], [16, 26], [46, 56], 56]);
});
test("the time of a launch stretches its nodes so that the whole takes it", () => {
	const { of } = times([graph("a", [node("s"), node("l", { deps: ["s"], us: 30 })], { us: 400 })]);
	assert.deepEqual([of("s"), of("l")], [[6, 106], [106, 406]]);
});
test("legacy work starts after all blocking streams and they go on after it", () => {
	const { of } = times([run("s", "p"), run("legacy", "k"), run("t", "q"), run("n", "free")], { s: "blocking", t: "per_thread", n: "nonblocking" });
	assert.deepEqual([of("k"), of("q"), of("free")], [[106, 206], [206, 306], [24, 124]]);
});
test("a synchronous copy to the host holds it to its end, one within the device does not", () => {
	assert.equal(times([copy("sync", "D2H", "x", "p"), { op: "host_work", name: "h", us: 1 }], {}, { p: "pageable" }).of("h")[0], 56);
	assert.equal(times([copy("sync", "D2D", "x", "y"), { op: "host_work", name: "h", us: 1 }]).of("h")[0], 6);
});
test("a synchronous copy from pageable memory holds the host until its stream is drained, not until its end", () => {
	const { of } = times([run("legacy", "k"), copy("sync", "H2D", "q", "x"), { op: "host_work", name: "h", us: 1 }], {}, { q: "pageable" });
	assert.deepEqual([of("h")[0], of("H2D")], [106, [106, 156]]);
});
test("an agent runs beside the host from its begin on, and its wait holds the host", () => {
	const { of } = times([{ op: "host_async_begin", id: "n", access: "write", range: whole("p"), us: 80 }, { op: "host_async_wait", id: "n" }, { op: "host_work", name: "h", us: 1 }]);
	assert.deepEqual([of("write p"), of("h")[0]], [[6, 86], 86]);
});
test("a wait for a flag ends with a write that is issued later", () => {
	const { of } = times([{ op: "stream_wait_value", stream: "b", flag: "f" }, run("b", "q"), run("a", "p"), { op: "stream_write_value", stream: "a", flag: "f" }]);
	assert.deepEqual(of("q"), [118, 218]);
});
test("durations are overridden by key, a graph's as a whole", () => {
	const c = M.compile(P([{ ...run("a", "p 1"), param: "work" }, graph("b", [node("s"), node("t", { deps: ["s"] })], { us: 100, param: "graph" })]));
	const T = M.schedule(c, { us: new Map([["work", 7], ["graph", 400]]) }), end = (name) => T[c.ops.find((o) => o.name === name).i];
	assert.equal(end("p 1").end - end("p 1").start, 7);
	assert.equal(end("t").end - end("s").start, 400);
});

// ── order ──
test("a wait binds to the capture current at the call; a later record does not move it", () => {
	const ops = [run("a", "p", [], ["x"]), rec("a", "e"), wait("b", "e"), run("a", "p2", [], ["y"]), rec("a", "e"), run("b", "q", ["x", "y"])];
	assert.deepEqual(found(ops), ["p2-q RAW"]);
});
test("a record overwrites what the event held", () => {
	assert.deepEqual(found([run("a", "p", [], ["x"]), rec("a", "e"), rec("b", "e"), wait("c", "e"), run("c", "q", ["x"])]), ["p-q RAW"]);
});
test("a wait on an event that was never recorded orders nothing", () => {
	assert.deepEqual(found([run("a", "p", [], ["x"]), wait("b", "e"), rec("a", "e"), run("b", "q", ["x"])]), ["p-q RAW"]);
});
test("races carry their kind in issue order", () => {
	assert.deepEqual(found([run("a", "p", ["x"]), run("b", "q", [], ["x"])]), ["p-q WAR"]);
	assert.deepEqual(found([run("a", "p", [], ["x"]), run("b", "q", [], ["x"])]), ["p-q WAW"]);
	assert.deepEqual(found([run("a", "p", ["x"]), run("b", "q", ["x"])]), []);
});
test("disjoint bytes never race, a column of a table is not the table", () => {
	const column = (k) => part("x", k * 4, 4, { rows: 4, stride: 16 });
	assert.deepEqual(found([run("a", "p", [], [part("x", 0, 8)]), run("b", "q", [part("x", 8, 8)])]), []);
	assert.deepEqual(found([run("a", "p", [], [column(0)]), run("b", "q", [column(1)])]), []);
	assert.deepEqual(found([run("a", "p", [], [column(1)]), run("b", "q", [part("x", 20, 2)])]), ["p-q RAW"]);
	assert.deepEqual(found([run("a", "p", [], [column(0)]), run("b", "q", [part("x", 2, 4, { rows: 3, stride: 18 })])]), ["p-q RAW"]);
});
test("wait_stream orders what is queued at the call and nothing later", () => {
	assert.deepEqual(found([run("a", "p", [], ["x"]), join("b", "a"), run("b", "q", ["x"])]), []);
	assert.deepEqual(found([join("b", "a"), run("a", "p", [], ["x"]), run("b", "q", ["x"])]), ["p-q RAW"]);
});
test("order is transitive over three streams", () => {
	assert.deepEqual(found([run("a", "p", [], ["x"]), rec("a", "e"), wait("b", "e"), rec("b", "f"), wait("c", "f"), run("c", "q", ["x"])]), []);
});
test("a wait does not order the host; a synchronize and a successful query do", () => {
	assert.deepEqual(found([run("a", "p", [], ["x"]), rec("a", "e"), wait("b", "e"), read("x")]), ["p-read RAW"]);
	assert.deepEqual(found([run("a", "p", [], ["x"]), rec("a", "e"), sync("e"), read("x")]), []);
	assert.deepEqual(found([run("a", "p", [], ["x"]), { op: "stream_query_until_success", stream: "a" }, read("x")]), []);
});
test("a copy to pinned memory is not done when its stream's wait is queued", () => {
	const ops = [run("a", "p", [], ["x"]), copy("async", "D2H", "x", "p", "a"), rec("a", "e"), wait("b", "e"), read("p")];
	assert.deepEqual(found(ops, undefined, { p: "pinned" }), ["D2H-read RAW"]);
});
test("a staged copy has taken its source but not yet written its target", () => {
	const streams = { n: "nonblocking" }, mem = { q: "pageable" };
	assert.deepEqual(found([copy("sync", "H2D", "q", "x"), { op: "host_write", range: whole("q"), name: "reuse" }], streams, mem), []);
	assert.deepEqual(found([copy("sync", "H2D", "q", "x"), run("n", "k", ["x"])], streams, mem), ["H2D-k RAW"]);
});
test("the legacy streams of two devices are two streams, and a device's synchronize covers its own", () => {
	const on = (device) => ({ op: "set_device", device }), two = [run("legacy", "p", [], ["x"]), on(1), run("legacy", "q", ["x"])];
	assert.deepEqual(found(two), ["p-q RAW"]);
	assert.deepEqual(found([two[0], on(1), { op: "device_sync" }, two[2]]), ["p-q RAW"]);
	assert.deepEqual(found([two[0], { op: "device_sync" }, on(1), two[2]]), []);
});
test("nodes of a graph without an edge race; a record node re-arms its event at each launch", () => {
	assert.deepEqual(found([graph("a", [node("s", { writes: [whole("x")] }), node("t", { writes: [whole("x")] })])]), ["s-t WAW"]);
	const early = (name) => graph("a", [node(`load ${name}`, { reads: [whole("x")] }), { name: "mark", record: "e", deps: [`load ${name}`] }, node("rest", { deps: ["mark"] })]);
	assert.deepEqual(found([early(0), wait("b", "e"), run("b", "q", [], ["x"])]), []);
	assert.deepEqual(found([early(0), wait("b", "e"), early(1), run("b", "q", [], ["x"])]), ["load 1-q WAR"]);
});
test("a block's next owner races with an unordered use of the last; record_stream orders it", () => {
	const own = (buf) => ({ op: "tensor_alloc", buf, stream: "a", block: "B" }), use = [own("x"), run("a", "fill", [], ["x"]), join("b", "a"), run("b", "use", ["x"])];
	const next = [{ op: "tensor_free", buf: "x" }, own("y"), run("a", "refill", [], ["y"])];
	assert.deepEqual(found([...use, ...next]), ["use-refill lifetime"]);
	assert.deepEqual(found([...use, { op: "record_stream", buf: "x", stream: "b" }, ...next]), []);
});
test("a wait that nothing can release is a deadlock, and names the ops that never run", () => {
	const w = (stream, flag) => ({ op: "stream_wait_value", stream, flag }), set = (stream, flag) => ({ op: "stream_write_value", stream, flag });
	assert.deepEqual(M.verdict(P([w("a", "f"), set("a", "g"), w("b", "g"), set("b", "f")])), { verdict: "deadlock", pairs: [], stuck: [0, 1, 2, 3] });
	assert.equal(M.verdict(P([w("a", "f"), { op: "stream_sync", stream: "a" }, set("b", "f")])).verdict, "deadlock");
	assert.equal(M.verdict(P([w("a", "f"), set("b", "f"), { op: "stream_sync", stream: "a" }])).verdict, "ok");
});
test("a flag that two writes may set orders only what both come after", () => {
	const w = { op: "stream_wait_value", stream: "c", flag: "f" }, set = (stream) => ({ op: "stream_write_value", stream, flag: "f" });
	assert.deepEqual(found([run("a", "p", [], ["x"]), set("a"), set("b"), w, run("c", "q", ["x"])]), ["p-q RAW"]);
	assert.deepEqual(found([run("a", "p", [], ["x"]), join("b", "a"), set("a"), set("b"), w, run("c", "q", ["x"])]), []);
});
test("errors name program, op and what is wrong", () => {
	assert.throws(() => M.compile(P([run("z", "p")])), /t, op 0 \(launch\): unknown stream "z"/);
	assert.throws(() => M.compile(P([run("a", "p", [part("x", 60, 8)])])), /x\[60:68\] is outside its 64 bytes/);
	assert.throws(() => M.compile(P([{ op: "lunch" }])), /unknown op/);
	assert.throws(() => M.compile(P([graph("a", [node("s", { deps: ["t"] }), node("t", { deps: ["s"] })])])), /circle/);
});

test("what is left out has the format's default: streams do not block, copies are queued and go by their buffers", () => {
	const p = { id: "t", streams: { a: {} }, buffers: { x: { bytes: 8, mem: "device" }, p: { bytes: 8, mem: "pageable" } }, ops: [{ op: "memcpy", stream: "a", src: whole("x", 8), dst: whole("p", 8) }, { op: "host_read", range: whole("p", 8) }, { op: "launch", stream: "legacy", writes: [whole("x", 8)] }] };
	assert.deepEqual(M.verdict(p).pairs, [[0, 1], [0, 2]]);
});

// ── why ──
test("gaps name their cause: host late, this event, drained", () => {
	const { c, T } = times([run("a", "p"), rec("a", "e"), wait("b", "e"), run("b", "q"), { op: "host_work", name: "h", us: 400 }, run("b", "r"), run("a", "s", [], [], 300)]);
	const G = M.gaps(c, T).filter((g) => g.lane === "b");
	assert.deepEqual(G.map((g) => g.why), ["host", "event", "host", "drained"]);
	assert.deepEqual([G[1].record, G[1].before], [1, 3]);
});
test("what an op waited for is split into stream and event", () => {
	const { c, T } = times([run("a", "p"), rec("a", "e"), run("b", "q", [], [], 30), wait("b", "e"), run("b", "r")]);
	assert.deepEqual(M.waitedFor(c, T, 4).map((w) => [w.why, w.op]), [["stream", 2], ["event", 1]]);
});
test("a path is given edge by edge; a missing edge names the last op that is known", () => {
	const c = M.compile(P([run("a", "p0"), rec("a", "e"), wait("b", "e"), run("a", "p1", [], ["x"]), run("b", "q", ["x"])]));
	assert.deepEqual(M.explainOrder(c, 0, 4).path.map((e) => e.kind), ["fifo", "event", "fifo"]);
	const miss = M.explainOrder(c, 3, 4);
	assert.deepEqual([miss.ordered, miss.known, miss.conflicts[0].kind], [false, 0, "RAW"]);
});
test("a read that comes too early in the timed order needs no delay to be forced", () => {
	const ops = (first, second) => P([run("a", "p", [], ["x"], first), run("b", "q", ["x"], [], second)]), force = (p) => { const c = M.compile(p); return M.forceBadOrder(c, M.races(c)[0]); };
	for (const p of [ops(100, 20), ops(100, 300)]) assert.deepEqual(force(p), { T: M.schedule(M.compile(p)), stalled: 0 });
	const late = P([run("a", "p", [], ["x"], 100), { op: "host_work", us: 200 }, run("b", "q", ["x"])]);
	assert.ok(force(late).stalled > 0);
});
test("a forced bad order shows the stale value", () => {
	const c = M.compile(P([run("a", "p", [], ["x"]), run("a", "p2", ["x"]), { op: "host_work", name: "h", us: 900 }, run("b", "q", [], ["x"])]));
	const war = M.races(c).find((r) => r.kind === "WAR");
	assert.equal(M.wrongReads(c, M.schedule(c)).length, 0);
	const bad = M.wrongReads(c, M.forceBadOrder(c, war).T);
	assert.deepEqual([bad[0].how, c.ops[bad[0].got].name], ["overwritten", "q"]);
});
