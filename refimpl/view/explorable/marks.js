/** What explains the picture: arrows of order, idle stretches with their causes, hazards, the forced order, a path edge by edge. */
import { arrowPath, clamp, fitLabel, line, measure, plate, set, text } from "../shared/dom.js";
import { HOST } from "../model/lower.js";
import { isWork } from "../model/order.js";
import { laneState, valueOf, why } from "./words.js";
import { isBlock } from "./solve.js";

export const EDGE_MS = 260;
const MARK = 7, SMALL_MARK = 5;
const m11 = (t) => measure(t, 11), bold11 = (t) => measure(t, 11, 650);

/** Idle stretches of the main stream, each with one bracket and the causes in order. */
export function drawIdle(f, settled) {
	if (!settled && !f.S.dragging) return;
	const { L, M, U } = f, runs = [];
	for (const g of M.gaps) if (g.lane === M.hero && g.why !== "drained" && g.from > 0) { const l = runs[runs.length - 1]; l && l[l.length - 1].to === g.from ? l.push(g) : runs.push([g]); }
	runs.forEach((gs, k) => {
		const a = f.X(gs[0].from), b = f.X(gs[gs.length - 1].to), next = runs[k + 1] ? f.X(runs[k + 1][0].from) : L.right, y = f.row(M.hero).end;
		if (b - a < 4 || !f.seen(a, b) || a > L.right - 20) return;
		const g = f.group(`idle ${gs[0].before} ${k}`, f.layer.links, { p: line("mute", 1.25), t: text("s m halo") });
		const wording = (brief) => gs.map((x) => `${U.num(x.to - x.from)} ${why(M, x, brief)}`).join(" + "), sum = U.num(gs[gs.length - 1].to - gs[0].from);
		set(g.p, { d: `M${a + 1.5},${y + 2}v4H${b - 1.5}v-4` });
		const x = Math.max(a, L.narrow ? pillStart(f, y + 14) - 8 : L.left) + 8, stop = Math.min(next, ...f.taken.filter((s) => s.b > x && s.top < y + 21 && s.end > y + 8).map((s) => s.a));
		const word = fitLabel([wording(0), wording(1), `${sum} ${why(M, gs[0], 2)}`, sum, ""], stop - x - 10, m11);
		set(g.t, { x, y: y + 18, text: word });
		if (word) f.taken.push({ a: x - 4, b: x + m11(word) + 4, top: y + 8, end: y + 21 });
		set(g.el, { opacity: f.path ? 0.3 : 1 });
	});
}

