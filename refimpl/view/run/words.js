/** A run in sentences: what a span is, why something waits, how two spans stand to each other, and the whole for who does not see it. */
import { esc } from "../shared/dom.js";
import { RECORD, RUN, WAIT, gpuBusy, isHeld } from "./index.js";
import { duration, lanesOf } from "./layout.js";
import { blocking, figures } from "./fold.js";
import { edgesOf, pathBetween } from "./path.js";
import { gapBefore, shares, whyIdle, whyWaits } from "./why.js";

const KINDS = ["work", "a wait", "a record", "blocked", "host work"], BLOCKING_SHOWN = 4;
export const percent = (x) => `${x > 0 && x < 0.005 ? "<1" : Math.round(x * 100)} %`;
const times = (n, what) => `${n.toLocaleString("en")} ${what}${n === 1 ? "" : "s"}`;

export const nameOf = (run, i) => run.names[run.name[i]];
export const laneOf = (run, i) => run.lanes[run.lane[i]];
export const callOf = (run, i) => (run.call[i] >= 0 ? run.calls[run.call[i]] : "");
const spanWords = (run, i) => `${nameOf(run, i)} on ${laneOf(run, i)}`;

/** One part of a wait in words. @param {any} run @param {import("./why.js").Part} part */
function partWords(run, { cause, by, name }) {
	const who = by === undefined ? "" : nameOf(run, by);
	switch (cause) {
		case "host": return name === "blocked" ? `host late: held by ${who}` : name === "work" ? `host late: in ${who}` : name === "launches" ? "host late: issuing other work" : "host late";
		case "call": return "in the launch call";
		case "event": return `waits for ${who} on ${laneOf(run, by)}, by an event`;
		case "stream": return `${who} on ${laneOf(run, by)} ended just before; the recording shows no event`;
		case "busy": return `same stream busy, last with ${who}`;
		case "launch": return "between the nodes of one launch";
		case "latency": return "launch latency";
		case "queued": return "between queued work";
		case "drained": return "drained: nothing more came";
		default: return "waits for something that the recording does not show";
	}
}
/** @param {any} run @param {import("./why.js").Part[]} parts */
export const whyWords = (run, parts) => parts.map((p) => (parts.length > 1 ? `${duration(p.to - p.from)} ${partWords(run, p)}` : partWords(run, p))).join("; ");

/** What the card says of a span, as pairs. @param {any} run @param {number} i @param {(us: number) => string} at how times are written */
export function facts(run, i, at) {
	const rows = [["start", at(run.start[i])]], ready = run.ready[i], call = callOf(run, i);
	if (call) rows.push([run.host[run.lane[i]] ? "call" : "launched by", call]);
	if (!Number.isNaN(run.submit[i]) && !run.host[run.lane[i]]) rows.push(["submitted", at(run.submit[i])]);
	if (!Number.isNaN(ready) && run.kind[i] === RUN && !run.host[run.lane[i]]) rows.push(["launch lead", run.start[i] >= ready ? `${duration(run.start[i] - ready)} after its call` : `${duration(ready - run.start[i])} before its call returned`]);
	const held = whyWaits(run, i), gap = gapBefore(run, i);
	if (held.length) rows.push(["waited", whyWords(run, held)]);
	if (gap && (Number.isNaN(ready) || gap.from < ready)) rows.push(["idle before", `${duration(gap.to - gap.from)}: ${whyWords(run, whyIdle(run, gap))}`]);
	const { into, out } = edgesOf(run), list = (edges, key) => edges.map((e) => `${nameOf(run, e[key])} (${e.kind})`).join(", ");
	if (into.has(i)) rows.push(["after", list(into.get(i), "from")]);
	if (out.has(i)) rows.push(["before", list(out.get(i), "to")]);
	return rows;
}
export const kindWords = (run, i) => KINDS[run.kind[i]];
/** A span for a list or a reader of the screen. @param {any} run @param {number} i @param {(us: number) => string} at */
export const spanLine = (run, i, at) => `${nameOf(run, i)}, ${laneOf(run, i)}${isHeld(run.kind[i]) ? ", held" : ""}, at ${at(run.start[i])}, ${duration(run.end[i] - run.start[i])}`;

