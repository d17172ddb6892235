/** The picture of a window: rows, bars, launch calls, words in gaps, the axis; and what belongs to the span in hand. */
import { fitLabel, measure, tickStep } from "../shared/dom.js";
import { BLOCKED, above, callTrack, familyOf, once, workOf } from "./index.js";
import { barPath, hatch, shortName, sized, textOn, write } from "./canvas.js";
import { boxOf, clock, duration, sweep } from "./layout.js";
import { drawFocus } from "./focus.js";
import { isMark, laneWords, nameOf, whyWords } from "./words.js";
import { gapAt, whyIdle } from "./why.js";

const LABEL_PX = 26, ROUND_PX = 9, GAP_PX = 90, STEP_PX = 46, DIM = 0.2;
const m11 = (t) => measure(t, 11);

/**
 * Draw a window.
 * @param {HTMLCanvasElement} canvas
 * @param {any} v the view: runs, L (rows), S (state), palette, paint (lane to colour), shift (origin of each run), folds, overlays, hits, X (time to pixel), clock
 */
export function drawFigure(canvas, v) {
	const { L } = v, ctx = sized(canvas, L.full, L.height), pen = { ctx, hatches: new Map(), labels: [] };
	drawSteps(pen, v);
	for (const row of L.rows) drawRow(pen, v, row);
	for (const row of L.rows) drawName(pen, v, row);
	drawAxis(pen, v);
	inPlot(pen, v, () => drawFocus(pen, v));
}
function inPlot({ ctx }, { L }, draw) {
	ctx.save();
	ctx.beginPath();
	ctx.rect(L.left, 0, L.width, L.height);
	ctx.clip();
	draw();
	ctx.restore();
}
const hatched = (pen, colour) => pen.hatches.get(colour) ?? pen.hatches.set(colour, hatch(pen.ctx, colour)).get(colour);

/** Where steps begin, when they are not too close to be told apart. */
function drawSteps(pen, v) {
	const { ctx } = pen, { L, S, palette } = v;
	if (S.fold) return;
	const starts = v.runs.length === 1 && v.folds[0] ? v.folds[0].starts : [], from = above(starts, S.t0 - 1e-9), to = above(starts, S.t0 + S.span);
	if ((to - from) * STEP_PX > L.width) return;
	for (let k = from; k < to; k++) {
		const x = v.X(starts[k]), text = `step ${k}`, room = Math.min(L.right, k + 1 < to ? v.X(starts[k + 1]) : L.right) - x;
		ctx.fillStyle = palette.line;
		ctx.fillRect(Math.round(x), L.rows[0].y - 6, 1, L.axis - L.rows[0].y + 6);
		if (m11(text) + 8 < room) write(ctx, text, x + 4, L.rows[0].y - (L.narrow ? 21 : 5), palette.mute, { px: 11 });
	}
}

