/** Where everything lies: rows, and the rectangles of a window. Pure functions; drawn by draw.js, tested as data. */
import { above, isHeld, notBelow } from "./index.js";

const MERGE_PX = 1, LEVELS = 8, THUMB = 8;

/**
 * Spans of a track as they fall on pixels, left to right. Those narrower than a pixel or so are merged by column, and columns alike are joined, so
 * that the work grows with the width and not with the number of spans.
 * @param {any} run @param {import("./index.js").Track} track @param {number} t0 @param {number} t1 @param {number} width in pixels
 * @param {(x: number, w: number, first: number, last: number, share: number, held: boolean) => void} emit places first to last of the track; `share` is how much of the rectangle's time is taken, `held` whether most of that is waiting
 */
export function sweep(run, track, t0, t1, width, emit) {
	const { ids, start, reach, busy, held } = track, scale = width / (t1 - t0), n = ids.length;
	let k = above(reach, t0), x0 = 0, x1 = -1, from = 0, to = 0, level = 0, hatch = false;
	const flush = () => { if (x1 > x0) emit(x0, x1 - x0, from, to, level / LEVELS, hatch); x1 = -1; };
	while (k < n && start[k] < t1) {
		const x = (start[k] - t0) * scale, w = (run.end[ids[k]] - start[k]) * scale;
		if (w >= MERGE_PX) {
			flush();
			emit(x, w, k, k, 1, isHeld(run.kind[ids[k]]));
			k++;
			continue;
		}
		const column = Math.floor(x);
		let next = notBelow(start, t0 + (column + 1) / scale, k + 1);
		if (next - 1 > k && (run.end[ids[next - 1]] - start[next - 1]) * scale >= MERGE_PX) next--;
		const taken = busy[next] - busy[k], rank = Math.max(1, Math.ceil(Math.min(1, taken * scale) * LEVELS)), wait = taken > 0 && (held[next] - held[k]) * 2 > taken;
		if (column === x1 && rank === level && wait === hatch) x1++;
		else { flush(); x0 = column; x1 = column + 1; from = k; level = rank; hatch = wait; }
		to = next - 1;
		k = next;
	}
	flush();
}
/**
 * The rectangles of a window, lane by lane: what the picture shows, as data.
 * @param {any} run of indexed() @param {[number, number]} window in microseconds @param {number} width in pixels
 * @returns {{lane: string, slot: number, x: number, w: number, spans: number[], share: number, held: boolean}[]} `spans` are the first and the last that the rectangle stands for
 */
export function visible(run, [t0, t1], width) {
	const out = [];
	for (const track of run.tracks.flat())
		sweep(run, track, t0, t1, width, (x, w, first, last, share, held) => out.push({ lane: run.lanes[track.lane], slot: run.slot[track.ids[first]], x, w, spans: [track.ids[first], track.ids[last]], share, held }));
	return out;
}

/** The span of a lane under a time: one that covers it, the shortest of several, else the nearest within a tolerance; -1 for none. @param {any} run @param {number} lane @param {number} t @param {number} near @param {number} [part] 0 at the row's top, 1 at its end */
export function spanAt(run, lane, t, near, part = 0.5) {
	let best = -1, off = Infinity;
	for (const track of run.tracks[lane]) {
		for (let k = above(track.reach, t - near); k < track.ids.length && track.start[k] <= t + near; k++) {
			const i = track.ids[k], slot = Math.floor(part * run.slots[i]), away = Math.max(run.start[i] - t, t - run.end[i], 0);
			if (run.slots[i] > 1 && slot !== run.slot[i]) continue;
			if (away < off || (away === off && run.end[i] - run.start[i] < run.end[best] - run.start[best])) { best = i; off = away; }
		}
	}
	return off <= near ? best : -1;
}
/** The launch call under a time, or -1. @param {any} run @param {number} t @param {number} near */
export function launchAt(run, t, near) {
	const { start, end } = run.launches, k = above(start, t) - 1;
	if (k >= 0 && t <= end[k] + near) return k;
	return k + 1 < start.length && start[k + 1] - t <= near ? k + 1 : -1;
}

