/** The fences of a program in the reader's hands: turned off and on, moved earlier or later in issue order, in one step or in each. */
import { esc, html } from "../shared/dom.js";
import { applyEdits, fenceName, isFence, landmarks, withEdit } from "./edit.js";

const SILENT = /^(alloc|free|tensor_alloc|tensor_free|record_stream|set_device)$/;

/** The fence that an op on screen stands for, or undefined. @param {any} M @param {number} i */
export function fenceOf(M, i) {
	const o = M.ops[i], key = o && M.keys[o.src], families = M.fences;
	if (!o || !["record", "wait", "sync"].includes(o.kind)) return undefined;
	const inGraph = o.graph === undefined ? [key] : families.flatMap((x) => x.keys).filter((k) => k.startsWith(`${key}/`));
	return inGraph.find((k) => families.some((x) => x.keys.includes(k)));
}
/** Ids of the ops on screen that stand for the fence in hand. @param {any} M @param {{key: string, all: boolean} | null} fence */
export function inHand(M, fence) {
	const family = fence && M.fences.find((x) => x.keys.includes(fence.key)), keys = new Set(!family ? [] : fence.all ? family.keys : [fence.key]);
	return new Set(M.ops.filter((o, i) => keys.has(fenceOf(M, i))).map((o) => o.id));
}
/** The name of an op of a program, with its step. */
function named(op) {
	const name = isFence(op) ? fenceName(op).replace(/ on .*/, "") : op.name ?? (op.op === "memcpy" ? `copy ${op.src.buf}` : op.op.replace("_", " "));
	return op.step === undefined || /\d\)?$/.test(name) ? name : `${name} of step ${op.step}`;
}
/** Between which calls a fence is issued. @param {any} M @param {string} key */
export function issuedWhere(M, key) {
	const at = M.list.findIndex((x) => x.key === key), loud = (x) => x && !SILENT.test(x.op.op) && !M.off.has(x.key);
	if (at < 0) return "";
	const a = M.list.slice(0, at).reverse().find(loud), b = M.list.slice(at + 1).find(loud);
	return `issued ${a ? `after <b>${esc(named(a.op))}</b>` : "first"}${b ? `${a ? "," : ""} before <b>${esc(named(b.op))}</b>` : a ? ", last" : ""}`;
}

