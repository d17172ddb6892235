/** Order between two spans of a run, as far as the recording knows it: a lane's own queue, the edges of its program, and the host that launched. */
import { above, once } from "./index.js";

/** Edges by the span that they leave, and by the one that they enter. @param {any} run @returns {{out: Map<number, {to: number, kind: string}[]>, into: Map<number, {from: number, kind: string}[]>}} */
export const edgesOf = (run) => once(run, "edges", () => {
	const e = run.columns.edges ?? { from: [], to: [], kind: [], kinds: [] }, out = new Map(), into = new Map();
	const put = (map, key, value) => (map.get(key) ?? map.set(key, []).get(key)).push(value);
	e.from.forEach((from, k) => { const to = e.to[k], kind = e.kinds[e.kind[k]]; put(out, from, { to, kind }); put(into, to, { from, kind }); });
	return { out, into };
});
/** Whether one host thread made all the calls, so that what it did before a launch comes before the work. @param {any} run */
const oneHost = (run) => run.host.filter((x, l) => x && run.byLane[l].length).length === 1;

/** Work that a span of the host comes before, being launched after it: the first of each lane. */
const launchedAfter = (run) => once(run, "launched after", () => {
	const lists = new Map();
	for (const i of run.launches.works) (lists.get(run.lane[i]) ?? lists.set(run.lane[i], { at: [], ids: [] }).get(run.lane[i])).ids.push(i);
	for (const x of lists.values()) { // the earliest place on the lane of all that is launched from here on
		x.at = x.ids.map((i) => run.submit[i]);
		for (let k = x.ids.length - 2; k >= 0; k--) x.ids[k] = Math.min(x.ids[k], x.ids[k + 1]);
	}
	return [...lists.values()];
});

/**
 * A path of order from one span to another with the fewest edges between lanes, or null where the recording shows none.
 * @param {any} run @param {number} a @param {number} b @returns {{from: number, to: number, kind: string}[] | null}
 */
export function pathBetween(run, a, b) {
	const { out } = edgesOf(run), came = new Map([[a, null]]), single = oneHost(run);
	let level = [a];
	const step = (from, to, kind, list) => { if (!came.has(to)) { came.set(to, { from, kind }); list.push(to); } };
	while (level.length && !came.has(b)) {
		const next = [], whole = [];
		for (const i of level) for (let j = i; j >= 0; j = follow(run, j, came)) whole.push(j);
		for (const i of whole) {
			for (const { to, kind } of out.get(i) ?? []) step(i, to, kind, next);
			if (single && run.host[run.lane[i]])
				for (const { at, ids } of launchedAfter(run)) { const k = above(at, run.end[i] - 0.0015); if (k < at.length) step(i, ids[k], "launch", next); }
		}
		level = next;
	}
	return came.has(b) ? joined(run, came, b) : null;
}
/** The next span of the lane that is not reached yet and begins after this one ends. */
function follow(run, i, came) {
	const ids = run.byLane[run.lane[i]];
	for (let k = above(ids, i); k < ids.length; k++) {
		const j = ids[k];
		if (came.has(j)) return -1;
		if (run.start[j] + 0.0015 >= run.end[i]) { came.set(j, { from: i, kind: "lane" }); return j; }
	}
	return -1;
}
/** The way back, with neighbours on one lane taken together. */
function joined(run, came, b) {
	const edges = [];
	for (let i = b, c = came.get(b); c; i = c.from, c = came.get(i)) {
		const last = edges[edges.length - 1];
		if (c.kind === "lane" && last?.kind === "lane" && run.lane[last.from] === run.lane[c.from]) last.from = c.from;
		else edges.push({ from: c.from, to: i, kind: c.kind });
	}
	return edges.reverse();
}
