/**
 * The timeline: an explorable, or a plain stream program, that answers back. All that is on screen follows from the JSON it is given and from what the
 * reader has changed; the model is in model.js, the picture in figure.js, the sentences in words.js. Plain ES modules, no dependencies.
 */
import { clamp, ease, esc, html, layout, lerp, units } from "./dom.js";
import { sortLanes } from "./lower.js";
import { isWork } from "./order.js";
import { beatOps } from "./accounts.js";
import { bounds, complete, isBlock, question, solve, structure } from "./solve.js";
import { card, facts, forcedAnswer, inWords, laneState, narrate, nothingToForce, opWords, orderAnswer, why } from "./words.js";
import { EDGE_MS } from "./marks.js";
import { Figure } from "./figure.js";
import { keyboard, pointer } from "./gestures.js";
import { helpDialog, keysHint, numbersTable } from "./panels.js";

const TWEEN_MS = 480, MAX_ZOOM = 64;
let instances = 0;

/**
 * Build one timeline in `root`; returns a function that takes it down.
 * @param {HTMLElement} root @param {any} json an explorable or a program
 */
export function mount(root, json) {
	const spec = complete(json), uid = `tl${++instances}-`, structures = new Map(spec.variants.map((v) => [v.id, structure(v.program, spec.hero)]));
	const hero = structures.get(spec.initial).hero, asked = question(spec, [...structures.values()]);
	const fresh = () => ({ variant: spec.initial, us: new Map(), before: spec.before, sel: [], forced: false, scrubbed: false, now: 0, zoom: 1, free: false });
	const S = { ...fresh(), cursor: "", hover: "", gap: null, t0: 0, span: 1, dragging: false };
	const solved = (id, force = false) => solve(structures.get(id), S.us, spec, force), variant = () => spec.variants.find((v) => v.id === S.variant), label = (id) => spec.variants.find((v) => v.id === id).label;
	let M = solved(S.variant), all = new Map(), raf = 0, known = 0;
	const op = (i) => M.ops[i], U = units(M.acc.perStep ? M.acc.step * 2 : M.end), still = matchMedia("(prefers-reduced-motion: reduce)");
	const f = new Figure(uid, spec, S, { born: (el, o) => hands.born(el, o), grip: (el, o) => hands.grip(el, o), gap: hoverGap, leave: () => { S.gap = null; showCard(); }, now: (e) => hands.dragNow(e) });
	const lanes = sortLanes([...structures.values()].flatMap((s) => s.c.lanes)), place = (width) => layout(width, lanes, hero, Boolean(spec.step_op));
	Object.assign(f, { M, U, lanes, L: place(1000) });

	// ── skeleton ──
	const button = (text, act, aria = text) => html("button", { type: "button", textContent: text, onclick: act, ariaLabel: aria });
	const say = html("p", { className: "tl-say", ariaLive: "polite" }), bar = html("div", { className: "tl-bar" }), table = html("table"), fig = html("div", { className: "tl-fig" }), cardEl = html("div", { className: "tl-card" });
	const answer = html("div", { className: "tl-ans", ariaLive: "polite" }), words = html("details", { innerHTML: "<summary>The same in words</summary><div></div>" });
	const scrub = html("input", { type: "range", max: 1000, ariaLabel: "Time", oninput: () => goTo(S.t0 + (scrub.value / 1000) * S.span) }), clock = html("output");
	const force = button("Force the bad order", toggleForce), ask = button("", () => { S.sel = [...asked]; S.forced = false; change(true); }), reset = button("Reset", resetAll);
	const zooms = html("span", { className: "tl-zoom" }, [button("−", () => zoom(0.5), "Zoom out"), button("+", () => zoom(2), "Zoom in")]), help = helpDialog(), helpButton = button("?", () => help.showModal(), "Help: keys and signs");
	fig.append(f.svg, cardEl);
	root.classList.add("tl");
	root.dataset.lmSuppressShortcuts = "true"; // in JupyterLab the keys are the timeline's while the focus is in it
	root.tabIndex = -1; // keys go on working after a click beside the controls
	root.append(bar, say, table, fig, html("div", { className: "tl-row tl-time" }, [button("‹", () => step(-1), "Step back"), button("›", () => step(1), "Step forward"), clock, scrub]),
		html("div", { className: "tl-row" }, [force, ...(asked ? [ask] : []), reset, zooms, html("span", { className: "tl-right" }, [keysHint(), helpButton])]), ...(spec.caption ? [html("p", { className: "tl-cap", textContent: spec.caption })] : []), answer, words, help);
	if (!spec.plain) bar.append(variantChoice());
	const sliders = (spec.sliders ?? Object.keys(spec.params)).map((k) => slider(k, spec.params[k]));
	if (sliders.length) bar.append(html("div", { className: "tl-sliders" }, sliders.map((s) => s.el)));
	bar.hidden = !bar.childElementCount;

	function variantChoice() {
		const choice = (v) => {
			const text = html("span", { textContent: v.label });
			text.dataset.t = v.label;
			return html("label", { title: v.words ?? "" }, [html("input", { type: "radio", name: uid, value: v.id, onchange: () => choose(v.id) }), text]);
		};
		return html("fieldset", {}, [html("legend", { className: "tl-lab", textContent: spec.choice ?? "Fence" }), html("div", { className: "tl-seg" }, spec.variants.map(choice))]);
	}
	function slider(k, p) {
		const out = html("output"), input = html("input", { type: "range", min: p.min, max: p.max, step: p.step ?? 1, id: `${uid}of-${k}` });
		input.oninput = () => { S.us.set(k, +input.value); S.dragging = true; change(false); };
		input.onchange = () => { S.dragging = false; change(true); };
		return { k, input, out, p, el: html("div", {}, [html("label", { className: "tl-lab", htmlFor: `${uid}of-${k}` }, [p.label, out]), input]) };
	}

	// ── time, tweened ──
	/** The span covers the slowest variant, so blocks move and the axis does not. */
	function rest() {
		const { L } = f, per = Math.max(...[...all.values()].map((m) => m.acc.step)), first = beatOps(M.c, spec.step_op);
		if (!M.acc.perStep) return { t0: 0, span: Math.max(...[...all.values()].map((m) => m.end)) * 1.04 };
		const at = op((first[1] ?? first[0]).i);
		return L.narrow ? { t0: Math.max(0, at.start - per * 0.55), span: per * 1.5 } : { t0: 0, span: op(first[0].i).start + per * clamp(L.width / 330, 1.6, 3.08) + per / 20 };
	}
	function flow(smooth) {
		const moves = [], next = new Map(M.ops.map((o) => [o.id, { ...o, alpha: 1 }])), left = (v) => ({ ...v, alpha: 0, ...(v.kind === "sync" && { end: v.start }) });
		for (const [id, to] of next) moves.push([f.live.get(id) ?? left(to), to]);
		for (const [id, v] of f.live) if (!next.has(id) && v.alpha) moves.push([v, left(v)]);
		const w = S.dragging || S.free ? S : rest(), from = { t0: S.t0, span: S.span }, t0 = S.scrubbed || S.sel.length ? S.t0 : w.t0, span = w.span;
		const begin = performance.now(), dur = smooth && !still.matches ? TWEEN_MS : 0;
		cancelAnimationFrame(raf);
		const frame = (now) => {
			const t = dur ? clamp((now - begin) / dur, 0, 1) : 1, e = ease(t);
			f.live = new Map();
			for (const [a, b] of moves) if (t < 1 || b.alpha) f.live.set(b.id, { ...b, start: lerp(a.start, b.start, e), end: lerp(a.end, b.end, e), ready: lerp(a.ready, b.ready, e), alpha: lerp(a.alpha, b.alpha, e) });
			if (!S.free) Object.assign(S, { t0: lerp(from.t0, t0, e), span: lerp(from.span, span, e) });
			draw(t === 1);
			if (t < 1) raf = requestAnimationFrame(frame);
		};
		frame(begin);
	}
	function describe(el) {
		const i = M.at.get(el.dataset.id);
		if (i !== undefined) el.setAttribute("aria-label", opWords(M, U, i));
	}
	function draw(settled = true) {
		f.draw(settled);
		scrub.value = Math.round(((S.now - S.t0) / S.span) * 1000);
		clock.textContent = U.text(S.now);
		scrub.setAttribute("aria-valuetext", `${U.text(S.now)}. ${lanes.map((l) => `${l}: ${laneState(M, l, S.now)}`).join("; ")}`);
	}

	// ── changes ──
	function change(smooth) {
		M = f.M = solved(S.variant, S.forced);
		all = new Map(spec.variants.map((v) => [v.id, S.forced || v.id !== S.variant ? solved(v.id) : M]));
		S.forced &&= Boolean(M.race);
		f.was = S.before === S.variant || S.forced ? null : all.get(S.before);
		f.label = variant().label;
		f.wasLabel = label(S.before);
		if (!S.scrubbed) S.now = teachingMoment();
		answerNow();
		say.innerHTML = narrate(M, U, spec, variant());
		table.hidden = spec.plain;
		if (!spec.plain) table.innerHTML = numbersTable({ all, spec, U, L: f.L, hero, on: S.variant, before: S.before });
		words.lastChild.innerHTML = inWords(M, U, say.innerHTML, variant());
		force.disabled = !M.race;
		force.title = M.race ? "" : nothingToForce(M);
		force.textContent = force.ariaLabel = S.forced ? "Back to the timed order" : "Force the bad order";
		force.className = M.race ? "hz" : "";
		force.setAttribute("aria-pressed", S.forced);
		const pair = (asked ?? []).map((id) => op(M.at.get(id) ?? -1));
		ask.hidden = pair.length < 2 || !pair.every(Boolean);
		if (!ask.hidden) ask.textContent = ask.ariaLabel = `Is ${pair[0].name} before ${pair[1].name}?`;
		for (const { k, input, out, p } of sliders) { input.value = S.us.get(k) ?? p.us; out.textContent = U.text(+input.value); }
		for (const r of bar.querySelectorAll("input[type=radio]")) r.checked = r.value === S.variant;
		flow(smooth);
		for (const el of f.layer.ops.children) describe(el);
	}
	/** The time line rests where the main stream stands idle; if it never does, in the middle of what is shown. */
	function teachingMoment() {
		if (S.forced) return op(M.race.b).end;
		const w = S.free ? S : rest(), g = M.gaps.find((x) => x.lane === M.hero && x.why !== "drained" && x.from >= (M.acc.beats[0] ?? 1) && x.to - x.from > w.span / 250);
		return g ? (g.from + g.to) / 2 : M.acc.beats[1] !== undefined ? M.acc.beats[1] + M.acc.step / 12 : M.end / 2;
	}
	function choose(id) {
		if (id !== S.variant) S.before = S.variant;
		S.variant = id;
		S.forced = false;
		change(true);
	}
	function toggleForce() {
		if (!M.race) {
			S.sel = [];
			change(true);
			answer.innerHTML = `<p>${nothingToForce(M)}</p>`;
			return;
		}
		Object.assign(S, { forced: !S.forced, sel: [], scrubbed: false });
		change(true);
	}
	function letGo() { Object.assign(S, { sel: [], scrubbed: false, forced: false, free: false }); change(true); }
	function resetAll() { Object.assign(S, fresh()); change(true); }
	function pick(id) {
		S.forced = false;
		S.sel = S.sel.includes(id) ? S.sel.filter((x) => x !== id) : S.sel.length > 1 ? [id] : [...S.sel, id];
		change(true);
	}
	function answerNow() {
		f.path = null;
		const [p, q] = S.sel.map((id) => M.at.get(id)).filter((i) => i !== undefined);
		if (S.forced) answer.innerHTML = forcedAnswer(M, U);
		else if (p === undefined) answer.innerHTML = `<p class="hint">Pick two ops to ask whether one is ordered before the other. Drag a block’s right edge to change its duration.<span class="tl-over"> With the pointer over the picture, <kbd>F</kbd> forces the bad order and <kbd>?</kbd> lists all keys.</span></p>`;
		else if (q === undefined) answer.innerHTML = `<p><b>${esc(op(p).name)}</b> picked. Pick a second op.</p>`;
		else {
			const x = orderAnswer(M, p, q, EDGE_MS);
			answer.innerHTML = x.html;
			if (x.edges) f.path = { edges: x.edges, ids: new Set(x.edges.flatMap((e) => [op(e.from).id, op(e.to).id])) };
		}
	}

	// ── moving in time ──
	function show(t0, span) {
		S.span = clamp(span, M.end / MAX_ZOOM / 4, Math.max(M.end * 1.04, rest().span));
		S.t0 = clamp(t0, 0, Math.max(0, M.end * 1.04 - S.span));
		S.free = true;
		draw();
		showCard();
	}
	/** Zoom by a factor around a time: the pointer's, else the now-line. @param {number} by @param {number} [at] */
	function zoom(by, at = clamp(S.now, S.t0, S.t0 + S.span)) { show(at - (at - S.t0) / by, S.span / by); }
	function goTo(t) {
		S.now = clamp(t, 0, M.end);
		S.scrubbed = true;
		if (S.now < S.t0 || S.now > S.t0 + S.span) S.t0 = Math.max(0, S.now - S.span * (S.now < S.t0 ? 0.1 : 0.7));
		draw();
	}
	/** Stop at every start of a block, in time order. @param {number} dir */
	function step(dir) {
		const eps = M.end / 1e5, stops = M.ops.filter((o) => isBlock(o) && (o.end - o.start > eps || isWork(o))).sort((x, y) => x.start - y.start);
		const o = dir > 0 ? stops.find((x) => x.start > S.now + eps) : stops.filter((x) => x.start < S.now - 2 * eps).pop();
		if (o) moveTo(o.id, Boolean(document.activeElement?.closest(".tl-op")));
	}
	function moveTo(id, focus) {
		S.cursor = id;
		goTo(op(M.at.get(id)).start + M.end / 1e5);
		if (focus) [...f.layer.ops.children].find((el) => el.dataset.id === id)?.focus({ preventScroll: true });
		showCard();
	}
	function moveLane(o, dir) {
		const off = (x) => Math.abs(x.start - S.now);
		for (let k = lanes.indexOf(o.lane) + dir; k >= 0 && k < lanes.length; k += dir) {
			const to = M.ops.filter((x) => x.lane === lanes[k] && isBlock(x) && x.end > x.start).sort((x, y) => off(x) - off(y))[0];
			if (to) return moveTo(to.id, true);
		}
	}
	function setDuration(o, us) {
		const b = bounds(spec, o, op(o.graph ?? -1)?.whole ?? o.us);
		S.us.set(o.key, clamp(Math.round(us / 5) * 5, b.min, b.max));
	}
	const lengthOf = (o) => S.us.get(o.key) ?? op(o.graph ?? -1)?.whole ?? o.us;

	// ── the card ──
	function showCard() {
		const id = f.focused(), i = M.at.get(id), v = f.live.get(id), g = S.gap, some = i !== undefined && v;
		cardEl.classList.toggle("on", !S.dragging && Boolean(some || g));
		if (!some && !g) return;
		const [head, sub, rows, a, b] = some ? [op(i).kind === "sync" ? "synchronize" : op(i).name, op(i).lane, facts(M, U, i), v.start, v.end] : [`${g.lane} idle`, "", [["why", why(M, g)]], g.from, g.to];
		cardEl.innerHTML = card(head, sub, b - a, rows, U);
		// above the host lane: a card that covers lanes would hide what it explains
		const { L } = f, mid = (Math.max(f.X(a), L.left) + Math.min(f.X(b), L.right)) / 2;
		cardEl.style.left = `${clamp(mid - cardEl.offsetWidth / 2, 0, Math.max(0, L.right - cardEl.offsetWidth))}px`;
		cardEl.style.bottom = `${L.height - f.row("host").y + (L.narrow ? 24 : 9)}px`;
	}
	function hoverGap(lane, e) {
		const t = f.time(f.px(e));
		S.gap = M.gaps.find((g) => g.lane === lane && g.from <= t && t < g.to) ?? null;
		showCard();
	}

	// ── size ──
	function fit() {
		const w = Math.round(fig.clientWidth);
		if (!w || w === known) return;
		known = w;
		f.L = place(w);
		all = new Map(spec.variants.map((v) => [v.id, solved(v.id)]));
		if (!S.free) Object.assign(S, rest());
		change(false);
	}
	S.cursor = (beatOps(M.c, spec.step_op)[0] ?? M.c.ops.find(isBlockable))?.id ?? "";
	const acts = { change, choose, describe, draw, fitAll: () => { S.free = false; change(true); }, goTo, help, lengthOf, letGo, moveLane, op, pick, resetAll, setDuration, show, showCard, step, toggleForce, zoom };
	const hands = pointer(f, acts);
	const unhear = keyboard(root, f, acts);
	const watch = new ResizeObserver(fit);
	watch.observe(fig);
	fit();
	return () => { unhear(); watch.disconnect(); cancelAnimationFrame(raf); root.replaceChildren(); root.classList.remove("tl"); };
}
const isBlockable = (o) => isWork(o) || o.kind === "sync";

/** The anywidget contract: draw, and draw anew when another spec is set. */
function render({ model, el }) {
	let stop = () => {};
	const draw = () => { stop(); const slot = el.appendChild(document.createElement("div")); const down = mount(slot, model.get("spec")); stop = () => { down(); slot.remove(); }; };
	draw();
	model.on("change:spec", draw);
	return () => { model.off("change:spec", draw); stop(); };
}
export default { render };
