/** The strip over the picture: the whole run, every lane, what was found, and the window; in a folded picture how long each step took. */
import { above } from "./index.js";
import { hatch, sized, write } from "./canvas.js";
import { duration, sweep } from "./layout.js";

const HITS = 6, STEPS = 34, GAP = 1.5, MOST = 160;

/** Places in the strip for rows of the picture. @param {any} L rows of rowsOf() @param {boolean} fold @param {boolean} hits */
export function overviewRows(L, fold, hits) {
	const wish = Math.max(2.5, Math.min(9, 52 / L.rows.length)), share = Math.min(1, MOST / (L.rows.length * (wish + GAP))), h = wish * share, pitch = (wish + GAP) * share;
	const top = hits ? HITS + 2 : 0, rows = L.rows.map((row, k) => ({ ...row, y: top + k * pitch, h })), end = top + rows.length * pitch;
	return { rows, pitch, top, end, steps: fold ? end + 6 : end, height: Math.round(fold ? end + 6 + STEPS : end) };
}

/** @param {HTMLCanvasElement} canvas @param {any} v the view @param {Map<string, HTMLCanvasElement>} kept the strip of lanes, drawn once */
export function drawOverview(canvas, v, kept) {
	const { L, S, palette } = v, O = overviewRows(L, S.fold, v.hits.some(Boolean)), ctx = sized(canvas, L.full, O.height);
	const key = [L.full, O.rows.length, window.devicePixelRatio, palette.bg, palette.ink, v.lo, v.hi].join(" ");
	if (!kept.has(key)) { kept.clear(); kept.set(key, lanesStrip(v, O)); }
	ctx.drawImage(kept.get(key), 0, O.top, L.full, O.end - O.top);
	if (!L.narrow) {
		write(ctx, "whole run", 0, O.top + 10, palette.mute, { px: 11 });
		if (O.end - O.top > 26) write(ctx, duration(v.hi - v.lo), 0, O.top + 24, palette.mute, { px: 11 });
	}
	drawHits(ctx, v, O);
	if (S.fold) drawStepLengths(ctx, v, O);
	else drawWindow(ctx, v, O);
}
const at = (v, t) => v.L.left + ((t - v.lo) / (v.hi - v.lo)) * v.L.width;

function lanesStrip(v, O) {
	const { L, palette } = v, strip = document.createElement("canvas"), ctx = sized(strip, L.full, O.end - O.top), rim = hatch(ctx, palette.rim);
	for (const row of O.rows) {
		const run = v.runs[row.r], shift = v.origin[row.r], colour = palette[v.paint.get(row.name)];
		ctx.globalAlpha = 0.1;
		ctx.fillStyle = colour;
		ctx.fillRect(L.left, row.y - O.top, L.width, row.h);
		for (const track of run.tracks[row.lane])
			sweep(run, track, v.lo + shift, v.hi + shift, L.width, (x, w, a, b, share, held) => {
				ctx.fillStyle = held ? rim : colour;
				ctx.globalAlpha = 0.2 + 0.8 * share;
				ctx.fillRect(L.left + x, row.y - O.top, Math.max(1, w), row.h);
			});
	}
	return strip;
}
function drawHits(ctx, v, O) {
	v.hits.forEach((hits, r) => {
		if (!hits) return;
		ctx.fillStyle = v.palette.ink;
		const seen = new Uint8Array(Math.ceil(v.L.width) + 1);
		for (const i of hits.ids) seen[Math.floor(at(v, v.runs[r].start[i] - v.origin[r]) - v.L.left)] = 1;
		seen.forEach((hit, x) => { if (hit) ctx.fillRect(v.L.left + x, O.top - HITS - 1, 1.25, HITS); });
	});
}
function drawWindow(ctx, v, O) {
	const { L, S, palette } = v, a = Math.max(L.left, at(v, S.t0)), b = Math.max(a + 3, Math.min(L.right, at(v, S.t0 + S.span)));
	ctx.globalAlpha = 0.62;
	ctx.fillStyle = palette.bg;
	ctx.fillRect(L.left, 0, a - L.left, O.height);
	ctx.fillRect(b, 0, L.right - b, O.height);
	ctx.globalAlpha = 1;
	ctx.strokeStyle = palette.ink;
	ctx.lineWidth = 1.5;
	ctx.strokeRect(a + 0.5, 0.75, b - a - 1, O.height - 1.5);
	ctx.fillStyle = palette.ink;
	if (b - a > 14) for (const x of [a, b - 3]) ctx.fillRect(x, O.height / 2 - 6, 3, 12);
}
/** A bar for each step, or for the longest of those that share a pixel; the median as a line, the chosen step in ink. */
function drawStepLengths(ctx, v, O) {
	const { L, palette } = v, folds = v.folds.filter(Boolean), top = Math.max(...folds.map((f) => Math.min(f.longest, f.p90 * 1.6))), part = STEPS / v.folds.length;
	v.folds.forEach((fold, r) => {
		if (!fold) return;
		const base = O.steps + part * (r + 1) - 1, chosen = v.step(r), tall = new Float32Array(Math.ceil(L.width) + 1), Y = (us) => Math.min(1, us / top) * (part - 4);
		const X = (k) => Math.floor(at(v, fold.starts[k] - v.origin[r]) - L.left);
		for (let k = 0; k < fold.lengths.length; k++) tall[X(k)] = Math.max(tall[X(k)], fold.lengths[k]);
		ctx.fillStyle = palette.mute;
		ctx.globalAlpha = 0.55;
		const scale = L.width / (v.hi - v.lo), w = Math.max(1, fold.median * scale - 1);
		tall.forEach((us, x) => { if (us) ctx.fillRect(L.left + x, base - Y(us), w > 1 ? Math.max(1, us * scale - 1) : 1, Y(us)); });
		ctx.globalAlpha = 1;
		ctx.fillStyle = palette.ink;
		ctx.fillRect(L.left + X(chosen) - 1, base - part + 3, Math.max(3, w), part - 3);
		ctx.fillRect(L.left, base - Y(fold.median), L.width, 0.75);
		if (!L.narrow) write(ctx, v.runs.length > 1 ? `steps, ${v.sides[r]}` : "length of steps", 0, base - part / 2 + 5, palette.mute, { px: 11 });
	});
}
/** The step at a place of the strip, in the run whose bars are there. @param {any} v @param {number} x in pixels @param {number} y */
export function stepAt(v, x, y) {
	const O = overviewRows(v.L, true, v.hits.some(Boolean)), r = y < O.steps ? (O.rows.find((row) => y < row.y + O.pitch)?.r ?? 0) : Math.min(v.runs.length - 1, Math.floor(((y - O.steps) / STEPS) * v.runs.length));
	const fold = v.folds[r], t = v.lo + ((x - v.L.left) / v.L.width) * (v.hi - v.lo) + v.origin[r];
	return Math.min(fold.lengths.length - 1, Math.max(0, above(fold.starts, t) - 1));
}
