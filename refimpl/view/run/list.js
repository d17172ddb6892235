/** The spans that start in the window as a listbox, of which only a few lines exist at a time. */
import { clamp, html } from "../shared/dom.js";
import { above } from "./index.js";

const LINES = 9;

/**
 * @param {HTMLElement} list role listbox @param {string} uid
 * @param {any} v the view: runs, S, shift @param {(r: number, i: number) => string} line a span in words @param {{take: (r: number, i: number) => void, pick: (r: number, i: number) => void}} act
 */
export function spanList(list, uid, v, line, act) {
	let at = 0, ranges = [];
	const total = () => ranges.reduce((n, [from, to]) => n + to - from, 0);
	function place(k) {
		for (let r = 0; r < ranges.length; r++) { const [from, to] = ranges[r]; if (k < to - from) return { r, i: from + k }; k -= to - from; }
		return null;
	}
	/** The window has moved, or another span is in hand. */
	function update() {
		if (!list.checkVisibility?.()) return;
		ranges = v.runs.map((run, r) => [above(run.start, v.S.t0 + v.shift[r] - 1e-6), above(run.start, v.S.t0 + v.S.span + v.shift[r])]);
		const c = v.S.cursor, before = c ? ranges.slice(0, c.r).reduce((n, [from, to]) => n + to - from, 0) : 0;
		if (c && c.i >= ranges[c.r][0] && c.i < ranges[c.r][1]) at = before + c.i - ranges[c.r][0];
		show();
	}
	function show() {
		const n = total();
		at = clamp(at, 0, Math.max(0, n - 1));
		const first = clamp(at - (LINES >> 1), 0, Math.max(0, n - LINES)), lines = [];
		for (let k = first; k < Math.min(n, first + LINES); k++) {
			const { r, i } = place(k), on = v.S.picks.some((x) => x.r === r && x.i === i);
			const li = html("li", { role: "option", id: `${uid}line${k}`, textContent: line(r, i), className: k === at ? "at" : "", onclick: () => { at = k; act.take(r, i); act.pick(r, i); update(); } });
			for (const [key, value] of [["aria-setsize", n], ["aria-posinset", k + 1], ["aria-selected", on]]) li.setAttribute(key, value);
			lines.push(li);
		}
		if (!n) lines.push(html("li", { role: "option", textContent: "No span starts in this window.", id: `${uid}line0` }));
		list.replaceChildren(...lines);
		list.setAttribute("aria-activedescendant", `${uid}line${at}`);
	}
	const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: 10, PageUp: -10, Home: -Infinity, End: Infinity };
	list.addEventListener("keydown", (e) => {
		const here = place(at);
		if (e.ctrlKey || e.metaKey || e.altKey || !here) return;
		if (e.key === "Enter" || e.key === " ") {
			act.pick(here.r, here.i);
			update();
		} else if (e.key in moves) {
			at = clamp(at + moves[e.key], 0, total() - 1);
			const next = place(at);
			act.take(next.r, next.i);
			update();
		} else return;
		e.preventDefault();
		e.stopPropagation();
	});
	list.addEventListener("focus", update);
	return { update };
}