/**
 * Rows of lanes for a width. Two runs stand row under row, each lane of the one above the same lane of the other.
 * @param {any[]} runs @param {number} width @param {(run: any) => number} launchesOn the lane of a run that launch calls are drawn on
 */
export function rowsOf(runs, width, launchesOn) {
	const narrow = width < 620, left = narrow ? THUMB : runs.length > 1 ? 172 : 128, right = width - THUMB, lanes = lanesOf(runs), many = lanes.length * runs.length > 16;
	const h = many ? 16 : runs.length > 1 ? 18 : 25, pitch = narrow ? 20 : many ? 8 : 15, rows = [];
	let y = narrow ? 36 : 20;
	for (const lane of lanes) {
		const here = runs.map((run, r) => ({ r, lane: run.lanes.indexOf(lane) })).filter((x) => x.lane >= 0 && runs[x.r].byLane[x.lane].length + (launchesOn(runs[x.r]) === x.lane ? 1 : 0));
		here.forEach(({ r, lane: l }, k) => {
			const calls = launchesOn(runs[r]) === l;
			rows.push({ r, lane: l, name: lane, first: k === 0, of: here.length, y, h, mid: y + h / 2, end: y + h, calls: calls ? { y: y + h + 2, h: 5 } : null });
			y += h + (calls ? 7 : 0) + (k < here.length - 1 ? 3 : 0);
		});
		if (here.length) y += pitch;
	}
	const axis = y - pitch + 16;
	return { narrow, left, right, full: width, width: right - left, rows, axis, height: axis + 24 };
}
/** Lanes of all runs, each once, in order: the host's first. @param {any[]} runs @returns {string[]} */
export function lanesOf(runs) {
	const host = (lane) => runs.some((run) => run.host[run.lanes.indexOf(lane)]), all = [...new Set(runs.flatMap((run) => run.lanes))];
	return [...all.filter(host), ...all.filter((lane) => !host(lane))];
}

/** The place of a span in its row, which spans that overlap share; in a folded picture the step stands inside the shares. */
export function boxOf(v, row, i) {
	const run = v.runs[row.r], inset = v.S.fold && row.h > 12 ? (row.h > 20 ? 3 : 1.5) : 0, n = run.slots[i], h = (row.h - 2 * inset) / n;
	return { y: row.y + inset + h * run.slot[i], h: n > 1 ? h - 1 : h };
}
/** @param {any} v the view @param {number} r the run @param {number} lane */
export const rowOf = (v, r, lane) => v.L.rows.find((row) => row.r === r && row.lane === lane);

/** Times for people: the unit suits the length. @param {number} us */
export function duration(us) {
	const a = Math.abs(us);
	if (a >= 1e6) return `${(us / 1e6).toFixed(3)} s`;
	if (a >= 1000) return `${(us / 1000).toFixed(a >= 1e5 ? 1 : 2)} ms`;
	return `${a >= 100 || Number.isInteger(us) ? Math.round(us) : us.toFixed(a >= 10 ? 1 : 2)} µs`;
}
/** How the times of an axis are written: milliseconds, in short runs microseconds, in long windows seconds. @param {number} step between ticks @param {number} far the latest time */
export function clock(step, far) {
	const [unit, per] = step >= 5e5 ? ["s", 1e6] : far >= 2000 ? ["ms", 1000] : ["µs", 1], digits = Math.max(0, Math.ceil(-Math.log10(step / per) - 1e-9));
	const num = (us) => (us / per).toFixed(digits).replace(/^-/, "−").replace(/\B(?=(\d{3})+(?!\d))(?<!\.\d*)/g, "\u202f");
	return { unit, num, text: (us) => `${num(us)} ${unit}` };
}
