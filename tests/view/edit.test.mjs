import test from "node:test";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { applyEdits, editsIn, editsText, fenceFamilies, fitting, isFence, withEdit } from "../../refimpl/view/explorable/edit.js";
import { complete, edited, missingFence, sameRaces, solve, structure } from "../../refimpl/view/explorable/solve.js";
import { isWork, verdict } from "../../refimpl/view/model/model.js";
import { fenceOf, issuedWhere } from "../../refimpl/view/explorable/fence_panel.js";
import { verifyDone } from "./example.mjs";

const spec = complete(verifyDone()), program = (id) => spec.variants.find((v) => v.id === id).program;
const given = (id) => structure(program(id), "forward"), under = (id, edits) => edited(given(id), program(id), edits, "forward");
const solved = (id, edits) => solve(under(id, edits), new Map(), spec), indices = (id, test) => program(id).ops.map((o, i) => (test(o) ? i : -1)).filter((i) => i >= 0);
const key = (id, test, n = 1) => String(indices(id, test)[n]), waits = (o) => o.op === "stream_wait_event" && o.event === "verify_done", syncs = (o) => o.op === "event_sync" && o.event === "verify_done";
const ops = (id, edits) => applyEdits(program(id), edits).program.ops;
const range = { buf: "x", off: 0, len: 8 }, tiny = { id: "tiny", streams: { a: {}, b: {} }, buffers: { x: { bytes: 8 } } };
const write = { op: "launch", stream: "a", name: "write", us: 50, writes: [range] }, read = { op: "launch", stream: "b", name: "read", us: 50, reads: [range] };

