/**
 * A whole recorded run: overview and zoom, search, steps laid over one another, why anything waits; two runs beside each other. What it is given are
 * columns (the JSON of a Trace, refimpl/timeline/writing/columns.py), or {before, after} of them. This folder draws what was
 * recorded and answers from it alone, with no model. Plain ES modules, no dependencies.
 */
import { clamp, ease, esc, html, lerp } from "../shared/dom.js";
import { drawFigure } from "./draw.js";
import { drawOverview, stepAt } from "./overview.js";
import { worksOf } from "./focus.js";
import { addressOf, fromAddress } from "./address.js";
import { pageState } from "../shared/url_state.js";
import { figures, stepOps } from "./fold.js";
import { showCard } from "./card.js";
import { runKeys, runPointer, stripPointer } from "./hands.js";
import { indexed } from "./index.js";
import { duration } from "./layout.js";
import { spanList } from "./list.js";
import { comparison, skeleton } from "./panel.js";
import { nearest, sameLane, sameName, turn } from "./search.js";
import { unpacked } from "./unpack.js";
import { RunView } from "./view.js";
import { gapAt, nextIdle, whyIdle } from "./why.js";
import { between, facts, headline, laneOf, nameOf, spanLine, summary, whyWords } from "./words.js";

const TWEEN_MS = 260;
let count = 0;

/**
 * Show a run, or two, in `root`; returns a function that takes it down.
 * @param {HTMLElement} root @param {any} shown columns, or {before, after} of columns; or {packed: text} of either
 */
