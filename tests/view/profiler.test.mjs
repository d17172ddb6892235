// Reading a profiler's file: in pieces of any size, packed or plain, cut off, or no trace at all.
import assert from "node:assert/strict";
import test from "node:test";
import zlib from "node:zlib";
import { TraceError, TraceStream } from "../../refimpl/view/trace/json_stream.js";
import { readTrace } from "../../refimpl/view/trace/read_trace.js";

const slice = (cat, name, ts, dur, args = {}, place = { pid: 400, tid: 400 }) => ({ ph: "X", cat, name, ...place, ts, dur, args });
const kernel = (name, ts, dur, stream, correlation) => slice("kernel", name, ts, dur, { stream, correlation, device: 0 }, { pid: 0, tid: stream });
const call = (name, ts, dur, correlation) => slice("cuda_runtime", name, ts, dur, { correlation });

/** A step: a launch, its kernel, and a call that waits for it; with text that would mislead a scan for brackets. */
const EVENTS = [
	slice("cpu_op", 'aten::mul {"}]\\', 0, 50, { "Concrete Inputs": ["[1, 2}", '"'] }),
	slice("user_annotation", "verify 0 é ✓ 𝛼", 0, 20),
	call("cudaLaunchKernel", 5, 4, 1),
	kernel("gemm", 12, 100, 7, 1),
	call("cudaEventSynchronize", 20, 95, 2),
	slice("python_function", "f", 0, 200),
];
const TEXT = JSON.stringify({ schemaVersion: 1, nested: { traceEvents: [1, { a: [] }] }, deviceProperties: [{ name: "GPU" }], traceEvents: EVENTS, traceName: "x" });
const bytes = (text) => new TextEncoder().encode(text);
const file = (data, name = "mine.json") => Object.assign(new Blob([data]), { name });
const read = (data, name) => readTrace(file(data, name));

/** All that a stream says of a text given in pieces of a size. */
function streamed(text, size) {
	const found = [], stream = new TraceStream({ name: "mine", fields: ["deviceProperties"], wanted: (ph, cat) => cat !== "python_function", onEvent: (event, number) => found.push([number, event]) });
	const data = bytes(text);
	for (let at = 0; at < data.length; at += size) stream.push(data.subarray(at, at + size));
	return { found, fields: stream.fields, ...stream.end() };
}

test("a file is the same in pieces of every size", () => {
	const whole = streamed(TEXT, Infinity);
	assert.deepEqual(whole.found.map(([number]) => number), [0, 1, 2, 3, 4]);
	assert.deepEqual(whole.found.map(([, event]) => event), EVENTS.slice(0, 5));
	assert.deepEqual(whole.fields, { deviceProperties: [{ name: "GPU" }] });
	for (let size = 1; size < 80; size++) assert.deepEqual(streamed(TEXT, size), whole);
});

test("only the list that the file itself calls traceEvents holds events", () => {
	assert.equal(streamed('{"args": {"traceEvents": [{"ph": "X", "cat": "kernel"}]}, "traceEvents": []}', 7).found.length, 0);
	assert.equal(streamed('[{"ph": "X", "cat": "kernel"}, 5, null, "a]", [{"ph": "X"}]]', 7).found.length, 1);
});

test("a file cut off anywhere gives the events that are whole, or one sentence", () => {
	const data = bytes(TEXT), first = TEXT.indexOf(JSON.stringify(EVENTS[0])) + JSON.stringify(EVENTS[0]).length;
	for (let end = 1; end < data.length; end += 3) {
		const text = new TextDecoder().decode(data.subarray(0, end));
		const sizes = () => streamed(text, 1000);
		if (end < first) assert.throws(sizes, TraceError);
		else assert.equal(sizes().cut, true);
	}
});

test("what was cut off is said, with the place", async () => {
	const { notes, report } = await read(TEXT.slice(0, -30));
	assert.match(notes[0], /^mine\.json is cut off after [56] events \(1 KB of JSON\): what came later in the file is missing/);
	assert.equal(report.blocking[0].call, "cudaEventSynchronize");
});

test("a packed file gives what the plain one gives, and its beginning when it is cut off", async () => {
	const plain = await read(TEXT), packed = await read(zlib.gzipSync(TEXT), "mine.json");
	assert.deepEqual(packed, plain);
	assert.deepEqual(plain.notes, []);
	const many = JSON.stringify({ traceEvents: Array.from({ length: 4000 }, (_, k) => kernel(`gemm ${(k * 7919) % 1009}`, k * 10, 5, 7, k)) }), gz = zlib.gzipSync(many);
	const half = await read(gz.subarray(0, gz.length >> 1));
	assert.ok(half.report.spans > 1000 && half.report.spans < 4000, `${half.report.spans}`);
	assert.match(half.notes[0], /is cut off after [\d,]+ events/);
});

