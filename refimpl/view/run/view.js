/** A recorded run on the screen: what it shows, what the reader has in hand, and what follows from both. No element is made here but the picture's card. */
import { clamp } from "../shared/dom.js";
import { families, launchLane, once } from "./index.js";
import { coloursOf, paletteOf } from "./canvas.js";
import { folded, overlaid, stepStarts, wander } from "./fold.js";
import { clock, lanesOf, launchAt, rowsOf, spanAt } from "./layout.js";
import { found, tracksAmong } from "./search.js";

const CLOSEST_US = 0.05, NEAR_PX = 3, MARGIN = 0.02, ROOM = 1.25;

export class RunView {
	/** @param {HTMLElement} root @param {any[]} runs of indexed() @param {string[]} sides what they are called, when there are two */
	constructor(root, runs, sides) {
		const lanes = lanesOf(runs), isHost = (lane) => runs.some((run) => run.host[run.lanes.indexOf(lane)]);
		Object.assign(this, { root, runs, sides, lanes, palette: paletteOf(root), paint: coloursOf(lanes, isHost), hits: runs.map(() => null), windows: {} });
		this.S = { t0: 0, span: 1, fold: false, mark: "", step: null, query: "", cursor: null, hover: null, gap: null, picks: [] };
		this.resize(1000);
		this.mark("");
	}
	resize(width) { this.L = rowsOf(this.runs, width, launchLane); }
	recolour() { this.palette = paletteOf(this.root); }

	// ── steps ──
	/** The op whose starts mark steps; "" for the recording's own. @param {string} family */
	mark(family) {
		const { S } = this, known = this.runs.every((run) => !family || families(run).names.includes(family));
		S.mark = known ? family : "";
		this.folds = this.runs.map((run) => once(run, `fold ${S.mark}`, () => folded(run, stepStarts(run, S.mark))));
		S.step = null;
		S.fold &&= this.canFold();
		this.place();
	}
	canFold() { return this.folds.every(Boolean); }
	/** The step in hand: the chosen one, else the typical one. @param {number} r */
	step(r) { const fold = this.folds[r]; return Math.min(this.S.step ?? fold.typical, fold.lengths.length - 1); }
	/** Where the axis has its zero in each run, and what there is to see. */
	place() {
		const { S, runs, folds } = this, two = runs.length > 1;
		this.origin = runs.map((run, r) => (two ? (folds[r] ? folds[r].starts[Math.min(S.step ?? 0, folds[r].lengths.length - 1)] : run.from) : 0));
		this.lo = Math.min(...runs.map((run, r) => run.from - this.origin[r]));
		this.hi = Math.max(...runs.map((run, r) => run.to - this.origin[r]));
		if (this.hi <= this.lo) this.hi = this.lo + 1;
		this.shift = S.fold ? runs.map((_, r) => folds[r].starts[this.step(r)]) : this.origin;
	}
	/** From where to where the window may go. */
	bounds() { return this.S.fold ? [0, Math.max(...this.folds.map((f) => Math.max(f.longest, f.median * ROOM))) * (1 + MARGIN)] : [this.lo, this.hi]; }
	/** The window at first: all of the run; of folded steps what most of them take. */
	whole() { return this.S.fold ? [0, Math.max(...this.folds.map((f) => Math.max(f.median * ROOM, f.p90 * 1.1)))] : [this.lo, this.hi - this.lo]; }
	fold(on) {
		const { S } = this, key = S.fold ? "fold" : "run";
		if (on === S.fold || (on && !this.canFold())) return false;
		this.windows[key] = [S.t0, S.span];
		S.fold = on;
		this.place();
		this.window(...(this.windows[on ? "fold" : "run"] ?? this.whole()));
		return true;
	}
	/** How far the k-th span of a name wanders from step to step; of the spans of the typical step. @param {number} r */
	wander(r) { return once(this.runs[r], `wander ${this.S.mark}`, () => wander(this.runs[r], this.folds[r])); }
	overlay(r, lane) { return once(this.runs[r], `overlay ${this.S.mark} ${lane}`, () => overlaid(this.runs[r], lane, this.folds[r])); }

	// ── the window ──
	window(t0, span) {
		const [lo, hi] = this.bounds();
		this.S.span = clamp(Number.isFinite(span) ? span : hi - lo, Math.min(CLOSEST_US, hi - lo), hi - lo);
		this.S.t0 = clamp(Number.isFinite(t0) ? t0 : lo, lo, hi - this.S.span);
	}
	X(t) { return this.L.left + ((t - this.S.t0) / this.S.span) * this.L.width; }
	time(x) { return this.S.t0 + ((x - this.L.left) / this.L.width) * this.S.span; }
	/** How times are written: of a run from its beginning, with digits that suit the window. @param {number} us */
	at(us) { return clock(this.S.span / 2000, this.runs[0].to).text(us); }
	/** Whether a span is in the window. */
	inWindow({ r, i }) { const run = this.runs[r], { S } = this; return run.end[i] - this.shift[r] >= S.t0 && run.start[i] - this.shift[r] <= S.t0 + S.span; }
	/** Bring a span into the window, and nearer where it would be too small to see. */
	reveal({ r, i }) {
		const run = this.runs[r], { S } = this, from = run.start[i] - this.shift[r], us = run.end[i] - run.start[i], span = us > S.span * 0.9 ? us * 1.6 : S.span;
		const outside = from < S.t0 + span * 0.02 || from + us > S.t0 + span * 0.98;
		return outside || span !== S.span ? [from + us / 2 - span / 2, span] : null;
	}

	// ── what lies where ──
	/** @param {number} x @param {number} y @returns {{r: number, lane: number, i: number, call: number, t: number} | null} */
	under(x, y) {
		const { L, S } = this, row = L.rows.find((q) => y >= q.y - 2 && y <= (q.calls ? q.calls.y + q.calls.h + 2 : q.end + 2));
		if (!row || x < L.left || x > L.right) return null;
		const run = this.runs[row.r], t = this.time(x) + this.shift[row.r], near = (NEAR_PX / L.width) * S.span;
		if (row.calls && y >= row.calls.y - 1) return { r: row.r, lane: row.lane, i: -1, call: launchAt(run, t, near), t };
		return { r: row.r, lane: row.lane, i: spanAt(run, row.lane, t, near, clamp((y - row.y) / row.h, 0, 0.999)), call: -1, t };
	}

	// ── search ──
	search(text) {
		this.S.query = text;
		this.hits = this.runs.map((run) => { if (!text.trim()) return null; const ids = found(run, text); return { ids, tracks: tracksAmong(run, ids) }; });
	}
	/** How many spans match. */
	matches() { return this.hits.reduce((n, h) => n + (h?.ids.length ?? 0), 0); }
}
