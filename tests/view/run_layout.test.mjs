/** What a window of a recorded run shows, as data: rectangles, rows, what lies under a time. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { covered, familyOf, indexed, launchLane, unionOf } from "../../refimpl/view/run/index.js";
import { clock, duration, launchAt, lanesOf, rowsOf, spanAt, visible } from "../../refimpl/view/run/layout.js";
import { columnsOf, randomRun, runOf, span } from "./runs.mjs";

const LOOP = [
	span("host", "build 0", "host", 0, 40),
	span("forward", "verify 0", "run", 50, 90, { submit: 40, ready: 44 }),
	span("copy", "copy out", "run", 50, 60, { submit: 44, ready: 46 }),
	span("host", "synchronize(done 0)", "blocked", 46, 90),
	span("thread 7", "send", "host", 10, 20),
];

test("a span wide enough stands alone, at its time, with its width", () => {
	const rects = visible(runOf(LOOP), [0, 100], 1000).filter((r) => r.lane === "forward");
	assert.deepEqual(rects.map(({ x, w, share, held }) => ({ x, w, share, held })), [{ x: 500, w: 400, share: 1, held: false }]);
});
test("a blocking call is drawn as held", () => {
	const [build, blocked] = visible(runOf(LOOP), [0, 100], 1000).filter((r) => r.lane === "host");
	assert.equal(build.held, false);
	assert.equal(blocked.held, true);
});
test("a span that begins before the window is drawn from where it begins", () => {
	const [rect] = visible(runOf(LOOP), [70, 80], 100).filter((r) => r.lane === "forward");
	assert.equal(rect.x, -200);
	assert.equal(rect.w, 400);
});
test("spans outside the window are not drawn", () => {
	assert.deepEqual(visible(runOf(LOOP), [91, 100], 1000), []);
});
test("spans narrower than a pixel become one column with the share of time that they take", () => {
	// ten spans of 1 µs every 10 µs, a hundred microseconds a pixel: one pixel, a tenth busy, which is the lowest of eight levels
	const run = runOf(Array.from({ length: 10 }, (_, k) => span("forward", "k", "run", k * 10, k * 10 + 1)));
	const rects = visible(run, [0, 1000], 10);
	assert.equal(rects.length, 1);
	assert.deepEqual([rects[0].x, rects[0].w, rects[0].spans], [0, 1, [0, 9]]);
	assert.equal(rects[0].share, 1 / 8);
});
test("columns that look alike are one rectangle, so a hundred thousand spans are no more work than their pixels", () => {
	const run = runOf(Array.from({ length: 100_000 }, (_, k) => span("forward", "k", "run", k, k + 1)));
	assert.equal(visible(run, [0, 100_000], 1000).length, 1);
});
test("columns that are mostly waiting are held, and do not join those that work", () => {
	const run = runOf(Array.from({ length: 200 }, (_, k) => span("host", "x", k < 100 ? "host" : "blocked", k, k + 1)));
	assert.deepEqual(visible(run, [0, 200], 10).map((r) => [r.x, r.w, r.held]), [[0, 5, false], [5, 5, true]]);
});
test("spans that overlap on one lane share its row, and no others do", () => {
	const run = runOf([span("copy", "a", "run", 0, 10), span("copy", "b", "run", 5, 15), span("copy", "c", "run", 20, 30)]);
	assert.deepEqual([...run.slots], [2, 2, 1]);
	assert.deepEqual([...run.slot], [0, 1, 0]);
});

test("a kernel that starts while the one before it drains does not share its row", () => {
	const run = runOf([span("forward", "a", "run", 0, 4768), span("forward", "b", "run", 4767.9, 4769.3), span("forward", "c", "run", 4769, 4790)]);
	assert.deepEqual([...run.slots], [1, 1, 1]);
});

/** Pixels that any span touches, one by one. */
function touched(run, lane, [t0, t1], width) {
	const out = new Set(), scale = width / (t1 - t0);
	for (const i of run.byLane[lane]) for (let x = Math.max(0, Math.floor((run.start[i] - t0) * scale)); x < width && x / scale + t0 < run.end[i]; x++) out.add(x);
	return out;
}
for (let seed = 1; seed <= 40; seed++)
	test(`random run ${seed}: every pixel with work is drawn, wide spans alone, and never more rectangles than pixels allow`, () => {
		const run = runOf(randomRun(seed, 400)), window = /** @type {[number, number]} */ (seed % 2 ? [0, run.to] : [run.to * 0.2, run.to * 0.5]), width = 300, scale = width / (window[1] - window[0]);
		const rects = visible(run, window, width);
		for (const lane of run.lanes) {
			const drawn = new Set(), here = rects.filter((r) => r.lane === lane);
			for (const r of here) for (let x = Math.floor(r.x); x < r.x + r.w; x++) drawn.add(x);
			for (const x of touched(run, run.lanes.indexOf(lane), window, width)) assert.ok(drawn.has(x) || drawn.has(x - 1), `${lane}: pixel ${x}`);
			assert.ok(here.length <= 2 * (width + 2) * run.tracks[run.lanes.indexOf(lane)].length);
		}
		for (let i = 0; i < run.n; i++) {
			const wide = (run.end[i] - run.start[i]) * scale >= 1 && run.start[i] < window[1] && run.end[i] > window[0];
			if (wide) assert.equal(rects.filter((r) => r.spans[0] === i && r.spans[1] === i).length, 1);
		}
	});
