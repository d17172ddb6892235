/** The names that profiled code gives to stretches of its time with `record_function`; as refimpl/timeline/reading/annotations.py. */

export const LANE = "lane:";
const STEP = "ProfilerStep";

/** Whether an annotation holds work without naming a piece of it. @param {string} name */
export const isContainer = (name) => name.startsWith(LANE) || name.startsWith(STEP);

/** First place in a sorted list whose value is greater. @param {ArrayLike<number>} values @param {number} value */
export function bisectRight(values, value) {
	let lo = 0, hi = values.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (value < values[mid]) hi = mid; else lo = mid + 1;
	}
	return lo;
}
/** First place in a sorted list whose value is not less. @param {ArrayLike<number>} values @param {number} value */
export function bisectLeft(values, value) {
	let lo = 0, hi = values.length;
	while (lo < hi) {
		const mid = (lo + hi) >> 1;
		if (values[mid] < value) lo = mid + 1; else hi = mid;
	}
	return lo;
}

/** Annotations by thread, each with the one around it. */
export class Annotations {
	/** @param {{thread: string, name: string, start: number, end: number}[]} events slices of the profiled threads; on one thread they nest */
	constructor(events) {
		/** @type {Map<string, {events: any[], parents: number[], starts: number[]}>} */ this.threads = new Map();
		for (const event of [...events].sort((a, b) => a.start - b.start || b.end - a.end)) this._insert(event);
	}

	/** Names of the annotations that enclose a call on its thread, innermost first. */
	around(call) {
		const thread = call && this.threads.get(call.thread), names = [];
		if (!thread) return names;
		for (let at = bisectRight(thread.starts, call.start) - 1; at >= 0; at = thread.parents[at]) if (call.end <= thread.events[at].end) names.push(thread.events[at].name);
		return names;
	}

	/** Annotations that hold no other, apart from lanes and the profiler's own steps. */
	innermost() {
		const found = [];
		for (const { events, parents } of this.threads.values()) {
			const holders = new Set(parents);
			events.forEach((event, k) => { if (!holders.has(k) && !isContainer(event.name)) found.push(event); });
		}
		return found;
	}

	/** Those that no other encloses. */
	outermost() {
		return [...this.threads.values()].flatMap(({ events, parents }) => events.filter((_, k) => parents[k] < 0));
	}

	/** Threads on which at least one annotation names a piece of work. */
	named() {
		return new Set([...this.threads].filter(([, { events }]) => events.some((event) => !isContainer(event.name))).map(([thread]) => thread));
	}

	_insert(event) {
		let thread = this.threads.get(event.thread);
		if (!thread) this.threads.set(event.thread, (thread = { events: [], parents: [], starts: [] }));
		let parent = thread.events.length - 1;
		while (parent >= 0 && thread.events[parent].end < event.end) parent = thread.parents[parent];
		thread.events.push(event);
		thread.parents.push(parent);
		thread.starts.push(event.start);
	}
}

/** The lane that the innermost `lane:…` annotation names, or undefined. @param {string[]} names */
export const laneOf = (names) => names.find((name) => name.startsWith(LANE))?.slice(LANE.length);

/** The innermost annotation that names a piece of work, or undefined. @param {string[]} names */
export const ownName = (names) => names.find((name) => !isContainer(name));
