/** Steps laid over one another: which they are, the typical one, how they spread, and what two runs differ by. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { blocking, blockedIn, figures, folded, overlaid, quantile, stepOps, stepStarts, wander } from "../../refimpl/view/run/fold.js";
import { comparison } from "../../refimpl/view/run/panel.js";
import { runOf, span } from "./runs.mjs";

/** Steps of the given lengths: the host builds for 10 µs and is blocked until the step's end; forward works from 12 µs to the end. */
function loop(lengths) {
	const spans = [], steps = [];
	let t = 0;
	lengths.forEach((us, k) => {
		steps.push(t);
		spans.push(span("host", `build ${k}`, "host", t, t + 10), span("host", `synchronize(done ${k})`, "blocked", t + 10, t + us, { call: "cudaEventSynchronize" }), span("forward", `verify ${k}`, "run", t + 12, t + us, { submit: t + 8, ready: t + 10 }));
		t += us;
	});
	return { spans, steps: [...steps, t] };
}
const LENGTHS = [100, 110, 90, 100, 300];
const { spans: SPANS, steps: STEPS } = loop(LENGTHS), RUN = runOf(SPANS, { steps: STEPS });

test("steps are those that the recording names; the last, whose end is unknown, is left out", () => {
	const fold = folded(RUN, stepStarts(RUN));
	assert.deepEqual([...fold.lengths], LENGTHS);
	assert.deepEqual([...folded(RUN, STEPS.slice(0, -1)).lengths], LENGTHS.slice(0, -1));
});
test("the typical step is the one nearest to the median, of equals the one nearest to the middle", () => {
	const fold = folded(RUN, STEPS);
	assert.equal(fold.median, 100);
	assert.equal(fold.typical, 3, "steps 0 and 3 both take 100 µs; 3 is nearer to the middle, 2.5");
	assert.equal(fold.longest, 300);
});
test("without steps the reader names the op whose starts mark them", () => {
	const run = runOf(SPANS);
	assert.equal(folded(run, stepStarts(run)), null);
	assert.deepEqual(stepStarts(run, "build"), STEPS.slice(0, -1));
	assert.deepEqual(stepStarts(run, "no such op"), []);
	assert.ok(stepOps(run).some((x) => x.name === "verify" && x.times === LENGTHS.length));
});
test("kernels of one launch are parts of one step", () => {
	const node = (start, submit) => span("forward", "verify", "run", start, start + 2, { submit, ready: submit + 1 });
	const run = runOf([node(10, 1), node(12, 1), node(14, 1), node(30, 21), node(32, 21), node(50, 41)]);
	assert.deepEqual(stepStarts(run, "verify"), [10, 30, 50]);
	assert.deepEqual(stepOps(run).map((x) => [x.name, x.times]), [["verify", 3]]);
});
test("launches inside one annotation of that name are parts of one step", () => {
	const kernel = (start, submit) => span("forward", "prepare", "run", start, start + 2, { submit, ready: submit + 1 });
	const run = runOf([span("host", "prepare", "host", 0, 9), span("host", "prepare", "host", 100, 109), kernel(10, 1), kernel(12, 4), kernel(110, 101), kernel(112, 104)]);
	assert.deepEqual(stepStarts(run, "prepare"), [10, 110]);
});
test("numbers that come again, as those of events that take turns, are not numbers of steps", () => {
	const run = runOf([24, 25, 24, 25].map((event, k) => span("host", `synchronize(event ${event})`, "blocked", k * 100, k * 100 + 50)));
	assert.deepEqual(stepStarts(run, "synchronize(event)"), [0, 100, 200, 300]);
});
test("an op that is both on a stream and on the host marks steps by its work on the stream", () => {
	const run = runOf([0, 100, 200].flatMap((t, k) => [span("host", `verify ${k}`, "host", t, t + 5), span("forward", `verify ${k}`, "run", t + 9, t + 50)]));
	assert.deepEqual(stepStarts(run, "verify"), [9, 109, 209]);
});
test("the shares of steps that work at a time are counted over all steps", () => {
	const { work, bucket } = overlaid(RUN, RUN.lanes.indexOf("forward"), folded(RUN, STEPS)), at = (us) => +work[Math.floor(us / bucket)].toFixed(3);
	assert.equal(at(5), 0, "no step works before 12 µs");
	assert.equal(at(50), 1, "all steps work at 50 µs");
	assert.equal(at(95), 0.8, "the step of 90 µs has ended");
	assert.equal(at(105), 0.4, "two of five steps are longer than 105 µs");
	assert.equal(at(200), 0.2);
});
test("on the host, what is held is counted apart from its work", () => {
	const { work, held, bucket } = overlaid(RUN, 0, folded(RUN, STEPS)), at = (xs, us) => +xs[Math.floor(us / bucket)].toFixed(3);
	assert.deepEqual([at(work, 5), at(held, 5), at(work, 50), at(held, 50)], [1, 0, 0, 1]);
});
test("a span that crosses into the next step counts in both", () => {
	const run = runOf([span("forward", "a", "run", 50, 150), span("forward", "b", "run", 250, 260)], { steps: [0, 100, 200, 300] });
	const { work, bucket } = overlaid(run, 0, folded(run, [0, 100, 200, 300])), at = (us) => +work[Math.floor(us / bucket)].toFixed(3);
	assert.deepEqual([at(20), at(40), at(55), at(70)], [0.333, 0.333, 0.667, 0.333]);
});
test("how far a span wanders is taken from the span of the same name and place in other steps", () => {
	const fold = folded(RUN, STEPS), verify = RUN.names.indexOf("verify 3"), i = RUN.name.indexOf(verify), w = wander(RUN, fold).get(i);
	assert.equal(w.times, 5);
	assert.deepEqual(w.start, [12, 12]);
	assert.deepEqual(w.end, [90, 300], "the nearest ranks of 10 % and 90 % of five are the first and the fifth");
});
test("quantiles are nearest ranks", () => {
	assert.deepEqual([0.1, 0.5, 0.9].map((q) => quantile([1, 2, 3, 4, 5, 6, 7, 8, 9, 10], q)), [1, 5, 9]);
});
test("blocking calls are summed by their own name, the longest sum first", () => {
	assert.deepEqual(blocking(RUN), [{ name: "cudaEventSynchronize", lane: "host", times: 5, us: 650 }]);
	assert.equal(blockedIn(RUN, 0, 100), 90);
});
test("figures of a step: its median, and what is blocked and idle in the mean of whole steps", () => {
	const f = figures(RUN, folded(RUN, STEPS));
	assert.deepEqual([f.steps, f.step, f.blocked, f.idle], [5, 100, 650 / 5, (5 * 12) / 5]);
});
test("the comparison says the differences with their signs, in time and in per cent", () => {
	const after = runOf(...(() => { const x = loop([50, 50, 50]); return [x.spans, { steps: x.steps }]; })()), a = figures(RUN, folded(RUN, STEPS)), b = figures(after, folded(after, after.columns.steps));
	const table = comparison(["before", "after"], [a, b]);
	assert.match(table, /−50 µs.*\(−50 %\)/, "a step: from 100 to 50 µs");
	assert.match(table, /−90 µs.*\(−69 %\)/, "blocked: from 130 to 40 µs a step");
	assert.match(table, /±0/, "idle: 12 µs a step in both");
});
