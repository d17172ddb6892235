/** A report in words and rows, apart from how a page shows them: tested without a page. */
const TOP = 8;
const KINDS = { run: "GPU work", blocked: "host blocked", host: "host work", launch: "launch call", idle: "gap" };

/** @typedef {{text: string, figure?: boolean, share?: number, blocked?: boolean, find?: string, room?: string, sub?: string}} Cell figure: stands to the right; share: length of a bar, of 1; find: what to search the view for; room: `wide` or `wider` for what is left out where there is no such room; sub: stands below the text there */
/** @typedef {{title: string, lead: string, heads: Cell[], rows: Cell[][], whole?: boolean}} Section whole: all rows are shown at once */

/** A time in the unit that suits it, with three digits or four. @param {number} us */
export function timeWords(us) {
	const a = Math.abs(us), sign = us < 0 ? "−" : "";
	if (a >= 1e6) return `${sign}${(a / 1e6).toFixed(3)} s`;
	if (a >= 1000) return `${sign}${(a / 1000).toFixed(a >= 1e5 ? 1 : 2)} ms`;
	return a === 0 ? "0" : `${sign}${a.toFixed(a >= 100 ? 0 : a >= 10 ? 1 : 2)} µs`;
}

const percent = (share) => `${(100 * share).toFixed(1)} %`;
const count = (n, one, many = `${one}s`) => `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
const times = (n) => `× ${n.toLocaleString("en")}`;
const LONGEST = 160;
/** A name as it is shown: of one that goes on and on, its beginning. @param {string} name */
const short = (name) => (name.length > LONGEST ? `${name.slice(0, LONGEST - 1)}…` : name);
const cell = (text, more = {}) => ({ text: short(String(text)), ...more, ...(more.sub ? { sub: short(more.sub) } : {}) });
const wide = { room: "wide" }, wider = { room: "wider" }, figure = (text, more = {}) => cell(text, { figure: true, ...more });
const sum = (items, of = (item) => item.us) => items.reduce((all, item) => all + of(item), 0);

/** The accounts of one run, the most telling first. @param {any} report @returns {Section[]} */
export const sections = (report) => [blockingSection(report), idleSection(report), leadSection(report), pathSection(report), overlapSection(report), lanesSection(report)];

/** What a run comes to, in one or two sentences. @param {any} report */
export function inShort({ us, device, blocking, gpu_idle: idle }) {
	const where = device ? ` on ${short(device)}` : "", first = blocking[0];
	const held = first ? `${short(first.call ?? first.name)} held the host longest: ${count(first.times, "time")}, ${timeWords(first.us)} in all.` : "No call held the host.";
	if (idle.share === 1) return `${timeWords(us)}${where}. ${held} The trace shows no GPU work.`;
	const cause = idle.by_cause[0] && idle.us > 0 ? ` Most of its idle time: ${short(idle.by_cause[0].cause)}.` : "";
	return `${timeWords(us)}${where}. ${held} The GPU ran nothing for ${percent(idle.share)} of the time.${cause}`;
}

/** The main figures of two runs, and what changed. @param {any} before @param {any} after @returns {Section} */
export function changes(before, after) {
	const both = (name, of, write = timeWords, changed = change) => {
		const [a, b] = [of(before), of(after)], known = a !== null && b !== null;
		return [cell(name), figure(a === null ? "unknown" : write(a)), figure(b === null ? "unknown" : write(b)), figure(known ? changed(a, b) : "")];
	};
	const held = (one) => (one.call ? `${one.call}, ${one.name}` : one.name);
	const calls = ranked(before, after, (report) => report.blocking.map((one) => [held(one), one])).slice(0, 3);
	const causes = ranked(before, after, (report) => report.gpu_idle.by_cause.map((one) => [one.cause, one])).slice(0, 4);
	const of = (report, name) => report.blocking.filter((one) => held(one) === name), plain = (n) => n.toLocaleString("en");
	const rows = [both("whole trace", (r) => r.us), both("host blocked", (r) => sum(r.blocking))];
	for (const name of calls) rows.push(both(`held by ${name}`, (r) => sum(of(r, name))), both("how often", (r) => sum(of(r, name), (one) => one.times), plain));
	rows.push(both("GPU idle", (r) => r.gpu_idle.us), both("GPU idle, share", (r) => r.gpu_idle.share, percent, points));
	for (const name of causes) rows.push(both(`idle: ${name}`, (r) => sum(r.gpu_idle.by_cause.filter((one) => one.cause === name))));
	rows.push(both("launch lead, median", (r) => r.launch_lead.median_us), both("launches that found the GPU idle", (r) => r.launch_lead.late, plain));
	return { title: "What changed", lead: "", whole: true, heads: [cell("figure"), ...["before", "after", "change"].map((text) => figure(text))], rows };
}

/** Names by how much their time changed. */
function ranked(before, after, named) {
	const changed = new Map();
	for (const [report, sign] of [[before, -1], [after, 1]]) for (const [name, { us }] of named(report)) changed.set(name, (changed.get(name) ?? 0) + sign * us);
	return [...changed].sort((a, b) => Math.abs(b[1]) - Math.abs(a[1]) || (a[0] < b[0] ? -1 : 1)).map(([name]) => name);
}

const points = (a, b) => `${b < a ? "−" : "+"}${(100 * Math.abs(b - a)).toFixed(1)} pts`;

function change(a, b) {
	if (a === b) return "same";
	if (!a || !b) return a ? "gone" : "new";
	if (a < 0 || b < 0) return "";
	if (b / a >= 3) return `× ${(b / a).toFixed(b / a >= 20 ? 0 : 1)}`;
	const ratio = b / a - 1;
	return Math.abs(ratio) < 0.0005 ? "same" : `${ratio > 0 ? "+" : "−"}${(100 * Math.abs(ratio)).toFixed(1)} %`;
}

function blockingSection({ blocking, lanes }) {
	const longest = blocking[0]?.us, several = lanes.filter((lane) => lane.blocked_us > 0).length > 1;
	const whatFor = (one) => [one.call ? one.name : "", several ? one.lane : ""].filter(Boolean).join(", on ");
	const rows = blocking.map((one) => [
		cell(one.call ?? one.name, { find: one.call ?? one.name, sub: whatFor(one) }), cell(whatFor(one), wide),
		figure(times(one.times)), figure(timeWords(one.us), { share: one.us / longest, blocked: true }), figure(timeWords(one.mean_us), wider), figure(timeWords(one.max_us), wide),
	]);
	const lead = rows.length ? `Calls held the host ${count(sum(blocking, (one) => one.times), "time")}, for ${timeWords(sum(blocking))} in all.` : "No call held the host.";
	return { title: "Calls that block the host", lead, heads: [cell("call"), cell("what for", wide), figure("times"), figure("total"), figure("mean", wider), figure("longest", wide)], rows };
}

function idleSection({ gpu_idle: { us, share, gpus, by_cause: causes } }) {
	const rows = causes.map((one) => [cell(one.cause), figure(times(one.times)), figure(timeWords(one.us), { share: one.us / (causes[0].us || 1) }), figure(percent(us ? one.us / us : 0), wide)]);
	const over = gpus > 1 ? ` of each of ${gpus} GPUs, on average` : "";
	return { title: "GPU idle, by cause", lead: `No stream ran for ${timeWords(us)}: ${percent(share)} of the time${over}. A launch counts from its first kernel to its last.`, heads: [cell("cause"), figure("gaps"), figure("total"), figure("share", wide)], rows };
}

function leadSection({ launch_lead: lead }) {
	if (!lead.count) return { title: "Launch lead", lead: "Unknown: the trace shows no launch calls.", heads: [], rows: [] };
	const rows = [["10 % of the launches lead by less than", lead.p10_us], ["median", lead.median_us], ["90 % lead by less than", lead.p90_us]].map(([name, us]) => [cell(name), figure(timeWords(us))]);
	return { title: "Launch lead", lead: `${lead.late.toLocaleString("en")} of ${count(lead.count, "launch", "launches")} found the GPU idle.`, heads: [cell("from the call’s return to the start of its work"), figure("time")], rows };
}

function pathSection({ critical_path: { us, parts } }) {
	const rows = parts.map((part) => [cell(part.name, { sub: part.lane }), cell(part.lane, wide), cell(KINDS[part.kind] ?? part.kind, wider), figure(times(part.times)), figure(timeWords(part.us), { share: part.us / (parts[0].us || 1), blocked: part.kind === "blocked" }), figure(percent(us ? part.us / us : 0))]);
	const heads = [cell("part"), cell("lane", wide), cell("kind", wider), figure("times"), figure("total"), figure("share")];
	return { title: "Critical path", lead: "The chain that ends last, walked back to the beginning: make one of its parts shorter, and the run can be shorter.", heads, rows };
}

function overlapSection({ overlap, concurrency, us }) {
	const rows = overlap.map((one) => [cell(one.lanes.join(" with ")), figure(timeWords(one.us), { share: one.us / overlap[0].us }), figure(percent(one.share))]);
	const at = concurrency.filter((one) => one.us > 0).map(({ streams, us: part }) => `${streams === 0 ? "none" : streams} for ${percent(us ? part / us : 0)}`);
	return { title: "Overlap of streams", lead: at.length ? `Streams at once: ${at.join(", ")} of the time.` : "", heads: rows.length ? [cell("streams"), figure("together"), figure("of the less busy")] : [], rows };
}

function lanesSection({ lanes }) {
	const rows = lanes.map((one) => [cell(one.lane), figure(timeWords(one.busy_us)), figure(timeWords(one.blocked_us)), figure(timeWords(one.idle_us)), figure(one.spans.toLocaleString("en"), wide)]);
	return { title: "Lanes", lead: "", heads: [cell("lane"), figure("busy"), figure("blocked"), figure("idle"), figure("spans", wide)], rows };
}

/** Where a name may break over lines: behind its signs, between its words, and else after two dozen letters. @param {string} text @returns {string[]} */
export const breakable = (text) => text.split(/(?<=[_(:/,.\s])(?=[^_(:/,.\s])|(?<=[a-z])(?=[A-Z])/).flatMap((part) => part.match(/.{1,24}/gs) ?? []);

/** How many rows a table shows before the reader asks for the rest. @param {number} rows */
export const shownRows = (rows) => (rows <= TOP + 4 ? rows : TOP);