test("a bare list of events may lack its end, as chrome's own may", async () => {
	const { notes } = await read(`[${EVENTS.map((event) => JSON.stringify(event)).join(",")},`);
	assert.deepEqual(notes, []);
});

test("what is no trace gets one clear sentence", async () => {
	const cases = [
		["", /^mine\.json is empty/], [" \n", /is empty/], ["hello", /is not JSON: it begins with "h"/], [new Uint8Array([200, 7, 1]), /is not JSON: it is not text/],
		["{}", /no chrome trace: it has no list of traceEvents/], ['{"traceEvents": 5}', /no list of traceEvents/], ['{"traceEvents": [', /cut off before its first event/],
		['{"traceEvents": []}', /shows neither GPU work nor annotations; profile with ProfilerActivity\.CUDA/], ['{"traceEvents": []} {}', /it goes on after its end/],
		['{"traceEvents": [{"ph": "X" "cat": 1}]}', /is cut off or not JSON \(event 0: /], [new Uint8Array([0x1f, 0x8b, 1, 2, 3, 4, 5, 6, 7, 8, 9]), /cannot be unpacked/],
		[new Uint8Array([0x50, 0x4b, 3, 4]), /is a zip archive; unpack it first/],
		[JSON.stringify([kernel("k", 0, -1, 7, 1)]), /event 0 is no slice of a profiler trace: it begins at 0 and takes -1 microseconds/],
		[JSON.stringify([slice("kernel", "k", 0, 1)]), /it is GPU work on no stream/], [JSON.stringify([{ ph: "X", cat: "kernel", ts: 1, args: { stream: 7 } }]), /it has no 'name'/],
	];
	for (const [data, sentence] of cases) await assert.rejects(read(data), (error) => error instanceof TraceError && sentence.test(error.message) && !error.message.includes("\n"), String(data).slice(0, 60));
});

test("a trace without GPU work is shown, and said to have none", async () => {
	const { notes, columns } = await read(JSON.stringify([EVENTS[1]]));
	assert.deepEqual(columns.lanes, ["host"]);
	assert.match(notes[0], /^mine\.json shows no GPU work: profile with ProfilerActivity\.CUDA/);
});

test("progress goes up to the whole file", async () => {
	const shares = [];
	await readTrace(file(" ".repeat(9 << 20) + TEXT), (share) => void shares.push(share));
	assert.ok(shares.length > 2 && shares.at(-1) === 1 && shares.every((share, k) => !k || share > shares[k - 1]), String(shares));
});

test("the columns name what ran, when, and the call behind it", async () => {
	const { columns } = await read(TEXT), at = columns.spans.kind.indexOf(0);
	assert.deepEqual([columns.lanes, columns.device, columns.names[columns.spans.name[at]]], [["host", "stream 7"], "GPU", "verify 0 é ✓ 𝛼"]);
	assert.deepEqual(["start", "end", "submit", "ready"].map((key) => columns.spans[key][at]), [12, 112, 5, 9]);
	assert.equal(columns.calls[columns.spans.call[at]], "cudaLaunchKernel");
});

test("line ends in names and figures that are none do not spoil a trace", async () => {
	const text = JSON.stringify([kernel("a b", 12, 100, 7, 1), slice("cpu_op", 'say "NaN" \\ -Infinity', 0, 5, { occupancy: 0.25 })]).replace("a b", "a\nb\tc").replace("0.25", "-Infinity, \"more\": NaN");
	const { columns } = await read(text);
	assert.deepEqual(columns.names, ['say "NaN" \\ -Infinity', "a\nb\tc"]);
});

test("a time that is none is still refused", async () => {
	await assert.rejects(read(JSON.stringify([kernel("gemm", 12, 100, 7, 1)]).replace("12", "NaN")), { message: "mine.json: event 0 is no slice of a profiler trace: its 'ts' is no number: null" });
});

test("times of different clocks are no run", async () => {
	await assert.rejects(read(JSON.stringify([kernel("a", 1, 5, 7, 1), kernel("b", 1.7e18, 5, 7, 2)])), /mine\.json goes on for 1700000000000000000 µs, which is no time of a run/);
	await assert.rejects(read(JSON.stringify([kernel("a", -1.7e308, 5, 7, 1), kernel("b", 1.7e308, 5, 7, 2)])), TraceError);
});