function drawRow(pen, v, row) {
	const { ctx } = pen, { L, palette, S } = v, run = v.runs[row.r], colour = v.paint.get(row.name), shift = v.shift[row.r];
	ctx.globalAlpha = 0.09;
	ctx.fillStyle = palette[colour];
	barPath(ctx, L.left, row.y, L.width, row.h);
	ctx.fill();
	ctx.globalAlpha = 1;
	inPlot(pen, v, () => {
		if (S.fold) drawOverlay(pen, v, row, colour);
		const fold = S.fold && v.folds[row.r];
		pen.right = L.right;
		if (fold) { // a step and nothing of its neighbours
			pen.right = Math.min(L.right, v.X(fold.lengths[v.step(row.r)]));
			ctx.beginPath();
			ctx.rect(v.X(0), 0, Math.max(0, v.X(fold.lengths[v.step(row.r)]) - v.X(0)), L.height);
			ctx.clip();
		}
		const hits = v.hits[row.r];
		drawTracks(pen, v, row, run.tracks[row.lane], colour, hits ? DIM : 1);
		if (hits) drawTracks(pen, v, row, hits.tracks[row.lane], colour, 1);
		if (row.calls) drawCalls(pen, v, row, run, shift);
		if (!S.fold && !run.host[row.lane] && !hits) drawGaps(pen, v, row, run, shift);
		for (const put of pen.labels.splice(0)) put();
	});
}
function drawTracks(pen, v, row, tracks, colour, alpha) {
	const { ctx } = pen, { L, S, palette } = v, run = v.runs[row.r], t0 = S.t0 + v.shift[row.r], from = -40, rim = run.host[row.lane] ? palette.rim : palette[colour];
	for (const track of tracks)
		sweep(run, track, t0, t0 + S.span, L.width, (dx, w, first, last, share, held) => {
			const i = track.ids[first], { y, h } = boxOf(v, row, i), left = Math.max(dx, from), x = L.left + left, width = Math.min(dx + w, L.width + 40) - left;
			if (first === last && w < 2 && isMark(run, i)) return drawMark(pen, v, run, i, x, row, alpha);
			ctx.globalAlpha = alpha * (held ? 1 : 0.14 + 0.86 * share);
			ctx.fillStyle = held ? hatched(pen, rim) : palette[colour];
			if (last > first) ctx.fillRect(x, y, width, h);
			else if (width < ROUND_PX) ctx.fillRect(x, y, Math.max(width > 3 ? width - 0.75 : width, 0.9), h);
			else drawBar(pen, v, { run, i, x, y, w: width - 0.75, h, colour, held, rim, alpha });
		});
	ctx.globalAlpha = 1;
}
function drawBar(pen, v, { run, i, x, y, w, h, colour, held, rim, alpha }) {
	const { ctx } = pen, { L, palette } = v;
	barPath(ctx, x, y, w, h);
	if (held) {
		const fill = ctx.fillStyle;
		ctx.fillStyle = palette.bg;
		ctx.fill();
		ctx.fillStyle = fill;
		ctx.strokeStyle = rim;
		ctx.lineWidth = 1;
		ctx.stroke();
	}
	ctx.fill();
	const a = Math.max(x, L.left), b = Math.min(x + w, pen.right);
	if (b - a < LABEL_PX || h < 12 || alpha < 1) return;
	const text = fitLabel(held ? heldWords(run, i) : [nameOf(run, i), familyOf(nameOf(run, i))], b - a - (held ? 20 : 8), h < 20 ? m11 : measure), px = h < 20 ? 11 : 12;
	if (!text) return;
	pen.labels.push(() => {
		if (held) {
			const tw = measure(text, px) + 10;
			ctx.fillStyle = palette.bg;
			barPath(ctx, (a + b - tw) / 2, y + (h > 20 ? 2 : 0.5), tw, h - (h > 20 ? 4 : 1));
			ctx.fill();
		}
		write(ctx, text, (a + b) / 2, y + h / 2 + px * 0.34, held ? palette.ink : textOn(colour), { px, align: "center" });
	});
}
/** What stands on a held bar, longest wording first. */
function heldWords(run, i) {
	const what = nameOf(run, i).replace(/^(?:synchronize|wait)\(([^)]*)\)/, "$1"), verb = run.kind[i] === BLOCKED ? "blocked" : "waits";
	return [`${verb}: ${what}`, `${verb}: ${familyOf(what)}`, verb, ""];
}
/** A record is a filled triangle at the top of its lane, a wait a hollow one. */
function drawMark({ ctx }, { palette }, run, i, x, row, alpha) {
	if (row.h < 12) return;
	ctx.globalAlpha = alpha;
	ctx.beginPath();
	ctx.moveTo(x - 3, row.y - 1);
	ctx.lineTo(x + 3, row.y - 1);
	ctx.lineTo(x, row.y + 4);
	ctx.closePath();
	ctx.lineWidth = 1.2;
	ctx.strokeStyle = palette.ink;
	ctx.fillStyle = run.kind[i] === 2 ? palette.ink : palette.bg;
	ctx.fill();
	ctx.stroke();
	ctx.globalAlpha = 1;
}
/** Launch calls: a strip under the lane that makes them. */
function drawCalls({ ctx }, v, row, run, shift) {
	const { L, S, palette } = v, calls = callTrack(run), { y, h } = row.calls, t0 = S.t0 + shift;
	ctx.fillStyle = palette.rim;
	sweep(calls, calls.track, t0, t0 + S.span, L.width, (x, w, a, b, share) => { ctx.globalAlpha = 0.35 + 0.5 * share; ctx.fillRect(L.left + x, y, Math.max(1, w > 2 ? w - 0.5 : w), h); });
	ctx.globalAlpha = 1;
}
/** The reason, written into a gap that has room for it. */
function drawGaps({ ctx, labels }, v, row, run, shift) {
	const { L, S, palette } = v, u = workOf(run, row.lane), scale = L.width / S.span, from = S.t0 + shift, to = from + S.span;
	if (row.h < 14) return;
	for (let k = Math.max(1, above(u.start, from)); k < u.start.length && u.end[k - 1] < to;) {
		const a = Math.max(u.end[k - 1], from), b = Math.min(u.start[k], to);
		if ((b - a) * scale > GAP_PX) {
			const gap = gapAt(run, row.lane, (u.end[k - 1] + u.start[k]) / 2), words = gap && once(run, `gap ${row.lane} ${k}`, () => [duration(gap.to - gap.from), whyWords(run, whyIdle(run, gap))]);
			const text = words ? fitLabel([`idle ${words[0]}: ${words[1]}`, `${words[0]}: ${words[1]}`, ""], (b - a) * scale - 14, m11) : "";
			if (text) labels.push(() => write(ctx, text, v.X((a + b) / 2 - shift), row.mid + 4, palette.mute, { px: 11, align: "center" }));
			k++;
		} else k = Math.max(k + 1, above(u.start, u.start[k] + 1 / scale)); // gaps within a pixel of each other are not looked at one by one
	}
}
/** The shares of steps that have the lane at work, and held, at each time. */
function drawOverlay(pen, v, row, colour) {
	const { ctx } = pen, { L, S, palette } = v, { work, held, bucket } = v.overlay(row.r, row.lane), level = (shares, x) => Math.round((shares[Math.floor(v.time(x + 0.5) / bucket)] ?? 0) * 24);
	for (const [shares, fill, most] of [[work, palette[colour], 0.5], [held, hatched(pen, palette.rim), 0.8]]) {
		ctx.fillStyle = fill;
		for (let x = L.left, from = x, now = level(shares, x); x <= L.right; x++) {
			const next = x < L.right ? level(shares, x) : -1;
			if (next === now) continue;
			ctx.globalAlpha = (now / 24) * most;
			if (now > 0) ctx.fillRect(from, row.y, x - from, row.h);
			from = x;
			now = next;
		}
	}
	ctx.globalAlpha = 1;
}

