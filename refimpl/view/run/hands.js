/** The reader's hands on a recorded run: keys and pointer turned into what the view can do. */

/** Keys, while the focus is in the view; those of a text field stay its own. @param {HTMLElement} root @param {any} v the view @param {any} act */
export function runKeys(root, v, act) {
	const anywhere = { "/": act.focusSearch, f: act.fold, "?": () => act.help.showModal(), Escape: act.letGo };
	const figure = {
		"+": () => act.zoom(2), "=": () => act.zoom(2), "-": () => act.zoom(0.5), 0: act.fit, Home: act.toStart, End: act.toEnd, PageDown: () => act.pan(0.9), PageUp: () => act.pan(-0.9),
		n: () => act.turnName(1), p: () => act.turnName(-1), g: act.nextGap, z: act.zoomToSpan, Enter: act.pickCursor, " ": act.pickCursor, ArrowUp: () => act.toLane(-1), ArrowDown: () => act.toLane(1),
	};
	const sideways = { ArrowRight: 1, ArrowLeft: -1 };
	const hear = (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || act.help.open) return;
		const key = e.key.length === 1 ? e.key.toLowerCase() : e.key, field = /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName), here = e.target === v.fig;
		const pan = here && key in sideways ? () => (e.shiftKey ? act.turnLane(sideways[key]) : act.pan(sideways[key] * 0.2)) : undefined;
		const does = field ? (key === "Escape" ? act.letGo : undefined) : pan ?? anywhere[key] ?? (here || (e.target.tagName !== "BUTTON" && e.target.tagName !== "SUMMARY" && e.target === root) ? figure[key] : undefined);
		if (!does) return;
		does();
		e.preventDefault();
		e.stopPropagation();
	};
	root.addEventListener("keydown", hear);
	return () => root.removeEventListener("keydown", hear);
}

/** @param {(e: PointerEvent) => void} move @param {(e: PointerEvent) => void} [done] */
function follow(move, done) {
	const stop = new AbortController(), on = { signal: stop.signal }, up = (e) => { stop.abort(); done?.(e); };
	addEventListener("pointermove", move, on);
	addEventListener("pointerup", up, on);
	addEventListener("pointercancel", up, on);
}

/** Mouse, pen and touch on the picture: hover, click, pan, zoom. @param {HTMLCanvasElement} canvas @param {any} v the view @param {any} act */
export function runPointer(canvas, v, act) {
	const touches = new Map(), place = (e) => { const box = canvas.getBoundingClientRect(); return [e.clientX - box.left, e.clientY - box.top]; }, time = (x) => v.S.t0 + ((x - v.L.left) / v.L.width) * v.S.span;
	let moved = false;
	canvas.addEventListener("pointermove", (e) => { if (!touches.size) act.hover(...place(e)); });
	canvas.addEventListener("pointerleave", () => act.hover(-1, -1));
	canvas.addEventListener("pointerdown", (e) => {
		if (e.button) return;
		const [x0] = place(e), { t0 } = v.S;
		touches.set(e.pointerId, x0);
		moved = touches.size > 1;
		let was = spread();
		follow((m) => {
			if (!touches.has(m.pointerId)) return;
			const [x] = place(m);
			touches.set(m.pointerId, x);
			if (touches.size > 1) { const now = spread(), xs = [...touches.values()]; act.zoom(now / was, time((xs[0] + xs[1]) / 2)); was = now; return; }
			moved ||= Math.abs(x - x0) > 3;
			if (moved && m.pointerId === e.pointerId) { act.hover(-1, -1); canvas.style.cursor = "grabbing"; act.show(t0 - ((x - x0) / v.L.width) * v.S.span, v.S.span); }
		}, (u) => {
			touches.delete(e.pointerId);
			canvas.style.cursor = "";
			if (!moved && u.type === "pointerup" && u.pointerId === e.pointerId) act.click(...place(e));
		});
	});
	const spread = () => { const xs = [...touches.values()]; return xs.length > 1 ? Math.max(20, Math.abs(xs[0] - xs[1])) : 1; };
	canvas.addEventListener("dblclick", (e) => act.zoomAt(...place(e)));
	canvas.addEventListener("wheel", (e) => {
		if (e.ctrlKey || e.metaKey) act.zoom(Math.exp(-e.deltaY / 200), time(place(e)[0]));
		else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) act.show(v.S.t0 + ((e.deltaX || e.deltaY) / v.L.width) * v.S.span, v.S.span);
		else return;
		e.preventDefault();
	}, { passive: false });
}

const EDGE = 7;
/** The strip: drag the window or its ends, or press beside it to bring it there; folded, press to choose a step. @param {HTMLCanvasElement} over @param {any} v the view @param {any} act */
export function stripPointer(over, v, act) {
	const x = (e) => e.clientX - over.getBoundingClientRect().left, y = (e) => e.clientY - over.getBoundingClientRect().top, time = (px) => v.lo + ((px - v.L.left) / v.L.width) * (v.hi - v.lo), pixel = (t) => v.L.left + ((t - v.lo) / (v.hi - v.lo)) * v.L.width;
	const grip = (px) => { const a = pixel(v.S.t0), b = pixel(v.S.t0 + v.S.span); return b - a > 3 * EDGE && Math.abs(px - a) < EDGE ? "left" : b - a > 3 * EDGE && Math.abs(px - b) < EDGE ? "right" : px >= a - 2 && px <= b + 2 ? "window" : ""; };
	over.addEventListener("pointermove", (e) => { over.style.cursor = v.S.fold ? "pointer" : { left: "ew-resize", right: "ew-resize", window: "grab", "": "pointer" }[grip(x(e))]; });
	over.addEventListener("pointerdown", (e) => {
		if (e.button) return;
		e.preventDefault();
		if (v.S.fold) { act.chooseAt(x(e), y(e)); follow((m) => act.chooseAt(x(m), y(e))); return; }
		const what = grip(x(e)), at = time(x(e)), { span } = v.S;
		if (!what) act.show(at - span / 2, span);
		const { t0 } = v.S, end = t0 + span;
		follow((m) => {
			const t = time(x(m));
			if (what === "left") act.show(Math.min(t, end), Math.max(0, end - t));
			else if (what === "right") act.show(t0, t - t0);
			else act.show(t0 + t - at, span);
		});
	});
}