/** Captures to waits and synchronizes, barriers of the legacy stream; on hover or focus also the launch. */
export function drawLinks(f) {
	const near = neighbours(f, f.focused()), linked = new Set(), named = new Set();
	for (const v of f.live.values())
		for (const foot of v.feet) {
			const r = f.live.get(foot.id);
			if (!r || v.never || r.never) continue;
			drawLink(f, v, r, foot, near, named);
			linked.add(v.id).add(r.id);
		}
	for (const v of f.live.values()) if (/record|wait/.test(v.kind) && !v.implicit && !v.never && !linked.has(v.id)) drawMark(f, v);
	const hot = f.live.get(f.focused());
	if (hot && isWork(hot) && hot.lane !== HOST) set(f.group("launch", f.layer.links, { p: ["path", { class: "launch" }] }).p, { d: arrowPath(f.X(hot.ready), f.row(HOST).end + 2, f.X(hot.start) + 1, f.row(hot.lane).y - 2) });
}
/** A record that nobody waits for, or a wait for nothing on another lane: its sign alone. */
function drawMark(f, v) {
	const x = f.X(v.end), y = f.row(v.lane).y, n = SMALL_MARK, out = v.kind === "record";
	if (!f.seen(x)) return;
	const g = f.group(`mark ${v.id}`, f.layer.faint, { p: ["path", { class: out ? "ink" : "hollow" }] });
	set(g.p, { d: out ? `M${x - n / 2},${y}h${n}L${x},${y - n}z` : `M${x - n / 2},${y - n - 1.5}h${n}L${x},${y - 1.5}z` });
	const held = f.inHand.has(v.id);
	set(g.el, { opacity: v.alpha * (held ? 1 : f.path ? 0.25 : 0.5) });
	drawHandle(f, v, x, y - 8);
}
/** Where a fence is taken hold of: its sign in the gutter. */
function drawHandle(f, v, x, y) {
	if (f.M.veiled || v.alpha < 1 || v.never || v.kind === "sync" || !["record", "wait"].includes(v.kind)) return;
	const g = f.group(`handle ${v.id}`, f.layer.handles, { r: ["rect", { class: "handle", width: 14, height: 14, rx: 4 }] }, (n) => f.on.fence(n.r, v));
	set(g.r, { x: x - 7, y: y - 7, class: f.inHand.has(v.id) ? "handle on" : "handle" });
}
function drawLink(f, v, r, e, near, named) {
	const { L } = f, xr = f.X(r.end), xv = e.kind === "legacy" ? f.X(v.start) : f.X(v.end);
	if (!f.seen(xr, xv)) return;
	const down = f.rank(v.lane) > f.rank(r.lane), sg = down ? 1 : -1, strong = e.kind !== "legacy" && f.isTopic(v), size = strong ? MARK : SMALL_MARK;
	const y0 = down ? f.row(r.lane).end : f.row(r.lane).y, y1 = down ? f.row(v.lane).y : f.row(v.lane).end, ya = y0 + sg * size, yb = y1 - sg * (size + 1.5), d = arrowPath(xr, ya, xv, yb);
	const g = f.group(`link ${v.id} ${r.id} ${strong}`, strong ? f.layer.links : f.layer.faint, { halo: line("bg", strong ? 5 : 0), p: line("ink", strong ? 1.6 : 1), f: ["path", { class: "ink" }], h: ["path", { class: "hollow" }] }), opacity = Math.min(v.alpha, r.alpha) * (strong ? 1 : near.has(v.id) ? 0.9 : 0.36) * (f.path ? 0.25 : 1) * (f.S.scrubbed && f.S.now < v.end - f.S.span / 1e4 ? 0.4 : 1);
	set(g.el, { opacity });
	set(g.halo, { d });
	set(g.p, { d });
	set(g.f, { d: `M${xr - size / 2},${y0}h${size}L${xr},${ya}z` });
	set(g.h, { d: `M${xv - size / 2},${yb}h${size}L${xv},${y1 - sg * 1.5}z` });
	if (e.kind !== "legacy") { drawHandle(f, r, xr, (y0 + ya) / 2 + sg); drawHandle(f, v, xv, (y1 + yb) / 2 - sg); }
	if (strong && !v.implicit && v.event) drawEventName(f, r, v.event, { x: xr, y: y0 + sg * 10 + 3, opacity }, named);
}
/** An event's name beside its arrow, once a record: on the side that has room beside the lane's name and the other words of this frame, or nowhere. */
function drawEventName(f, r, name, { x, y, opacity }, named) {
	const { L } = f, w = measure(name) + 8, high = { top: y - 10, end: y + 3 }, key = `event ${r.id} ${name}`;
	const right = { x: x + 8, anchor: "start", a: x, b: x + w, ...high }, left = { x: x - 8, anchor: "end", a: x - w, b: x, ...high };
	const side = (L.narrow ? [right, left] : [left, right]).find((s) => s.a >= pillStart(f, y) && s.b <= L.right && f.free(s));
	if (!side || named.has(key)) return;
	named.add(key);
	f.taken.push(side);
	set(f.group(key, f.layer.names, { t: text("s halo") }).t, { text: name, x: side.x, y, opacity, "text-anchor": side.anchor });
}
/** The arrows that touch an op: waits just before it, and waits on what is recorded just after it. @param {any} f @param {string} id */
function neighbours(f, id) {
	const { M } = f, o = M.ops[M.at.get(id) ?? -1];
	if (!o) return new Set();
	const lane = M.ops.filter((x) => x.lane === o.lane && isBlock(x)), k = lane.indexOf(o), from = lane[k - 1]?.i ?? -1, to = lane[k + 1]?.i ?? Infinity;
	return new Set(M.ops.filter((x) => (x.lane === o.lane && x.i > from && x.i <= o.i) || x.after.some((e) => M.ops[e.from].lane === o.lane && e.from >= o.i && e.from < to)).map((x) => x.id));
}

