/** The still part of the picture: lanes, ops, step rows, the axis and the now-line. */
import { fitLabel, line, measure, plate, set, text, tickStep } from "../shared/dom.js";
import { HOST, stem } from "../model/lower.js";
import { isWork } from "../model/order.js";
import { laneState, shortTarget, target } from "./words.js";
import { isBlock } from "./solve.js";

const GRIP = 10, GRIP_BOTH_SIDES = 24;
const m11 = (t) => measure(t, 11), bold11 = (t) => measure(t, 11, 650);

export function drawLanes(f) {
	const { L } = f;
	for (const lane of f.lanes) {
		const r = f.row(lane), what = stateShown(f, lane), g = f.group(`lane ${lane}`, f.layer.frame, { p: ["rect", { class: "bg", height: 14, "pointer-events": "none" }], a: text("b halo"), b: text("s m halo") });
		const fill = `color-mix(in srgb,${f.paint(lane)} 9%,transparent)`;
		const b = f.group(`band ${lane}`, f.layer.bands, { r: ["rect", { rx: 5, fill }] }, (x) => { x.el.onpointermove = x.el.onpointerdown = (e) => f.on.gap(lane, e); x.el.onpointerleave = f.on.leave; });
		set(b.r, { x: L.left, y: r.y, width: L.width, height: r.h });
		const name = L.narrow ? lane : fitLabel([lane], L.left - 8, (t) => measure(t, 12, 650)) || lane;
		set(g.p, { y: r.y - 17, width: L.narrow ? measure(lane, 12, 650) + measure(what, 11) + 16 : 0 });
		set(g.a, { x: 0, y: L.narrow ? r.y - 6 : r.mid - 2, text: name });
		set(g.b, { x: L.narrow ? measure(lane, 12, 650) + 12 : 0, y: L.narrow ? r.y - 6 : r.mid + 12, text: L.narrow ? what : fitLabel([what], L.left - 8, m11) });
	}
}

