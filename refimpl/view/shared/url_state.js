/**
 * State in the page's address, so that a link shows what its sender saw: `#id.key=value&id.other=value`. Each view on a page has an id of its own and
 * touches no part that is not its own; the rest of the fragment, an anchor included, stays as it is. The address is replaced, never pushed, so that
 * Back leaves the page. What cannot be read is ignored, and where an address may not be changed nothing happens.
 */

const QUIET_MS = 250; // browsers refuse an address that changes at every frame

const encode = (text) => encodeURIComponent(text).replace(/%20/g, "+");
/** @param {string} text @returns {string | null} null where it is no encoded text */
function decode(text) {
	try { return decodeURIComponent(text.replace(/\+/g, " ")); } catch { return null; }
}

/** A name that may stand before the dot. @param {string} text */
export const slug = (text) => text.replace(/[^A-Za-z0-9_-]+/g, "-").replace(/^-+|-+$/g, "") || "view";

/** Values of one view in a fragment. @param {string} hash with or without "#" @param {string} id @returns {Object<string, string>} */
export function stateIn(hash, id) {
	const out = {};
	for (const part of hash.replace(/^#/, "").split("&")) {
		const at = part.indexOf("="), key = part.slice(0, Math.max(0, at)), value = decode(part.slice(at + 1));
		if (key.startsWith(`${id}.`) && key.length > id.length + 1 && value !== null) out[key.slice(id.length + 1)] = value;
	}
	return out;
}

/** The fragment with the values of one view replaced; values that are undefined or "" are left out. @param {string} hash @param {string} id @param {Object<string, string|undefined>} values */
export function hashWith(hash, id, values) {
	const others = hash.replace(/^#/, "").split("&").filter((part) => part && !part.startsWith(`${id}.`));
	const own = Object.entries(values).filter(([, v]) => v !== undefined && v !== "").map(([k, v]) => `${id}.${k}=${encode(String(v))}`);
	return [...others, ...own].join("&");
}

/** An id that no other view of the page has: the second "loop" is "loop-2". Held until the element's `data-state-id` is removed. @param {HTMLElement} root @param {string} name */
function claim(root, name) {
	const taken = new Set([...document.querySelectorAll("[data-state-id]")].map((el) => el.dataset.stateId)), base = slug(name);
	let id = base;
	for (let n = 2; taken.has(id); n++) id = `${base}-${n}`;
	root.dataset.stateId = id;
	return id;
}

/**
 * The part of the address that belongs to one view.
 * @param {HTMLElement} root the view's element @param {string} name what it is called @param {(values: Object<string, string>) => void} changed called when the reader follows a link to a state of it
 * @returns {{id: string, read: () => Object<string, string>, write: (values: Object<string, string|undefined>) => void, link: (values: Object<string, string|undefined>) => string, stop: () => void}}
 */
export function pageState(root, name, changed) {
	const id = claim(root, name), read = () => stateIn(location.hash, id);
	let timer = 0, next = null;
	const flush = () => {
		const hash = hashWith(location.hash, id, next);
		if (hash === location.hash.replace(/^#/, "")) return;
		try { history.replaceState(history.state, "", hash ? `#${hash}` : `${location.pathname}${location.search}`); } catch { /* a sandboxed page has no address of its own */ }
	};
	const heard = () => { clearTimeout(timer); const values = read(); if (Object.keys(values).length) changed(values); };
	addEventListener("hashchange", heard);
	return {
		id, read,
		write: (values) => { next = values; clearTimeout(timer); timer = setTimeout(flush, QUIET_MS); },
		link: (values) => `${location.href.replace(/#.*/, "")}#${hashWith(location.hash, id, values)}`,
		stop: () => { clearTimeout(timer); removeEventListener("hashchange", heard); delete root.dataset.stateId; },
	};
}
