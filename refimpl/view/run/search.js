/** Search in a run, and the way from one span to its neighbours. */
import { above, families, tracksOf } from "./index.js";

/**
 * Spans whose name, call or lane holds the text, in any case of letters.
 * @param {any} run @param {string} text @returns {Int32Array} sorted by start
 */
export function found(run, text) {
	const part = text.trim().toLowerCase();
	if (!part) return new Int32Array(0);
	const hit = (table) => Uint8Array.from(table, (t) => (t.toLowerCase().includes(part) ? 1 : 0)), names = hit(run.names), calls = hit(run.calls), lanes = hit(run.lanes), out = [];
	for (let i = 0; i < run.n; i++) if (names[run.name[i]] || lanes[run.lane[i]] || (run.call[i] >= 0 && calls[run.call[i]])) out.push(i);
	return Int32Array.from(out);
}
/** Tracks of some spans alone, drawn over the others. @param {any} run @param {Int32Array} ids */
export function tracksAmong(run, ids) {
	const lists = run.lanes.map(() => []);
	for (const i of ids) lists[run.lane[i]].push(i);
	return tracksOf(run, lists);
}
/** The place among sorted spans before or after one, round the ends; where nothing is in hand, the first from a time on. @param {ArrayLike<number>} ids @param {number} at a span, or -1 @param {number} dir @param {() => number} fallback its place when none is in hand */
export function turn(ids, at, dir, fallback) {
	if (!ids.length) return -1;
	if (at < 0) return ids[fallback()];
	const k = above(ids, at), here = k > 0 && ids[k - 1] === at;
	const next = dir > 0 ? k : k - (here ? 2 : 1);
	return ids[(next + ids.length) % ids.length];
}
/** The next or the previous span of the same family. @param {any} run @param {number} i @param {number} dir */
export const sameName = (run, i, dir) => turn(families(run).ids[families(run).of[i]], i, dir, () => 0);
/** The next or the previous span on the same lane, -1 at its ends. @param {any} run @param {number} i @param {number} dir */
export function sameLane(run, i, dir) {
	const ids = run.byLane[run.lane[i]], k = above(ids, i) - 1 + dir;
	return k >= 0 && k < ids.length ? ids[k] : -1;
}
/** Of a lane, the span whose middle is nearest to a time; -1 on an empty lane. @param {any} run @param {number} lane @param {number} t */
export function nearest(run, lane, t) {
	let best = -1, off = Infinity;
	for (const track of run.tracks[lane]) {
		const k = above(track.start, t);
		for (const j of [k - 1, k]) {
			if (j < 0 || j >= track.ids.length) continue;
			const i = track.ids[j], away = Math.max(run.start[i] - t, t - run.end[i], 0);
			if (away < off) { best = i; off = away; }
		}
	}
	return best;
}
