/**
 * A recorded run made ready for questions: columns into arrays, spans by lane, sorted, so that what lies at a time is found by halving.
 * No drawing here, and nothing that a page has to have.
 *
 * @typedef {{lane: number, ids: Int32Array, start: Float64Array, reach: Float64Array, busy: Float64Array, held: Float64Array}} Track spans of one lane that do not overlap; `reach` is the latest end so far, `busy` and `held` are sums up to a place
 * @typedef {{start: Float64Array, end: Float64Array, sum: Float64Array}} Union stretches that do not touch, and the time covered before each
 * @typedef {{start: Float64Array, end: Float64Array, first: Int32Array, works: Int32Array, of: Int32Array}} Launches calls that queued work: `works` from first[k] to first[k + 1] are call k's; `of` is the call of a span, -1 for none
 */
export const RUN = 0;
export const WAIT = 1;
export const RECORD = 2;
export const BLOCKED = 3;
export const WORK = 4;
const SLOTS = 4, ROUNDING = 0.002, DRAIN_US = 0.5;

const plain = (name) => name.replace(/[ _#-]?\d+(?=\)?$)/, "") || name;
/** "verify_done 3" is of the family "verify_done"; "synchronize(event 7) in step 2" of "synchronize(event) in step". @param {string} name */
export const familyOf = (name) => name.split(" in ").map(plain).join(" in ");

/** The first place whose value is above `v`. @param {ArrayLike<number>} xs sorted @param {number} v @param {number} [lo] @param {number} [hi] */
export function above(xs, v, lo = 0, hi = xs.length) {
	while (lo < hi) { const mid = (lo + hi) >> 1; if (xs[mid] > v) hi = mid; else lo = mid + 1; }
	return lo;
}
/** The first place from `lo` on whose value is not below `v`, near ones found first. @param {ArrayLike<number>} xs sorted @param {number} v @param {number} [lo] */
export function notBelow(xs, v, lo = 0) {
	let step = 1, hi = lo;
	while (hi < xs.length && xs[hi] < v) { lo = hi + 1; hi += step; step *= 2; }
	hi = Math.min(hi, xs.length);
	while (lo < hi) { const mid = (lo + hi) >> 1; if (xs[mid] < v) lo = mid + 1; else hi = mid; }
	return lo;
}

/** @param {(number|null)[]} xs */
function times(xs) {
	const out = new Float64Array(xs.length);
	for (let i = 0; i < xs.length; i++) out[i] = xs[i] ?? NaN;
	return out;
}

/** The run behind columns (the JSON of a Trace, schema trace/1); an Error with one sentence where they are none. @param {any} columns */
export function indexed(columns) {
	const s = columns?.spans, n = s?.start?.length;
	if (columns?.schema !== "trace/1" || n === undefined) throw new Error("This is no recorded run: its schema is not trace/1.");
	if (!n) throw new Error("This run has no spans: nothing was recorded.");
	const run = {
		columns, n, lanes: columns.lanes, names: columns.names, calls: columns.calls,
		start: times(s.start), end: times(s.end), submit: times(s.submit), ready: times(s.ready),
		lane: Int32Array.from(s.lane), name: Int32Array.from(s.name), kind: Uint8Array.from(s.kind), call: Int32Array.from(s.call),
		slot: new Uint8Array(n), slots: new Uint8Array(n).fill(1), memo: new Map(),
	};
	for (let i = 1; i < n; i++) if (run.start[i] < run.start[i - 1]) throw new Error("The spans of this run are not sorted by start.");
	run.from = run.start[0];
	run.to = run.end.reduce((x, y) => Math.max(x, y), run.from);
	for (let i = 0; i < n; i++) if (run.submit[i] < run.from) run.from = run.submit[i];
	run.byLane = group(run.lane, run.lanes.length);
	run.host = run.lanes.map((lane, l) => isHost(run, lane, run.byLane[l]));
	run.byLane.forEach((ids) => spread(run, ids));
	run.tracks = tracksOf(run, run.byLane);
	run.launches = launchesOf(run);
	return run;
}
/** A lane of the host by its name, or because nothing but host work and blocked calls is on it. */
function isHost(run, lane, ids) {
	return /^(host$|thread |process \S+ (thread |host$))/.test(lane) || (ids.length > 0 && ids.every((i) => run.kind[i] >= BLOCKED));
}
/** Places by their value, each list in order. @param {Int32Array} of @param {number} count @returns {Int32Array[]} */
export function group(of, count) {
	const sizes = new Int32Array(count);
	for (const k of of) if (k >= 0) sizes[k]++;
	const out = Array.from(sizes, (size) => new Int32Array(size)), at = new Int32Array(count);
	for (let i = 0; i < of.length; i++) if (of[i] >= 0) out[of[i]][at[of[i]]++] = i;
	return out;
}
/** Spans that overlap on one lane share its row; more than four share the last slot. The next kernel starts while the last blocks of the one before drain: that is no overlap to show. */
function spread(run, ids) {
	const ends = new Float64Array(SLOTS);
	let begin = 0, used = 0, reach = -Infinity;
	const close = (upTo) => { if (used > 1) for (let k = begin; k < upTo; k++) run.slots[ids[k]] = used; };
	for (let k = 0; k < ids.length; k++) {
		const i = ids[k], at = run.start[i] + Math.max(ROUNDING, Math.min(DRAIN_US, (run.end[i] - run.start[i]) / 2));
		if (at >= reach) { close(k); begin = k; used = 0; ends.fill(-Infinity); }
		let slot = 0;
		while (slot < SLOTS - 1 && ends[slot] > at) slot++;
		ends[slot] = Math.max(ends[slot], run.end[i]);
		run.slot[i] = slot;
		used = Math.max(used, slot + 1);
		reach = Math.max(reach, run.end[i]);
	}
	close(ids.length);
}

/** Tracks of lists of spans, one list a lane: one track for each slot that is used. @param {any} run @param {Int32Array[]} lists @returns {Track[][]} */
export function tracksOf(run, lists) {
	return lists.map((ids, lane) => {
		const parts = Array.from({ length: SLOTS }, () => []);
		for (const i of ids) parts[run.slot[i]].push(i);
		return parts.filter((part) => part.length).map((part) => track(run, lane, Int32Array.from(part)));
	});
}
function track(run, lane, ids) {
	const n = ids.length, start = new Float64Array(n), reach = new Float64Array(n), busy = new Float64Array(n + 1), held = new Float64Array(n + 1);
	let far = -Infinity;
	for (let k = 0; k < n; k++) {
		const i = ids[k], us = run.end[i] - run.start[i];
		far = Math.max(far, run.end[i]);
		start[k] = run.start[i];
		reach[k] = far;
		busy[k + 1] = busy[k] + us;
		held[k + 1] = held[k] + (isHeld(run.kind[i]) ? us : 0);
	}
	return { lane, ids, start, reach, busy, held };
}
/** Held by something else: a stream by an event, the host by a call. @param {number} kind */
export const isHeld = (kind) => kind === WAIT || kind === BLOCKED;

/** One call for each time at which work was submitted. @returns {Launches} */
function launchesOf(run) {
	const queued = [], of = new Int32Array(run.n).fill(-1), start = [], end = [];
	for (let i = 0; i < run.n; i++) if (!run.host[run.lane[i]] && !Number.isNaN(run.submit[i])) queued.push(i);
	queued.sort((p, q) => run.submit[p] - run.submit[q] || p - q);
	const first = [];
	queued.forEach((i, k) => {
		if (!k || run.submit[i] !== start[start.length - 1]) { first.push(k); start.push(run.submit[i]); end.push(run.submit[i]); }
		of[i] = start.length - 1;
		end[of[i]] = Math.max(end[of[i]], Number.isNaN(run.ready[i]) ? run.submit[i] : run.ready[i]);
	});
	first.push(queued.length);
	return { start: Float64Array.from(start), end: Float64Array.from(end), first: Int32Array.from(first), works: Int32Array.from(queued), of };
}
/** The launch calls as a run of their own with one track. @param {any} run */
export const callTrack = (run) => once(run, "call track", () => {
	const { start, end } = run.launches, calls = { start, end, kind: new Uint8Array(start.length) };
	return { ...calls, track: track(calls, 0, Int32Array.from(start.keys())) };
});
/** The lane that launch calls are drawn on: the host's, or the first of its threads; -1 where the recording has no calls. @param {any} run */
export function launchLane(run) {
	if (!run.launches.start.length) return -1;
	const named = run.lanes.indexOf("host");
	return named >= 0 ? named : run.host.indexOf(true);
}

/** What is computed once, when it is first asked for. @template T @param {any} run @param {string} key @param {() => T} make @returns {T} */
export function once(run, key, make) {
	if (!run.memo.has(key)) run.memo.set(key, make());
	return run.memo.get(key);
}
/** When any of these spans ran. @param {any} run @param {Iterable<number>} ids sorted by start @returns {Union} */
export function unionOf(run, ids) {
	const start = [], end = [], sum = [];
	let total = 0;
	for (const i of ids) {
		const last = end.length - 1;
		if (last >= 0 && run.start[i] <= end[last] + ROUNDING) { end[last] = Math.max(end[last], run.end[i]); continue; }
		if (last >= 0) total += end[last] - start[last];
		start.push(run.start[i]);
		end.push(run.end[i]);
		sum.push(total);
	}
	return { start: Float64Array.from(start), end: Float64Array.from(end), sum: Float64Array.from(sum) };
}
/** Spans of these kinds on a lane, as stretches of time. @param {any} run @param {number} lane @param {number[]} kinds @returns {Union} */
export const busyOf = (run, lane, kinds) => once(run, `union ${lane} ${kinds}`, () => unionOf(run, run.byLane[lane].filter((i) => kinds.includes(run.kind[i]))));
/** What a lane does of its own: a stream's work, the host's annotations. @param {any} run @param {number} lane */
export const workOf = (run, lane) => busyOf(run, lane, run.host[lane] ? [WORK, RUN] : [RUN]);
/** When any stream worked. @param {any} run @returns {Union} */
export const gpuBusy = (run) => once(run, "gpu", () => {
	const ids = [];
	for (let i = 0; i < run.n; i++) if (run.kind[i] === RUN && !run.host[run.lane[i]]) ids.push(i);
	return unionOf(run, ids);
});
/** Time covered before `t`. @param {Union} u @param {number} t */
function until(u, t) {
	const k = above(u.start, t) - 1;
	return k < 0 ? 0 : u.sum[k] + Math.min(t, u.end[k]) - u.start[k];
}
/** Time covered between two times. @param {Union} u @param {number} from @param {number} to */
export const covered = (u, from, to) => (to > from ? until(u, to) - until(u, from) : 0);

/** Spans by family: "verify 0", "verify 1", … are steps of one op. @param {any} run @returns {{of: Int32Array, names: string[], ids: Int32Array[]}} */
export const families = (run) => once(run, "families", () => {
	const names = [], known = new Map(), ofName = Int32Array.from(run.names, (name) => {
		const family = familyOf(name);
		if (!known.has(family)) { known.set(family, names.length); names.push(family); }
		return known.get(family);
	});
	const of = run.name.map((name) => ofName[name]);
	return { of, names, ids: group(of, names.length) };
});
