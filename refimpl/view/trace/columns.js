/** A recorded run as the columns that a page draws; as refimpl/timeline/writing/columns.py. */

/** A time to the nanosecond, halves up. @param {number} us */
export const rounded = (us) => Math.floor(us * 1000 + 0.5) / 1000;

/**
 * @param {{lanes: string[], spans: any[], device: string, source?: string}} trace spans: {lane, name, kind, start, end, submit, ready, call, op?}
 * @param {{id?: string, title?: string, words?: string}} [said]
 */
export function traceColumns(trace, { id = "run", title = "", words = "" } = {}) {
	const spans = [...trace.spans].sort((a, b) => a.start - b.start), lanes = new Map(trace.lanes.map((lane, number) => [lane, number]));
	const names = new Map(), calls = new Map();
	const numbered = (table, text) => {
		if (text === null) return -1;
		let number = table.get(text);
		if (number === undefined) table.set(text, (number = table.size));
		return number;
	};
	const time = (us) => (us === null ? null : rounded(us));
	return {
		schema: "trace/1", id, title, words, source: trace.source ?? "measured", device: trace.device, lanes: [...trace.lanes],
		spans: {
			lane: spans.map((s) => lanes.get(s.lane)),
			name: spans.map((s) => numbered(names, s.name)),
			kind: spans.map((s) => s.kind),
			start: spans.map((s) => rounded(s.start)),
			end: spans.map((s) => rounded(s.end)),
			submit: spans.map((s) => time(s.submit)),
			ready: spans.map((s) => time(s.ready)),
			call: spans.map((s) => numbered(calls, s.call)),
			op: spans.map((s) => s.op ?? -1),
		},
		names: [...names.keys()], calls: [...calls.keys()],
		edges: { from: [], to: [], kind: [], kinds: [] }, steps: [],
	};
}