for (let seed = 1; seed <= 20; seed++)
	test(`random run ${seed}: what lies under a time is what a search through all spans finds`, () => {
		const run = runOf(randomRun(seed, 200));
		run.lanes.forEach((_, lane) => {
			for (let t = 0; t < run.to; t += run.to / 60) {
				const i = spanAt(run, lane, t, 2, 0), away = (k) => Math.max(run.start[k] - t, t - run.end[k], 0);
				const candidates = Array.from(run.byLane[lane]).filter((k) => away(k) <= 2 && (run.slots[k] === 1 || run.slot[k] === 0));
				assert.equal(i < 0 ? Infinity : away(i), Math.min(Infinity, ...candidates.map(away)));
			}
		});
	});
test("time covered is that of the union, between any two times", () => {
	const run = runOf([span("a", "x", "run", 0, 10), span("a", "y", "run", 5, 12), span("a", "z", "run", 20, 30)]), u = unionOf(run, run.byLane[0]);
	assert.equal(covered(u, 0, 30), 22);
	assert.equal(covered(u, 11, 25), 6);
	assert.equal(covered(u, 13, 19), 0);
	assert.equal(covered(u, 19, 13), 0);
});

test("launch calls are one for each time of submission, on the host's lane, and know their works", () => {
	const run = runOf([...LOOP, span("forward", "verify 0b", "run", 95, 99, { submit: 40, ready: 44 })]), { start, end, first, works, of } = run.launches;
	assert.deepEqual([[...start], [...end]], [[40, 44], [44, 46]]);
	assert.equal(run.lanes[launchLane(run)], "host");
	assert.deepEqual(Array.from(works.subarray(first[0], first[1]), (i) => run.names[run.name[i]]), ["verify 0", "verify 0b"]);
	assert.equal(of[works[2]], 1);
	assert.equal(launchAt(run, 42, 0), 0);
	assert.equal(launchAt(run, 30, 1), -1);
	assert.equal(launchAt(run, 39.5, 1), 0);
});
test("threads and the host come first, then the streams in the recording's order", () => {
	assert.deepEqual(lanesOf([runOf(LOOP)]), ["host", "thread 7", "forward", "copy"]);
});
test("of two runs each lane of the one stands above the same lane of the other", () => {
	const rows = rowsOf([runOf(LOOP), runOf(LOOP.filter((s) => s.lane !== "copy"))], 1000, launchLane).rows;
	assert.deepEqual(rows.map((r) => [r.name, r.r]), [["host", 0], ["host", 1], ["thread 7", 0], ["thread 7", 1], ["forward", 0], ["forward", 1], ["copy", 0]]);
	for (let k = 1; k < rows.length; k++) assert.ok(rows[k].y >= rows[k - 1].end, "rows do not overlap");
});
test("on a phone the plot takes the whole width", () => {
	const L = rowsOf([runOf(LOOP)], 350, launchLane);
	assert.ok(L.narrow && L.width > 330);
});
test("what is no recorded run is refused in one sentence", () => {
	for (const bad of [null, {}, { schema: "trace/1" }, columnsOf([])]) assert.throws(() => indexed(bad), /^Error: [A-Z][^.]*\.$/s);
	const unsorted = columnsOf(LOOP);
	unsorted.spans.start.reverse();
	assert.throws(() => indexed(unsorted), /not sorted/);
});
test("families of names leave out the number of the step, also inside an annotation", () => {
	assert.deepEqual(["verify 3", "synchronize(event 7) in step 2", "7"].map(familyOf), ["verify", "synchronize(event) in step", "7"]);
});
test("durations have the unit and the digits that suit them", () => {
	assert.deepEqual([0.9, 12.34, 640, 2622.4, 326_800, 1_621_300].map(duration), ["0.90 µs", "12.3 µs", "640 µs", "2.62 ms", "326.8 ms", "1.621 s"]);
});
test("the times of an axis are told apart at every zoom", () => {
	assert.equal(clock(200, 900).text(400), "400 µs");
	assert.equal(clock(0.5, 1e6).num(810_000.5), "810.0005");
	assert.equal(clock(200_000, 2e6).text(1_400_000), "1\u202f400 ms");
	assert.equal(clock(1e6, 3e7).text(3e6), "3 s");
});
test("in the strip of two folded runs a press chooses a step of the run whose bars are under it", async () => {
	const { overviewRows, stepAt } = await import("../../refimpl/view/run/overview.js");
	const runs = [runOf(LOOP), runOf(LOOP)], L = rowsOf(runs, 1000, launchLane), folds = [[0, 50, 100], [0, 20, 40, 60, 80, 100]].map((starts) => ({ starts, lengths: starts.slice(1).map((t, k) => t - starts[k]) }));
	const v = { L, runs, folds, hits: [null, null], lo: 0, hi: 100, origin: [0, 0] }, { steps } = overviewRows(L, true, false), middle = L.left + L.width * 0.55;
	assert.equal(stepAt(v, middle, steps + 2), 1, "55 µs lies in the second of two steps");
	assert.equal(stepAt(v, middle, steps + 30), 2, "and in the third of five");
	assert.equal(stepAt(v, L.right + 50, steps + 30), 4);
	assert.equal(stepAt(v, 0, steps + 30), 0);
});
test("the strip of hundreds of lanes is as high as a strip, and each lane has its part of it", async () => {
	const { overviewRows } = await import("../../refimpl/view/run/overview.js");
	for (const lanes of [1, 20, 300]) {
		const rows = Array.from({ length: lanes }, () => ({})), strip = overviewRows({ rows }, false, false);
		assert.ok(strip.height <= 160, `${lanes} lanes: ${strip.height}`);
		strip.rows.forEach((row, k) => { assert.ok(row.h > 0 && row.y + row.h <= strip.end); if (k) assert.ok(row.y > strip.rows[k - 1].y + strip.rows[k - 1].h); });
	}
});
