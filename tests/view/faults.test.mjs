// Faults that comparing the model with refimpl brought up, one test each.
import test from "node:test";
import assert from "node:assert/strict";
import * as M from "../../refimpl/view/model/model.js";

const whole = (buf) => ({ buf, off: 0, len: 64 });
const run = (stream, name, reads = [], writes = [], us = 100) => ({ op: "launch", stream, name, reads: reads.map((r) => (r.buf ? r : whole(r))), writes: writes.map((r) => (r.buf ? r : whole(r))), us });
const P = (ops, streams = {}, mem = {}) => ({
	id: "t", ops, streams: { ...Object.fromEntries("abcd".split("").map((s) => [s, { kind: "nonblocking" }])), ...Object.fromEntries(Object.entries(streams).map(([s, kind]) => [s, { kind }])) },
	buffers: Object.fromEntries("xypq".split("").map((b) => [b, { mem: mem[b] ?? "device", bytes: 64 }])),
});
const solved = (...args) => { const c = M.compile(P(...args)), T = M.schedule(c); return { c, T, at: (name) => c.ops.find((o) => o.name === name).i }; };
const rec = (stream, event) => ({ op: "event_record", stream, event }), wait = (stream, event) => ({ op: "stream_wait_event", stream, event });
const until = (stream, flag) => ({ op: "stream_wait_value", stream, flag }), set = (stream, flag) => ({ op: "stream_write_value", stream, flag });

