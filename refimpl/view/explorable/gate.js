/** The question before the answer, on screen: choices, a button to commit, and then the guess beside what the model says. */
import { esc, html } from "../shared/dom.js";
import { holds } from "./predict.js";

/**
 * @param {string} uid @param {import("./predict.js").Question} q @param {(k: number) => void} commit
 * @returns {{el: HTMLElement, said: HTMLElement, show: (guess: number|null, listing: string) => void, judge: (guess: number, M: any, all: Map<string, any>) => void}}
 */
export function gate(uid, q, commit) {
	const said = html("p", { className: "tl-guess", role: "status", tabIndex: -1 }), list = html("div", { className: "tl-listing" });
	const go = html("button", { type: "button", textContent: "I commit to this: show the answer", disabled: true });
	const radio = (choice, k) => html("label", {}, [html("input", { type: "radio", name: `${uid}guess`, value: k, onchange: () => { go.disabled = false; } }), html("span", { textContent: choice.text })]);
	const box = html("fieldset", { className: "tl-gate" }, [html("legend", {}, [html("b", { textContent: "Predict" }), ` ${q.question}`]), ...q.choices.map(radio), go]);
	const el = html("div", {}, [box, list]);
	const chosen = () => box.querySelector("input:checked");
	go.onclick = () => { if (chosen()) { commit(Number(chosen().value)); said.focus({ preventScroll: true }); } };
	return {
		el, said,
		show: (guess, listing) => {
			el.hidden = guess !== null;
			said.hidden = guess === null;
			if (guess === null && list.innerHTML !== listing) list.innerHTML = listing;
		},
		judge: (guess, M, all, under) => {
			const right = q.choices.filter((c) => holds(c, M, all)), mine = q.choices[guess], texts = (cs) => cs.map((c) => `<b>${esc(c.text)}</b>`).join("; ");
			const told = right.includes(mine) ? `That is so.${right.length > 1 ? ` So is: ${texts(right.filter((c) => c !== mine))}.` : ""}` : right.length ? `The model says otherwise: ${texts(right)}.` : "The model says otherwise, and none of the choices holds.";
			const text = `<span>${under ? `Under <b>${esc(under)}</b> you` : "You"} predicted</span> <b>${esc(mine.text)}</b>. ${told}`;
			if (said.dataset.told !== text) { said.innerHTML = text; said.dataset.told = text; }
		},
	};
}
