/** The accounts of a recorded run, as `python -m refimpl trace FILE --json` prints them; as refimpl/timeline/reports/report.py. */
import { gpuIdle } from "./causes.js";
import { ensure } from "./calls.js";
import { criticalPath } from "./critical.js";
import { rest, total, union } from "./intervals.js";
import { overlaps } from "./overlap.js";
import { pathParts } from "./path_parts.js";
import { HOST, isHostLane } from "./places.js";
import { BLOCKED_KIND, HOST_KIND, RUN_KIND, byText, family, intervalsOf, launches, works } from "./works.js";

const sum = (values) => values.reduce((a, b) => a + b, 0);

/**
 * @param {import("./profiler.js").Run} run
 * @param {string} [source] what the run is called
 */
export function runReport(run, source = "") {
	const end = run.spans.reduce((last, span) => Math.max(last, span.end), 0), work = works(run), issued = launches(work);
	const { late, ...idle } = gpuIdle(run, end), parts = pathParts(criticalPath(run, end));
	return roundedReport({
		source, device: run.device, us: end, spans: run.spans.length,
		lanes: laneTimes(run, issued, end),
		blocking: blocking(run.spans),
		gpu_idle: idle,
		launch_lead: launchLead(issued, late),
		critical_path: { us: sum(parts.map((part) => part.us)), parts },
		...overlaps(run.lanes.filter((lane) => !isHostLane(lane)), work, [0, end]),
	});
}

/** How each lane spent the window; busy, blocked and idle are all of it. */
function laneTimes({ lanes, spans }, issued, end) {
	const byLane = new Map(lanes.map((lane) => [lane, []]));
	for (const span of spans) byLane.get(span.lane).push(span);
	return [...byLane].map(([lane, own]) => {
		const ran = intervalsOf(own.filter((s) => s.kind === RUN_KIND || s.kind === HOST_KIND)), called = intervalsOf(lane === HOST ? issued : []);
		const held = union(intervalsOf(own.filter((s) => s.kind === BLOCKED_KIND)), [0, end]);
		const blocked_us = total(held), idle_us = total(rest([...ran, ...called, ...held], [0, end]));
		return { lane, busy_us: end - blocked_us - idle_us, blocked_us, idle_us, spans: own.length };
	});
}

/** What held the host, longest total first. */
function blocking(spans) {
	const found = new Map();
	for (const span of spans) {
		if (span.kind !== BLOCKED_KIND || !(span.end > span.start)) continue;
		const { call, lane } = span, name = family(span.name);
		ensure(found, [call, name, lane].join("\n"), () => ({ call, name, lane, all: [] })).all.push(span.end - span.start);
	}
	const calls = [...found.values()].map(({ call, name, lane, all }) => {
		const us = sum(all);
		return { call, name, lane, times: all.length, us, mean_us: us / all.length, max_us: all.reduce((a, b) => Math.max(a, b)) };
	});
	return calls.sort((a, b) => b.us - a.us || byText(a.call ?? "", b.call ?? "") || byText(a.name, b.name) || byText(a.lane, b.lane));
}

/** How far the host was ahead: from the return of a launch call to the start of its work. */
function launchLead(issued, late) {
	const leads = issued.map((launch) => launch.first.start - launch.end).sort((a, b) => a - b);
	const [p10_us, median_us, p90_us] = [0.1, 0.5, 0.9].map((part) => quantile(leads, part));
	return { count: leads.length, p10_us, median_us, p90_us, late };
}

function quantile(ordered, part) {
	if (!ordered.length) return null;
	const at = part * (ordered.length - 1), low = Math.trunc(at), high = Math.min(low + 1, ordered.length - 1);
	return ordered[low] + (ordered[high] - ordered[low]) * (at - low);
}

/** Times with three decimals, shares with four. */
function roundedReport(value, key = "") {
	if (Array.isArray(value)) return value.map((one) => roundedReport(one));
	if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, one]) => [name, roundedReport(one, name)]));
	return typeof value === "number" ? halfEven(value, key === "share" ? 4 : 3) : value;
}

/** To so many decimals, halves to the even digit: `toFixed` writes a double's exact digits, and so shows a true half. @param {number} value @param {number} digits */
export function halfEven(value, digits) {
	if (Number.isInteger(value)) return value;
	const [whole, fraction] = Math.abs(value).toFixed(80).split("."), kept = `${whole}.${fraction.slice(0, digits)}`;
	const down = /^50*$/.test(fraction.slice(digits)) && Number(kept.at(-1)) % 2 === 0;
	return Math.sign(value) * (down ? Number(kept) : Number(Math.abs(value).toFixed(digits))) + 0;
}
