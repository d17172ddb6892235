/** What stands around the picture: the table of numbers, the keys, the help. */
import { esc, html, measure } from "../shared/dom.js";
import { heldBy } from "./words.js";

const KEYS = [
	["← →", "step from block to block"], ["↑ ↓", "to the lane above or below, on a block"], ["Enter", "pick a block; two picks ask for their order"], ["[ ]", "shorten or lengthen the block in focus"],
	["+ − 0", "zoom in, zoom out, fit"], ["F", "force the bad order, and back; where nothing races, it says so"], ["W", "the next idle stretch, and why"], ["O", "the fence in hand: off, or on"], [", .", "the fence in hand: earlier, later"], ["U", "undo the last change of a fence"], ["R", "reset all"], ["Esc", "let go of picks, fences and times"], ["?", "this help"],
];
const SIGNS = [
	["solid bar", "an op runs on its lane"], ["hatched bar", "the host is blocked in a synchronize"], ["filled triangle", "a record, or the end of what is waited for"], ["hollow triangle", "a wait or a synchronize comes after it"],
	["dashed, with a word", "a hazard: nothing orders these two ops"], ["bracket under a lane", "the main stream is idle, and why"], ["thin frame", "one launch of a graph"],
];

/** Help as a native dialog: it holds the focus, and Esc closes it. */
export function helpDialog() {
	const rows = (xs, tag) => xs.map(([k, what]) => `<dt><${tag}>${k}</${tag}></dt><dd>${what}</dd>`).join("");
	const box = html("dialog", { className: "tl-help", ariaLabel: "Help" });
	box.innerHTML = `<h2>Keys</h2><p>Click the picture first, or leave the pointer over it.</p><dl>${rows(KEYS, "kbd")}</dl><h2>Pointer</h2><p>Drag a block’s right edge: its duration. Drag an arrow’s end, or a hatched bar: its fence, earlier or later. Drag the picture, or Shift and wheel: pan. Ctrl and wheel, or pinch: zoom. Click two blocks: their order.</p><h2>Signs</h2><dl>${rows(SIGNS, "span")}</dl>`;
	box.append(html("button", { type: "button", textContent: "Close", onclick: () => box.close() }));
	box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
	return box;
}

const NUMBER = 72, DIFFERENCE = 80, SHORTEST_BAR = 24; // px: a time, a difference, padding included
/** Widths of the columns in px: the names take what they need, up to a third; the numbers share the rest. */
function columns(rows, L, heads) {
	const longest = Math.max(...rows.map((r) => measure(r.label, 13, 650)), measure(heads[0], 12)), first = Math.ceil(Math.min(longest + (L.narrow ? 20 : 26), L.full * 0.3));
	// step time, host blocked, main stream idle, GPU idle, races: a wide picture, one in a column of text, a phone
	const shares = L.narrow ? (L.full < 340 ? [28, 26, 0, 20, 18] : [24, 24, 0, 24, 18]) : L.right < 900 ? [36, 25, 17, 13, 9] : [28, 36, 13, 12, 8], whole = shares.reduce((x, y) => x + y), widths = [first, ...shares.map((s) => Math.floor(((L.full - first) * s) / whole))];
	return widths.map((width, k) => ({ head: heads[k], width })).filter((c) => c.width > 0);
}
/**
 * Variants × metrics; the difference stands in the chosen row.
 * @param {{rows: {label: string, m: any, on?: boolean}[], spec: any, U: any, L: any, hero: string, base: any}} what m: a solved variant; base: the one that the chosen is compared with
 */
export function numbersTable({ rows, spec, U, L, hero, base }) {
	const accounts = rows.map((r) => r.m.acc), top = Math.max(...accounts.map((a) => a.step)), per = accounts.every((a) => a.perStep), W = (us) => `--w:${(us / top).toFixed(3)}`, pct = (x) => `${Math.round(x * 100)} %`;
	const brief = L.right < 900, heads = [per ? (brief ? "per step" : "per step, simulated") : "simulated", per ? "step time" : "time", L.narrow ? "blocked" : "host blocked", `${hero} idle`, "GPU idle", "races"];
	const heldOn = (m) => {
		const { acc: a } = m, t = heldBy(m, spec.topic), some = a.step / 250, most = Object.entries(a.blockedBy).sort((p, q) => q[1] - p[1])[0];
		const where = t > some ? spec.topic.filter((k) => a.blockedBy[k] > some).join(", ") : most && most[1] > some ? most[0] : "";
		return where && `${t > some && a.blocked - t > some ? `${U.text(t)} ` : ""}on ${where}`;
	};
	const row = ({ label, m, on }) => {
		const { acc: a, families, c } = m, d = on && base ? a.step - base.acc.step : 0, t = heldBy(m, spec.topic);
		const delta = Math.abs(d) >= a.step / 500 ? `<span class="tl-d">${d > 0 ? "+" : "−"}${U.text(Math.abs(d))}</span>` : "";
		return `<tr class="${on ? "on" : ""}"><th scope="row">${esc(label)}</th><td><span class="tl-n">${U.text(a.step)}</span><span class="tl-m" style="${W(a.step)}"></span>${delta}</td>`
			+ `<td><span class="tl-n">${U.text(a.blocked)}</span><span class="tl-m hatch" style="${W(t)}"></span><span class="tl-m soft" style="${W(a.blocked - t)}"></span><span class="tl-d wide">${esc(heldOn(m))}</span></td>`
			+ `<td class="wide">${pct(a.heroIdle)}</td><td>${pct(a.idle)}</td><td${families.length ? ' class="bad"' : ""}>${c.never.size ? "stuck" : families.length}</td></tr>`;
	};
	// the longest bar leaves room for what stands beside it: the difference, or what the host is held by
	const cols = columns(rows, L, heads), beside = brief ? 0 : 10 + Math.max(...rows.map((r) => measure(heldOn(r.m), 13))), bar = Math.min(110, cols[1].width - NUMBER - DIFFERENCE, cols[2].width - NUMBER - beside);
	return `<caption class="tl-sr">Simulated: ${esc(spec.title)}</caption><colgroup>${cols.map((c) => `<col style="width:${c.width}px">`).join("")}</colgroup><thead><tr>${cols.map((c) => `<th scope="col">${esc(c.head)}</th>`).join("")}</tr></thead><tbody style="--m:${bar < SHORTEST_BAR ? 0 : Math.floor(bar)}px">${rows.map(row).join("")}</tbody>`;
}
