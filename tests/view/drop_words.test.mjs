// What the page says of a report: rows as data, apart from how they look.
import assert from "node:assert/strict";
import test from "node:test";
import { breakable, changes, inShort, sections, timeWords } from "../../refimpl/view/drop/words.js";

const REPORT = {
	source: "mine.json", device: "NVIDIA H200", us: 1000, spans: 9,
	lanes: [{ lane: "host", busy_us: 300, blocked_us: 600, idle_us: 100, spans: 5 }, { lane: "forward", busy_us: 500, blocked_us: 0, idle_us: 500, spans: 4 }],
	blocking: [
		{ call: "cudaEventSynchronize", name: "synchronize(verify_done)", lane: "host", times: 37, us: 500, mean_us: 13.514, max_us: 40 },
		{ call: "cudaEventSynchronize", name: "synchronize(copied)", lane: "host", times: 2, us: 60, mean_us: 30, max_us: 31 },
		{ call: null, name: "synchronize(stream)", lane: "host", times: 1, us: 40, mean_us: 40, max_us: 40 },
	],
	gpu_idle: { us: 500, share: 0.5, gpus: 1, by_cause: [{ cause: "the host was late: build", times: 3, us: 400 }, { cause: "launch latency", times: 20, us: 100 }] },
	launch_lead: { count: 4, p10_us: -2, median_us: 5, p90_us: 9, late: 3 },
	critical_path: { us: 1000, parts: [{ lane: "host", name: "build", kind: "host", times: 3, us: 1000 }] },
	overlap: [], concurrency: [{ streams: 0, us: 500 }, { streams: 1, us: 500 }],
};
const words = (section) => [section.heads, ...section.rows].map((row) => row.map(({ text }) => text));
const of = (report, title) => sections(report).find((section) => section.title === title);

test("the blocking calls come first, with how often and for how long together", () => {
	const [first] = sections(REPORT);
	assert.equal(first.lead, "Calls held the host 40 times, for 600 µs in all.");
	assert.deepEqual(words(first).slice(0, 2), [["call", "what for", "times", "total", "mean", "longest"], ["cudaEventSynchronize", "synchronize(verify_done)", "× 37", "500 µs", "13.5 µs", "40.0 µs"]]);
	assert.deepEqual(words(first)[3].slice(0, 2), ["synchronize(stream)", ""]);
});

test("the first words name the longest call, the idle share and its main cause", () => {
	assert.equal(inShort(REPORT), "1.00 ms on NVIDIA H200. cudaEventSynchronize held the host longest: 37 times, 500 µs in all. The GPU ran nothing for 50.0 % of the time. Most of its idle time: the host was late: build.");
});

test("a table has one cell for each of its heads", () => {
	for (const section of [...sections(REPORT), changes(REPORT, REPORT)]) for (const row of section.rows) assert.equal(row.length, section.heads.length, section.title);
});

test("nothing to tell is told in a sentence, without a table", () => {
	const none = { ...REPORT, blocking: [], launch_lead: { count: 0, p10_us: null, median_us: null, p90_us: null, late: 0 } };
	assert.deepEqual([of(none, "Calls that block the host").lead, of(none, "Calls that block the host").rows], ["No call held the host.", []]);
	assert.match(of(none, "Launch lead").lead, /^Unknown/);
});

test("two runs show what is gone, what is new, and by how much the rest changed", () => {
	const after = { ...REPORT, us: 500, blocking: [{ ...REPORT.blocking[1], us: 30, times: 1 }], gpu_idle: { us: 50, share: 0.1, gpus: 1, by_cause: [{ cause: "drained: nothing more came", times: 1, us: 50 }] }, launch_lead: { ...REPORT.launch_lead, median_us: 50, late: 3 } };
	const told = words(changes(REPORT, after)), rows = Object.fromEntries(told.map(([name, ...rest]) => [name, rest]));
	assert.deepEqual(rows["whole trace"], ["1.00 ms", "500 µs", "−50.0 %"]);
	const at = told.findIndex(([name]) => name === "held by cudaEventSynchronize, synchronize(verify_done)");
	assert.deepEqual(told.slice(at, at + 2).map(([, ...rest]) => rest), [["500 µs", "0", "gone"], ["37", "0", "gone"]]);
	assert.deepEqual(rows["held by cudaEventSynchronize, synchronize(copied)"], ["60.0 µs", "30.0 µs", "−50.0 %"]);
	assert.deepEqual(rows["held by synchronize(stream)"], ["40.0 µs", "0", "gone"]);
	assert.deepEqual(rows["GPU idle, share"], ["50.0 %", "10.0 %", "−40.0 pts"]);
	assert.deepEqual(rows["idle: drained: nothing more came"], ["0", "50.0 µs", "new"]);
	assert.deepEqual(rows["launch lead, median"], ["5.00 µs", "50.0 µs", "× 10.0"]);
	assert.deepEqual(rows["launches that found the GPU idle"], ["3", "3", "same"]);
});

test("times have the unit that suits them", () => {
	assert.deepEqual([0, 0.5, 12.34, 456.7, 1234, 123456, 2345678, -3].map(timeWords), ["0", "0.50 µs", "12.3 µs", "457 µs", "1.23 ms", "123.5 ms", "2.346 s", "−3.00 µs"]);
});

test("a name may break behind its signs and between its words, and loses nothing", () => {
	assert.deepEqual(breakable("held by cudaEventSynchronize(verify_done)"), ["held ", "by ", "cuda", "Event", "Synchronize(", "verify_", "done)"]);
	for (const text of ["", "nvjet_hsh_128x64_TNT", "x".repeat(70), "a  b::c"]) assert.equal(breakable(text).join(""), text);
	assert.ok(breakable("x".repeat(70)).every((part) => part.length <= 24));
});

test("a name that goes on and on is shown by its beginning, and searched for as a whole", () => {
	const call = "x".repeat(10_000), long = { ...REPORT, device: call, blocking: [{ ...REPORT.blocking[0], call, name: call }], critical_path: { us: 1000, parts: [{ ...REPORT.critical_path.parts[0], name: call, lane: call }] } };
	const cells = sections(long).flatMap((section) => section.rows.flat());
	for (const { text, sub = "" } of cells) assert.ok(text.length <= 160 && sub.length <= 160);
	assert.ok(cells.some((cell) => cell.find === call));
	assert.ok(inShort(long).length < 500);
});

test("times too short for a figure give no figure that is none", () => {
	const none = { ...REPORT, us: 0, blocking: [], gpu_idle: { us: 0, share: 0.5, gpus: 1, by_cause: [{ cause: "the host was late", times: 1, us: 0 }] }, critical_path: { us: 0, parts: [{ lane: "host", name: "build", kind: "host", times: 1, us: 0 }] }, concurrency: [{ streams: 0, us: 0 }] };
	const said = sections(none).flatMap((section) => [section.lead, ...section.rows.flat().flatMap((cell) => [cell.text, cell.share ?? 0])]);
	for (const one of said) assert.ok(!/NaN|Infinity|undefined/.test(String(one)), String(one));
	assert.equal(of(none, "Overlap of streams").lead, "");
});

test("a trace without a GPU's work says so instead of a share and a cause", () => {
	const host = { ...REPORT, blocking: [], gpu_idle: { us: 1000, share: 1, gpus: 1, by_cause: [{ cause: "drained: nothing more came", times: 1, us: 1000 }] } };
	assert.equal(inShort(host), "1.00 ms on NVIDIA H200. No call held the host. The trace shows no GPU work.");
});
