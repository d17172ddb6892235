/** What of a view stands in the page's address, and how it is read back: a malformed value is left out. */

/** @param {any} v the view @returns {Object<string, string | undefined>} */
export function addressOf(v) {
	const { S } = v, [t0, span] = v.whole(), whole = Math.abs(S.t0 - t0) < 1e-3 && Math.abs(S.span - span) < 1e-3, num = (x) => String(+x.toFixed(2));
	return {
		w: whole ? undefined : `${num(S.t0)}~${num(S.span)}`, q: S.query || undefined, fold: S.fold ? "1" : undefined, mark: S.mark || undefined,
		step: S.step === null ? undefined : String(S.step), pick: S.picks.map((p) => `${p.r}.${p.i}`).join("~") || undefined,
	};
}
/** Put a view into the state of an address. @param {any} v @param {Object<string, string>} values */
export function fromAddress(v, values) {
	v.mark(values.mark ?? "");
	const step = Number(values.step);
	if (values.step && Number.isInteger(step) && step >= 0 && v.folds.some((f) => f && step < f.lengths.length)) v.S.step = step;
	v.place();
	v.fold(values.fold === "1");
	v.window(...v.whole());
	const [t0, span] = (values.w ?? "").split("~").map(Number);
	if (Number.isFinite(t0) && span > 0) v.window(t0, span);
	v.search(values.q ?? "");
	v.S.picks = (values.pick ?? "").split("~").map((p) => p.split(".").map(Number)).filter(([r, i]) => v.runs[r] && i >= 0 && i < v.runs[r].n).slice(0, 2).map(([r, i]) => ({ r, i }));
	v.S.cursor = v.S.picks[v.S.picks.length - 1] ?? null;
}
