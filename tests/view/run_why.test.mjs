/** Why a stream is idle, why work waits after its launch, and the order of two spans. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { indexed } from "../../refimpl/view/run/index.js";
import { pathBetween } from "../../refimpl/view/run/path.js";
import { gapAt, gapBefore, nextIdle, whyIdle, whyWaits } from "../../refimpl/view/run/why.js";
import { between, facts, summary, whyWords } from "../../refimpl/view/run/words.js";
import { columnsOf, randomRun, runOf, span } from "./runs.mjs";

const lane = (run, name) => run.lanes.indexOf(name), find = (run, name) => run.name.indexOf(run.names.indexOf(name));
const causes = (parts) => parts.map((p) => [p.cause, p.from, p.to]);
const work = (on, name, start, end, ready, submit = ready - 4) => span(on, name, "run", start, end, { submit, ready });

test("host late: the gap lasts until the launch, and what held the host is named", () => {
	const run = runOf([work("forward", "verify 0", 10, 100, 8), span("host", "synchronize(done 0)", "blocked", 10, 100), span("host", "build 1", "host", 100, 500), work("forward", "verify 1", 512, 600, 510, 505)]);
	const gap = gapAt(run, lane(run, "forward"), 300), parts = whyIdle(run, gap);
	assert.deepEqual([gap.from, gap.to], [100, 512]);
	assert.deepEqual(causes(parts), [["host", 100, 505], ["call", 505, 510], ["latency", 510, 512]]);
	assert.equal(whyWords(run, parts), "405 µs host late: in build 1; 5 µs in the launch call; 2 µs launch latency");
});
test("host late: where a blocking call covers most of it, the host was held", () => {
	const run = runOf([work("forward", "a", 10, 100, 8), work("copy", "long", 20, 400, 9), span("host", "synchronize(copied 0)", "blocked", 50, 400), work("forward", "b", 410, 500, 408, 404)]);
	assert.match(whyWords(run, whyIdle(run, gapAt(run, lane(run, "forward"), 200))), /^304 µs host late: held by synchronize\(copied 0\)/);
});
test("host late: launches of other work are named as such", () => {
	const others = Array.from({ length: 30 }, (_, k) => work("copy", `c ${k}`, 120 + k * 10, 125 + k * 10, 110 + k * 10, 101 + k * 10));
	const run = runOf([span("host", "build", "host", 0, 5), work("forward", "a", 10, 100, 8), ...others, work("forward", "b", 420, 500, 415, 405)]);
	assert.match(whyWords(run, whyIdle(run, gapAt(run, lane(run, "forward"), 200))), /host late: issuing other work/);
});
test("waiting for an event: the launch was early, and the edge's source ended in the gap", () => {
	const spans = [work("copy", "load", 0, 300, 0), span("copy", "record(loaded)", "record", 300, 300), work("forward", "a", 10, 100, 8), span("forward", "wait(loaded)", "wait", 100, 300), work("forward", "b", 301, 400, 20)];
	const sorted = columnsOf(spans), at = (name) => sorted.spans.name.indexOf(sorted.names.indexOf(name)), run = indexed(columnsOf(spans, { edges: [[at("record(loaded)"), at("wait(loaded)"), "event"]] }));
	const parts = whyIdle(run, gapAt(run, lane(run, "forward"), 200));
	assert.deepEqual(causes(parts), [["event", 100, 301]]);
	assert.equal(whyWords(run, parts), "waits for load on copy, by an event");
});
test("without edges, work of another stream that ended right before is told, and that no event is recorded", () => {
	const run = runOf([work("copy", "load", 0, 300, 0), work("forward", "a", 10, 100, 8), work("forward", "b", 304, 400, 20)]);
	assert.equal(whyWords(run, whyIdle(run, gapAt(run, lane(run, "forward"), 200))), "load on copy ended just before; the recording shows no event");
});
test("an early launch with nothing in sight to wait for waits for what is not shown; a short gap is one between queued work", () => {
	const run = runOf([work("forward", "a", 10, 100, 8), work("forward", "b", 400, 500, 20), work("forward", "c", 504, 600, 30)]), f = lane(run, "forward");
	assert.deepEqual(causes(whyIdle(run, gapAt(run, f, 200))), [["hidden", 100, 400]]);
	assert.deepEqual(causes(whyIdle(run, gapAt(run, f, 502))), [["queued", 500, 504]]);
});
test("nodes of one launch have their gaps between them", () => {
	const run = runOf([work("forward", "n1", 10, 50, 8), work("forward", "n2", 90, 100, 8)]);
	assert.deepEqual(causes(whyIdle(run, gapAt(run, lane(run, "forward"), 70))), [["launch", 50, 90]]);
});
test("drained: nothing more came", () => {
	const run = runOf([work("forward", "a", 10, 100, 8), span("host", "end", "host", 100, 900)]);
	assert.deepEqual(causes(whyIdle(run, gapAt(run, lane(run, "forward"), 500))), [["drained", 100, 900]]);
});
test("same stream busy: work queued behind other work waited for that", () => {
	const run = runOf([work("forward", "a", 10, 100, 8), work("forward", "b", 100, 200, 20)]);
	assert.deepEqual(causes(whyWaits(run, find(run, "b"))), [["busy", 20, 100]]);
	assert.match(facts(run, find(run, "b"), String).find(([k]) => k === "waited")[1], /^same stream busy, last with a$/);
});
test("there is no gap where a stream works, and none on the host", () => {
	const run = runOf([work("forward", "a", 10, 100, 8), span("host", "h", "host", 0, 5)]);
	assert.equal(gapAt(run, lane(run, "forward"), 50), null);
	assert.equal(gapAt(run, lane(run, "host"), 50), null);
});
test("the next long gap is found past short ones", () => {
	const run = runOf([work("forward", "a", 0, 10, 0), work("forward", "b", 12, 20, 1), work("forward", "c", 90, 95, 2)]), gap = nextIdle(run, lane(run, "forward"), 0);
	assert.deepEqual([gap.from, gap.to], [20, 90]);
	assert.equal(nextIdle(run, lane(run, "forward"), 91), null);
	assert.equal(gapBefore(run, find(run, "b")).to, 12);
});
for (let seed = 1; seed <= 30; seed++)
	test(`random run ${seed}: the causes of a gap follow one another and add up to it`, () => {
		const run = runOf(randomRun(seed, 300));
		run.lanes.forEach((_, l) => {
			for (let t = 0; t < run.to; t += run.to / 40) {
				const gap = gapAt(run, l, t);
				if (!gap) continue;
				const parts = whyIdle(run, gap);
				assert.equal(parts[0].from, gap.from);
				assert.equal(parts[parts.length - 1].to, gap.to);
				parts.slice(1).forEach((p, k) => assert.equal(p.from, parts[k].to));
				assert.ok(Array.from(run.byLane[l]).every((i) => run.end[i] <= gap.from + 0.01 || run.start[i] >= gap.to - 0.01), "no span of the lane lies in it");
			}
		});
	});

const ORDERED = () => {
	const spans = [work("copy", "load", 0, 10, 0), span("copy", "record(e)", "record", 10, 10), work("copy", "more", 10, 30, 1), span("forward", "wait(e)", "wait", 5, 11), work("forward", "use", 12, 20, 2), span("host", "synchronize(used)", "blocked", 3, 22), span("host", "build", "host", 22, 25), work("plan", "late", 31, 33, 30, 28)];
	const c = columnsOf(spans), at = (name) => c.spans.name.indexOf(c.names.indexOf(name));
	return { run: indexed(columnsOf(spans, { edges: [[at("record(e)"), at("wait(e)"), "event"], [at("use"), at("synchronize(used)"), "synchronize"]] })), at };
};
test("the path of order leads along lanes, edges between them, and launches by the host", () => {
	const { run, at } = ORDERED();
	assert.deepEqual(pathBetween(run, at("load"), at("use")).map((e) => e.kind), ["lane", "event", "lane"]);
	assert.deepEqual(pathBetween(run, at("load"), at("late")).map((e) => e.kind), ["lane", "event", "lane", "synchronize", "launch"]);
});
test("each edge of a path begins where the one before it ended", () => {
	const { run, at } = ORDERED(), path = pathBetween(run, at("load"), at("late"));
	assert.equal(path[0].from, at("load"));
	assert.equal(path[path.length - 1].to, at("late"));
	path.slice(1).forEach((e, k) => assert.equal(e.from, path[k].to));
});
test("spans that nothing orders have no path, though one ran before the other", () => {
	const { run, at } = ORDERED();
	assert.equal(pathBetween(run, at("more"), at("late")), null);
	assert.match(between(run, at("more"), at("late")), /No path of order/);
});
test("with several host threads a launch is nobody's edge: the recording does not say who made it", () => {
	const run = runOf([span("host", "build", "host", 0, 5), span("thread 7", "other", "host", 0, 3), work("forward", "a", 10, 20, 8)]);
	assert.equal(pathBetween(run, find(run, "build"), find(run, "a")), null);
});
test("two picks are measured from the end of the first to the start of the second, whichever is picked first", () => {
	const run = runOf([work("forward", "a", 10, 20, 8), work("copy", "b", 50, 60, 40)]), words = between(run, find(run, "b"), find(run, "a"));
	assert.match(words, /From the end of <b>a<\/b>.*<b>30 µs<\/b>\. From start to start: 40 µs; to the last end: 50 µs/);
	assert.match(words, /does not hold the edges/);
});
test("the summary for readers of the screen names lanes, blocking calls and the longest gaps with their causes", () => {
	const { run } = ORDERED(), words = summary(run, null);
	for (const part of ["host: 2 spans", "synchronize(used) on host: × 1, 19 µs", "Longest stretches without any GPU work"]) assert.ok(words.includes(part), part);
});
