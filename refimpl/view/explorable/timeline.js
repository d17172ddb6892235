/**
 * The timeline: an explorable, or a plain stream program, that answers back. All that is on screen follows from the JSON it is given and from what the
 * reader has changed. This folder holds what draws it, words it and puts it into the reader's hands: the picture in figure.js, the sentences in
 * words.js; what a program means is in ../model. Plain ES modules, no dependencies.
 */
import { clamp, esc, layout, units } from "../shared/dom.js";
import { sortLanes } from "../model/lower.js";
import { isWork } from "../model/order.js";
import { beatOps } from "../model/accounts.js";
import { bounds, complete, edited, missingFence, question, sameRaces, solve, structure } from "./solve.js";
import { editWords, forcedAnswer, inWords, laneState, listing, narrate, nothingToForce, opWords, orderAnswer } from "./words.js";
import { EDGE_MS } from "./marks.js";
import { Figure } from "./figure.js";
import { ahead, flow, rest } from "./flow.js";
import { travel } from "./travel.js";
import { cards } from "./cards.js";
import { keyboard, pointer } from "./gestures.js";
import { numbersTable } from "./panels.js";
import { button, skeleton } from "./skeleton.js";
import { fencePanel, inHand } from "./fence_panel.js";
import { questionOf, veil } from "./predict.js";
import { gate } from "./gate.js";
import { pageState } from "../shared/url_state.js";
import { stateOf, valuesOf } from "./sharing.js";

let instances = 0;

/**
 * Build one timeline in `root`; returns a function that takes it down.
 * @param {HTMLElement} root @param {any} json an explorable or a program @param {{address?: boolean}} [options] address: false where the page's address is not ours to change
 */