test("a mark that the allocator makes on the legacy stream holds back no blocking stream", () => {
	const free = [{ op: "tensor_alloc", buf: "x", stream: "a", block: "K" }, run("c", "p", [], ["y"]), { op: "record_stream", buf: "x", stream: "legacy" }, { op: "tensor_free", buf: "x" }, run("d", "q", ["y"])], blocking = { c: "blocking", d: "blocking" };
	assert.deepEqual(M.verdict(P(free, blocking)).pairs, [[1, 4]]);
	const { T, at } = solved(free, blocking);
	assert.equal(T[at("q")].start, 12);
});
test("of two records of a graph that nothing orders, the later one fixes the time and neither the order", () => {
	const nodes = [{ name: "early", record: "E", deps: [] }, { name: "k", deps: [], us: 90, writes: [whole("x")] }, { name: "late", record: "E", deps: ["k"] }];
	const { c, T, at } = solved([{ op: "graph_launch", stream: "a", nodes }, wait("b", "E"), run("b", "q", ["x"])]);
	assert.equal(T[at("q")].start, 96);
	assert.deepEqual(M.races(c).map((r) => [r.a, r.b]), [[at("k"), at("q")]]);
});
test("a path does not lead over a record that may not be the last", () => {
	const nodes = [{ name: "early", record: "E", deps: [] }, { name: "k", deps: [] }, { name: "late", record: "E", deps: ["k"] }];
	const { c, at } = solved([{ op: "graph_launch", stream: "a", nodes }, wait("b", "E"), { op: "stream_wait_stream", stream: "b", on: "a" }, run("b", "q")]);
	const { ordered, path } = M.explainOrder(c, at("k"), at("q"));
	assert.ok(ordered);
	assert.deepEqual(path.filter((e) => e.kind === "event").map((e) => c.ops[e.from].name), ["record(a)"]);
});
test("a graph's nodes keep the order in which they are listed, where their dependencies allow it", () => {
	const nodes = [{ name: "r2", record: "E", deps: ["k"] }, { name: "r1", record: "E", deps: [] }, { name: "k", deps: [], us: 90 }];
	const { c, T } = solved([{ op: "graph_launch", stream: "a", nodes }, { op: "event_sync", event: "E" }]);
	assert.deepEqual(c.ops.filter((o) => o.graph !== undefined).map((o) => o.call), ["r1", "k", "r2"]);
	assert.equal(T.at(-1).end, 96);
});
test("a graph of thousands of nodes, listed backward, is lowered", () => {
	const nodes = Array.from({ length: 20000 }, (_, k) => ({ name: `n${k}`, deps: k ? [`n${k - 1}`] : [] })).reverse(), { T } = solved([{ op: "graph_launch", stream: "a", nodes }]);
	assert.equal(T.at(-1).end, 6 + 20000 * M.WORK_US);
});
test("two nodes of one name are an error", () => {
	assert.throws(() => M.compile(P([{ op: "graph_launch", stream: "a", nodes: [{ name: "n" }, { name: "n" }] }])), /t, op 0 \(graph_launch\): two nodes of the graph have the same name/);
});
test("of waits for flags that release each other's writers, the one that can end first does", () => {
	const { T } = solved([until("a", "f"), until("b", "g"), set("b", "f"), set("a", "g"), run("c", "slow", [], [], 300), set("c", "f"), run("d", "fast", [], [], 50), set("d", "g")]);
	assert.deepEqual([T[0].end, T[1].end], [92, 92]);
});
test("a long stream behind a wait for a flag is timed", () => {
	const n = 20000, { T } = solved([until("a", "f"), ...Array.from({ length: n }, (_, k) => run("a", `k${k}`, [], [], 1)), set("b", "f")]);
	assert.equal(T[n].end, (n + 2) * M.CALL_US + n);
});
test("the wait for a flag stands for the write that came first", () => {
	const { c, T } = solved([run("c", "slow", [], [], 300), set("c", "f"), set("b", "f"), until("a", "f"), run("a", "q")]);
	assert.equal(M.awaited(c.ops[3], T), 2);
	assert.equal(M.awaited(M.compile(P([wait("a", "never recorded")])).ops[0], T), undefined);
});
test("each byte of a read is looked at, not the last write alone", () => {
	const half = (off) => ({ buf: "x", off, len: 32 }), ops = [run("a", "first", [], [half(0)], 100), run("b", "second", [], [half(32)], 1), rec("b", "E"), wait("c", "E"), run("c", "r", ["x"])];
	const { c, T, at } = solved(ops), [wrong] = M.wrongReads(c, T);
	assert.deepEqual([wrong.reader, wrong.bytes, wrong.got, wrong.want, wrong.how], [at("r"), { buf: "x", off: 0, len: 32 }, null, at("first"), "stale"]);
});
test("a wrong read in one column of a table names its bytes", () => {
	const column = (off) => ({ buf: "x", off, len: 4, rows: 4, stride: 16 }), ops = [run("a", "w", [], [column(4)]), run("b", "r", ["x"])], { c, T } = solved(ops);
	assert.deepEqual(M.wrongReads(c, T).map((w) => w.bytes), [{ buf: "x", off: 4, len: 4 }]);
});
test("all parts of a call were submitted when it began", () => {
	const { c, T, at } = solved([{ op: "host_work", us: 10 }, { op: "memcpy", api: "sync", src: whole("x"), dst: whole("p") }, { op: "stream_wait_stream", stream: "b", on: "a" }], {}, { p: "pinned" });
	assert.deepEqual([T[at("D2H")].submit, T[at("synchronize(D2H)")].submit], [10, 10]);
	assert.deepEqual([T[at("record(a)")].submit, T[at("wait(a)")].submit, T[at("wait(a)")].ready], [T.at(-1).submit, 26, 32]);
	assert.equal(c.ops.length, 5);
});
test("streams that the house has no place for stand in the order in which the program names them, its legacy streams after them", () => {
	const ops = [{ op: "set_device", device: 1 }, run("legacy", "l1"), { op: "set_device", device: 0 }, run("legacy", "l"), run("b", "p"), run("a", "q"), run("forward", "v")];
	assert.deepEqual(M.compile(P(ops, { forward: "nonblocking" })).lanes, ["host", "forward", "a", "b", "legacy", "legacy 1"]);
});
test("what the host was at is what took most of the time in sum", () => {
	const work = (name, us) => ({ op: "host_work", name, us }), { c, T } = solved([work("build 0", 30), work("long", 40), work("build 1", 30), run("a", "k")]);
	assert.deepEqual(M.gpuIdle(c, T).map((g) => [g.from, g.to, g.cause]), [[0, 106, "host: build"]]);
	assert.equal(M.hostDuring(c, T, 0, 106), 0);
});
test("waits side by side in a graph share the gap between them", () => {
	const nodes = [{ name: "one", wait: "E", deps: [] }, { name: "two", wait: "F", deps: [] }, { name: "k", deps: ["one", "two"] }];
	const { c, T } = solved([run("a", "p"), rec("a", "E"), run("b", "q", [], [], 200), rec("b", "F"), { op: "graph_launch", stream: "c", nodes }]);
	assert.deepEqual(M.gaps(c, T).filter((g) => g.lane === "c").map((g) => [g.from, g.to, M.causeOf(c, T, g)]), [[0, 30, "host: issuing calls"], [30, 106, "one"], [106, 218, "two"]]);
});
test("a graph without kernels keeps its stream, and does not make the trace longer", () => {
	const { c, T } = solved([{ op: "graph_launch", stream: "a", us: 50, nodes: [{ name: "r", record: "E" }] }, run("b", "k", [], [], 1)]);
	assert.deepEqual([T[c.ops.find((o) => o.kind === "end").i].end, M.endOf(c, T)], [56, 13]);
});
test("two uses of a block are a lifetime race when their buffers differ", () => {
	const own = (buf) => ({ op: "tensor_alloc", buf, stream: "a", block: "K" }), kinds = (next) => { const c = M.compile(P([own("x"), run("b", "use", ["x"]), { op: "tensor_free", buf: "x" }, own(next), run("a", "fill", [], [next])])); return M.races(c).map((r) => r.kind); };
	assert.deepEqual([kinds("y"), kinds("x")], [["lifetime"], ["WAR"]]);
});
test("in a program with flags a race names the op that was issued first as the first", () => {
	const c = M.compile(P([until("a", "f"), run("a", "late", ["x"]), set("b", "f"), run("c", "w", [], ["x"])]));
	assert.deepEqual(M.races(c).map((r) => [c.ops[r.a].name, c.ops[r.b].name, r.kind]), [["late", "w", "WAR"]]);
});
test("agents that the host has waited for need no clocks of their own", () => {
	const send = (k) => [{ op: "host_async_begin", id: `n${k}`, access: "read", range: whole("p") }, { op: "host_async_wait", id: `n${k}` }];
	assert.equal(M.compile(P(Array.from({ length: 50 }, (_, k) => send(k)).flat())).chains.length, 2);
});
test("null is as good as left out, and names of objects' own properties are no streams or buffers", () => {
	const { T } = solved([{ op: "graph_launch", stream: "a", us: null, step: null, nodes: [{ name: "k", us: null, record: null, wait: null }] }]);
	assert.equal(T.at(-1).end, 16);
	assert.throws(() => M.compile(P([run("constructor", "k")])), /unknown stream "constructor"/);
	assert.throws(() => M.compile(P([run("a", "k", ["toString"])])), /unknown buffer "toString"/);
});

test("a device's synchronize behind a record is not named after that event", () => {
	const program = { streams: { forward: {} }, ops: [{ op: "launch", stream: "forward", name: "verify" }, { op: "event_record", event: "done", stream: "forward" }, { op: "device_sync" }] };
	const held = M.compile(program).ops.find((o) => o.kind === "sync");
	assert.equal(held.name, "synchronize(device 0)");
	assert.equal(held.event, "device 0");
});
