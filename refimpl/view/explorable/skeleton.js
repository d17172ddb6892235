/** What stands around the picture: the choice of a variant, sliders, buttons, the places for sentences. */
import { html } from "../shared/dom.js";
import { helpDialog } from "./panels.js";

export const button = (text, act, aria = text) => html("button", { type: "button", textContent: text, onclick: act, ariaLabel: aria });

function variantChoice(spec, uid, choose) {
	const choice = (v) => {
		const text = html("span", { textContent: v.label });
		text.dataset.t = v.label;
		return html("label", {}, [html("input", { type: "radio", name: uid, value: v.id, onchange: () => choose(v.id) }), text]);
	};
	return html("fieldset", {}, [html("legend", { className: "tl-lab", textContent: spec.choice ?? "Fence" }), html("div", { className: "tl-seg" }, spec.variants.map(choice))]);
}
function slider(t, uid, k, p) {
	const out = html("output"), input = html("input", { type: "range", min: p.min, max: p.max, step: p.step ?? 1, id: `${uid}of-${k}` });
	input.oninput = () => { t.S.us.set(k, +input.value); t.S.dragging = true; t.change(false); };
	input.onchange = () => { t.S.dragging = false; t.change(true); };
	return { k, input, out, p, el: html("div", {}, [html("label", { className: "tl-lab", htmlFor: `${uid}of-${k}` }, [p.label, out]), input]) };
}

/**
 * @param {HTMLElement} root @param {string} uid @param {any} t the timeline @param {any} act what it can do
 * @param {{gate: any, fences: HTMLElement, link: boolean, ask: boolean}} parts
 */
export function skeleton(root, uid, t, act, parts) {
	const { spec } = t, live = (tag, className) => html(tag, { className, ariaLive: "polite" });
	const say = live("p", "tl-say"), bar = html("div", { className: "tl-bar" }), table = html("table"), fig = html("div", { className: "tl-fig" }), cardEl = html("div", { className: "tl-card" });
	const answer = live("div", "tl-ans"), words = html("details", { className: "tl-words", innerHTML: "<summary>The same in words</summary><div></div>" });
	const scrub = html("input", { type: "range", max: 1000, ariaLabel: "Time", oninput: () => act.goTo(t.S.t0 + (scrub.value / 1000) * t.S.span) }), clock = html("output");
	const force = button("Force the bad order", act.toggleForce), ask = button("", act.askPair), idle = button("Why idle?", act.nextGap, "Why idle? Go to the next idle stretch and tell its cause"), reset = button("Reset", act.resetAll), link = button("Copy link", act.copyLink);
	const help = helpDialog(), zooms = html("span", { className: "tl-zoom" }, [button("−", () => act.zoom(0.5), "Zoom out"), button("+", () => act.zoom(2), "Zoom in"), button("?", () => help.showModal(), "Help: keys and signs")]);
	const time = html("div", { className: "tl-row tl-time" }, [button("‹", () => act.step(-1), "Step back"), button("›", () => act.step(1), "Step forward"), clock, scrub]);
	const row = html("div", { className: "tl-row" }, [force, ...(parts.ask ? [ask] : []), idle, reset, ...(parts.link ? [link] : []), zooms]);
	const cap = spec.caption ? [html("p", { className: "tl-cap", textContent: spec.caption })] : [], sliders = (spec.sliders ?? Object.keys(spec.params)).map((k) => slider(t, uid, k, spec.params[k]));
	if (!spec.plain) bar.append(variantChoice(spec, uid, act.choose));
	if (sliders.length) bar.append(html("div", { className: "tl-sliders" }, sliders.map((s) => s.el)));
	fig.append(t.f.svg, cardEl);
	root.classList.add("tl");
	root.dataset.lmSuppressShortcuts = "true"; // in JupyterLab the keys are the timeline's while the focus is in it
	root.tabIndex = -1; // keys go on working after a click beside the controls
	root.append(bar, ...(parts.gate ? [parts.gate.el, parts.gate.said] : []), say, table, fig, time, row, ...cap, parts.fences, answer, words, help);
	return { say, bar, choices: [...bar.querySelectorAll(".tl-seg label")], sliderBox: bar.querySelector(".tl-sliders"), table, fig, cardEl, answer, words, scrub, clock, force, ask, idle, help, time, row, cap, sliders };
}
