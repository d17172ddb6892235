/** What a critical path is made of: segments, their sums, and a host thread's time cut into segments; as refimpl/timeline/reports/path.py. */
import { bisectRight } from "./annotations.js";
import { ensure } from "./calls.js";
import { Overlapping, rest, union } from "./intervals.js";
import { HOST } from "./places.js";
import { BLOCKED_KIND, HOST_KIND, byText, family, onLane } from "./works.js";

/** @typedef {{lane: string, name: string, kind: string, from: number, to: number}} Segment kind: run, blocked, host, launch, or idle for a gap */

/** A path summed by lane, name and kind, longest first; the sum of all is the path's length. @param {Segment[]} path */
export function pathParts(path) {
	const found = new Map();
	for (const { lane, name, kind, from, to } of path) {
		const stem = family(name), part = ensure(found, [lane, stem, kind].join("\n"), () => ({ lane, name: stem, kind, times: 0, us: 0 }));
		part.times++;
		part.us += to - from;
	}
	return [...found.values()].sort((a, b) => b.us - a.us || byText(a.lane, b.lane) || byText(a.name, b.name) || byText(a.kind, b.kind));
}

/** Spans found by when they end. */
export class ByEnd {
	/** @param {any[]} spans in order of (start, end) */
	constructor(spans) {
		this.spans = [...spans].sort((a, b) => a.end - b.end);
		this.ends = this.spans.map((s) => s.end);
	}

	/** The one that ends last, at `until` or before; of several, the last in the order given; else null. @param {number} until */
	last(until) {
		return this.spans[bisectRight(this.ends, until) - 1] ?? null;
	}
}

/** One lane of the host: its blocking calls, its work, and on "host" the calls that queued work. */
export class HostThread {
	/** @param {import("./profiler.js").Run} run @param {string} lane @param {any[]} issued the calls that queued work */
	constructor(run, lane, issued) {
		const held = onLane(run.spans, lane, BLOCKED_KIND), work = onLane(run.spans, lane, HOST_KIND);
		this.lane = lane;
		this.held = new ByEnd(held);
		this.all = new ByEnd([...held, ...work].sort((a, b) => a.start - b.start || a.end - b.end));
		this.layers = [["blocked", held], ["launch", lane === HOST ? issued : []], ["host", work]].map(([kind, spans]) => ({ kind, spans: new Overlapping(spans) }));
	}

	/** What the thread did in a stretch, in order of time: blocked, else in a call, else at work, else in code between calls. @param {[number, number]} window @returns {Segment[]} */
	between(window) {
		/** @type {Segment[]} */ const found = [];
		let left = rest([], window);
		const add = (name, kind, [from, to]) => void found.push({ lane: this.lane, name, kind, from, to });
		for (const { kind, spans } of this.layers) {
			for (const { name, part } of apart(spans.within(window), window)) for (const piece of cut(part, left)) add(name, kind, piece);
			left = rest(found.map(({ from, to }) => [from, to]), window);
		}
		for (const room of left) add("code between calls", "host", room);
		return found.sort((a, b) => a.from - b.from);
	}
}

/** The parts of spans that none before them covers, within the window. */
function apart(spans, window) {
	const found = [];
	let at = window[0];
	for (const span of spans) {
		const start = Math.max(span.start, at), end = Math.min(span.end, window[1]);
		if (end > start) found.push({ name: span.name, part: [start, (at = end)] });
	}
	return found;
}

/** The pieces of an interval that lie in rooms, which are in order and apart. */
function cut(part, rooms) {
	const found = [], first = bisectRight(rooms.map((room) => room[1]), part[0]);
	for (let k = first; k < rooms.length && rooms[k][0] < part[1]; k++) found.push(...union([part], rooms[k]));
	return found;
}
