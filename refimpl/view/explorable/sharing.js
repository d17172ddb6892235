/** What the reader has chosen, as values for the page's address, and back; what fits nothing is passed over. */
import { editsIn, editsText, fitting } from "./edit.js";

const whole = (text) => (/^\d{1,9}$/.test(text ?? "") ? Number(text) : null), time = (text) => (/^\d{1,12}(\.\d{1,3})?$/.test(text ?? "") ? Number(text) : null);
const brief = (us) => String(+us.toFixed(2));

/** @param {any} S the timeline's state @param {any} spec @returns {Object<string, string|undefined>} only what differs from the start */
export function valuesOf(S, spec) {
	const when = (on, text) => (on ? text : undefined), edits = S.edits.get(S.variant) ?? [];
	return {
		variant: when(S.variant !== spec.initial, S.variant),
		before: when(S.before !== spec.before, S.before),
		us: when(S.us.size, [...S.us].map(([k, us]) => `${k}-${us}`).join("~")),
		fences: when(edits.length, editsText(edits)),
		pick: when(S.sel.length, S.sel.join("|")),
		forced: when(S.forced, "1"),
		at: S.scrubbed ? brief(S.now) : undefined,
		view: S.free ? `${brief(S.t0)}-${brief(S.span)}` : undefined,
		guess: when(S.guess !== null, String(S.guess)),
	};
}

/**
 * State from values: what `fresh` gives, changed by what can be read.
 * @param {Object<string, string>} values @param {any} fresh @param {any} spec @param {number} choices how many a question has, 0 without one
 */
export function stateOf(values, fresh, spec, choices) {
	const S = { ...fresh }, known = (id) => spec.variants.some((v) => v.id === id), own = (k) => (Object.hasOwn(values, k) ? values[k] : undefined);
	if (known(own("variant"))) S.variant = values.variant;
	if (known(own("before"))) S.before = values.before;
	for (const part of (own("us") ?? "").split("~")) {
		const m = /^(.+)-(\d{1,9})$/.exec(part), p = m && spec.params[m[1]];
		if (m) S.us.set(m[1], p ? Math.min(p.max, Math.max(p.min, Number(m[2]))) : Number(m[2]));
	}
	const program = spec.variants.find((v) => v.id === S.variant).program, edits = fitting(program, editsIn(own("fences") ?? "")), [t0, span] = (own("view") ?? "").split("-").map(time), at = time(own("at")), guess = whole(own("guess"));
	if (edits.length) S.edits.set(S.variant, edits);
	if (own("pick")) S.sel = values.pick.split("|").slice(0, 2);
	S.forced = own("forced") === "1";
	if (at !== null) Object.assign(S, { now: at, scrubbed: true });
	if (span && t0 !== null) Object.assign(S, { t0, span, free: true });
	if (guess !== null && guess < choices) S.guess = guess;
	return S;
}
