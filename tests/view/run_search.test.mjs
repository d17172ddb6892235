/** Search, the way from span to span, and what of a view stands in the address. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOf, fromAddress } from "../../refimpl/view/run/address.js";
import { coloursOf } from "../../refimpl/view/run/canvas.js";
import { found, nearest, sameLane, sameName, tracksAmong, turn } from "../../refimpl/view/run/search.js";
import { runOf, span } from "./runs.mjs";

const RUN = () => runOf([
	span("host", "synchronize(done 0)", "blocked", 0, 10, { call: "cudaEventSynchronize" }), span("forward", "verify 0", "run", 1, 9, { call: "cudaLaunchKernel" }), span("copy", "out", "run", 9, 12),
	span("forward", "verify 1", "run", 20, 30), span("forward", "gather 1", "run", 30, 31), span("forward", "verify 2", "run", 40, 50),
], { steps: [0, 20, 40, 60] });
const names = (run, ids) => Array.from(ids, (i) => run.names[run.name[i]]);

test("a search finds names, calls and lanes, in any case of letters", () => {
	const run = RUN();
	assert.deepEqual(names(run, found(run, "VERIFY")), ["verify 0", "verify 1", "verify 2"]);
	assert.deepEqual(names(run, found(run, "cudaevent")), ["synchronize(done 0)"]);
	assert.deepEqual(names(run, found(run, "copy")), ["out"]);
	assert.equal(found(run, "  ").length, 0);
	assert.equal(found(run, "(.*").length, 0);
});
test("matches are drawn from tracks of their own, which hold them all and nothing else", () => {
	const run = RUN(), tracks = tracksAmong(run, found(run, "verify"));
	assert.deepEqual(names(run, tracks.flat().flatMap((t) => [...t.ids])), ["verify 0", "verify 1", "verify 2"]);
});
test("next and previous go round, and begin at the window where nothing is in hand", () => {
	const ids = [2, 5, 9], first = () => 1;
	assert.equal(turn(ids, 5, 1, first), 9);
	assert.equal(turn(ids, 9, 1, first), 2);
	assert.equal(turn(ids, 2, -1, first), 9);
	assert.equal(turn(ids, 6, -1, first), 5);
	assert.equal(turn(ids, 6, 1, first), 9);
	assert.equal(turn(ids, -1, 1, first), 5);
	assert.equal(turn([], 3, 1, first), -1);
});
test("the next span of the same name is that of the next step", () => {
	const run = RUN(), at = (name) => run.name.indexOf(run.names.indexOf(name));
	assert.equal(sameName(run, at("verify 0"), 1), at("verify 1"));
	assert.equal(sameName(run, at("verify 0"), -1), at("verify 2"));
	assert.equal(sameLane(run, at("verify 1"), 1), at("gather 1"));
	assert.equal(sameLane(run, at("verify 2"), 1), -1);
	assert.equal(nearest(run, run.lanes.indexOf("forward"), 34), at("gather 1"));
	assert.equal(nearest(run, run.lanes.indexOf("forward"), 39), at("verify 2"));
});
test("threads have the host's colour; streams of several GPUs that of their name", () => {
	const colours = coloursOf(["host", "thread 7", "forward", "GPU 1 forward", "mine", "GPU 0 yours"], (l) => /^(host|thread)/.test(l));
	assert.deepEqual([...colours.values()], ["host", "host", "forward", "forward", "other1", "other2"]);
});

/** A view without a screen: what RunView does with colours left out. */
async function view(run) {
	const { RunView } = await import("../../refimpl/view/run/view.js");
	globalThis.getComputedStyle = () => ({ color: "" });
	globalThis.document = { createElement: () => ({ style: {}, remove() {} }) };
	return new RunView(/** @type {any} */ ({ appendChild: (x) => x }), [run], [""]);
}
test("the state of a view survives its address", async () => {
	const v = await view(RUN());
	v.window(...v.whole());
	assert.deepEqual(Object.values(addressOf(v)).filter(Boolean), [], "at first nothing is in the address");
	v.fold(true);
	v.window(2, 10);
	v.S.step = 1;
	v.search("verify");
	v.S.picks = [{ r: 0, i: 1 }, { r: 0, i: 3 }];
	const values = addressOf(v), w = await view(RUN());
	fromAddress(w, values);
	assert.deepEqual(addressOf(w), values);
	assert.deepEqual([w.S.fold, w.S.step, w.S.t0, w.S.span, w.matches()], [true, 1, 2, 10, 3]);
});
test("a malformed address is the view as it begins", async () => {
	for (const values of [{ w: "x~y" }, { w: "5~-3" }, { step: "99" }, { step: "-1" }, { pick: "7.7~a.b~0.99" }, { mark: "no such op" }, { fold: "yes" }]) {
		const v = await view(RUN());
		fromAddress(v, values);
		assert.deepEqual(Object.values(addressOf(v)).filter(Boolean), [], JSON.stringify(values));
	}
});
test("the window stays inside the run however far it is pushed or drawn", async () => {
	const v = await view(RUN());
	for (const [t0, span] of [[-100, 10], [1e9, 10], [10, 1e9], [10, 0], [NaN, NaN]]) {
		v.window(t0, span);
		assert.ok(v.S.t0 >= v.lo && v.S.t0 + v.S.span <= v.hi + 1e-9 && v.S.span > 0, `${t0} ${span}`);
	}
});
test("the chosen step of a folded run begins at zero", async () => {
	const v = await view(RUN());
	v.fold(true);
	v.S.step = 2;
	v.place();
	assert.equal(v.shift[0], 40);
	assert.equal(v.X(0), v.L.left);
});