/** Two picks: the distance in time, and the order where the recording knows it; as HTML. @param {any} run @param {number} p @param {number} q */
export function between(run, p, q) {
	const [a, b] = run.start[p] <= run.start[q] ? [p, q] : [q, p], apart = run.start[b] - run.end[a], B = (i) => `<b>${esc(nameOf(run, i))}</b> on ${esc(laneOf(run, i))}`;
	const first = apart >= 0 ? `From the end of ${B(a)} to the start of ${B(b)}: <b>${duration(apart)}</b>.` : `${B(b)} starts <b>${duration(-apart)}</b> before ${B(a)} ends.`;
	const rest = ` From start to start: ${duration(run.start[b] - run.start[a])}; to the last end: ${duration(Math.max(run.end[a], run.end[b]) - run.start[a])}.`;
	const path = pathBetween(run, a, b);
	if (!path) return `<p>${first}${rest}</p><p class="hint">${run.columns.edges?.from?.length ? "No path of order leads from the first to the second: nothing in the program makes the one wait for the other." : "The recording does not hold the edges between streams, so it shows when they ran and not whether they are ordered."}</p>`;
	const how = { lane: "same lane, in issue order", launch: "launched after it" };
	return `<p>${first}${rest} Ordered:</p><ol>${path.map((e, k) => `<li><i>${k + 1}</i><span>${esc(spanWords(run, e.from))} → ${esc(spanWords(run, e.to))} <span class="hint">${how[e.kind] ?? e.kind}</span></span></li>`).join("")}</ol>`;
}

/** The sentence over the picture. @param {any} run @param {any} fold */
export function headline(run, fold) {
	const f = figures(run, fold), top = blocking(run)[0], steps = fold ? `${times(f.steps, "whole step")}, ${duration(f.step)} each at the median (${duration(f.p10)} to ${duration(f.p90)} in eight of ten). ` : "";
	const held = top ? `The host is held longest by ${top.name} × ${top.times.toLocaleString("en")}: ${duration(top.us)} in all. ` : "No call holds the host. ";
	return `${times(run.n, "span")} in ${duration(run.to - run.from)}. ${steps}${gpuBusy(run).start.length ? `${held}The GPU is idle ${percent(f.idleShare)} of the time.` : "No GPU work was recorded."}`;
}
/** The run for who does not see it: lanes, blocking calls, the largest gaps. As HTML. @param {any} run @param {any} fold */
export function summary(run, fold) {
	const lanes = lanesOf([run]).map((lane) => [lane, run.lanes.indexOf(lane)]).filter(([, l]) => run.byLane[l].length), whole = ([lane, l]) => { const s = shares(run, l, run.from, run.to); return `<li>${esc(lane)}: ${times(run.byLane[l].length, "span")}, ${percent(s.busy)} busy${s.held ? `, held ${percent(s.held)}` : ""}</li>`; };
	const calls = blocking(run).slice(0, BLOCKING_SHOWN).map((c) => `<li>${esc(c.name)} on ${esc(c.lane)}: × ${c.times.toLocaleString("en")}, ${duration(c.us)}</li>`);
	const gaps = longestGaps(run, 3).map((g) => `<li>${duration(g.to - g.from)} on ${esc(run.lanes[g.lane])} from ${duration(g.from)} on: ${esc(whyWords(run, whyIdle(run, g)))}</li>`);
	return `<p>${esc(headline(run, fold))}</p><p>Lanes, top to bottom:</p><ul>${lanes.map(whole).join("")}</ul>${calls.length ? `<p>Calls that hold the host longest:</p><ul>${calls.join("")}</ul>` : ""}${gaps.length ? `<p>Longest stretches without any GPU work:</p><ul>${gaps.join("")}</ul>` : ""}`;
}
/** The longest stretches between the first and the last work in which no stream works, each as the gap of the stream that ends it. @param {any} run @param {number} most */
function longestGaps(run, most) {
	const u = gpuBusy(run), at = [];
	for (let k = 1; k < u.start.length; k++) at.push({ from: u.end[k - 1], to: u.start[k] });
	return at.sort((p, q) => q.to - q.from - (p.to - p.from)).slice(0, most).map((g) => ({ ...g, ...ender(run, g.to), last: -1 })).filter((g) => g.next >= 0);
}
function ender(run, t) {
	for (let lane = 0; lane < run.lanes.length; lane++) {
		if (run.host[lane]) continue;
		const next = run.byLane[lane].find((i) => run.kind[i] === RUN && Math.abs(run.start[i] - t) < 0.0015);
		if (next !== undefined) return { lane, next };
	}
	return { lane: 0, next: -1 };
}
/** A lane's state in a window, under its name. @param {any} run @param {number} lane @param {number} from @param {number} to */
export function laneWords(run, lane, from, to) {
	const s = shares(run, lane, from, to), held = Math.round(s.held * 100) > 0;
	return held ? `${percent(s.busy)} busy, ${percent(s.held)} held` : `${percent(s.busy)} busy`;
}
/** Whether a span is drawn as a mark and not as a bar. @param {any} run @param {number} i */
export const isMark = (run, i) => run.kind[i] === RECORD || (run.kind[i] === WAIT && run.end[i] - run.start[i] < 0.01);
