/** The fixed parts of the page that traces are dropped on: zone, progress, sentences, the files that are loaded. */
import { html } from "../shared/dom.js";

const PRIVATE = "The file stays on your machine: the page reads it in your browser, asks no server for anything, and works offline.";

/**
 * @param {HTMLElement} root
 * @param {{files: (files: FileList) => void, cancel: () => void, example: () => void, remove: (at: number) => void, swap: () => void}} act
 * @param {boolean} hasExample
 */
export function dropSkeleton(root, act, hasExample) {
	const input = html("input", { type: "file", multiple: true, accept: ".json,.gz,application/json,application/gzip", className: "tl-sr", tabIndex: -1, ariaHidden: "true" });
	const pick = button("Choose files…", () => input.click(), "dr-main"), tryIt = button("Try an example", act.example);
	const big = html("p", { className: "dr-big", textContent: "Drop a profiler trace here" });
	const hint = html("p", { className: "dr-hint", textContent: `.json or .json.gz, as export_chrome_trace writes it; two files are compared. ${PRIVATE}` });
	const zone = html("div", { className: "dr-zone" }, [big, html("div", { className: "dr-row" }, hasExample ? [pick, tryIt] : [pick]), hint, input]);
	const bar = html("progress", { max: 1, value: 0 }), words = html("span", { className: "dr-words" }), busy = html("div", { className: "dr-busy", hidden: true }, [words, bar, button("Cancel", act.cancel)]);
	bar.setAttribute("aria-label", "How much of the file is read");
	const live = html("p", { className: "tl-sr" }), wrong = html("p", { className: "dr-wrong", hidden: true }), chips = html("div", { className: "dr-chips" }), results = html("div", { className: "dr-results" });
	live.setAttribute("role", "status");
	wrong.setAttribute("role", "alert");
	input.onchange = () => { act.files(input.files); input.value = ""; };
	root.classList.add("tl", "dr");
	root.replaceChildren(zone, busy, wrong, chips, live, results);
	const unhear = hearDrops(zone, act.files), escape = (event) => { if (event.key === "Escape" && !busy.hidden) act.cancel(); };
	document.addEventListener("keydown", escape);
	return {
		results,
		/** Show how far reading is. */
		busy(name, share, events) {
			busy.hidden = false;
			bar.value = share;
			words.textContent = `Reading ${name}: ${Math.floor(100 * share)} %, ${events.toLocaleString("en")} events`;
		},
		idle() { busy.hidden = true; },
		clear() { wrong.hidden = true; wrong.textContent = ""; },
		fail(text) { wrong.hidden = false; wrong.textContent = text; },
		say(text) { live.textContent = text; },
		/** The files that are loaded, each with a way to drop it. */
		chips(names) {
			root.classList.toggle("dr-full", names.length > 0);
			big.textContent = names.length === 1 ? "Drop a second trace to compare" : "Drop a profiler trace here";
			const sides = names.length > 1 ? ["before", "after"] : [""], parts = names.map((name, at) => chip(name, sides[at], () => { act.remove(at); pick.focus(); }));
			chips.replaceChildren(...parts, ...(names.length > 1 ? [button("Swap", act.swap)] : []));
		},
		stop() { unhear(); document.removeEventListener("keydown", escape); root.replaceChildren(); root.classList.remove("tl", "dr", "dr-full"); },
	};
}

function button(text, onclick, className = "") {
	return html("button", { type: "button", textContent: text, className, onclick });
}

function chip(name, side, remove) {
	const close = button("×", remove, "dr-close");
	close.setAttribute("aria-label", `Put ${name} away`);
	return html("span", { className: "dr-chip" }, [...(side ? [html("b", { textContent: side })] : []), html("span", { textContent: name }), close]);
}

/** Files may be dropped anywhere on the page: beside the zone the browser would leave the page for them. */
function hearDrops(zone, take) {
	const carries = (event) => [...(event.dataTransfer?.types ?? [])].includes("Files");
	const over = (event) => { if (carries(event)) { event.preventDefault(); zone.classList.add("on"); } };
	const leave = (event) => { if (!event.relatedTarget) zone.classList.remove("on"); };
	const drop = (event) => { if (carries(event)) { event.preventDefault(); zone.classList.remove("on"); take(event.dataTransfer.files); } };
	const heard = Object.entries({ dragover: over, dragleave: leave, drop });
	for (const [name, hear] of heard) document.addEventListener(name, hear);
	return () => { for (const [name, hear] of heard) document.removeEventListener(name, hear); };
}