export function mount(root, json, { address = true } = {}) {
	const spec = complete(json), uid = `tl${++instances}-`, given = new Map(spec.variants.map((v) => [v.id, { ...edited(structure(v.program, spec.hero), v.program, [], spec.hero), program: v.program }]));
	const hero = given.get(spec.initial).hero, asked = question(spec, [...given.values()]), structures = new Map();
	const fresh = () => ({ variant: spec.initial, us: new Map(), edits: new Map(), before: spec.before, sel: [], fence: null, forced: false, scrubbed: false, now: 0, free: false, guess: null });
	const S = { ...fresh(), cursor: "", hover: "", gap: null, asked: null, t0: 0, span: 1, dragging: false };
	const t = { S, spec, given, hero, uid, raf: 0, all: new Map(), still: matchMedia("(prefers-reduced-motion: reduce)"), draw, change, share, tell: (text) => { ui.answer.innerHTML = text; } };
	let known = 0, tellInWords = () => {};
	const variant = () => spec.variants.find((v) => v.id === S.variant), editsNow = () => S.edits.get(S.variant) ?? [], byDurations = { text: "", solved: new Map() };
	/** A variant as given, solved once for each set of durations. */
	function solveGiven(id) {
		const text = JSON.stringify([...S.us]), { solved } = byDurations;
		if (text !== byDurations.text) { solved.clear(); byDurations.text = text; }
		if (!solved.has(id)) solved.set(id, solve(given.get(id), S.us, spec));
		return solved.get(id);
	}

	/** The structure of a variant under the reader's edits, made once for each set of them. */
	function structureNow() {
		const edits = editsNow();
		if (!edits.length) return given.get(S.variant);
		if (structures.get(S.variant)?.edits !== edits) structures.set(S.variant, { ...edited(given.get(S.variant), variant().program, edits, spec.hero), edits });
		return structures.get(S.variant);
	}
	const solvedNow = (force = false) => (force || editsNow().length ? solve(structureNow(), S.us, spec, force) : solveGiven(S.variant)), solveAll = () => new Map(spec.variants.map((v) => [v.id, v.id === S.variant ? solvedNow() : solveGiven(v.id)]));
	t.all = solveAll();
	t.M = t.all.get(S.variant);
	t.lanes = sortLanes([...given.values()].flatMap((s) => s.c.lanes));
	t.U = units(t.M.acc.perStep ? t.M.acc.step * 2 : t.M.end);
	const q = questionOf(spec, t.all), start = t.all, hidden = () => Boolean(q) && S.guess === null, place = (width) => layout(width, t.lanes, hero, Boolean(spec.step_op) && !hidden());
	const f = (t.f = new Figure(uid, spec, S, { born: (el, o) => hands.born(el, o), grip: (el, o) => hands.grip(el, o), fence: (el, o) => hands.fence(el, o), gap: (lane, e) => card.hoverGap(lane, e), leave: () => { S.gap = null; card.showCard(); }, now: (e) => hands.dragNow(e) }));
	Object.assign(f, { M: t.M, U: t.U, lanes: t.lanes, L: place(1000), inHand: new Set() });

	// ── what stands around the picture ──
	const trip = travel(t), fences = fencePanel(uid, t), asking = q && gate(uid, q, (k) => { S.guess = k; change(false); });
	const acts = { ...trip, change, choose, copyLink, describe, draw: () => draw(), fences, fitAll: () => { S.free = false; change(true); }, lengthOf, letGo, op: (i) => t.M.ops[i], pick, resetAll, setDuration, showCard: () => card.showCard(), toggleForce, askPair: () => { S.sel = [...asked]; S.forced = false; change(true); } };
	const ui = skeleton(root, uid, t, acts, { gate: asking, fences: fences.el, link: address, ask: Boolean(asked) }), card = cards(t, ui.cardEl);
	Object.assign(t, { ui, showCard: card.showCard });
	acts.help = ui.help;
	ui.words.addEventListener("toggle", () => tellInWords());
	const page = address ? pageState(root, String(spec.id ?? spec.title), (values) => { restore(values); change(true); root.scrollIntoView({ block: "nearest" }); }) : null;

	function describe(el) {
		const i = t.M.at.get(el.dataset.id);
		if (i !== undefined) el.setAttribute("aria-label", opWords(t.M, t.U, i));
	}
	function draw(settled = true) {
		const held = root.contains(document.activeElement);
		f.draw(settled);
		// the block that had the focus may have moved out of sight
		if (held && !root.contains(document.activeElement)) root.focus({ preventScroll: true });
		ui.scrub.value = Math.round(((S.now - S.t0) / S.span) * 1000);
		ui.clock.textContent = t.U.text(S.now);
		ui.scrub.setAttribute("aria-valuetext", `${t.U.text(S.now)}. ${t.lanes.map((l) => `${l}: ${laneState(t.M, l, S.now)}`).join("; ")}`);
	}
	function share() { page?.write(valuesOf(S, spec)); }

	// ── changes ──
	function change(smooth) {
		const shown = solvedNow(S.forced && !hidden()), base = S.forced ? solvedNow() : shown, changed = editsNow().length > 0;
		t.all = new Map(spec.variants.map((v) => [v.id, v.id === S.variant ? base : solveGiven(v.id)]));
		t.M = f.M = hidden() ? veil(shown) : shown;
		S.forced &&= Boolean(t.M.race);
		const asGiven = changed ? solveGiven(S.variant) : null;
		f.was = S.forced || hidden() ? null : asGiven ?? (S.before === S.variant ? null : t.all.get(S.before));
		const now = changed ? { id: "", label: spec.plain ? "changed" : `${variant().label}, changed`, words: "" } : variant();
		f.label = changed ? "changed" : now.label;
		f.wasLabel = changed ? "as given" : spec.variants.find((v) => v.id === S.before).label;
		f.inHand = inHand(t.M, S.fence);
		f.L = place(known || 1000);
		if (!S.scrubbed) S.now = teachingMoment();
		answerNow();
		sentences(now, asGiven);
		controls();
		flow(t, smooth);
		for (const el of f.layer.ops.children) describe(el);
		share();
	}
	function sentences(now, asGiven) {
		const { M, U } = t, veiled = hidden();
		asking?.show(S.guess, q.picture ? "" : listing(M, U));
		if (q && !veiled) asking.judge(S.guess, start.get(q.variant), start, q.variant === S.variant ? "" : spec.variants.find((v) => v.id === q.variant).label);
		for (const el of [ui.say, ui.words, ui.answer, ui.row, ...ui.cap]) el.hidden = veiled;
		ui.bar.hidden = !ui.bar.childElementCount || (veiled && q.about !== "fastest");
		if (ui.sliderBox) ui.sliderBox.hidden = veiled;
		for (const el of [ui.fig, ui.time]) el.hidden = veiled && !q.picture;
		ui.table.hidden = veiled || (spec.plain && !asGiven);
		ui.say.innerHTML = veiled ? "" : narrate(M, U, spec, now, editWords(M, editsNow()));
		const alt = veiled ? q.question : spec.alt && S.variant === spec.initial && !asGiven && !S.us.size ? spec.alt : ui.say.textContent;
		f.svg.setAttribute("aria-label", `${spec.title}. ${alt}`);
		const rows = spec.variants.flatMap((v) => (v.id === S.variant && asGiven ? [{ label: now.label, m: t.all.get(v.id), on: true }, { label: spec.plain ? "as given" : `${v.label}, as given`, m: asGiven }] : [{ label: v.label, m: t.all.get(v.id), on: v.id === S.variant }]));
		ui.table.innerHTML = ui.table.hidden ? "" : numbersTable({ rows, spec, U, L: f.L, hero, base: asGiven ?? t.all.get(S.before) });
		tellInWords = () => { ui.words.lastChild.innerHTML = ui.words.open && !veiled ? inWords(M, U, ui.say.innerHTML, now) : ""; };
		tellInWords();
	}
	function controls() {
		const { M, U } = t;
		ui.force.disabled = !M.race;
		ui.force.title = M.race ? "" : nothingToForce(M);
		ui.force.textContent = ui.force.ariaLabel = S.forced ? "Back to the timed order" : "Force the bad order";
		ui.force.className = M.race ? "hz" : "";
		ui.force.setAttribute("aria-pressed", S.forced);
		const pair = (asked ?? []).map((id) => M.ops[M.at.get(id) ?? -1]);
		ui.ask.hidden = pair.length < 2 || !pair.every(Boolean);
		if (!ui.ask.hidden) ui.ask.textContent = ui.ask.ariaLabel = `Is ${pair[0].name} before ${pair[1].name}?`;
		for (const { k, input, out, p } of ui.sliders) { input.value = S.us.get(k) ?? p.us; out.textContent = U.text(+input.value); }
		ui.choices.forEach((el, k) => { el.querySelector("input").checked = spec.variants[k].id === S.variant; el.title = hidden() ? "" : spec.variants[k].words ?? ""; });
		fences.draw();
	}
	/** The time line rests where the main stream stands idle; if it never does in what is shown, early in step 1 or in the middle. Forced: where what runs too early ends. */
	function teachingMoment() {
		const { M } = t, w = ahead(t), { fade, width } = f.L, shown = (at) => at > w.t0 && at < w.t0 + w.span * (1 - fade / width), middle = (x) => (x.from + x.to) / 2;
		const g = M.gaps.find((x) => x.lane === M.hero && x.why !== "drained" && x.from >= (M.acc.beats[0] ?? 1) && x.to - x.from > w.span / 250 && shown(middle(x)));
		const at = S.forced ? M.ops[M.race.b].end : g ? middle(g) : M.acc.beats[1] !== undefined ? M.acc.beats[1] + M.acc.step / 12 : M.end / 2;
		return shown(at) ? at : w.t0 + w.span / 2;
	}
	function choose(id) {
		if (id !== S.variant) S.before = S.variant;
		Object.assign(S, { variant: id, forced: false, gap: null });
		change(true);
	}
	function toggleForce() {
		if (t.M.race) return void (Object.assign(S, { forced: !S.forced, sel: [], scrubbed: false }), change(true));
		S.sel = [];
		change(true);
		if (!hidden()) t.tell(`<p>${nothingToForce(t.M)}</p>`);
	}
	function letGo() { Object.assign(S, { sel: [], fence: null, scrubbed: false, forced: false, free: false, gap: null, asked: null }); change(true); }
	function resetAll() { Object.assign(S, fresh(), { guess: S.guess }); change(true); }
	function restore(values) { Object.assign(S, stateOf(values, { ...fresh(), guess: S.guess }, spec, q?.choices.length ?? 0)); }
	function pick(id) {
		if (hidden()) return;
		S.forced = false;
		fences.takeOp(id, fences.el.open);
		S.sel = S.sel.includes(id) ? S.sel.filter((x) => x !== id) : S.sel.length > 1 ? [id] : [...S.sel, id];
		change(true);
	}
	function answerNow() {
		const { M } = t;
		f.path = null;
		const [p, r] = S.sel.map((id) => M.at.get(id)).filter((i) => i !== undefined);
		if (S.forced) t.tell(forcedAnswer(M, t.U));
		else if (p === undefined) t.tell(`<p class="hint">Pick two ops to ask whether one is ordered before the other. Drag a block’s right edge to change its duration, an arrow’s end to move its fence.<span class="tl-over"> With the pointer over the picture, <kbd>F</kbd> forces the bad order and <kbd>?</kbd> lists all keys.</span></p>`);
		else if (r === undefined) t.tell(`<p><b>${esc(M.ops[p].name)}</b> picked. Pick a second op.</p>`);
		else {
			const x = orderAnswer(M, p, r, EDGE_MS), missing = x.edges ? null : missingFence(M, p, r);
			t.tell(x.html);
			if (missing) ui.answer.append(button("Add the missing fence", () => fences.add(sameRaces(M, missing))));
			if (x.edges) f.path = { edges: x.edges, ids: new Set(x.edges.flatMap((e) => [M.ops[e.from].id, M.ops[e.to].id])) };
		}
	}
	function lengthOf(o) { return S.us.get(o.key) ?? t.M.ops[o.graph ?? -1]?.whole ?? o.us; }
	function setDuration(o, us) {
		const b = bounds(spec, o, t.M.ops[o.graph ?? -1]?.whole ?? o.us);
		S.us.set(o.key, clamp(Math.round(us / 5) * 5, b.min, b.max));
	}
	function copyLink() {
		const link = page.link(valuesOf(S, spec)), told = () => t.tell("<p>The link is copied: it shows what you see now.</p>"), shown = () => t.tell(`<p>Copy this link: it shows what you see now.</p><p><code>${esc(link)}</code></p>`);
		try { navigator.clipboard.writeText(link).then(told, shown); } catch { shown(); }
	}

	// ── size ──
	function fit() {
		const w = Math.round(ui.fig.clientWidth);
		if (!w || w === known) return;
		known = w;
		f.L = place(w);
		if (!S.free) Object.assign(S, rest(t));
		change(false);
		card.showCard();
	}
	S.cursor = (beatOps(t.M.c, spec.step_op)[0] ?? t.M.c.ops.find((o) => isWork(o) || o.kind === "sync"))?.id ?? "";
	const hands = pointer(f, acts), unhear = keyboard(root, f, acts), watch = new ResizeObserver(fit), values = page?.read() ?? {}, called = Object.keys(values).length > 0;
	if (called) restore(values);
	fit();
	if (!known) change(false);
	if (called) root.scrollIntoView({ block: "nearest" });
	watch.observe(ui.fig);
	return () => { unhear(); watch.disconnect(); page?.stop(); cancelAnimationFrame(t.raf); root.replaceChildren(); root.classList.remove("tl"); };
}

/** The anywidget contract: draw, and draw anew when another spec is set. A notebook's address belongs to the lab, not to the timeline. */
function render({ model, el }) {
	let stop = () => {};
	const draw = () => { stop(); const slot = el.appendChild(document.createElement("div")), down = mount(slot, model.get("spec"), { address: false }); stop = () => { down(); slot.remove(); }; };
	draw();
	model.on("change:spec", draw);
	return () => { model.off("change:spec", draw); stop(); };
}
export default { render };
