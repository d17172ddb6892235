/**
 * The page that readers drop a profiler's trace on: one file, or two to compare. Everything happens in the browser; nothing is sent anywhere.
 * This folder is that page: it has ../trace read the file and ../run draw it. Plain ES modules, no dependencies.
 */
import { html } from "../shared/dom.js";
import { examplesFrom, fileOf } from "./examples.js";
import { sectionOf } from "./tables.js";
import { changes, inShort, sections } from "./words.js";
import { dropSkeleton } from "./skeleton.js";
import { readApart, serve } from "./read_client.js";
import { mount } from "../run/run.js";

export { serve };

/** @typedef {{name: string, words: string, result: {columns: any, report: any, notes: string[]}}} Loaded */

/**
 * Make an element the place to drop traces on; returns a function that takes it down.
 *
 * @param {HTMLElement} root
 * @param {{source: string, examples?: string}} options source: a script that calls `serve(self)`, for the worker; examples: address of the script that holds them
 */
export function mountDrop(root, { source, examples = "" }) {
	/** @type {Loaded[]} */ let loaded = [];
	let reading = new AbortController(), unmount = () => {};
	const el = dropSkeleton(root, {
		files: (files) => open([...files].sort((a, b) => a.lastModified - b.lastModified || (a.name < b.name ? -1 : 1))),
		cancel: () => reading.abort(),
		example: () => attempt(async () => { const made = await examplesFrom(examples); loaded = []; await read(made.map(fileOf), made.map(({ words }) => words)); }),
		remove: (at) => { loaded = loaded.filter((_, k) => k !== at); show(); },
		swap: () => { loaded.reverse(); show(); },
	}, Boolean(examples));

	/** Files from a reader: two are before and after, one joins the one that is there. */
	function open(files) {
		if (!files.length) return;
		if (files.length > 2) return el.fail(`${files.length} files at once: drop one, or two to compare.`);
		if (files.length === 2 || loaded.length === 2) loaded = files.length === 2 ? [] : loaded.slice(0, 1);
		attempt(() => read(files));
	}

	async function read(files, words = []) {
		reading.abort();
		reading = new AbortController();
		const { signal } = reading, found = [];
		for (const [at, file] of files.entries()) {
			el.busy(file.name, 0, 0);
			found.push({ name: file.name, words: words[at] ?? "", result: await readApart(file, { source, signal, onProgress: (share, events) => el.busy(file.name, share, events) }) });
		}
		if (!signal.aborted) { loaded = [...loaded, ...found].slice(-2); show(true); }
	}

	/** Runs what may fail; what failed is said in its own words. */
	async function attempt(act) {
		el.clear();
		try {
			await act();
			el.idle();
		} catch (error) {
			el.idle();
			error.name === "AbortError" ? el.say("Reading was cancelled.") : el.fail(error.message);
		}
	}

	/** Draw what is loaded. */
	function show(focus = false) {
		unmount();
		el.chips(loaded.map(({ name }) => name));
		el.results.replaceChildren();
		unmount = () => {};
		if (!loaded.length) return;
		const results = loaded.map(({ result }) => result), [first, second] = results, view = html("div");
		const find = (text) => search(view, text), title = html("h2", { tabIndex: -1, className: "dr-title", textContent: second ? "Before and after" : loaded[0].name });
		const jump = html("button", { type: "button", className: "dr-more", textContent: "To the timeline", onclick: () => toView(view) }), head = html("div", { className: "dr-head" }, [title, jump]);
		const notes = results.flatMap(({ notes: said }) => said).map((text) => html("p", { className: "dr-note", textContent: text }));
		const words = loaded.filter((one) => one.words).map((one, at) => html("p", { className: "dr-said", textContent: `${second ? `${at ? "After" : "Before"}: ` : ""}${one.words}` }));
		el.results.append(head, ...words, ...notes, ...(second ? compared(results, find) : accounts(first.report, find)), view);
		unmount = mount(view, second ? { before: named(first, "before"), after: named(second, "after") } : first.columns);
		el.say(second ? "Two traces read. Their accounts follow." : `${loaded[0].name} read. ${inShort(first.report)}`);
		if (focus) title.focus();
	}

	const accounts = (report, find) => [html("p", { className: "dr-verdict", textContent: inShort(report) }), html("div", { className: "dr-parts" }, sections(report).map((section) => sectionOf(section, find)))];

	function compared(results, find) {
		const [before, after] = results.map(({ report }) => report), whole = sectionOf(changes(before, after), find, "dr-changes");
		const each = [before, after].map((report, at) => html("details", {}, [html("summary", { textContent: `All accounts of ${loaded[at].name} (${at ? "after" : "before"})` }), ...accounts(report, find)]));
		return [whole, ...each];
	}

	return () => { reading.abort(); unmount(); el.stop(); };
}

const named = ({ columns }, id) => ({ ...columns, id: `run-${id}` });

/** Search the view, and bring it into sight. */
function search(view, text) {
	const input = view.querySelector("input[type=search]");
	if (!input) return;
	input.value = text;
	input.dispatchEvent(new Event("input", { bubbles: true }));
	toView(view);
}

function toView(view) {
	view.scrollIntoView({ block: "start", behavior: matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth" });
	view.querySelector("input[type=search]")?.focus({ preventScroll: true });
}
