/** Steps of a run laid over one another on one axis, and the figures of a step. */
import { BLOCKED, RUN, WORK, above, busyOf, covered, families, gpuBusy, once, workOf } from "./index.js";

const BUCKETS = 1500;

/** Starts of steps: those that the recording names, else the starts of an op's spans. @param {any} run @param {string} [family] @returns {number[]} */
export function stepStarts(run, family) {
	if (!family) return run.columns.steps ?? [];
	const { names, ids } = families(run), k = names.indexOf(family);
	return k < 0 ? [] : begun(run, ids[k]);
}
/** When steps begin with these spans: those on streams where there are any, else the host's. What belongs to one step is told by the number in the name, else by the host's annotation of that name in which it was launched, else by its launch. */
function begun(run, ids) {
	const notes = Array.from(ids).filter((i) => run.kind[i] === WORK).map((i) => run.start[i]);
	for (const kind of [RUN, WORK, BLOCKED]) {
		const found = Array.from(ids).filter((i) => run.kind[i] === kind), numbered = found.some((i) => run.name[i] !== run.name[found[0]]);
		const launch = (i) => (kind !== RUN || Number.isNaN(run.submit[i]) ? `span ${i}` : notes.length ? above(notes, run.submit[i]) : run.submit[i]), part = (i) => (numbered ? run.name[i] : launch(i));
		if (found.length) return [...new Set(found.filter((i, k) => !k || part(i) !== part(found[k - 1])).map((i) => run.start[i]))];
	}
	return [];
}
/** Ops that could mark steps: those that come again, the ones that take most time first. @param {any} run @param {number} [most] @returns {{name: string, times: number}[]} */
export const stepOps = (run, most = 60) => once(run, "step ops", () => {
	const { names, ids } = families(run), sum = (xs) => xs.reduce((us, i) => us + run.end[i] - run.start[i], 0);
	return names.map((name, k) => ({ name, times: ids[k].length > 1 ? begun(run, ids[k]).length : 1, us: sum(ids[k]) })).filter((x) => x.times > 1).sort((p, q) => q.us - p.us).slice(0, most);
});

/** A value at a share of sorted values, the nearest one. @param {ArrayLike<number>} xs @param {number} share */
export const quantile = (xs, share) => (xs.length ? xs[Math.min(xs.length - 1, Math.max(0, Math.ceil(share * xs.length) - 1))] : NaN);
/** @param {Iterable<number>} xs */
const sorted = (xs) => Float64Array.from(xs).sort();

/**
 * @typedef {{starts: number[], lengths: Float64Array, median: number, p10: number, p90: number, typical: number, longest: number}} Fold
 * `typical` is the whole step whose length is nearest to the median
 */
/** Whole steps of a run; null where there are fewer than two. The last one, whose end is unknown, is left out. @param {any} run @param {number[]} starts @returns {Fold | null} */
export function folded(run, starts) {
	const count = starts.length - 1;
	if (count < 2) return null;
	const lengths = Float64Array.from({ length: count }, (_, k) => starts[k + 1] - starts[k]), order = sorted(lengths), median = quantile(order, 0.5), middle = count / 2;
	let typical = 0;
	for (let k = 1; k < count; k++) {
		const closer = Math.abs(lengths[k] - median) - Math.abs(lengths[typical] - median);
		if (closer < 0 || (closer === 0 && Math.abs(k - middle) < Math.abs(typical - middle))) typical = k;
	}
	const longest = order[count - 1];
	return { starts, lengths, median, p10: quantile(order, 0.1), p90: quantile(order, 0.9), typical, longest };
}

/**
 * How many of the steps have a lane at work at each time of the step, as shares from 0 to 1: of work, and of waiting.
 * @param {any} run @param {number} lane @param {Fold} fold @returns {{work: Float32Array, held: Float32Array, bucket: number}}
 */
