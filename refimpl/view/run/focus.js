/** What belongs to the span in hand: outlines, its launch, its edges, the distance between two picks; and where median steps end. */
import { arrowPath, fitLabel, measure } from "../shared/dom.js";
import { barPath, write } from "./canvas.js";
import { boxOf, duration, rowOf } from "./layout.js";
import { edgesOf } from "./path.js";

const WORKS_SHOWN = 40;

/** All of it. @param {{ctx: CanvasRenderingContext2D}} pen @param {any} v the view */
export function drawFocus(pen, v) {
	const { S } = v, focus = S.hover?.i >= 0 ? S.hover : S.cursor;
	if (S.fold) drawMedians(pen, v);
	for (const pick of S.picks) outline(pen, v, pick, 2.5);
	if (S.cursor) outline(pen, v, S.cursor, 2.5);
	if (S.hover?.i >= 0) outline(pen, v, S.hover, 1.5);
	if (S.hover?.call >= 0) for (const i of worksOf(v.runs[S.hover.r], S.hover.call)) drawLaunch(pen, v, S.hover.r, i);
	if (focus) drawEdges(pen, v, focus);
	if (S.gap) drawGap(pen, v, S.gap);
	if (S.picks.length === 2 && S.picks[0].r === S.picks[1].r) drawDistance(pen, v, S.picks);
}
/** The first works of a launch call. @param {any} run @param {number} call */
export const worksOf = (run, call) => run.launches.works.subarray(run.launches.first[call], Math.min(run.launches.first[call + 1], run.launches.first[call] + WORKS_SHOWN));
function outline({ ctx }, v, { r, i }, width) {
	const run = v.runs[r], row = rowOf(v, r, run.lane[i]), a = v.X(run.start[i] - v.shift[r]), b = v.X(run.end[i] - v.shift[r]);
	if (!row || b < v.L.left - 4 || a > v.L.right + 4) return;
	const { y, h } = boxOf(v, row, i), w = Math.max(4, b - a);
	ctx.strokeStyle = v.palette.ink;
	ctx.lineWidth = width;
	barPath(ctx, b - a < 4 ? (a + b) / 2 - 2 : a, y - 1, w, h + 2);
	ctx.stroke();
}
/** The stretch of which the answer speaks. */
function drawGap({ ctx }, v, { r, lane, from, to }) {
	const row = rowOf(v, r, lane), a = v.X(from - v.shift[r]), b = v.X(to - v.shift[r]);
	if (!row) return;
	ctx.strokeStyle = v.palette.ink;
	ctx.lineWidth = 1.5;
	ctx.setLineDash([4, 3]);
	ctx.strokeRect(a + 0.75, row.y + 0.75, Math.max(1, b - a - 1.5), row.h - 1.5);
	ctx.setLineDash([]);
}
function drawLaunch({ ctx }, v, r, i) {
	const run = v.runs[r], from = v.L.rows.find((row) => row.r === r && row.calls), to = rowOf(v, r, run.lane[i]);
	if (!from || !to || Number.isNaN(run.ready[i])) return;
	ctx.strokeStyle = v.palette.ink;
	ctx.lineWidth = 1.6;
	ctx.lineCap = "round";
	ctx.setLineDash([0, 4]);
	ctx.stroke(new Path2D(arrowPath(v.X(run.ready[i] - v.shift[r]), from.calls.y + from.calls.h, v.X(run.start[i] - v.shift[r]) + 1, to.y - 2)));
	ctx.setLineDash([]);
}
function drawEdges(pen, v, { r, i }) {
	const run = v.runs[r], { into, out } = edgesOf(run);
	if (!run.host[run.lane[i]]) drawLaunch(pen, v, r, i);
	for (const e of into.get(i) ?? []) drawEdge(pen, v, r, e.from, i);
	for (const e of out.get(i) ?? []) drawEdge(pen, v, r, i, e.to);
}
function drawEdge({ ctx }, v, r, a, b) {
	const run = v.runs[r], p = rowOf(v, r, run.lane[a]), q = rowOf(v, r, run.lane[b]);
	if (!p || !q || p === q) return;
	const down = q.y > p.y, sign = down ? 1 : -1, x0 = v.X(run.end[a] - v.shift[r]), x1 = v.X((run.kind[b] === 0 ? run.start[b] : run.end[b]) - v.shift[r]), y0 = down ? p.end : p.y, y1 = down ? q.y : q.end, path = new Path2D(arrowPath(x0, y0, x1, y1 - sign * 6));
	for (const [colour, width] of [[v.palette.bg, 5], [v.palette.ink, 1.7]]) { ctx.strokeStyle = colour; ctx.lineWidth = width; ctx.stroke(path); }
	ctx.fillStyle = v.palette.ink;
	ctx.fill(new Path2D(`M${x1 - 3.5},${y1 - sign * 7}h7L${x1},${y1}z`));
}
/** A bracket over the axis from one pick to the other. */
function drawDistance({ ctx }, v, picks) {
	const run = v.runs[picks[0].r], shift = v.shift[picks[0].r], [p, q] = picks.map((x) => x.i).sort((m, n) => m - n), apart = run.start[q] >= run.end[p], from = apart ? run.end[p] : run.start[q], to = apart ? run.start[q] : run.end[p], a = v.X(from - shift), b = v.X(to - shift), y = v.L.axis - 8;
	ruler(ctx, v.palette, a, b, y, duration(to - from), Math.min(Math.max((Math.max(a, v.L.left) + Math.min(b, v.L.right)) / 2, v.L.left + 30), v.L.right - 30));
}
/** A measured length with its words on it, where they fit. */
function ruler(ctx, palette, a, b, y, text, middle = (a + b) / 2) {
	const w = measure(text, 11, 650) + 8;
	ctx.strokeStyle = palette.ink;
	ctx.lineWidth = 1.25;
	ctx.stroke(new Path2D(`M${a},${y - 4}v8M${a},${y}H${b}M${b},${y - 4}v8`));
	if (b - a < w + 8) return;
	ctx.fillStyle = palette.bg;
	ctx.fillRect(middle - w / 2, y - 6, w, 12);
	write(ctx, text, middle, y + 4, palette.ink, { px: 11, weight: 650, align: "center" });
}
/** Where the median step ends, of each run; of two, how far apart. */
function drawMedians({ ctx }, v) {
	const { L, palette } = v, xs = v.folds.map((fold) => v.X(fold.median)), top = L.rows[0].y - (L.narrow ? 24 : 9), two = v.runs.length > 1;
	v.folds.forEach((fold, r) => {
		ctx.fillStyle = palette.ink;
		for (const row of L.rows) if (row.r === r) for (let y = row.y - 2; y < row.end + 2; y += 6) ctx.fillRect(xs[r] - 0.6, y, 1.2, two && r ? 6 : 3.5);
		ctx.fill(new Path2D(`M${xs[r]},${L.axis}l4,-6h-8z`));
		const left = two && xs[r] < xs[1 - r], us = duration(fold.median), text = fitLabel([`${two ? v.sides[r] : "median"} ${us}`, us, ""], (left ? xs[r] - L.left : L.right - xs[r]) - 5, (t) => measure(t, 11, 650));
		write(ctx, text, xs[r] + (left ? -5 : 5), top + 4, palette.ink, { px: 11, weight: 650, align: left ? "right" : "left" });
	});
	if (!two || Math.abs(xs[1] - xs[0]) < 3) return;
	const [a, b] = [...xs].sort((p, q) => p - q), us = v.folds[1].median - v.folds[0].median, text = `${us > 0 ? "+" : "−"}${duration(Math.abs(us))}`;
	ruler(ctx, palette, a, b, top, text);
}
