/** What the host's threads did in a profile: calls that blocked, annotated work, operators; as refimpl/timeline/reading/host_spans.py. */
import { ownName } from "./annotations.js";
import { ensure } from "./calls.js";
import { CALLS, SYNC } from "./chrome_events.js";
import { Overlapping, rest } from "./intervals.js";

/** Calls that hold the host, in the words of CUDA's and HIP's runtimes and drivers. */
const HOLDS = /^(?:cuda|cu|hip)(?:(Event|Stream|Device|Ctx)Synchronize|Memcpy|MemcpyDtoH|MemcpyWithStream)(?:_v\d+|_ptsz|_ptds)*$/;
const NAMED_HOLD = "synchronize(", TO_PAGEABLE = "copy to pageable memory";
const BLOCKED = 3, HOST_WORK = 4;

/**
 * Blocking calls, and the host's work with the blocking calls cut out of it.
 *
 * @param {any[]} events the profiler's slices, in order of time
 * @param {import("./places.js").Launched[]} launched GPU work with its calls
 * @param {import("./annotations.js").Annotations} notes
 * @param {import("./annotations.js").Annotations} operators
 * @param {import("./places.js").HostLanes} lanes
 */
export function hostSpans(events, launched, notes, operators, lanes) {
	const numbers = new Map(events.filter((e) => e.category === SYNC).map((e) => [e.correlation, e.waited]));
	const held = new Map();
	for (const [call, what] of [...synchronizing(events, numbers), ...pageable(launched)]) {
		const name = heldName(call, what, notes, operators);
		ensure(held, call.thread, () => []).push(span(lanes.of(call), name, BLOCKED, call.start, call.end, call.name));
	}
	const named = notes.named(), work = notes.innermost().filter((note) => !note.name.startsWith(NAMED_HOLD));
	for (const operator of operators.outermost()) if (!named.has(operator.thread)) work.push(operator);
	return [...[...held.values()].flat(), ...between(work, held, lanes)];
}

/** A span of the host. */
const span = (lane, name, kind, start, end, call = null) => ({ lane, name, kind, start, end, submit: null, ready: null, call });

function synchronizing(events, numbers) {
	const found = [];
	for (const event of events) {
		const match = CALLS.has(event.category) ? HOLDS.exec(event.name) : null;
		if (!match) continue;
		const what = match[1], number = numbers.get(event.correlation) ?? null, numbered = number === null ? "" : ` ${number}`;
		found.push([event, what ? `synchronize(${what.toLowerCase()}${numbered})` : event.name]);
	}
	return found;
}

/** Calls that hold the host since they copy to memory that the GPU cannot write by itself. */
function pageable(launched) {
	const holds = ({ work, call }) => call && !HOLDS.test(call.name) && work.some((part) => part.name.includes("DtoH") && part.name.includes("Pageable") && call.end >= part.end);
	return launched.filter(holds).map(({ call }) => [call, TO_PAGEABLE]);
}

/** The annotation that names the call, else what it waits for and where: in an annotation, or in an operator. */
function heldName(call, what, notes, operators) {
	const note = ownName(notes.around(call));
	if (note?.startsWith(NAMED_HOLD)) return note;
	const where = note || operators.around(call).at(-1);
	return where === undefined ? what : `${what} in ${where}`;
}

/** The parts of the host's work in which no call of its thread blocks. */
function between(work, held, lanes) {
	const byTime = new Map([...held].map(([thread, spans]) => [thread, new Overlapping(spans)])), spans = [];
	for (const event of work) {
		const whole = /** @type {[number, number]} */ ([event.start, event.end]), holes = byTime.get(event.thread)?.within(whole) ?? [];
		for (const [start, end] of rest(holes.map((s) => [s.start, s.end]), whole)) spans.push(span(lanes.of(event), event.name, HOST_WORK, start, end));
	}
	return spans;
}