export function overlaid(run, lane, fold) {
	const bucket = fold.longest / BUCKETS || 1;
	const layer = (union) => {
		const out = new Float32Array(BUCKETS), count = fold.lengths.length;
		let k = 0;
		for (let s = 0; s < count; s++) {
			const from = fold.starts[s], to = from + fold.lengths[s];
			while (k > 0 && union.end[k - 1] > from) k--;
			while (k < union.start.length && union.end[k] <= from) k++;
			for (let j = k; j < union.start.length && union.start[j] < to; j++) add(out, (Math.max(union.start[j], from) - from) / bucket, (Math.min(union.end[j], to) - from) / bucket);
		}
		return out.map((x) => Math.min(1, x / count));
	};
	return { work: layer(workOf(run, lane)), held: layer(busyOf(run, lane, run.host[lane] ? [BLOCKED] : [1])), bucket };
}
/** Add one to the buckets from a to b, and its share to the outer two. */
function add(out, a, b) {
	const first = Math.floor(a), last = Math.min(Math.floor(b), out.length - 1);
	if (first >= out.length) return;
	if (first === last) { out[first] += b - a; return; }
	out[first] += first + 1 - a;
	for (let k = first + 1; k < last; k++) out[k]++;
	out[last] += Math.min(1, b - last);
}

/** Spans that start in a step. @param {any} run @param {Fold} fold @param {number} step @returns {[number, number]} from the first to before the last */
export function spansOf(run, fold, step) {
	const from = fold.starts[step], eps = 1e-9;
	return [above(run.start, from - eps), above(run.start, from + fold.lengths[step] - eps)];
}
/**
 * How far the spans of the typical step wander: of the k-th span of a family on its lane, when it starts and ends in eight of ten steps.
 * @param {any} run @param {Fold} fold @returns {Map<number, {start: [number, number], end: [number, number], times: number}>} by span, times from the step's start
 */
export function wander(run, fold) {
	const { of } = families(run), key = (i) => run.lane[i] * 1e6 + of[i], slots = new Map(), seen = [];
	const each = (step, visit) => {
		const counts = new Map(), [from, to] = spansOf(run, fold, step);
		for (let i = from; i < to; i++) { const k = key(i), nth = counts.get(k) ?? 0; counts.set(k, nth + 1); visit(i, `${k} ${nth}`); }
	};
	each(fold.typical, (i, name) => { slots.set(name, seen.length); seen.push({ i, start: [], end: [] }); });
	for (let s = 0; s < fold.lengths.length; s++)
		each(s, (i, name) => {
			const x = seen[slots.get(name)];
			if (x) { x.start.push(run.start[i] - fold.starts[s]); x.end.push(run.end[i] - fold.starts[s]); }
		});
	const range = (xs) => { const all = sorted(xs); return /** @type {[number, number]} */ ([quantile(all, 0.1), quantile(all, 0.9)]); };
	return new Map(seen.map((x) => [x.i, { start: range(x.start), end: range(x.end), times: x.start.length }]));
}

/** Calls that held the host, the longest sum first. @param {any} run @returns {{name: string, lane: string, times: number, us: number}[]} */
export const blocking = (run) => once(run, "blocking", () => {
	const sums = new Map(), { of, names } = families(run);
	for (let i = 0; i < run.n; i++) {
		if (run.kind[i] !== BLOCKED) continue;
		const name = run.call[i] >= 0 ? run.calls[run.call[i]] : names[of[i]], key = `${name} ${run.lane[i]}`, x = sums.get(key) ?? { name, lane: run.lanes[run.lane[i]], times: 0, us: 0 };
		x.times++;
		x.us += run.end[i] - run.start[i];
		sums.set(key, x);
	}
	return [...sums.values()].sort((p, q) => q.us - p.us || (p.name < q.name ? -1 : 1));
});
/** Time in which the host's lanes were held between two times, summed over lanes. @param {any} run @param {number} from @param {number} to */
export const blockedIn = (run, from, to) => run.lanes.reduce((us, _, l) => us + (run.host[l] ? covered(busyOf(run, l, [BLOCKED]), from, to) : 0), 0);

/** Figures to compare two runs by; a step's are means over whole steps. @param {any} run @param {Fold | null} fold */
export function figures(run, fold) {
	const from = fold ? fold.starts[0] : run.from, to = fold ? fold.starts[fold.lengths.length] : run.to, us = to - from, per = fold ? fold.lengths.length : 1, busy = covered(gpuBusy(run), from, to);
	return { us, steps: fold ? per : 0, step: fold ? fold.median : us, p10: fold?.p10 ?? us, p90: fold?.p90 ?? us, blocked: blockedIn(run, from, to) / per, idle: (us - busy) / per, idleShare: us ? 1 - busy / us : 0 };
}
