/** The card over the picture: the span, the launch call or the gap in hand. */
import { clamp, esc } from "../shared/dom.js";
import { callTrack } from "./index.js";
import { worksOf } from "./focus.js";
import { duration } from "./layout.js";
import { callOf, facts, kindWords, laneOf, nameOf, whyWords } from "./words.js";
import { gapAt, whyIdle } from "./why.js";

/** Fill the card and put it above the lanes: one that covers them would hide what it explains. @param {HTMLElement} el @param {any} v the view @param {any} at what is in hand, or null */
export function showCard(el, v, at) {
	const what = at && (at.i >= 0 ? ofSpan(v, at) : at.call >= 0 ? ofCall(v, at) : ofGap(v, at));
	el.classList.toggle("on", Boolean(what));
	if (!what) return;
	const { L } = v, { head, sub, from, to, rows } = what, side = v.runs.length > 1 ? v.sides[at.r] : "", X = (t) => clamp(v.X(t - v.shift[at.r]), L.left, L.right);
	el.innerHTML = `<b>${esc(head)}</b><small>${esc([side, sub].filter(Boolean).join(", "))}</small><dl>${[["duration", duration(to - from)], ...rows].map(([k, words]) => `<dt>${k}</dt><dd>${esc(words)}</dd>`).join("")}</dl>`;
	el.style.left = `${clamp((X(from) + X(to) - el.offsetWidth) / 2, 0, Math.max(0, L.full - el.offsetWidth))}px`;
	el.style.bottom = `${L.height - L.rows[0].y + (L.narrow ? 24 : 8)}px`;
}
function ofSpan(v, { r, i }) {
	const run = v.runs[r];
	return { head: nameOf(run, i), sub: laneOf(run, i), from: run.start[i], to: run.end[i], rows: [["kind", kindWords(run, i)], ...facts(run, i, (us) => v.at(us)), ...wanders(v, r, i)] };
}
/** In a folded picture: when this span starts and ends in other steps. */
function wanders(v, r, i) {
	const w = v.S.fold ? v.wander(r).get(i) : undefined, range = ([a, b]) => `${duration(a)} to ${duration(b)}`;
	return w ? [["in eight of ten", `starts ${range(w.start)} into the step, ends ${range(w.end)}`]] : [];
}
function ofGap(v, { r, lane, t }) {
	const run = v.runs[r], gap = gapAt(run, lane, t);
	return gap && { head: `${run.lanes[lane]} idle`, sub: "", from: gap.from, to: gap.to, rows: [["why", whyWords(run, whyIdle(run, gap))]] };
}
function ofCall(v, { r, call }) {
	const run = v.runs[r], { start, end } = callTrack(run), works = worksOf(run, call), all = run.launches.first[call + 1] - run.launches.first[call], first = works[0];
	return {
		head: callOf(run, first) || "launch call", sub: "", from: start[call], to: end[call],
		rows: [["start", v.at(start[call])], ["launches", `${nameOf(run, first)} on ${laneOf(run, first)}${all > 1 ? ` and ${all - 1} more` : ""}`], ["starts", run.start[first] >= end[call] ? `${duration(run.start[first] - end[call])} after the call` : "before the call returns"]],
	};
}