/** The hazard's curve: across the gutters, or a bow under the lane when both ops are in one. */
function hazardArc(f, A, B, xa, xb) {
	const ra = f.box(A), rb = f.box(B), lane = f.row(A.lane), up = f.rank(B.lane) < f.rank(A.lane);
	if (A.lane === B.lane) return { d: `M${xa},${lane.end + 2}C${xa},${lane.end + 16} ${xb},${lane.end + 16} ${xb},${lane.end + 2}`, x: (xa + xb) / 2, y: lane.end + 13 };
	const ya = up ? ra.y - 2 : ra.end + 2, yb = up ? rb.end + 2 : rb.y - 2, ky = (yb - ya) * 0.6, gutter = up ? lane.y - 13 : lane.end + 13;
	// the word sits on the arc, in the gutter beside the first op's lane, where no block lies under it
	const along = (t, p, q) => 3 * t * (1 - t) ** 2 * p + 3 * t * t * (1 - t) * q + t ** 3;
	let t = 0;
	while (t < 1 && along(t, 0.6, 0.4) * Math.abs(yb - ya) < Math.abs(gutter - ya)) t += 0.02;
	return { d: `M${xa},${ya}C${xa},${ya + ky} ${xb},${yb - ky} ${xb},${yb}`, x: xa + along(t, 0, 1) * (xb - xa), y: gutter };
}
/** Where a gutter has room for a word: on a narrow screen the lane's name and state stand at its left; `bare`: its name alone. */
function pillStart(f, y, bare = false) {
	const { L, M, S } = f, below = L.narrow ? f.lanes.find((l) => f.row(l).y - y > 0 && f.row(l).y - y < 28) : undefined;
	return below === undefined ? L.left : L.left + measure(below, 12, 650) + (bare ? 0 : measure(laneState(M, below, S.now), 11)) + 22;
}
/** More arcs than these nobody tells apart, and a browser would draw them for seconds; the table counts all. */
const MOST_HAZARDS = 200;
export function drawHazards(f) {
	const { L, M, S } = f;
	let first = true, drawn = 0;
	for (const r of M.shown) {
		const A = f.op(r.a), B = f.op(r.b), a = f.live.get(A.id), b = f.live.get(B.id), main = S.forced && M.race === r;
		if (!a || !b || (S.forced && !main)) continue;
		const xa = r.kind === "WAR" ? f.X((a.start + a.end) / 2) : f.X(a.end) - 3, xb = f.X((b.start + b.end) / 2);
		if (Math.max(xa, xb) < L.left || Math.min(xa, xb) > L.right - 10 || ++drawn > MOST_HAZARDS) continue;
		const dash = ["rect", { class: "dash", rx: 7 }], arc = hazardArc(f, A, B, xa, xb), key = `${A.id} ${B.id} ${r.kind} ${r.range.buf}`, opacity = f.path ? 0.3 : first || main ? 1 : 0.72;
		const g = f.group(`hazard ${key}`, f.layer.hazards, { arc: ["path", { class: "dash arc" }], oa: dash, ob: dash }, (n) => n.el.classList.add("tl-hz"));
		set(g.arc, { d: arc.d });
		for (const [o, v, q] of [[g.oa, a, f.box(A)], [g.ob, b, f.box(B)]]) set(o, { x: f.X(v.start) - 3, y: q.y - 3, width: Math.max(5, f.X(v.end) - f.X(v.start)) + 6, height: q.h + 6 });
		set(g.el, { opacity });
		const wrong = M.wrong.find((w) => w.reader === r.a || w.reader === r.b), named = `${r.kind} ${r.range.buf}`;
		drawPill(f, key, arc, first || main ? [`${named}${wrong ? ` · ${wrong.how}` : ""}`, named, r.kind] : [r.kind]);
		first = false;
		if (main) drawStall(f, a);
		if (main && wrong) drawValue(f, f.live.get(f.op(wrong.reader).id), wrong);
	}
}
/** The hazard's word, in the gutter beside the arc; of words that would lie on each other, the first stays. */
function drawPill(f, key, arc, wordings) {
	const { L } = f, from = pillStart(f, arc.y), word = fitLabel(wordings, (L.right - L.fade - from) * 0.75 - 18, bold11) || wordings[wordings.length - 1], w = bold11(word) + 18;
	const x = clamp(arc.x, from + w / 2, Math.max(from + w / 2, L.right - L.fade - w / 2));
	const box = { a: x - w / 2 - 2, b: x + w / 2 + 2, top: arc.y - 8.5, end: arc.y + 8.5 };
	if (!f.free(box)) return;
	f.taken.push(box);
	const g = f.group(`pill ${key}`, f.layer.pills, { pill: ["rect", { class: "pill", rx: 8.5, height: 17 }], t: text("s b w", "middle") }, (n) => n.el.classList.add("tl-hz"));
	set(g.pill, { x: x - w / 2, y: arc.y - 8.5, width: w });
	set(g.t, { x, y: arc.y + 4, text: word });
	set(g.el, { opacity: f.path ? 0.3 : 1 });
}
/** How long the first op of the forced race is kept back. */
function drawStall(f, a) {
	const { L, M } = f, st = M.forced.stalled, ra = f.box(a);
	if (st <= 1) return;
	const x0 = Math.max(L.left, f.X(a.start - st) + 2), x1 = f.X(a.start) - 4, word = fitLabel(["stalled, legally", "stalled", ""], x1 - x0 - 16), tw = word ? measure(word) + 12 : 0, mid = (x0 + x1) / 2;
	const g = f.group("stall", f.layer.hazards, { r: ["rect", { rx: 5, class: "stall", fill: `url(#${f.uid}hz)` }], plate, t: text("w", "middle") });
	set(g.r, { x: x0, y: ra.y, width: Math.max(0, x1 - x0), height: ra.h });
	set(g.plate, { x: mid - tw / 2, y: ra.mid - 8.5, width: tw });
	set(g.t, { x: mid, y: ra.mid + 4, text: word });
}
const VALUE = 28;
/** What a reader found and should have found. */
function drawValue(f, v, wrong) {
	if (!v) return;
	const g = f.group("value", f.layer.pills, { r: ["rect", { rx: 6, height: VALUE, class: "value" }], t: text("s b white"), u: text("s white") });
	set(g.t, { text: `reads ${valueOf(f.M, wrong.got)}` });
	set(g.u, { text: `should be ${valueOf(f.M, wrong.want)}` });
	const w = Math.max(bold11(g.t.textContent), m11(g.u.textContent)) + 18, { a: x, top: y } = valueBox(f, v, w);
	set(g.r, { x, y, width: w });
	set(g.t, { x: x + 9, y: y + 12 });
	set(g.u, { x: x + 9, y: y + 24 });
}
/** Its place: the gutter above the reader's lane or the one below, where no word lies, if need be in place of a lane's state; else over the lane, where the names beside blocks give way. */
function valueBox(f, v, w) {
	const { L } = f, r = f.row(v.lane), last = L.right - (f.more() ? L.fade : 0) - w;
	const box = (y, from) => { const a = clamp(f.X(v.end) + 10, from, Math.max(from, last)); return { from, a, b: a + w, top: y, end: y + VALUE }; };
	const ys = [r.y - VALUE - 1, r.end + 1].slice(f.rank(v.lane) ? 0 : 1), gutters = [false, true].flatMap((bare) => ys.map((y) => box(y, pillStart(f, y + VALUE / 2, bare))));
	const at = gutters.find((s) => s.from <= last && f.free(s)) ?? box(r.mid - VALUE / 2, L.left);
	f.taken.push(at);
	return at;
}

