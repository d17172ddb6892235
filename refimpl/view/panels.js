/** What stands around the picture: the table of numbers, the keys, the help. */
import { esc, html } from "./dom.js";
import { heldBy } from "./words.js";

const KEYS = [
	["← →", "step from block to block"], ["↑ ↓", "to the lane above or below, on a block"], ["Enter", "pick a block; two picks ask for their order"], ["[ ]", "shorten or lengthen the block in focus"],
	["+ − 0", "zoom in, zoom out, fit"], ["F", "force the bad order, and back; where nothing races, it says so"], ["R", "reset all"], ["Esc", "let go of picks and times"], ["?", "this help"],
];
const SIGNS = [
	["solid bar", "an op runs on its lane"], ["hatched bar", "the host is blocked in a synchronize"], ["filled triangle", "a record, or the end of what is waited for"], ["hollow triangle", "a wait or a synchronize comes after it"],
	["dashed, with a word", "a hazard: nothing orders these two ops"], ["bracket under a lane", "the main stream is idle, and why"], ["thin frame", "one launch of a graph"],
];

/** A short line of keys; the rest is in the help. */
export function keysHint() {
	return html("span", { className: "tl-keys", innerHTML: "Click the picture, then <kbd>←</kbd> <kbd>→</kbd> step&ensp;<kbd>Enter</kbd> pick&ensp;<kbd>+</kbd> <kbd>−</kbd> zoom&ensp;<kbd>F</kbd> force&ensp;<kbd>R</kbd> reset" });
}
/** Help as a native dialog: it holds the focus, and Esc closes it. */
export function helpDialog() {
	const rows = (xs, tag) => xs.map(([k, what]) => `<dt><${tag}>${k}</${tag}></dt><dd>${what}</dd>`).join("");
	const box = html("dialog", { className: "tl-help", ariaLabel: "Help" });
	box.innerHTML = `<h2>Keys</h2><p>Click the picture first, or leave the pointer over it.</p><dl>${rows(KEYS, "kbd")}</dl><h2>Pointer</h2><p>Drag a block’s right edge: its duration. Drag the picture, or Shift and wheel: pan. Ctrl and wheel, or pinch: zoom. Click two blocks: their order.</p><h2>Signs</h2><dl>${rows(SIGNS, "span")}</dl>`;
	box.append(html("button", { type: "button", textContent: "Close", onclick: () => box.close() }));
	box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
	return box;
}

/** Variants × metrics; the difference stands in the chosen row. */
export function numbersTable({ all, spec, U, L, hero, on, before }) {
	const accounts = [...all.values()].map((m) => m.acc), top = Math.max(...accounts.map((a) => a.step)), base = all.get(before), per = accounts.every((a) => a.perStep), W = (us) => `--w:${(us / top).toFixed(3)}`, pct = (x) => `${Math.round(x * 100)} %`;
	const head = per ? ["per step, simulated", "step time"] : ["simulated", "time"];
	// widths in per cent: a wide picture, one in a column of text, a phone
	const cols = [[L.right < 900 ? head[0].replace(", simulated", "") : head[0], 15, 17, 29], [head[1], 26, 27, 20], ["host blocked", 31, 22, 19], [`${hero} idle`, 11, 15, 0], ["GPU idle", 10, 12, 19], ["races", 7, 7, 13]].filter((x) => !L.narrow || x[3]);
	const size = L.narrow ? 3 : L.right < 900 ? 2 : 1;
	const row = (v) => {
		const { acc: a, families, c } = all.get(v.id), chosen = v.id === on, d = chosen && base ? a.step - base.acc.step : 0, t = heldBy(all.get(v.id), spec.topic), some = a.step / 250;
		const most = Object.entries(a.blockedBy).sort((p, q) => q[1] - p[1])[0], where = t > some ? spec.topic.filter((k) => a.blockedBy[k] > some).join(", ") : most && most[1] > some ? most[0] : "";
		const delta = Math.abs(d) >= a.step / 500 ? `<span class="tl-d">${d > 0 ? "+" : "−"}${U.text(Math.abs(d))}</span>` : "";
		return `<tr class="${chosen ? "on" : ""}"><th scope="row">${esc(v.label)}</th><td><span class="tl-n">${U.text(a.step)}</span><span class="tl-m" style="${W(a.step)}"></span>${delta}</td>`
			+ `<td><span class="tl-n">${U.text(a.blocked)}</span><span class="tl-m hatch" style="${W(t)}"></span><span class="tl-m soft" style="${W(a.blocked - t)}"></span><span class="tl-d wide">${where ? `${t > some && a.blocked - t > some ? `${U.text(t)} ` : ""}on ${esc(where)}` : ""}</span></td>`
			+ `<td class="wide">${pct(a.heroIdle)}</td><td>${pct(a.idle)}</td><td${families.length ? ' class="bad"' : ""}>${c.never.size ? "stuck" : families.length}</td></tr>`;
	};
	return `<caption class="tl-sr">Simulated: ${esc(spec.title)}</caption><colgroup>${cols.map((x) => `<col style="width:${x[size]}%">`).join("")}</colgroup><thead><tr>${cols.map((x) => `<th scope="col">${esc(L.narrow ? x[0].replace("host ", "") : x[0])}</th>`).join("")}</tr></thead><tbody>${spec.variants.map(row).join("")}</tbody>`;
}
