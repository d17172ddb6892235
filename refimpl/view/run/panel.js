/** What stands around the picture: controls, the comparison, the list of spans for keyboard and ear, the help. */
import { esc, html } from "../shared/dom.js";
import { duration } from "./layout.js";
import { percent } from "./words.js";

const KEYS = [
	["← →", "move the window"], ["+ − 0", "zoom in, zoom out, the whole run"], ["Home End", "to the beginning, to the end"], ["↑ ↓", "to the lane above or below"], ["Shift ← →", "to the span before or after, on the lane"], ["n p", "to the next or previous span of the same name"],
	["g", "to the next long gap of the lane"], ["Enter", "pick the span in hand; two picks measure"], ["z", "zoom to the span in hand"], ["/", "search"], ["f", "fold the steps, and back"], ["Esc", "let go of picks and search"], ["?", "this help"],
];
const SIGNS = [
	["solid bar", "work, or what the host does"], ["hatched bar", "held: the host in a blocking call, a stream by an event"], ["paler colour", "spans narrower than a pixel; the paler, the less of the time"], ["strip under the host", "launch calls"], ["dotted arrow", "from a launch call to its work"], ["triangle", "filled: a record; hollow: a wait"],
];

/** The controls and the places for what is said. @param {HTMLElement} root @param {string} uid @param {any} act what the view can do @param {{steps: boolean, ops: {name: string, times: number}[], many: boolean}} has */
export function skeleton(root, uid, act, has) {
	const button = (text, does, aria = text) => html("button", { type: "button", textContent: text, onclick: does, ariaLabel: aria });
	const query = html("input", { type: "search", id: `${uid}find`, placeholder: "name, call or lane", autocomplete: "off", spellcheck: false, oninput: () => act.search(query.value), onkeydown: (e) => { if (e.key === "Enter") { act.turnHit(e.shiftKey ? -1 : 1); e.preventDefault(); } } });
	const count = html("output", { className: "rn-count" }), hitKeys = html("span", { className: "tl-zoom" }, [button("‹", () => act.turnHit(-1), "Previous match"), button("›", () => act.turnHit(1), "Next match")]);
	const find = html("div", { className: "rn-find" }, [html("label", { className: "tl-lab", htmlFor: query.id, textContent: "Search" }), html("div", {}, [query, hitKeys, count])]);
	const option = (value, text) => html("option", { value, textContent: text });
	const mark = html("select", { id: `${uid}mark`, onchange: () => act.markSteps(mark.value) }, [option("", has.steps ? "as recorded" : "choose …"), ...has.ops.map((x) => option(x.name, `${x.name} × ${x.times.toLocaleString("en")}`))]);
	const fold = button("Fold", act.fold), marks = html("div", { className: "rn-marks" }, [html("label", { className: "tl-lab", htmlFor: mark.id, textContent: "A step begins with" }), html("div", {}, [mark, fold])]);
	const zooms = html("span", { className: "tl-zoom" }, [button("−", () => act.zoom(0.5), "Zoom out"), button("+", () => act.zoom(2), "Zoom in"), button("All", act.fit, "The whole run")]);
	const help = helpDialog(), tools = html("div", { className: "rn-tools" }, [zooms, button("?", () => help.showModal(), "Help: keys and signs")]);
	const say = html("p", { className: "tl-say" }), live = html("p", { className: "tl-sr", role: "status" }), table = html("table", { hidden: true }), over = html("canvas", { className: "rn-over", ariaHidden: "true" });
	const canvas = html("canvas", { ariaHidden: "true" }), card = html("div", { className: "tl-card" }), fig = html("div", { className: "tl-fig rn-fig", tabIndex: 0, role: "application" }, [canvas, card]);
	fig.setAttribute("aria-roledescription", "timeline");
	const pick = html("input", { type: "range", min: 0, step: 1, id: `${uid}step`, oninput: () => act.chooseStep(+pick.value) }), stepOut = html("output"), open = button("Open this step", act.openStep);
	const steps = html("div", { className: "tl-row rn-step" }, [html("label", { className: "tl-lab", htmlFor: pick.id }, ["Step", stepOut]), pick, open]);
	const answer = html("div", { className: "tl-ans", ariaLive: "polite" }), words = html("details", {}, [html("summary", { textContent: "The same in words" }), html("div", { className: "rn-words" })]);
	const list = html("ul", { className: "rn-list", role: "listbox", tabIndex: 0, ariaLabel: "Spans that start in the window" }), spans = html("details", {}, [html("summary", { textContent: "Spans in the window, as a list" }), list]);
	const keys = html("p", { className: "tl-keys rn-keys", innerHTML: "Drag or <kbd>←</kbd> <kbd>→</kbd> pan&ensp;<kbd>Ctrl</kbd> and wheel, pinch or <kbd>+</kbd> <kbd>−</kbd> zoom&ensp;<kbd>/</kbd> search&ensp;<kbd>f</kbd> fold&ensp;<kbd>?</kbd> help" });
	root.append(say, live, table, html("div", { className: "tl-bar rn-bar" }, [find, marks, tools]), over, fig, steps, answer, keys, words, spans, help);
	return { query, count, hitKeys, fold, mark, help, say, live, table, over, canvas, card, fig, pick, stepOut, open, steps, answer, words, list, spans };
}
function helpDialog() {
	const rows = (xs, tag) => xs.map(([k, what]) => `<dt><${tag}>${k}</${tag}></dt><dd>${what}</dd>`).join("");
	const box = html("dialog", { className: "tl-help", ariaLabel: "Help" });
	box.innerHTML = `<h2>Keys</h2><p>Click the picture first, or reach it with Tab.</p><dl>${rows(KEYS, "kbd")}</dl><h2>Pointer</h2><p>Drag: move. Ctrl and wheel, or pinch: zoom. Shift and wheel: move. Double click: zoom to a span. Click two spans: the distance between them. In the strip above: drag the window or its ends.</p><h2>Signs</h2><dl>${rows(SIGNS, "span")}</dl>`;
	box.append(html("button", { type: "button", textContent: "Close", onclick: () => box.close() }));
	box.addEventListener("click", (e) => { if (e.target === box) box.close(); });
	return box;
}

