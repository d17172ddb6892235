/** The accounts of a run as tables of a page. */
import { html } from "../shared/dom.js";
import { breakable, shownRows } from "./words.js";

/**
 * A section with its heading, a sentence and a table; long ones show their first rows until the reader asks.
 *
 * @param {import("./words.js").Section} section
 * @param {(text: string) => void} find searches the view
 * @param {string} [className]
 */
export function sectionOf({ title, lead, heads, rows, whole = false }, find, className = "") {
	const head = html("h3", { textContent: title }), kids = [head];
	if (lead) kids.push(html("p", { className: "dr-lead", textContent: lead }));
	if (rows.length) kids.push(...tableOf(title, heads, rows, whole, find));
	return html("section", { className: `dr-part ${className}`.trim() }, kids);
}

function tableOf(title, heads, rows, whole, find) {
	const shown = whole ? rows.length : shownRows(rows.length), body = html("tbody", {}, rows.slice(0, shown).map((row) => rowOf(row, find)));
	const top = html("tr", {}, heads.map((head) => html("th", { scope: "col", className: classOf(head), textContent: head.text })));
	const table = html("table", {}, [html("caption", { className: "tl-sr", textContent: title }), html("thead", {}, [top]), body]);
	if (shown === rows.length) return [table];
	const more = html("button", { type: "button", className: "dr-more", textContent: `Show all ${rows.length}` });
	more.onclick = () => {
		body.append(...rows.slice(shown).map((row) => rowOf(row, find)));
		const next = body.children[shown].firstElementChild;
		next.tabIndex = -1;
		next.focus();
		more.remove();
	};
	return [table, more];
}

function rowOf(row, find) {
	return html("tr", {}, row.map((cell, at) => html(at ? "td" : "th", { className: classOf(cell), ...(at ? {} : { scope: "row" }) }, contentOf(cell, find))));
}

const classOf = ({ figure, room = "" }) => [figure ? "num" : "", room].join(" ").trim();

/** A name that may break over lines; between the words of one like `cudaEventSynchronize` only where there is little room. */
function named(text) {
	const parts = breakable(text), soft = (at) => /[a-z]$/.test(parts[at - 1]) && /^[A-Z]/.test(parts[at]);
	return parts.flatMap((part, at) => (at ? [html("wbr", { className: soft(at) ? "soft" : "" }), part] : [part]));
}

function contentOf(cell, find) {
	const { text, figure, share, blocked, sub, find: query } = cell;
	if (share !== undefined) return [html("span", { className: "dr-fig" }, [barOf(share, blocked), html("span", { textContent: text })])];
	const shown = query === undefined ? (figure ? [text] : named(text)) : [findButton(text, query, find)];
	return sub ? [...shown, html("small", { className: "dr-sub" }, named(sub))] : shown;
}

function findButton(text, query, find) {
	const button = html("button", { type: "button", className: "dr-find", title: "Search the view for it" }, named(text));
	button.onclick = () => find(query);
	return button;
}

function barOf(share, blocked) {
	const bar = html("span", { className: blocked ? "dr-bar hatch" : "dr-bar" });
	bar.style.setProperty("--w", share.toFixed(4));
	bar.setAttribute("aria-hidden", "true");
	return bar;
}
