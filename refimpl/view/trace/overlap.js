/** Which streams ran at the same time, and how many; as refimpl/timeline/reports/overlap.py. */
import { ensure } from "./calls.js";
import { total, union } from "./intervals.js";

/**
 * The pairs of streams that ran at the same time, longest first; and the window by how many streams ran.
 *
 * @param {string[]} lanes of streams, top to bottom
 * @param {any[]} work what ran on them
 * @param {[number, number]} window
 */
export function overlaps(lanes, work, window) {
	const byLane = new Map(lanes.map((lane) => [lane, []]));
	for (const { lane, start, end } of work) byLane.get(lane).push([start, end]);
	const busy = lanes.map((lane) => union(byLane.get(lane), window)), together = new Map(), counts = [];
	for (const { us, running } of stretches(busy, window)) {
		counts[running.length] = (counts[running.length] ?? 0) + us;
		running.forEach((a, n) => { for (const b of running.slice(n + 1)) ensure(together, `${a} ${b}`, () => ({ a, b, us: 0 })).us += us; });
	}
	const pairs = [...together.values()].sort((x, y) => y.us - x.us || x.a - y.a || x.b - y.b);
	return {
		overlap: pairs.map(({ a, b, us }) => ({ lanes: [lanes[a], lanes[b]], us, share: us / Math.min(total(busy[a]), total(busy[b])) })),
		concurrency: Array.from({ length: Math.max(1, counts.length) }, (_, streams) => ({ streams, us: counts[streams] ?? 0 })),
	};
}

/** The window cut where a stream starts or ends, with the streams that run in each piece. */
function stretches(busy, [low, high]) {
	const turns = new Map([[low, []], [high, []]]), running = new Set(), found = [];
	busy.forEach((intervals, lane) => { for (const time of intervals.flat()) ensure(turns, time, () => []).push(lane); });
	const times = [...turns.keys()].sort((a, b) => a - b);
	for (let k = 0; k + 1 < times.length; k++) {
		for (const lane of turns.get(times[k])) if (!running.delete(lane)) running.add(lane);
		found.push({ us: times[k + 1] - times[k], running: [...running].sort((a, b) => a - b) });
	}
	return found;
}