/** Two runs beside each other: a step, what holds the host, what the GPU leaves idle, and the differences; as HTML. @param {string[]} sides @param {any[]} figures of fold.js */
export function comparison(sides, figures) {
	const per = figures.every((f) => f.steps), top = Math.max(...figures.map((f) => f.step)), signed = (us) => (Math.abs(us) < top / 1000 ? "±0" : `${us > 0 ? "+" : "−"}${duration(Math.abs(us))}`), ratio = (a, b) => (a > 0 ? ` (${b > a ? "+" : "−"}${percent(Math.abs(b - a) / a)})` : "");
	const cell = (f) => `<td><span class="tl-n">${duration(f.step)}</span><span class="tl-m" style="--w:${(f.step / top).toFixed(3)}"></span></td><td><span class="tl-n">${duration(f.blocked)}</span><span class="tl-m hatch" style="--w:${(Math.min(f.blocked, top) / top).toFixed(3)}"></span></td><td>${duration(f.idle)}</td>`;
	const [a, b] = figures, difference = ["step", "blocked", "idle"].map((k) => `<td>${signed(b[k] - a[k])}${Math.abs(b[k] - a[k]) < top / 1000 ? "" : `<span class="wide">${ratio(a[k], b[k])}</span>`}</td>`).join("");
	const head = [per ? "per step" : "whole run", per ? "step, median" : "time", "host blocked", "GPU idle"];
	return `<caption class="tl-sr">Two runs compared, ${head[0]}</caption><colgroup><col style="width:26%"><col style="width:25%"><col style="width:26%"><col style="width:23%"></colgroup><thead><tr>${head.map((h) => `<th scope="col">${h}</th>`).join("")}</tr></thead><tbody>${figures.map((f, k) => `<tr><th scope="row">${esc(sides[k])}</th>${cell(f)}</tr>`).join("")}<tr class="on"><th scope="row">difference</th>${difference}</tr></tbody>`;
}
