/** The reader's hands: keys and pointer turned into what the timeline can do. */

/**
 * Keys, while the focus is inside `root`; or while the pointer is over it and the focus nowhere, so that the page and its controls keep theirs.
 * Returns a function that stops listening.
 * @param {HTMLElement} root @param {any} f the figure @param {any} act what the timeline can do
 */
export function keyboard(root, f, act) {
	const { S } = f, longer = (by) => (o) => { act.setDuration(o, act.lengthOf(o) * (1 + by / 10) + by * 5); act.change(true); };
	const anywhere = { f: act.toggleForce, r: act.resetAll, "?": () => act.help.showModal(), Escape: act.letGo, "+": () => act.zoom(2), "=": () => act.zoom(2), "-": () => act.zoom(0.5), 0: act.fitAll };
	Object.assign(anywhere, { w: act.nextGap, o: act.fences.flip, ",": () => act.fences.move(-1), ".": () => act.fences.move(1), u: act.fences.back });
	const arrows = { ArrowRight: () => act.step(1), ArrowLeft: () => act.step(-1) };
	const onBlock = { ArrowDown: (o) => act.moveLane(o, 1), ArrowUp: (o) => act.moveLane(o, -1), Enter: (o) => act.pick(o.id), " ": (o) => act.pick(o.id), "[": longer(-1), "]": longer(1) };
	const hear = (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || act.help.open || ["SELECT", "TEXTAREA"].includes(e.target.tagName)) return;
		const key = e.key.length === 1 ? e.key.toLowerCase() : e.key, block = e.target.classList.contains("tl-op") && f.M.at.has(S.cursor), input = e.target.tagName === "INPUT";
		const does = anywhere[key] ?? (input ? undefined : arrows[key]) ?? (block ? onBlock[key] : undefined);
		if (!does) return;
		does(act.op(f.M.at.get(S.cursor) ?? 0));
		e.preventDefault();
		e.stopPropagation();
	};
	const hovered = (e) => { if (e.target === document.body && root.matches(":hover")) hear(e); };
	root.addEventListener("keydown", hear);
	document.addEventListener("keydown", hovered);
	return () => { root.removeEventListener("keydown", hear); document.removeEventListener("keydown", hovered); };
}

/** @param {(e: PointerEvent) => void} move @param {() => void} [done] */
function drag(move, done) {
	const stop = new AbortController(), on = { signal: stop.signal }, up = () => { stop.abort(); done?.(); };
	addEventListener("pointermove", move, on);
	addEventListener("pointerup", up, on);
	addEventListener("pointercancel", up, on);
}

/**
 * Mouse, pen and touch: hover and press of blocks, the now-line, pan, zoom.
 * @param {any} f the figure @param {any} act what the timeline can do
 */
export function pointer(f, act) {
	const { S } = f, touches = new Map();
	let pinched = false;

	function hover(el, id) {
		const to = (x) => () => { S.hover = x; act.showCard(); act.draw(); };
		el.onpointerenter = to(id);
		el.onpointerleave = to("");
	}
	function born(el, { id }) {
		el.setAttribute("role", "button");
		el.dataset.id = id;
		act.describe(el);
		hover(el, id);
		el.onfocus = () => { S.cursor = id; act.describe(el); act.showCard(); };
		el.onblur = () => act.showCard();
		el.onpointerdown = (e) => press(e, f.M.at.get(id));
	}
	/** A press on a fence's sign takes it in hand; a drag moves it in issue order. */
	function fence(el, { id }) {
		el.onpointerdown = (e) => {
			e.stopPropagation();
			moveFence(e, id, () => { act.fences.takeOp(id); act.change(false); });
		};
	}
	function moveFence(e, id, clicked) {
		const x0 = e.clientX;
		let to, moved = false;
		drag((m) => {
			moved ||= Math.abs(m.clientX - x0) > 4;
			if (!moved || pinched) return;
			S.dragging = true;
			to ??= act.fences.dragged(id);
			to?.(m.clientX - x0);
		}, () => { S.dragging = false; moved ? act.change(true) : clicked(); });
	}
	function grip(el, { id }) {
		hover(el, id);
		el.onpointerdown = (e) => press(e, f.M.at.get(id), true);
	}
	/** A press picks; a drag of the right edge changes a duration, a graph's as a whole. */
	function press(e, i, grip = false) {
		if (i === undefined) return;
		if (act.op(i).kind === "sync") { e.stopPropagation(); moveFence(e, act.op(i).id, () => { if (!pinched) { S.cursor = act.op(i).id; act.pick(act.op(i).id); } }); return; }
		const o = act.op(i), x0 = e.clientX, us = act.lengthOf(o), graph = act.op(o.graph ?? -1);
		const from = graph?.whole === undefined ? o.start : graph.start, share = (o.end - from) / us || 1;
		let moved = false;
		e.stopPropagation();
		drag((m) => {
			moved ||= Math.abs(m.clientX - x0) > 3;
			if (!grip || !moved || pinched) return;
			S.dragging = true;
			act.setDuration(o, us + ((m.clientX - x0) / f.L.width) * S.span / share);
			act.change(false);
		}, () => { if (S.dragging) { S.dragging = false; act.change(true); } else if (!moved && !pinched) { S.cursor = o.id; act.pick(o.id); } });
	}
	function dragNow(e) {
		const to = (m) => act.goTo(Math.max(S.t0, Math.min(S.t0 + S.span, f.time(f.px(m)))));
		to(e);
		e.stopPropagation();
		e.preventDefault();
		drag(to);
	}
	/** Two fingers zoom around their middle, on blocks as between them. */
	function pinch(m) {
		if (!touches.has(m.pointerId)) return;
		const gap = () => { const [a, b] = [...touches.values()]; return Math.max(20, Math.abs(a - b)); }, was = gap();
		touches.set(m.pointerId, f.px(m));
		const [a, b] = [...touches.values()];
		act.zoom(gap() / was, f.time((a + b) / 2));
	}
	f.svg.addEventListener("pointerdown", (e) => {
		touches.set(e.pointerId, f.px(e));
		pinched = touches.size > 1;
		drag(pinched ? pinch : () => {}, () => touches.clear());
	}, true);
	f.svg.addEventListener("pointerdown", (e) => {
		const x0 = e.clientX, { t0 } = S;
		drag((m) => {
			if (!pinched && m.pointerId === e.pointerId && Math.abs(m.clientX - x0) > 3) act.show(t0 - ((m.clientX - x0) / f.L.width) * S.span, S.span);
		});
	});
	f.svg.addEventListener("wheel", (e) => {
		if (e.ctrlKey || e.metaKey) act.zoom(Math.exp(-e.deltaY / 200), f.time(f.px(e)));
		else if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) act.show(S.t0 + ((e.deltaX || e.deltaY) / f.L.width) * S.span, S.span);
		else return;
		e.preventDefault();
	}, { passive: false });
	return { born, grip, fence, dragNow };
}