function drawName({ ctx }, v, row) {
	const { L, S, palette, runs } = v, run = runs[row.r], name = shortName(row.name, L.narrow ? 200 : L.left - 12), side = runs.length > 1 ? v.sides[row.r] : "", from = S.t0 + v.shift[row.r];
	const words = S.fold ? "" : laneWords(run, row.lane, from, from + S.span), state = [side, words].filter(Boolean).join(" · ");
	if (L.narrow) {
		if (row.first) write(ctx, name, 0, row.y - 6, palette.ink, { weight: 650, halo: palette.bg });
		if (row.of === 1 || row.first) write(ctx, row.of === 1 ? state : row === L.rows[0] ? `${v.sides[0]} over ${v.sides[1]}` : "", measure(name, 12, 650) + 12, row.y - 6, palette.mute, { px: 11, halo: palette.bg });
		return;
	}
	if (row.of > 1) {
		if (row.first) write(ctx, shortName(row.name, L.left - 62), 0, row.mid + 4, palette.ink, { weight: 650 });
		write(ctx, side, L.left - 8, row.mid + 4, palette.mute, { px: 11, align: "right" });
	} else if (row.h < 20) write(ctx, name, 0, row.mid + 4, palette.ink, { weight: 650 });
	else {
		write(ctx, name, 0, state ? row.mid - 2 : row.mid + 4, palette.ink, { weight: 650 });
		write(ctx, fitLabel([state, words.split(",")[0]], L.left - 8, m11), 0, row.mid + 12, palette.mute, { px: 11 });
	}
}
function drawAxis({ ctx }, v) {
	const { L, S, palette } = v, every = tickStep(S.span * 1000, L.width * 0.8) / 1000, k = clock(every, Math.max(Math.abs(S.t0), Math.abs(S.t0 + S.span)));
	ctx.fillStyle = palette.line;
	ctx.fillRect(L.left, L.axis, L.width, 1);
	const last = Math.floor((S.t0 + S.span) / every), wide = measure(k.text(last * every), 11) + 12, skip = Math.max(1, Math.ceil(wide / (every / S.span * L.width)));
	const ticks = [];
	for (let n = Math.ceil(S.t0 / every - 1e-9); n <= last; n++) if (n % skip === 0 && v.X(n * every) < L.right - wide / 3) ticks.push(n);
	ticks.forEach((n, j) => {
		const x = v.X(n * every);
		ctx.fillStyle = palette.line;
		ctx.fillRect(x, L.axis, 1, 5);
		write(ctx, j === ticks.length - 1 ? k.text(n * every) : k.num(n * every), Math.max(x, 8), L.axis + 18, palette.mute, { px: 11, align: x < 16 ? "left" : "center" });
	});
}
