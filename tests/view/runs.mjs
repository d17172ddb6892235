/** Small runs for tests: columns as refimpl/timeline/writing/columns.py writes them, from rows that a reader can check. */
import { indexed } from "../../refimpl/view/run/index.js";

export const KINDS = { run: 0, wait: 1, record: 2, blocked: 3, host: 4 };

/** A span of a test: lane, name, kind, start, end, and what else is known. */
export const span = (lane, name, kind, start, end, more = {}) => ({ lane, name, kind, start, end, ...more });

/** @param {any[]} spans in any order; edges name places in the sorted spans @param {any} [more] */
export function columnsOf(spans, more = {}) {
	const sorted = [...spans].sort((p, q) => p.start - q.start), table = (texts) => [...new Set(texts)];
	const lanes = more.lanes ?? table(spans.map((s) => s.lane)), names = table(sorted.map((s) => s.name)), calls = table(sorted.flatMap((s) => (s.call ? [s.call] : [])));
	const column = (f) => sorted.map(f), edges = more.edges ?? [], kinds = table(edges.map((e) => e[2]));
	return {
		schema: "trace/1", id: "test", title: "Test", words: "", source: "measured", device: "none", lanes, names, calls,
		spans: { lane: column((s) => lanes.indexOf(s.lane)), name: column((s) => names.indexOf(s.name)), kind: column((s) => KINDS[s.kind]), start: column((s) => s.start), end: column((s) => s.end), submit: column((s) => s.submit ?? null), ready: column((s) => s.ready ?? null), call: column((s) => (s.call ? calls.indexOf(s.call) : -1)), op: column(() => -1) },
		edges: { from: edges.map((e) => e[0]), to: edges.map((e) => e[1]), kind: edges.map((e) => kinds.indexOf(e[2])), kinds }, steps: more.steps ?? [],
	};
}
export const runOf = (spans, more) => indexed(columnsOf(spans, more));

/** The same numbers every time. @param {number} seed */
export function random(seed) {
	let s = seed >>> 0;
	return () => { s = (s * 1664525 + 1013904223) >>> 0; return s / 2 ** 32; };
}
/** A random run: streams and a host, spans that sometimes overlap, times of launches. @param {number} seed @param {number} n */
export function randomRun(seed, n) {
	const next = random(seed), spans = [], at = { host: 0, forward: 0, copy: 0, plan: 0 };
	for (let k = 0; k < n; k++) {
		const lane = ["host", "forward", "forward", "copy", "plan"][Math.floor(next() * 5)], us = Math.round(next() ** 4 * 4000) / 10, gap = next() < 0.3 ? Math.round(next() * 500) / 10 : 0;
		const start = Math.max(0, at[lane] + gap - (lane === "plan" && next() < 0.3 ? us * 0.5 : 0)), held = lane === "host" && next() < 0.3;
		spans.push(span(lane, `op ${k % 7}`, lane !== "host" ? "run" : held ? "blocked" : "host", start, start + us, lane === "host" ? {} : { submit: Math.max(0, start - 5), ready: Math.max(0, start - 3) }));
		at[lane] = Math.max(at[lane], start + us);
	}
	return spans;
}
