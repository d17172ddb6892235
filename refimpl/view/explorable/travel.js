/** Moving through time: zoom and pan, the now-line, from block to block, from gap to gap. */
import { clamp } from "../shared/dom.js";
import { isWork } from "../model/order.js";
import { rest } from "./flow.js";
import { isBlock } from "./solve.js";
import { gapAnswer } from "./words.js";

const MAX_ZOOM = 256;

/** @param {any} t the timeline */
export function travel(t) {
	const { S, f } = t, op = (id) => t.M.ops[t.M.at.get(id)];
	function show(t0, span) {
		S.span = clamp(span, t.M.end / MAX_ZOOM, Math.max(t.M.end * 1.04, rest(t).span));
		S.t0 = clamp(t0, 0, Math.max(0, t.M.end * 1.04 - S.span));
		S.free = true;
		t.draw();
		t.showCard();
		t.share();
	}
	/** Zoom by a factor around a time: the pointer's, else the now-line. @param {number} by @param {number} [at] */
	function zoom(by, at = clamp(S.now, S.t0, S.t0 + S.span)) { show(at - (at - S.t0) / by, S.span / by); }
	function goTo(time) {
		S.now = clamp(time, 0, t.M.end);
		S.scrubbed = true;
		if (S.now < S.t0 || S.now > S.t0 + S.span) S.t0 = Math.max(0, S.now - S.span * (S.now < S.t0 ? 0.1 : 0.7));
		t.draw();
		t.share();
	}
	/** Stop at every start of a block, in time order. @param {number} dir */
	function step(dir) {
		const eps = t.M.end / 1e5, stops = t.M.ops.filter((o) => isBlock(o) && (o.end - o.start > eps || isWork(o))).sort((x, y) => x.start - y.start);
		const o = dir > 0 ? stops.find((x) => x.start > S.now + eps) : stops.filter((x) => x.start < S.now - 2 * eps).pop();
		if (o) moveTo(o.id, Boolean(document.activeElement?.closest(".tl-op")));
	}
	function moveTo(id, focus) {
		S.cursor = id;
		S.gap = null;
		goTo(op(id).start + t.M.end / 1e5);
		if (focus) [...f.layer.ops.children].find((el) => el.dataset.id === id)?.focus({ preventScroll: true });
		t.showCard();
	}
	function moveLane(o, dir) {
		const off = (x) => Math.abs(x.start - S.now);
		for (let k = t.lanes.indexOf(o.lane) + dir; k >= 0 && k < t.lanes.length; k += dir) {
			const to = t.M.ops.filter((x) => x.lane === t.lanes[k] && isBlock(x) && x.end > x.start).sort((x, y) => off(x) - off(y))[0];
			if (to) return moveTo(to.id, true);
		}
	}
	/** The next idle stretch after the now-line, of any stream, with its cause; from the last on to the first. */
	function nextGap() {
		const gaps = t.M.gaps.filter((g) => g.to - g.from > t.M.end / 1e4).sort((p, q) => p.from - q.from || t.lanes.indexOf(p.lane) - t.lanes.indexOf(q.lane));
		if (t.M.veiled || !gaps.length) return t.tell(`<p>${t.M.veiled ? "First your guess: then every gap tells its cause." : "No stream stands idle."}</p>`);
		const k = gaps.findIndex((g) => S.asked && g.lane === S.asked.lane && g.from === S.asked.from), g = gaps[k < 0 ? Math.max(0, gaps.findIndex((x) => x.to > S.now)) : (k + 1) % gaps.length];
		S.asked = g;
		S.gap = g;
		S.hover = "";
		goTo((g.from + g.to) / 2);
		t.tell(gapAnswer(t.M, t.U, g));
		t.showCard();
	}
	return { show, zoom, goTo, step, moveLane, nextGap };
}