/** @param {string} uid @param {any} t the timeline */
export function fencePanel(uid, t) {
	const { S } = t, button = (text, act, aria) => html("button", { type: "button", textContent: text, onclick: act, ariaLabel: aria });
	const which = html("select", { id: `${uid}fence`, onchange: () => take(t.M.fences[which.selectedIndex]?.keys) }), scope = html("select", { id: `${uid}scope`, onchange: () => { const k = Number(scope.value); S.fence = { key: k < 0 ? S.fence.key : familyNow().keys[k], all: k < 0 }; t.change(false); } });
	const toggle = button("Turn off", () => flip()), earlier = button("← Earlier", () => move(-1), "Issue it earlier"), later = button("Later →", () => move(1), "Issue it later"), undo = button("Undo", () => back(), "Undo the last change of a fence");
	const where = html("p", { className: "tl-where", ariaLive: "polite" }), body = html("div", { className: "tl-fencerow" }, [
		html("div", {}, [html("label", { className: "tl-lab", htmlFor: which.id, textContent: "Fence" }), which]), html("div", {}, [html("label", { className: "tl-lab", htmlFor: scope.id, textContent: "Where" }), scope]), toggle, earlier, later, undo]);
	const el = html("details", { className: "tl-fences" }, [html("summary", { textContent: "Change the fences" }), body, where]);
	el.addEventListener("toggle", () => { if (el.open && !S.fence) take(t.M.fences[0]?.keys); });

	const familyNow = () => t.M.fences.find((x) => S.fence && x.keys.includes(S.fence.key));
	const edits = () => S.edits.get(S.variant) ?? [], isOff = (keys) => keys.every((k) => t.M.off.has(k)), chosen = () => (S.fence.all ? familyNow().keys : [S.fence.key]);
	function take(keys) {
		if (!keys) return;
		S.fence = { key: keys[1] ?? keys[0], all: keys.length > 1 };
		t.change(false);
	}
	function edit(e) {
		S.edits.set(S.variant, withEdit(edits(), e));
		if (!edits().length) S.edits.delete(S.variant);
		Object.assign(S, { forced: false, scrubbed: false });
		t.change(true);
	}
	function flip() { if (familyNow()) edit({ do: isOff(chosen()) ? "on" : "off", key: S.fence.key, all: S.fence.all }); }
	const free = (dir) => familyNow()?.movable && !isOff(chosen()) && chosen().some((k) => landmarks(t.M.list, k, dir).length);
	function move(dir) { if (free(dir)) edit({ do: "move", key: S.fence.key, by: dir, all: S.fence.all }); }
	function back() {
		S.edits.set(S.variant, edits().slice(0, -1));
		if (!edits().length) S.edits.delete(S.variant);
		t.change(true);
	}
	/** Hold the fence behind an op on screen. @param {string} id @param {boolean} [open] */
	function takeOp(id, open = true) {
		const key = fenceOf(t.M, t.M.at.get(id) ?? -1), family = t.M.fences.find((x) => x.keys.includes(key));
		if (!family) return false;
		S.fence = { key, all: S.fence && family.keys.includes(S.fence.key) ? S.fence.all : family.keys.length > 1 };
		if (open) el.open = true;
		return true;
	}
	/** Moves while the pointer drags: what it is moved past stands still meanwhile, so that no re-flow answers back. @param {string} id @returns {((dx: number) => void) | null} */
	function dragged(id) {
		if (!takeOp(id, false) || !familyNow().movable || t.M.off.has(S.fence.key)) return null;
		const { M, f } = t, base = edits(), { key, all } = S.fence, o = M.ops[M.at.get(id)], x0 = f.X(o.kind === "sync" ? o.ready : o.end);
		const place = (k) => { const x = M.ops.find((p) => M.keys[p.src] === M.list[k].key); return x ? (f.X(o.kind === "sync" ? x.ready : x.start) + f.X(o.kind === "sync" ? Math.max(x.ready, x.lane === "host" ? x.end : 0) : x.end)) / 2 : x0; };
		const far = (dir) => landmarks(M.list, key, dir).map(place).map((x, k, xs) => (dir < 0 ? Math.min(...xs.slice(0, k + 1)) : Math.max(...xs.slice(0, k + 1))));
		const behind = far(-1), ahead = far(1);
		let by = 0;
		return (dx) => {
			const x = x0 + dx, to = dx < 0 ? -behind.filter((m) => m >= x).length : ahead.filter((m) => m <= x).length;
			if (to === by) return;
			by = to;
			S.edits.set(S.variant, by ? withEdit(base, { do: "move", key, by, all }) : base);
			if (!edits().length) S.edits.delete(S.variant);
			t.change(true);
		};
	}
	function draw() {
		const families = t.M.fences, family = familyNow();
		el.hidden = !families.length || Boolean(t.M.veiled);
		if (el.hidden) return;
		if (S.fence && !family) S.fence = null;
		options(which, families.map((x) => `${x.name}${isOff(x.keys) ? ": off" : x.keys.some((k) => t.M.off.has(k)) ? ": off in part" : ""}`), families.indexOf(family));
		if (edits().length) el.open = true;
		const focus = el.contains(document.activeElement) ? document.activeElement : null;
		const keys = family?.keys ?? [], steps = keys.map((k, n) => t.M.list.find((x) => x.key === k.split("/")[0])?.op.step ?? n);
		options(scope, keys.length > 1 ? [`all ${keys.length}`, ...keys.map((k, n) => `only ${new Set(steps).size === keys.length ? "step" : "no."} ${new Set(steps).size === keys.length ? steps[n] : n}${t.M.off.has(k) ? ": off" : ""}`)] : ["here"], S.fence?.all || keys.length < 2 ? 0 : keys.indexOf(S.fence?.key) + 1, keys.length > 1 ? -1 : 0);
		scope.disabled = keys.length < 2;
		toggle.disabled = !family;
		toggle.textContent = toggle.ariaLabel = family && isOff(chosen()) ? "Turn on" : "Turn off";
		earlier.disabled = !family || !free(-1);
		later.disabled = !family || !free(1);
		undo.disabled = !edits().length;
		if (focus?.disabled) (toggle.disabled ? which : toggle).focus({ preventScroll: true });
		const told = !family ? "" : isOff(chosen()) ? `${esc(family.name)} is off.` : `${esc(family.name)}${keys.length > 1 ? `, ${S.fence.all ? "here that of" : "of"} ${new Set(steps).size === keys.length ? "step" : "no."} ${steps[keys.indexOf(S.fence.key)]}` : ""}: ${S.fence.key.includes("/") ? "a node of the graph; it can be turned off." : `${issuedWhere(t.M, S.fence.key)}.`}`;
		if (where.innerHTML !== told) where.innerHTML = told;
	}
	function options(select, texts, chosenAt, first = 0) {
		const text = texts.join("\n");
		if (select.dataset.texts !== text) { select.replaceChildren(...texts.map((x, k) => html("option", { value: String(k + first), textContent: x }))); select.dataset.texts = text; }
		select.selectedIndex = chosenAt;
	}
	/** A fence put where one is missing. @param {[string, string][]} pairs */
	function add(pairs) {
		const had = new Set(t.M.list.map((x) => x.key)), next = withEdit(edits(), { do: "add", pairs }), made = applyEdits(t.given.get(S.variant).program, next).keys.filter((k) => /^w/.test(k) && !had.has(k));
		S.fence = { key: made[1] ?? made[0], all: pairs.length > 1 };
		S.edits.set(S.variant, next);
		S.sel = [];
		t.change(true);
		which.focus({ preventScroll: true }); // the button that was pressed is gone
	}
	return { el, draw, flip, move, back, takeOp, dragged, add };
}