export function mount(root, shown) {
	if (typeof shown?.packed !== "string") return mountPlain(root, shown);
	let down = refused(root, "Opening the run …", "status"), gone = false;
	const open = (make) => { if (!gone) { down(); down = make(); } };
	unpacked(shown).then((plain) => open(() => mountPlain(root, plain)), (error) => open(() => refused(root, `The run cannot be opened: ${error.message}.`)));
	return () => { gone = true; down(); };
}
function mountPlain(root, shown) {
	const pair = shown?.before && shown?.after ? [shown.before, shown.after] : [shown];
	let runs;
	try { runs = pair.map(indexed); } catch (error) { return refused(root, error.message); }
	root.classList.add("tl", "rn");
	root.dataset.lmSuppressShortcuts = "true"; // in JupyterLab the keys are the view's while the focus is in it
	const sides = pair.length > 1 ? (shown.sides ?? ["before", "after"]) : [""], v = new RunView(root, runs, sides), { S } = v, uid = `rn${++count}-`, first = runs[runs.length - 1].columns;
	const still = matchMedia("(prefers-reduced-motion: reduce)"), dark = matchMedia("(prefers-color-scheme: dark)"), strips = new Map();
	let frame = 0, tween = 0, known = 0, spoken = 0, telling = false;

	// ── showing ──
	function draw() {
		frame = 0;
		drawFigure(el.canvas, v);
		drawOverview(el.over, v, strips);
		card();
	}
	const redraw = () => { if (!frame) frame = requestAnimationFrame(draw); };
	/** The window has moved, or what is in hand has changed. */
	function moved() {
		redraw();
		clearTimeout(spoken);
		spoken = setTimeout(() => { if (telling) speak(`${v.at(S.t0)} to ${v.at(S.t0 + S.span)}`); telling = false; label(); list.update(); state.write(addressOf(v)); }, 200);
	}
	const figureWords = () => `${first.title || "Recorded run"}. ${S.fold ? `${v.folds[0].lengths.length.toLocaleString("en")} steps laid over one another, ${duration(v.folds[0].median)} at the median` : `From ${v.at(S.t0)} to ${v.at(S.t0 + S.span)}`}. Lanes: ${v.lanes.join(", ")}.`;
	const label = () => el.fig.setAttribute("aria-label", figureWords());
	function show(t0, span) { cancelAnimationFrame(tween); v.window(t0, span); moved(); }
	/** Go to a window, with continuity where motion is welcome. */
	function glide(t0, span) {
		const from = [S.t0, S.span], begin = performance.now();
		v.window(t0, span);
		const to = [S.t0, S.span];
		if (still.matches) return moved();
		cancelAnimationFrame(tween);
		const step = (now) => {
			const t = clamp((now - begin) / TWEEN_MS, 0, 1), e = ease(t), s = from[1] * (to[1] / from[1]) ** e, middle = lerp(from[0] + from[1] / 2, to[0] + to[1] / 2, e);
			v.window(t < 1 ? middle - s / 2 : to[0], t < 1 ? s : to[1]);
			moved();
			if (t < 1) tween = requestAnimationFrame(step);
		};
		step(begin);
	}
	/** Go there and say so, once at rest. */
	const tell = (t0, span) => { telling = true; glide(t0, span); };
	const speak = (text) => { el.live.textContent = text; };
	const line = (r, i) => `${runs.length > 1 ? `${sides[r]}: ` : ""}${spanLine(runs[r], i, (us) => v.at(us))}`;
	const center = () => S.t0 + S.span / 2;

	// ── acts ──
	const act = {
		show, speak,
		pan: (share) => tell(S.t0 + share * S.span, S.span),
		zoom: (by, at) => { const c = S.cursor && v.inWindow(S.cursor) ? runs[S.cursor.r].start[S.cursor.i] - v.shift[S.cursor.r] : center(), t = at ?? c; (at === undefined ? tell : show)(t - (t - S.t0) / by, S.span / by); },
		fit: () => tell(...v.whole()), toStart: () => tell(v.bounds()[0], S.span), toEnd: () => tell(v.bounds()[1] - S.span, S.span),
		take: (r, i, quiet = false) => {
			S.cursor = { r, i };
			if (S.fold) followStep(r, i);
			const to = v.reveal(S.cursor);
			to ? glide(...to) : moved();
			if (!quiet) speak(line(r, i));
		},
		turnName: (dir) => (S.cursor ? act.take(S.cursor.r, sameName(runs[S.cursor.r], S.cursor.i, dir)) : act.toLane(0)),
		turnLane: (dir) => {
			if (!S.cursor) return act.toLane(0);
			const i = sameLane(runs[S.cursor.r], S.cursor.i, dir);
			i < 0 ? speak("No further span on this lane.") : act.take(S.cursor.r, i);
		},
		toLane: (dir) => {
			const { rows } = v.L, at = S.cursor ? rows.findIndex((q) => q.r === S.cursor.r && q.lane === runs[q.r].lane[S.cursor.i]) : dir < 0 ? rows.length : -1;
			for (let k = at + (dir || 1); k >= 0 && k < rows.length; k += dir || 1) {
				const { r, lane } = rows[k], i = nearest(runs[r], lane, (S.cursor ? runs[S.cursor.r].start[S.cursor.i] - v.shift[S.cursor.r] : center()) + v.shift[r]);
				if (i >= 0) return act.take(r, i);
			}
		},
		nextGap: () => {
			const { r, lane } = S.cursor && !runs[S.cursor.r].host[runs[S.cursor.r].lane[S.cursor.i]] ? { r: S.cursor.r, lane: runs[S.cursor.r].lane[S.cursor.i] } : v.L.rows.find((q) => !runs[q.r].host[q.lane]) ?? {};
			const gap = lane === undefined ? null : nextIdle(runs[r], lane, S.cursor?.r === r ? runs[r].end[S.cursor.i] : S.t0 + v.shift[r]);
			if (!gap) return speak("No further gap on this lane.");
			act.take(r, gap.next, true);
			answerGap({ r, lane, t: (gap.from + gap.to) / 2 });
		},
		pick: (r, i) => {
			const at = S.picks.findIndex((x) => x.r === r && x.i === i);
			S.cursor = { r, i };
			S.gap = null;
			S.picks = at >= 0 ? S.picks.filter((_, k) => k !== at) : S.picks.length > 1 ? [{ r, i }] : [...S.picks, { r, i }];
			answerNow();
			moved();
		},
		pickCursor: () => (S.cursor ? act.pick(S.cursor.r, S.cursor.i) : act.toLane(0)),
		click: (x, y) => { const at = v.under(x, y); if (at?.i >= 0) act.pick(at.r, at.i); else if (at?.call >= 0) act.take(at.r, worksOf(runs[at.r], at.call)[0]); else answerGap(at); },
		zoomAt: (x, y) => { const at = v.under(x, y); if (at?.i >= 0) { S.cursor = { r: at.r, i: at.i }; act.zoomToSpan(); } },
		zoomToSpan: () => { if (S.cursor) { const { r, i } = S.cursor, run = runs[r], us = Math.max(run.end[i] - run.start[i], 1); glide(run.start[i] - v.shift[r] - us, us * 3); } },
		hover: (x, y) => { const at = x < 0 ? null : v.under(x, y); if (at || S.hover) { S.hover = at; el.canvas.style.cursor = at && (at.i >= 0 || at.call >= 0) ? "pointer" : ""; redraw(); } },
		search: (text) => { v.search(text); const n = v.matches(); el.count.textContent = text.trim() ? n.toLocaleString("en") : ""; el.hitKeys.hidden = !n; el.count.hidden = !text.trim(); speak(text.trim() ? `${n} spans match` : ""); moved(); },
		turnHit: (dir) => {
			const r = v.hits[S.cursor?.r ?? 0]?.ids.length ? (S.cursor?.r ?? 0) : v.hits.findIndex((h) => h?.ids.length);
			if (r < 0) return;
			const { ids } = v.hits[r], i = turn(ids, S.cursor?.r === r ? S.cursor.i : -1, dir, () => Math.max(0, ids.findIndex((k) => runs[r].start[k] >= S.t0 + v.shift[r]))), place = `${(ids.indexOf(i) + 1).toLocaleString("en")} of ${ids.length.toLocaleString("en")}`;
			act.take(r, i, true);
			el.count.textContent = place;
			speak(`${place}: ${line(r, i)}`);
		},
		focusSearch: () => { el.query.focus(); el.query.select(); },
		fold: () => {
			if (!v.canFold()) { speak("Choose the op that a step begins with."); return el.mark.focus(); }
			v.fold(!S.fold);
			stepsChanged();
			speak(S.fold ? figureWords() : "Steps unfolded.");
		},
		markSteps: (name) => { v.mark(name); v.canFold() ? v.fold(true) : v.fold(false); v.window(...v.whole()); stepsChanged(); },
		chooseStep: (k) => { S.step = k; strips.clear(); v.place(); if (!S.fold) v.window(S.t0, S.span); stepsChanged(); },
		chooseAt: (x, y) => act.chooseStep(stepAt(v, x, y)),
		openStep: () => { const k = v.step(0), fold = v.folds[0]; v.fold(false); glide(fold.starts[k] - v.origin[0] - fold.lengths[k] * 0.05, fold.lengths[k] * 1.1); stepsChanged(); },
		letGo: () => { S.picks = []; S.cursor = S.gap = null; el.query.value = ""; act.search(""); answerNow(); if (root.contains(document.activeElement)) el.fig.focus({ preventScroll: true }); },
	};
	/** In a folded picture the step that holds the span in hand is the one in ink. */
	function followStep(r, i) {
		const { starts, lengths } = v.folds[r], k = starts.findLastIndex((s) => s <= runs[r].start[i]);
		if (k >= 0 && k < lengths.length && k !== v.step(r)) { S.step = k; v.place(); stepsChanged(); }
	}
	function stepsChanged() {
		const can = v.canFold(), two = runs.length > 1;
		el.fold.disabled = !can;
		el.fold.textContent = el.fold.ariaLabel = S.fold ? "Unfold steps" : "Fold steps";
		el.fold.setAttribute("aria-pressed", S.fold);
		el.mark.value = S.mark;
		el.steps.hidden = !can || !(S.fold || two);
		el.open.hidden = !S.fold;
		if (can) {
			const k = S.fold ? v.step(0) : (S.step ?? 0), fold = v.folds[0];
			el.pick.max = String(Math.min(...v.folds.map((f) => f.lengths.length)) - 1);
			el.pick.value = String(k);
			el.stepOut.textContent = S.fold ? `${k} · ${duration(fold.lengths[k])}${S.step === null ? " · typical" : ""}` : `${k} of both begins at 0`;
			el.pick.setAttribute("aria-valuetext", el.stepOut.textContent);
		}
		el.say.textContent = two ? "" : headline(runs[0], v.folds[0]);
		el.say.hidden = two;
		el.table.hidden = !two;
		if (two) el.table.innerHTML = comparison(sides, runs.map((run, r) => figures(run, can ? v.folds[r] : null)));
		moved();
	}
	const answer = (text) => { el.answer.innerHTML = text; };
	function answerNow() {
		const [p, q] = S.picks;
		if (!p) return answer(`<p class="hint">Pick a span to see what it waited for, and a second one to measure the distance. Pick a gap to ask why.</p>`);
		if (!q) return answer(`<p><b>${esc(nameOf(runs[p.r], p.i))}</b> on ${esc(laneOf(runs[p.r], p.i))}, ${duration(runs[p.r].end[p.i] - runs[p.r].start[p.i])}. ${esc(sentences(p))} Pick a second span to measure.</p>`);
		if (p.r === q.r) return answer(between(runs[p.r], p.i, q.i));
		const us = (x) => runs[x.r].end[x.i] - runs[x.r].start[x.i];
		answer(`<p>${[p, q].map((x) => `<b>${esc(nameOf(runs[x.r], x.i))}</b> ${esc(sides[x.r])}: ${duration(us(x))}`).join("; ")}.</p>`);
	}
	const sentences = ({ r, i }) => facts(runs[r], i, (us) => v.at(us)).map(([k, what]) => `${k[0].toUpperCase()}${k.slice(1)}: ${what}.`).join(" ");
	function answerGap(at) {
		const gap = at && gapAt(runs[at.r], at.lane, at.t);
		S.gap = gap ? { r: at.r, ...gap } : null;
		moved();
		if (gap) answer(`<p><b>${esc(runs[at.r].lanes[at.lane])}</b> idle for <b>${duration(gap.to - gap.from)}</b>: ${esc(whyWords(runs[at.r], whyIdle(runs[at.r], gap)))}.</p>`);
	}

	const card = () => showCard(el.card, v, S.hover ?? (document.activeElement === el.fig && S.cursor && v.inWindow(S.cursor) ? { ...S.cursor, call: -1 } : null));

	// ── life ──
	const el = skeleton(root, uid, act, { steps: v.canFold(), ops: runs.length > 1 ? stepOps(runs[0]).filter((x) => stepOps(runs[1]).some((y) => y.name === x.name)) : stepOps(runs[0]), many: runs.length > 1 });
	Object.assign(act, { help: el.help });
	v.fig = el.fig;
	if (first.caption) root.append(html("p", { className: "tl-cap", textContent: first.caption }));
	const list = spanList(el.list, uid, v, line, { take: act.take, pick: act.pick }), state = pageState(root, first.id || "run", (values) => { fromAddress(v, values); entered(); });
	function entered() { el.query.value = S.query; el.count.textContent = S.query ? v.matches().toLocaleString("en") : ""; el.hitKeys.hidden = !v.matches(); el.count.hidden = !S.query; strips.clear(); answerNow(); stepsChanged(); }
	v.window(...v.whole());
	if (runs.length > 1 && v.canFold()) v.fold(true);
	if (Object.keys(state.read()).length) fromAddress(v, state.read());
	entered();
	label(); // a reader who comes at once finds it named
	el.words.addEventListener("toggle", () => { el.words.lastChild.innerHTML ||= runs.map((run, r) => `${runs.length > 1 ? `<p><b>${esc(sides[r])}</b></p>` : ""}${summary(run, v.folds[r])}`).join(""); });
	el.spans.addEventListener("toggle", () => list.update());
	const unhear = runKeys(root, v, act);
	runPointer(el.canvas, v, act);
	stripPointer(el.over, v, act);
	for (const name of ["focus", "blur"]) el.fig.addEventListener(name, redraw);
	const fit = () => { const w = Math.round(el.fig.clientWidth); if (w && w !== known) { known = w; v.resize(w); strips.clear(); draw(); } }, watch = new ResizeObserver(fit);
	const recolour = () => { v.recolour(); strips.clear(); draw(); }, theme = new MutationObserver(recolour), print = (on) => () => { root.classList.toggle("rn-print", on); recolour(); }, paper = print(true), screen = print(false);
	watch.observe(el.fig);
	theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
	dark.addEventListener("change", recolour);
	addEventListener("beforeprint", paper);
	addEventListener("afterprint", screen);
	fit();
	return () => {
		unhear(); state.stop(); watch.disconnect(); theme.disconnect();
		dark.removeEventListener("change", recolour); removeEventListener("beforeprint", paper); removeEventListener("afterprint", screen);
		cancelAnimationFrame(frame); cancelAnimationFrame(tween); clearTimeout(spoken);
		root.replaceChildren();
		root.classList.remove("tl", "rn");
	};
}
function refused(root, sentence, role = "alert") {
	root.classList.add("tl", "rn");
	root.append(html("p", { className: "tl-say", role, textContent: sentence }));
	return () => { root.replaceChildren(); root.classList.remove("tl", "rn"); };
}

/** The anywidget contract: draw, and draw anew when another run is set. */
function render({ model, el }) {
	let stop = () => {};
	const draw = () => { stop(); const slot = el.appendChild(document.createElement("div")), down = mount(slot, model.get("spec")); stop = () => { down(); slot.remove(); }; };
	draw();
	model.on("change:spec", draw);
	return () => { model.off("change:spec", draw); stop(); };
}
export default { render };