/** What a lane does now; on a narrow screen, where it stands in the gutter, a forced value may have its place. */
function stateShown(f, lane) {
	const what = laneState(f.M, lane, f.S.now), { y } = f.row(lane), a = measure(lane, 12, 650) + 12;
	return !f.L.narrow || f.free({ a, b: a + measure(what, 11), top: y - 17, end: y - 3 }) ? what : "";
}
export function drawOps(f) {
	for (const v of f.live.values()) {
		if (isBlock(v)) drawOp(f, v);
		if (v.kind === "begin") drawGraph(f, v);
	}
}
/** A thin frame holds the nodes of one graph launch together. */
function drawGraph(f, v) {
	const nodes = [...f.live.values()].filter((o) => o.graphId === v.id && o.kind === "run");
	if (nodes.length < 2) return;
	const r = f.row(v.lane), a = f.X(Math.min(...nodes.map((o) => o.start))), b = f.X(Math.max(...nodes.map((o) => o.end)));
	if (!f.seen(a, b)) return;
	const g = f.group(`graph ${v.id}`, f.layer.faint, { r: ["rect", { class: "graph", rx: 7 }] });
	set(g.r, { x: a - 2.5, y: r.y - 3, width: Math.max(0, b - a) + 5, height: r.h + 6, opacity: v.alpha });
}
/** What stands on a held bar, longest wording first. */
function heldWords(o) {
	if (o.never) return [`stuck: ${target(o)} never comes`, "stuck", ""];
	return [`blocked: ${o.event.replace(/^tail of /, "")}`, `blocked: ${shortTarget(o)}`, "blocked", ""];
}
function drawOp(f, o) {
	const { L, S } = f, held = o.kind === "sync" || o.kind === "wait", x = f.X(o.start), w = Math.max(held ? 0 : 3, f.X(o.end) - x), r = f.box(o), color = f.paint(o.lane);
	if (!f.seen(x, x + w) || (held && w < 1.5)) return;
	const fill = held ? `url(#${f.uid}${o.never ? "hz" : "host"})` : color, rim = o.never ? "var(--tl-hz)" : o.lane === HOST ? "var(--tl-rim)" : color;
	const g = f.group(`op ${o.id}`, f.layer.ops, {
		hit: ["rect", { class: "hit", x: -2 }], under: ["rect", { class: "bg", rx: 5 }], f: ["rect", { class: "f" }],
		plate, t: text("", "middle"), knob: ["rect", { class: "knob", rx: 1, width: 2, height: 12, fill: f.textOn(o.lane) }] }, (n) => f.on.born(n.el, o));
	const later = S.scrubbed && S.now < o.start - S.span / 1e4, unborn = S.scrubbed && S.now < o.ready - S.span / 1e4, drag = !held && !o.never;
	set(g.el, { opacity: o.alpha * (f.path && !f.path.ids.has(o.id) ? 0.28 : 1), transform: `translate(${x.toFixed(2)},${r.y})`, tabindex: o.id === S.cursor ? 0 : -1, "aria-pressed": S.sel.includes(o.id), class: `tl-op${S.sel.includes(o.id) ? " on" : ""}${S.hover === o.id ? " near" : ""}${f.inHand.has(o.id) ? " hand" : ""}` });
	set(g.f, { width: w, height: r.h, rx: Math.min(5, w / 2), fill, stroke: rim, "fill-opacity": unborn ? 0.1 : later ? 0.4 : 1, "stroke-dasharray": unborn ? "3 3" : "none" });
	set(g.under, { width: w, height: r.h });
	const from = Math.max(0, L.left - x), to = Math.min(w, L.right - x), mid = (from + to) / 2, room = to - from;
	const inside = held ? fitLabel(heldWords(o), room - 24) : r.h > 14 ? fitLabel([o.name, stem(o.name)], room - 6) : "";
	const beside = Math.max(w, 5) + 9, outside = inside || held ? "" : outsideLabel(f, o, x + beside), tw = held && inside ? measure(inside) + 14 : 0;
	set(g.t, { text: inside, x: mid, y: r.h / 2 + 4, style: inside && !held ? `fill:${later || unborn ? "var(--tl-ink)" : f.textOn(o.lane)}` : "" });
	if (outside) drawOutside(f, o, outside, x + beside, g.el.getAttribute("opacity"));
	set(g.hit, { width: Math.max(18, w + 4, outside ? beside + m11(outside) + 5 : 0), height: r.h });
	set(g.plate, { x: mid - tw / 2, y: r.h / 2 - 8.5, width: tw });
	set(g.knob, { x: w - 5, y: r.h / 2 - 6, width: drag && w > 14 ? 2 : 0 });
	if (drag && f.seen(x + w)) drawGrip(f, o, x, w, r);
}
/** A block's name beside it, clear of a halo around either block; only beside a block on screen, where the lane is free and no word of a hazard lies. */
function outsideLabel(f, o, x) {
	const r = f.box(o);
	if (o.lane === HOST || r.h < 11 || f.X(o.end) < f.L.left) return "";
	const word = fitLabel([o.name, stem(o.name)], nextStart(f, o) - x - 7, m11);
	return f.free({ a: x, b: x + m11(word), top: r.mid - 6, end: r.mid + 6 }) ? word : "";
}
/** Where the right edge is taken hold of: above all else, on both sides of the edge where the block is wide, and never over most of the next. */
function drawGrip(f, o, x, w, r) {
	const outside = w < GRIP_BOTH_SIDES ? 0 : Math.min(GRIP / 2, ...nextWidths(f, o, x + w)), inside = Math.min(GRIP - outside, w / 2);
	const g = f.group(`grip ${o.id}`, f.layer.grips, { r: ["rect", { class: "grip" }] }, (n) => f.on.grip(n.r, o));
	set(g.r, { x: x + w - inside, y: r.y, width: inside + outside, height: r.h });
}
/** A third of each block that begins where the grip would reach. */
function nextWidths(f, v, end) {
	const near = (o) => o !== v && o.lane === v.lane && isBlock(o) && f.X(o.start) >= end - 1 && f.X(o.start) < end + GRIP / 2;
	return [...f.live.values()].filter(near).map((o) => Math.max(1, (f.X(o.end) - f.X(o.start)) / 3));
}
/** It stands above the arrows that cross the lane, in a halo of the lane's own tint. */
function drawOutside(f, o, word, x, opacity) {
	const g = f.group(`name ${o.id}`, f.layer.names, { t: text("s m halo") });
	set(g.t, { text: word, x, y: f.box(o).mid + 4, opacity, style: `stroke:color-mix(in srgb,${f.paint(o.lane)} 9%,var(--tl-bg))` });
}
/** Where the lane is free no longer: at the next block, or at the stall before it. */
function nextStart(f, v) {
	const { M, S } = f, stalled = (o) => (S.forced && M.forced && M.at.get(o.id) === M.race.a ? M.forced.stalled : 0);
	let x = f.L.right;
	for (const o of f.live.values()) if (o.lane === v.lane && isWork(o) && o.start > v.start) x = Math.min(x, f.X(o.start - stalled(o)));
	return x;
}

