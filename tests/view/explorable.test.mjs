import test from "node:test";
import assert from "node:assert/strict";
import * as M from "../../refimpl/view/model/model.js";
import { arrowPath, fitLabel, largest, layout, tickStep, units } from "../../refimpl/view/shared/dom.js";
import { bounds, complete, question, readable, solve, structure } from "../../refimpl/view/explorable/solve.js";
import { forcedAnswer, narrate, nothingToForce, orderAnswer } from "../../refimpl/view/explorable/words.js";
import { verifyDone } from "./example.mjs";

const spec = complete(verifyDone()), s = Object.fromEntries(spec.variants.map((v) => [v.id, structure(v.program, spec.hero)]));
const solved = (id, us = {}, force = false) => solve(s[id], new Map(Object.entries(us)), spec, force), variant = (id) => spec.variants.find((v) => v.id === id);

test("only the variant without a fence races, and wait is as fast as the overlap allows", () => {
	assert.deepEqual(["none", "synchronize", "wait"].map((id) => s[id].families.length), [1, 0, 0]);
	const step = (id) => solved(id).acc.step;
	assert.ok(step("synchronize") - step("wait") > 800);
	assert.ok(step("wait") - step("none") < 300);
});
test("synchronize moves host time to before the launch; wait leaves the host free until results are due", () => {
	assert.deepEqual(Object.keys(solved("synchronize").acc.blockedBy), ["verify_done"]);
	assert.deepEqual(Object.keys(solved("wait").acc.blockedBy), ["copy_done"]);
});
test("a parameter moves every op that takes its duration from it", () => {
	const longer = solved("synchronize", { host: 1900 }).acc.step - solved("synchronize").acc.step;
	assert.ok(Math.abs(longer - 1000) < 1);
});
test("a forced order shows the value of the step before", () => {
	const m = solved("none", {}, true), w = m.wrong.find((x) => x.reader === m.race.b);
	assert.deepEqual([m.ops[w.got].value, m.ops[w.want].value, m.ops[w.reader].name], ["lengths of step 0", "lengths of step 1", "gather 2"]);
});
test("what goes wrong in the timed order is not said to take a delay, and what goes right is", () => {
	const told = (us) => { const m = solved("none", us, true); return [narrate(solved("none", us), units(1e4), spec, variant("none")), narrate(m, units(1e4), spec, variant("none")), forcedAnswer(m, units(1e4))]; };
	const [free, forced, answer] = told({});
	assert.match(free, /In this run it goes wrong/);
	assert.match(forced, /In this run it goes wrong/);
	assert.match(answer, /found <b>lengths of step 0<.*No delay was needed/);
	const [lucky, pushed, delayed] = told({ host: 4000, graph: 400 });
	assert.match(lucky, /it goes right, by luck/);
	assert.match(pushed, /the bad order is forced/);
	assert.match(delayed, /It took a delay of \d\.\d\d ms on forward/);
});
test("where nothing races, forcing says why it does nothing", () => {
	assert.match(nothingToForce(solved("wait")), /^No race here: every order that the rules allow gives the same values\.$/);
});
test("the question is the race of the variant that has one, asked of all", () => {
	assert.deepEqual(question(spec, Object.values(s)).map((id) => s.wait.c.ops[s.wait.at.get(id)].name), ["forward 1", "gather 2"]);
	assert.deepEqual(question({ ...spec, ask: ["gather 1", "forward 1"] }, Object.values(s)).map((id) => s.wait.c.ops[s.wait.at.get(id)].name), ["gather 1", "forward 1"]);
});
test("the answer is the fence that orders, edge by edge, or what is at stake", () => {
	const ask = (id) => orderAnswer(solved(id), ...question(spec, Object.values(s)).map((x) => s[id].at.get(x)), 0);
	assert.match(ask("wait").html, /schedule waits for the capture of verify_done 1/);
	assert.match(ask("synchronize").html, /the host blocks until verify_done 1 has passed/);
	assert.match(ask("none").html, /unordered.*RAW.*new_seq_lens\[0:64\].*Missing: a record on forward/);
});
test("a graph's begin and end are no steps of a path", () => {
	const c = s.wait.c, x = M.explainOrder(c, ...question(spec, Object.values(s)).map((id) => s.wait.at.get(id)));
	assert.deepEqual(readable(c, x.path).map((e) => [c.ops[e.from].name, c.ops[e.to].name]), [["forward 1", "record(verify_done 1)"], ["record(verify_done 1)", "wait(verify_done 1)"], ["wait(verify_done 1)", "gather 2"]]);
});
test("the sentence gives verdict and cost", () => {
	const say = (id) => narrate(solved(id), units(1e4), spec, variant(id)).replace(/<[^>]+>/g, "");
	assert.match(say("none"), /^No fence: a race\. Nothing orders forward before the next step’s gather: RAW on new_seq_lens\. In this run it goes wrong\./);
	assert.match(say("synchronize"), /^synchronize: safe\. The host stands still on verify_done for 2\.\d\d ms of each 3\.\d\d ms step\./);
	assert.match(say("wait"), /^wait: safe\. The wait is on the device; the host goes on\./);
});
test("names from a program are text, never markup", () => {
	const bad = complete({ id: "x", streams: { a: { kind: "nonblocking" }, b: { kind: "nonblocking" } }, buffers: { x: { bytes: 8 } }, ops: ["a", "b"].map((stream) => ({ op: "launch", stream, name: "<img src=x>", reads: [], writes: [{ buf: "x", off: 0, len: 8 }] })) });
	const m = solve(structure(bad.variants[0].program, "a"), new Map(), bad);
	assert.doesNotMatch(narrate(m, units(1), bad, bad.variants[0]) + orderAnswer(m, 0, 1, 0).html, /<img/);
});
test("a plain program is shown too: every duration of it can be dragged", () => {
	const plain = complete(variant("wait").program), op = structure(plain.variants[0].program, "forward").c.ops.find((o) => o.name === "gather 1");
	assert.equal(plain.variants.length, 1);
	assert.deepEqual(bounds(plain, op, op.us), { min: 0, max: 1800, us: 180 });
	assert.deepEqual(bounds(spec, { key: "host" }, 900), { min: 0, max: 4000, us: 900 });
});
test("ops keep their identity from variant to variant, so that lanes re-flow", () => {
	const ids = (id) => s[id].c.ops.filter(M.isWork).map((o) => o.id);
	assert.deepEqual(ids("none"), ids("wait"));
	assert.equal(new Set(s.wait.c.ops.map((o) => o.id)).size, s.wait.c.ops.length);
});
// ── layout as data ──
test("lanes never overlap and keep a gutter for arrows, at any width", () => {
	for (const w of [320, 390, 620, 768, 1152, 2000]) {
		const L = layout(w, ["host", "schedule", "plan", "forward", "copy"], "forward"), rows = [...L.rows.values()];
		rows.slice(1).forEach((r, k) => assert.ok(r.y - rows[k].end >= 24, `width ${w}`));
		assert.ok(rows[4].end < L.steps && L.steps + 18 < L.axis);
		assert.deepEqual([L.left + L.width, L.left >= 8, L.full], [w - 8, true, w], "half a thumb of the time slider fits beside the plot");
	}
});
test("a label takes the longest wording that fits, then is cut, then is left out", () => {
	const size = (t) => t.length * 10;
	assert.deepEqual([80, 79, 50, 30].map((w) => fitLabel(["verify 1", "verify"], w, size)), ["verify 1", "verify", "veri…", ""]);
});
test("arrows leave and enter a lane at a right angle", () => {
	for (const [x0, y0, x1, y1] of [[10, 100, 60, 20], [10, 20, 60, 100], [5, 5, 5, 30]]) {
		const n = arrowPath(x0, y0, x1, y1).match(/-?[\d.]+/g).map(Number);
		assert.deepEqual([n[0], n[4]], [n[2], n[6]]);
	}
});
test("short programs are told in microseconds, long ones in milliseconds", () => {
	assert.deepEqual([units(120).text(37), units(9000).text(1234)], ["37 µs", "1.23 ms"]);
	assert.deepEqual([tickStep(100, 600), tickStep(12000, 1000)], [10, 1000]);
});
test("a name of ten thousand letters is cut after few looks", () => {
	let looks = 0;
	const size = (t) => { looks++; return t.length; }, name = "x".repeat(10_000);
	assert.equal(fitLabel([name], 7_777, size), `${"x".repeat(7_776)}…`);
	assert.equal(fitLabel([name], 5_999, size), "");
	assert.ok(looks < 40, `${looks} looks`);
});
test("the largest that fits is found in any range", () => {
	for (let high = -1; high < 12; high++) for (let most = -2; most < 14; most++) assert.equal(largest(0, high, (k) => k <= most), Math.max(-1, Math.min(high, most)));
});
