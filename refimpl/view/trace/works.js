/** What a run's streams ran and which calls queued it, as its accounts need it; as refimpl/timeline/reports/works.py. */
import { HOST, isHostLane } from "./places.js";

export const RUN_KIND = 0;
export const WAIT_KIND = 1;
export const BLOCKED_KIND = 3;
export const HOST_KIND = 4;
const byTime = (a, b) => a.start - b.start || a.end - b.end;

/** What ran on streams and took time, in order of (start, end). @param {import("./profiler.js").Run} run */
export const works = (run) => run.spans.filter((s) => s.kind === RUN_KIND && s.end > s.start && !isHostLane(s.lane)).sort(byTime);

/** The spans of one kind on a lane that take time, in order of (start, end). @param {any[]} spans @param {string} lane @param {number} kind */
export const onLane = (spans, lane, kind) => spans.filter((s) => s.lane === lane && s.kind === kind && s.end > s.start).sort(byTime);

/**
 * The calls behind work, in order of time: one for all work that was submitted at one moment. A launch is a span of the host's lane with the first of its work.
 *
 * @param {any[]} work in order of its starts
 */
export function launches(work) {
	const found = new Map();
	for (const span of work) {
		if (span.submit === null || span.ready === null) continue;
		const known = found.get(span.submit);
		if (known) known.end = Math.max(known.end, span.ready);
		else found.set(span.submit, { lane: HOST, name: span.call || "launch", start: span.submit, end: span.ready, first: span });
	}
	return [...found.values()].sort((a, b) => a.start - b.start);
}

/** A name without the number of its step. @param {string} name */
export const plainStem = (name) => name.replace(/[ _#-]?\d+(?=\)?$)/, "") || name;

const families = new Map();
/** What the spans of all steps are called together. @param {string} name */
export function family(name) {
	let found = families.get(name);
	if (found === undefined) families.set(name, (found = name.split(" in ").map(plainStem).join(" in ")));
	return found;
}

/** The times of spans. @param {any[]} spans @returns {[number, number][]} */
export const intervalsOf = (spans) => spans.map((s) => [s.start, s.end]);

/** Which of two texts comes first. @param {string} a @param {string} b */
export const byText = (a, b) => (a < b ? -1 : a > b ? 1 : 0);
