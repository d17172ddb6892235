/** A trace that `torch.profiler` exported, as a recorded run; as refimpl/timeline/reading/profiler.py. */
import { Annotations, ownName } from "./annotations.js";
import { Calls, ensure, gpuOf } from "./calls.js";
import { CALLS, GPU_WORK, NOTE, OPERATOR } from "./chrome_events.js";
import { fromOthers } from "./foreign.js";
import { hostSpans } from "./host_spans.js";
import { TraceError } from "./json_stream.js";
import { HostLanes, StreamLanes, lanesInOrder } from "./places.js";

const RUN = 0;
/** µs. */
const LONGEST = 1e15;

/**
 * @typedef {{lane: string, name: string, kind: number, start: number, end: number, submit: number | null, ready: number | null, call: string | null}} RunSpan kind: 0 run, 1 wait, 2 record, 3 blocked, 4 host; times in µs
 * @typedef {{lanes: string[], spans: RunSpan[], source: string, device: string}} Run spans in order of (start, end), from 0
 *
 * @param {import("./chrome_events.js").ChromeEvents} chrome the file's slices, in order of time
 * @param {string} device the GPUs in words
 * @param {any} told the file's `otherData`
 * @param {boolean} merge one span for all kernels of one launch on one stream, as for a graph; else one a kernel
 * @returns {Run}
 */
export function importProfile(chrome, device, told, merge) {
	if (!chrome.events.length && chrome.others.length) return ofARun(fromOthers(chrome, told), chrome.name);
	const spans = profileSpans(chrome, merge);
	if (!spans.length) throw new TraceError(`${chrome.name} shows neither GPU work nor annotations; profile with ProfilerActivity.CUDA`);
	spans.sort((a, b) => a.start - b.start || a.end - b.end);
	return ofARun(fromZero({ lanes: lanesInOrder(spans.map((span) => span.lane)), spans, source: "measured", device }), chrome.name);
}

/** The run, unless its times are so far apart that no sum of them means anything. @param {Run} run @param {string} name */
function ofARun(run, name) {
	const end = run.spans.reduce((last, span) => Math.max(last, span.end), 0);
	if (!(end <= LONGEST)) throw new TraceError(`${name} goes on for ${end} µs, which is no time of a run`);
	return run;
}

/** GPU work, then what the host did. */
function profileSpans({ events, threads }, merge) {
	const work = events.filter((event) => GPU_WORK.has(event.category));
	const calls = new Calls(events.filter((event) => CALLS.has(event.category)), work);
	const notes = new Annotations(events.filter((event) => event.category === NOTE));
	const operators = new Annotations(events.filter((event) => event.category === OPERATOR));
	const launched = byLaunch(work, merge).map((parts) => { const call = calls.of(parts[0]); return { work: parts, call, around: notes.around(call) }; });
	const lanes = new StreamLanes(launched), hosts = new HostLanes(events, threads);
	const spans = launched.map((one) => gpuSpan(one, lanes.of(one)));
	return [...spans, ...hostSpans(events, launched, notes, operators, hosts)];
}

/** GPU work by launch (or by kernel), in order of time. */
function byLaunch(work, merge) {
	if (!merge) return work.map((event) => [event]);
	const launches = new Map();
	work.forEach((event, number) => ensure(launches, event.correlation === null ? number : [gpuOf(event), event.correlation, event.stream].join("\n"), () => []).push(event));
	return [...launches.values()];
}

function gpuSpan({ work, call, around }, lane) {
	const { start, name } = work[0], end = work.reduce((last, part) => Math.max(last, part.end), -Infinity);
	return { lane, name: ownName(around) || (work.length === 1 ? shortName(name) : "graph"), kind: RUN, start, end, submit: call?.start ?? null, ready: call?.end ?? null, call: call?.name ?? null };
}

/** A kernel's name without its return type, namespaces and arguments; a copy's without its explanation. @param {string} name */
export function shortName(name) {
	const head = name.replaceAll("(anonymous namespace)::", "").split(/[<(]/)[0].trim();
	if (name.startsWith("Memcpy") || name.startsWith("Memset")) return head;
	return head.split("::").at(-1).split(" ").at(-1) || name;
}

/** The run with its first moment at 0. @param {Run} run */
function fromZero(run) {
	let zero = Infinity;
	for (const { start, submit } of run.spans) zero = Math.min(zero, start, submit ?? Infinity);
	for (const span of run.spans) {
		span.start -= zero;
		span.end -= zero;
		if (span.submit !== null) { span.submit -= zero; span.ready -= zero; }
	}
	return run;
}