/** A happens-before path in ink: numbered edges, drawn one after the other. */
export function drawPath(f) {
	const { path } = f;
	if (!path) return;
	const spot = (i, out) => {
		const o = f.op(i), v = f.live.get(o.id), y = f.box(o).mid;
		if (!v) return { x: -99, y };
		if (!isWork(o)) return { x: f.X(v.end), y };
		return { x: out ? Math.max(f.X(v.start) + 3, f.X(v.end) - 5) : Math.min(f.X(v.end) - 3, f.X(v.start) + 5), y };
	};
	let last = { x: 0, y: 0 };
	path.edges.forEach((e, k) => {
		const p = spot(e.from, true), q = spot(e.to, false), cross = p.y !== q.y, d = cross ? arrowPath(p.x, p.y, q.x, q.y) : `M${p.x},${p.y}L${Math.max(q.x, p.x + 0.1)},${q.y}`, pl = { pathLength: 1, "stroke-dasharray": 1, "stroke-linecap": "round" };
		const g = f.group(`path ${k} ${e.from} ${e.to}`, f.layer.path, { halo: line("bg", 7, pl), p: line("ink", 3, pl), c: ["circle", { r: 8, class: "badge" }], t: text("s b inverse", "middle") }, (n) => {
			const timing = { duration: f.still.matches ? 0 : EDGE_MS, delay: f.still.matches ? 0 : k * EDGE_MS, fill: "backwards", easing: "ease-in-out" };
			for (const x of [n.halo, n.p]) x.animate([{ strokeDashoffset: 1 }, { strokeDashoffset: 0 }], timing);
			for (const x of [n.c, n.t]) x.animate([{ opacity: 0 }, { opacity: 1 }], timing);
		});
		set(g.halo, { d });
		set(g.p, { d });
		// a short edge within a lane has its number outside the lane, on the side the path does not leave by
		const leaves = (x) => f.op(x.from).lane !== f.op(x.to).lane, on = path.edges.slice(k).find(leaves), off = on ?? path.edges.slice(0, k).reverse().find(leaves), tight = !cross && q.x - p.x < 26;
		const below = off && (f.rank(f.op(off.to).lane) < f.rank(f.op(off.from).lane)) === Boolean(on), r = f.row(f.op(e.to).lane), y = tight ? (below ? r.end + 11 : r.y - 11) : (p.y + q.y) / 2;
		const x = Math.max((p.x + q.x) / 2, last.y === y ? last.x + 17 : 0);
		last = { x, y };
		set(g.c, { cx: x, cy: y });
		set(g.t, { x, y: y + 4, text: String(k + 1) });
	});
}
