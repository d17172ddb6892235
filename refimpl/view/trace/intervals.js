/** Unions and cuts of time intervals `[start, end]`; as refimpl/timeline/intervals.py. */
import { bisectLeft, bisectRight } from "./annotations.js";

/** @typedef {[number, number]} Interval */

/** The parts of the window that at least one interval covers, in order and apart. @param {Interval[]} intervals @param {Interval} window @returns {Interval[]} */
export function union(intervals, [low, high]) {
	/** @type {Interval[]} */ const merged = [];
	const cut = intervals.map(([start, end]) => /** @type {Interval} */ ([Math.max(start, low), Math.min(end, high)])).filter(([start, end]) => end > start);
	for (const [start, end] of cut.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
		const last = merged[merged.length - 1];
		if (last && start <= last[1]) last[1] = Math.max(last[1], end);
		else merged.push([start, end]);
	}
	return merged;
}

/** The parts of the window that no interval covers. @param {Interval[]} covered @param {Interval} window @returns {Interval[]} */
export function rest(covered, window) {
	/** @type {Interval[]} */ const left = [];
	let at = window[0];
	for (const [start, end] of union(covered, window)) {
		if (start > at) left.push([at, start]);
		at = end;
	}
	if (window[1] > at) left.push([at, window[1]]);
	return left;
}

/** Sum of the lengths. @param {Interval[]} intervals */
export const total = (intervals) => intervals.reduce((sum, [start, end]) => sum + (end - start), 0);

/** Spans found by interval without looking at all of them. */
export class Overlapping {
	/** @param {{start: number, end: number}[]} spans */
	constructor(spans) {
		this.spans = [...spans].sort((a, b) => a.start - b.start);
		this.starts = this.spans.map((span) => span.start);
		let last = -Infinity;
		this.ends = this.spans.map((span) => (last = Math.max(last, span.end)));
	}

	/** The spans that share more than a point with the window, in order of their starts. @param {Interval} window @returns {any[]} */
	within([from, to]) {
		const found = [];
		for (let k = bisectRight(this.ends, from), high = bisectLeft(this.starts, to); k < high; k++) {
			const span = this.spans[k];
			if (Math.min(span.end, to) > Math.max(span.start, from)) found.push(span);
		}
		return found;
	}
}