/** The starts of the steps of a solved variant; of the one on screen, where they are in this frame. */
function beats(f, m) {
	return m.ops.filter((o) => isWork(o) && stem(o.name) === f.spec.step_op).map((o) => (m === f.M ? f.live.get(o.id) ?? o : o).start);
}
/** Each step's length, and the same for the variant before it, on one axis; the shorter row is continued by the difference. */
export function drawSteps(f) {
	const { L, M, U } = f, now = f.spec.step_op && !M.veiled ? beats(f, M) : [], was = f.was && now.length > 1 ? beats(f, f.was) : null;
	if (now.length < 2) return;
	let n = now.length - 1;
	const differ = (k) => Math.abs(f.X(now[k]) - f.X(was[k])) >= 5, fits = (k) => was[k] !== undefined && Math.max(f.X(now[k]), f.X(was[k])) <= L.right - (differ(k) ? 128 + (f.more() ? L.fade : 0) : 0);
	if (was) while (n > 1 && !fits(n)) n--;
	const rows = [[now, f.label, ""], ...(was ? [[was, f.wasLabel, "compared with "]] : [])];
	rows.forEach(([at, what, pre], k) => {
		const y = L.steps + k * 18, last = was ? n : at.length - 1;
		const whole = m11(pre + what) <= L.left - 8, name = f.group(`rowname ${k}`, f.layer.frame, { a: text(`s ${k ? "m" : "b"}`), b: text("s m") });
		set(name.a, { x: 0, y: y + 4, text: L.narrow ? "" : whole ? pre + what : pre.trim() || fitLabel([what], L.left - 8, m11) });
		set(name.b, { x: 0, y: y + 17, text: L.narrow || whole || !pre ? "" : fitLabel([what], L.left - 8, m11) });
		for (let j = 0; j < last; j++) stepBar(f, k, j, at[j], at[j + 1], what);
	});
	if (was) drawDifference(f, now, was, n, U);
}
function stepBar(f, k, j, from, to, what) {
	const { L, U } = f, y = L.steps + k * 18, a = Math.max(f.X(from), L.left), b = Math.min(f.X(to), L.right);
	if (b - a < 12) return;
	const g = f.group(`step ${k} ${j}`, f.layer.steps, { p: line(k ? "mute" : "ink", 1.25, { opacity: k ? 0.6 : 1 }), t: text(`s ${k ? "m" : ""}`, "middle") }), len = U.num(to - from);
	const word = fitLabel([...(k ? (L.narrow ? [`compared with ${what}: ${len}`, `${what}: ${len}`] : []) : [`step ${j} · ${len}`]), len, ""], b - a - 24, m11), half = word ? m11(word) / 2 + 5 : 0, c = (a + b) / 2;
	set(g.p, { d: `M${a + 1.5},${y}${f.X(from) >= L.left ? "m0,-4v8m0,-4" : ""}H${c - half}M${c + half},${y}H${b - 1.5}${f.X(to) <= L.right ? "m0,-4v8" : ""}` });
	set(g.t, { x: c, y: y + 4, text: word });
}
function drawDifference(f, now, was, n, U) {
	const { L } = f, d = now[n] - was[n], y = L.steps + (d > 0 ? 18 : 0), a = f.X(Math.min(now[n], was[n])), b = f.X(Math.max(now[n], was[n]));
	if (!(b - a >= 5) || n < 1 || a > L.right - 20) return;
	const g = f.group("diff", f.layer.steps, { p: line("ink", 2.5), t: text("s b halo") }), dir = d > 0 ? 1 : -1, tip = d > 0 ? b - 1 : a + 3;
	const word = `${d > 0 ? "+" : "−"}${U.text(Math.abs(d))} in ${n} step${n > 1 ? "s" : ""}`, wide = bold11(word), fits = b + 8 + wide < L.right - (f.more() ? L.fade : 0);
	set(g.p, { d: `M${a + 3},${y}H${b - 1}M${tip - 5 * dir},${y - 4}L${tip},${y}l${-5 * dir},4` });
	set(g.t, { x: fits ? b + 8 : Math.max(a, L.left + wide), y: fits ? y + 4 : y + (d > 0 ? 16 : -8), "text-anchor": fits ? "start" : "end", text: word });
}

export function drawAxis(f) {
	const { L, S, U } = f, every = tickStep(S.span, L.width), per = U.unit === "ms" ? 1000 : 1;
	const g = f.group("axis", f.layer.axis, { p: line("line", 1), hit: ["rect", { class: "tl-axis", height: 28 }] }, (n) => { n.hit.onpointerdown = f.on.now; });
	set(g.p, { d: `M${L.left},${L.axis}H${L.right}` });
	set(g.hit, { x: L.left, y: L.axis - 6, width: L.width });
	for (let t = Math.ceil(S.t0 / every) * every; f.X(t) < L.right - 24; t += every) {
		const k = f.group(`tick ${t}`, f.layer.axis, { p: line("line", 1), t: text("s m", "middle") }), x = f.X(t);
		set(k.p, { d: `M${x},${L.axis}v5` });
		set(k.t, { x: Math.max(x, 5), y: L.axis + 18, text: `${+(t / per).toFixed(3)}${f.X(t + every) < L.right - 24 ? "" : ` ${U.unit}`}` });
	}
	const x = f.X(S.now), n = f.group("now", f.layer.now, { p: line("ink", 1, { opacity: 0.55 }), k: ["path", { class: "ink" }] });
	set(n.el, { display: x >= L.left - 1 && x <= L.right ? "inline" : "none" });
	set(n.p, { d: `M${x},${f.row(HOST).y - 4}V${L.axis}` });
	set(n.k, { d: `M${x},${L.axis - 1}l5,8h-10z` });
}
