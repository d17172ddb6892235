/** Chrome traces that are not the profiler's: this project's own export, read back, and those of other tools; as refimpl/timeline/reading/foreign.py. */
import { bisectRight } from "./annotations.js";
import { ensure } from "./calls.js";
import { TraceError } from "./json_stream.js";
import { HOST, lanesInOrder, withoutThread } from "./places.js";

const KINDS = ["run", "wait", "record", "blocked", "host"], SOURCES = ["scheduled", "simulated", "measured"];
const RUN = 0, HOST_WORK = 4;
/** Marks take no time, and are written a little shorter than `MARK`; an arrow ends as near as `NANOSECOND` to its slice. */
const MARKS = ["wait", "record"], MARK = 0.11, NANOSECOND = 0.0005;

/** The slices of a trace in which nothing is the profiler's. @param {import("./chrome_events.js").ChromeEvents} chrome @param {any} told the file's `otherData` @returns {import("./profiler.js").Run} */
export function fromOthers(chrome, told) {
	if (told && SOURCES.includes(told.source)) return own(chrome, told.source, typeof told.device === "string" ? told.device : "");
	const spans = foreign(chrome).sort((a, b) => a.start - b.start || a.end - b.end), used = new Set(spans.map((span) => span.lane)), zero = spans[0]?.start;
	if (!spans.length) throw new TraceError(`${chrome.name} is a chrome trace in which nothing takes any time`);
	for (const span of spans) { span.start -= zero; span.end -= zero; }
	return { lanes: lanesInOrder(used).filter((lane) => used.has(lane)), spans, source: "measured", device: "" };
}

const made = (lane, name, kind, start, end) => ({ lane, name, kind, start, end, submit: null, ready: null, call: null });

/** What `to_chrome` wrote, with the calls that its arrows lead from. */
function own({ others, arrows, threads }, source, device) {
	const slices = new Slices(others, KINDS), calls = new Slices(others, ["call"]), submits = new Map();
	const begun = new Map(arrows.filter((a) => a.ph === "s").map((a) => [a.id, a]));
	for (const arrow of arrows) {
		if (arrow.ph !== "f" || arrow.cat !== "submit" || !begun.has(arrow.id)) continue;
		const call = calls.at(begun.get(arrow.id)), queued = slices.at(arrow);
		if (call && queued) submits.set(queued, call);
	}
	const spans = slices.all.map((e) => ownSpan(e, threads.get(e.thread) ?? e.tid, submits.get(e)));
	const late = -spans.reduce((first, span) => Math.min(first, span.start, span.submit ?? 0), 0);
	return { lanes: [...new Set([...threads.values(), ...spans.map((span) => span.lane)])], spans: late ? spans.map((span) => later(span, late)) : spans, source, device };
}

/** The span later by so many microseconds. */
function later(span, by) {
	const known = span.submit === null ? {} : { submit: span.submit + by, ready: span.ready + by };
	return { ...span, start: span.start + by, end: span.end + by, ...known };
}

function ownSpan({ category, name, start, end, args }, lane, call) {
	const isMark = MARKS.includes(category) && end - start < MARK, span = made(lane, name, KINDS.indexOf(category), isMark ? end : start, end);
	const known = call ? { submit: call.start, ready: call.end } : {};
	return { ...span, ...known, op: Number.isInteger(args.op) ? args.op : null, call: typeof args.call === "string" ? args.call : null };
}

/** Slices of some categories, found by a moment of their thread. */
class Slices {
	constructor(events, categories) {
		this.all = events.filter((e) => categories.includes(e.category));
		this.threads = new Map();
		for (const event of this.all) ensure(this.threads, event.thread, () => []).push(event);
		this.starts = new Map([...this.threads].map(([thread, own]) => [thread, own.map((e) => e.start)]));
	}

	/** The slice in which an arrow begins or ends: of those that are open, the last to start. */
	at({ pid, tid, ts }) {
		const thread = `${pid}\n${tid}`, starts = this.starts.get(thread);
		return starts && this.threads.get(thread)[bisectRight(starts, (typeof ts === "number" ? ts : 0) + NANOSECOND) - 1];
	}
}

function foreign({ others, threads: names, processes }) {
	const threads = new Map(), spans = [];
	for (const event of others) ensure(threads, event.thread, () => []).push(event);
	const isGpu = ({ pid }) => (processes.get(pid) ?? "").toUpperCase().includes("GPU");
	const lanes = lanesOf(threads, names, isGpu);
	for (const [thread, events] of threads) for (const [name, start, end] of flat(events)) if (end > start) spans.push(made(lanes.get(thread), name, isGpu(events[0]) ? RUN : HOST_WORK, start, end));
	return spans;
}

/** A lane for each thread; those that have one name are told apart by their numbers. */
function lanesOf(threads, names, isGpu) {
	const found = new Map(), firsts = [...threads.values()].map(([first]) => first), taken = new Set([HOST]);
	const several = new Set(firsts.filter((first) => !isGpu(first)).map(({ pid }) => pid)).size > 1;
	for (const first of firsts) {
		const { thread, pid, tid } = first, name = names.get(thread) ?? tid, hostLane = `thread ${withoutThread(name)}`;
		let lane = isGpu(first) ? (name !== tid ? name : `stream ${name}`) : several ? `process ${pid} ${hostLane}` : hostLane;
		if (taken.has(lane)) lane = `${lane} (${pid}, ${tid})`;
		taken.add(lane);
		found.set(thread, lane);
	}
	return found;
}

/** The innermost slice at each moment of a thread, by nesting. @param {any[]} events by start, the longer first */
function flat(events) {
	const stack = [], pieces = [];
	let at = -Infinity;
	const close = () => { const done = stack.pop(); pieces.push([done.name, at, done.end]); at = Math.max(at, done.end); };
	for (const event of events) {
		while (stack.length && stack[stack.length - 1].end <= event.start) close();
		if (stack.length) pieces.push([stack[stack.length - 1].name, at, event.start]);
		at = event.start;
		stack.push(event);
	}
	while (stack.length) close();
	return pieces;
}