test("a fence that is off is as if it had not been written", () => {
	assert.deepEqual(ops("wait", [{ do: "off", key: key("wait", waits), all: true }]), program("wait").ops.filter((o) => !waits(o)));
	const one = Number(key("wait", waits));
	assert.deepEqual(ops("wait", [{ do: "off", key: String(one), all: false }]), program("wait").ops.filter((_, i) => i !== one));
});
test("synchronize without its synchronize is the variant without a fence, in order, times and races", () => {
	const off = solved("synchronize", [{ do: "off", key: key("synchronize", syncs), all: true }]), none = solve(given("none"), new Map(), spec);
	const told = (m) => [m.families.length, m.acc.step, m.ops.filter(isWork).map((o) => [o.name, o.start, o.end])];
	assert.deepEqual(told(off), told(none));
});
test("on again is as given, and so is a move there and back", () => {
	const k = key("wait", waits), off = { do: "off", key: k, all: true }, later = { do: "move", key: k, by: 1, all: true };
	assert.deepEqual(withEdit(withEdit([], off), { ...off, do: "on" }), []);
	assert.deepEqual(withEdit(withEdit([], later), { ...later, by: -1 }), []);
	assert.deepEqual(ops("wait", []), program("wait").ops);
});
test("a wait that is issued one op of its stream later comes after the read that it was to protect, and the race is there", () => {
	const k = key("wait", waits, 1), moved = solved("wait", [{ do: "move", key: k, by: 1, all: false }]);
	const at = moved.list.findIndex((x) => x.key === k);
	assert.equal(moved.list[at - 1].op.name, "gather");
	assert.deepEqual(moved.families.map((r) => [r.kind, r.range.buf]), [["RAW", "new_seq_lens"]]);
});
test("a wait that is issued before the record waits for the capture of the step before", () => {
	const list = [write, { op: "event_record", event: "e", stream: "a" }, { op: "stream_wait_event", event: "e", stream: "b" }, read];
	const moved = applyEdits({ ...tiny, ops: list }, [{ do: "move", key: "2", by: -1, all: false }]).program;
	assert.deepEqual(moved.ops.map((o) => o.op), ["launch", "stream_wait_event", "event_record", "launch"]);
	assert.deepEqual([verdict({ ...tiny, ops: list }).verdict, verdict(moved).verdict], ["ok", "race"]);
});
test("a fence on a stream passes only what it matters to, one that holds the host passes any call", () => {
	const other = { op: "launch", stream: "c", name: "other" }, list = [write, { op: "event_record", event: "e", stream: "a" }, other, other, { op: "event_sync", event: "e" }];
	const order = (key, by) => applyEdits({ ...tiny, streams: { a: {}, c: {} }, ops: list }, [{ do: "move", key, by, all: false }]).keys.join("");
	assert.equal(order("1", 1), "02341", "past the calls of another stream, up to and past the synchronize with its event");
	assert.equal(order("4", -1), "01243");
	assert.equal(order("1", 9), "02341", "as far as it goes");
});
test("moved in each step, every one of a family moves by as much and none meets its like", () => {
	const k = key("wait", waits), at = indices("wait", waits);
	for (const by of [1, -1, 2, -2]) {
		const { list } = applyEdits(program("wait"), [{ do: "move", key: k, by, all: true }]), now = list.map((x, i) => (waits(x.op) ? i : -1)).filter((i) => i >= 0);
		assert.deepEqual(list.filter((x) => waits(x.op)).map((x) => Number(x.key)), at, `by ${by}: in the order as given`);
		assert.ok(now.every((p, n) => Math.sign(p - at[n]) === Math.sign(by)), `by ${by}: all moved`);
	}
});
test("the missing fence is a record after the one and a wait before the other, in each step, and the race is gone", () => {
	const m = solved("none", []), pair = missingFence(m, m.race.a, m.race.b), pairs = sameRaces(m, pair), edits = [{ do: "add", pairs }], after = solved("none", edits);
	assert.ok(pairs.length > 3, "one for each step that has the race");
	assert.deepEqual(after.families, []);
	const [a, b] = pairs[0], keys = after.list.map((x) => x.key), e = keys.indexOf("e0"), w = keys.indexOf("w0");
	assert.deepEqual([keys[e - 1], keys[w + 1]], [a, b]);
	assert.deepEqual([after.list[e].op.stream, after.list[w].op.stream], ["forward", "schedule"]);
});
test("the fence in front of a host's read holds the host; between ordered ops none is offered", () => {
	const hostRead = { op: "host_read", name: "look", range }, of = (list) => { const p = { ...tiny, ops: list }; return solve(edited(structure(p, "a"), p, [], "a"), new Map(), complete(p)); };
	const m = of([write, hostRead]), pair = missingFence(m, 0, 1), made = applyEdits({ ...tiny, ops: [write, hostRead] }, [{ do: "add", pairs: sameRaces(m, pair) }]).program;
	assert.deepEqual(made.ops.map((o) => o.op), ["launch", "event_record", "event_sync", "host_read"]);
	assert.equal(verdict(made).verdict, "ok");
	assert.equal(missingFence(of([write, { ...read, stream: "a" }]), 0, 1), null);
});
test("a node of a graph that is off leaves its neighbours in order", () => {
	const node = (name, deps, more) => ({ name, deps, ...more }), nodes = [node("w", [], { writes: [range] }), node("mark", ["w"], { record: "e" }), node("r", ["mark"], { reads: [range] })];
	const p = { ...tiny, ops: [{ op: "graph_launch", stream: "a", nodes }] }, [family] = fenceFamilies(applyEdits(p, []).list);
	assert.deepEqual([family.name, family.keys, family.movable], ["record(e) on a", ["0/1"], false]);
	assert.deepEqual(applyEdits(p, [{ do: "off", key: "0/1", all: false }]).program.ops[0].nodes.map((n) => [n.name, n.deps]), [["w", []], ["r", ["w"]]]);
});
test("what is on screen for a fence leads to the fence, and back to where it is issued", () => {
	const m = solved("wait", []), i = m.ops.findIndex((o) => o.kind === "wait" && /verify_done 1/.test(o.event));
	assert.equal(fenceOf(m, i), key("wait", waits, 1));
	assert.match(issuedWhere(m, fenceOf(m, i)), /after <b>prepare of step 2<\/b>, before <b>gather of step 2<\/b>/);
	assert.equal(fenceOf(m, m.ops.findIndex((o) => o.name === "gather 1")), undefined);
});
test("ops keep their identity under an edit, so that lanes re-flow", () => {
	const ids = (m) => m.ops.filter((o) => isWork(o) || o.kind === "sync").map((o) => o.id);
	assert.deepEqual(ids(solved("synchronize", [{ do: "move", key: key("synchronize", syncs), by: -1, all: true }])).sort(), ids(solved("synchronize", [])).sort());
});
test("edits written into an address are read back; what is no edit, or speaks of nothing, is passed over", () => {
	const edits = [{ do: "off", key: "3", all: true }, { do: "move", key: "12", by: -4, all: false }, { do: "on", key: "7/2", all: false }, { do: "add", pairs: [["1", "5"], ["8", "9"]] }, { do: "off", key: "w0", all: false }];
	assert.deepEqual(editsIn(editsText(edits)), edits);
	assert.deepEqual(editsIn("~zz~3~3q~m4~3m~a1~a1.~__proto__x~3mm2"), []);
	assert.deepEqual(fitting(program("wait"), editsIn(`9999x~${indices("wait", (o) => o.op === "launch")[0]}x~a1.9999`)), []);
	const added = editsIn("a1.5~w0x");
	assert.deepEqual(fitting(program("wait"), added), added);
});
test("whatever is turned off and moved, in any program of the catalogue, all other ops stay, in their order, and it can be solved", () => {
	const { cases } = JSON.parse(readFileSync(new URL("../cases/stream-programs.json", import.meta.url), "utf8"));
	let seed = 7, changed = 0;
	const random = (n) => (seed = (seed * 1103515245 + 12345) % 2147483648) % n;
	for (const p of cases) {
		const base = structure(p, "forward"), rest = (ops) => ops.filter((o) => !isFence(o)).map((o) => o.op);
		for (let round = 0; round < 3; round++) {
			let edits = [];
			for (let k = 0; k < 3; k++) {
				const families = fenceFamilies(applyEdits(p, edits).list);
				if (!families.length) break;
				const { keys } = families[random(families.length)], by = random(2) ? 1 + random(3) : -1 - random(3), all = random(2) === 1;
				edits = withEdit(edits, random(3) ? { do: "move", key: keys[random(keys.length)], by, all } : { do: "off", key: keys[random(keys.length)], all });
			}
			const m = solve(edited(base, p, edits, "forward"), new Map(), complete(p));
			assert.deepEqual(rest(m.program.ops), rest(p.ops), `${p.id} ${editsText(edits)}`);
			assert.equal(new Set(m.ops.map((o) => o.id)).size, m.ops.length, p.id);
			changed += edits.length;
		}
	}
	assert.ok(changed > 300);
});
