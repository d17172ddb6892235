/** The card beside the pointer or the focus: what an op reads and writes and waited for, or why a lane stands idle. */
import { clamp } from "../shared/dom.js";
import { HOST } from "../model/lower.js";
import { card, facts, why } from "./words.js";

/** @param {any} t the timeline @param {HTMLElement} el */
export function cards(t, el) {
	const { S, f } = t;
	function showCard() {
		const { M } = t, id = f.focused(), i = M.at.get(id), v = f.live.get(id), g = S.gap, some = i !== undefined && v;
		el.classList.toggle("on", !S.dragging && Boolean(some || g));
		if (!some && !g) return;
		const o = M.ops[i], [head, sub, rows, a, b] = some ? [o.kind === "sync" ? "synchronize" : o.name, o.lane, facts(M, t.U, i), v.start, v.end] : [`${g.lane} idle`, "", [["why", why(M, g)]], g.from, g.to];
		el.innerHTML = card(head, sub, b - a, rows, t.U);
		// above the host lane: a card that covers lanes would hide what it explains
		const { L } = f, mid = (Math.max(f.X(a), L.left) + Math.min(f.X(b), L.right)) / 2;
		el.style.left = `${clamp(mid - el.offsetWidth / 2, 0, Math.max(0, L.right - el.offsetWidth))}px`;
		el.style.bottom = `${L.height - f.row(HOST).y + (L.narrow ? 24 : 9)}px`;
	}
	function hoverGap(lane, e) {
		const at = f.time(f.px(e));
		S.gap = t.M.gaps.find((g) => g.lane === lane && g.from <= at && at < g.to) ?? null;
		showCard();
	}
	return { showCard, hoverGap };
}
