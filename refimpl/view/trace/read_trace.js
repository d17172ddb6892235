/**
 * A profiler's file read to the end: the columns to draw, the report to print, and what a reader has to be told of the file. This folder turns bytes
 * into a recorded run and its accounts, with no page: refimpl/timeline/reading and reports in the browser.
 */
import { ChromeEvents, deviceWords } from "./chrome_events.js";
import { TraceError, TraceStream } from "./json_stream.js";
import { readPieces } from "./file.js";
import { importProfile } from "./profiler.js";
import { traceColumns } from "./columns.js";
import { runReport } from "./report.js";

const MOST_EVENTS = 5e6;

/**
 * @param {Blob & {name: string}} file `.json` or `.json.gz`
 * @param {(share: number, events: number) => void | Promise<void>} [onProgress]
 * @returns {Promise<{columns: any, report: any, notes: string[]}>}
 * @throws {TraceError} in one sentence, for what is no trace
 */
export async function readTrace(file, onProgress = () => {}) {
	const chrome = new ChromeEvents(file.name);
	const stream = new TraceStream({
		name: file.name, fields: ["deviceProperties", "otherData"],
		wanted: (ph, cat) => chrome.wanted(ph, cat),
		onEvent: (event, number) => chrome.take(event, number),
	});
	const take = (piece) => {
		stream.push(piece);
		if (chrome.events.length + chrome.others.length > MOST_EVENTS) throw new TraceError(`${file.name} holds more than ${MOST_EVENTS / 1e6} million events to draw; profile fewer steps`);
	};
	const packed = await readPieces(file, take, (share) => onProgress(share, stream.count));
	const { cut } = stream.end(packed.cut);
	const { deviceProperties, otherData } = stream.fields, run = (merge) => importProfile(chrome, deviceWords(deviceProperties), otherData, merge);
	chrome.sorted();
	const columns = traceColumns(run(false), { title: file.name }), launches = run(true);
	return { columns, report: runReport(launches, file.name), notes: notesOf(file.name, stream, launches, cut) };
}

/** What is wrong with a file that can be shown all the same. */
function notesOf(name, stream, trace, cut) {
	const notes = [];
	if (cut) notes.push(`${name} is cut off after ${stream.count.toLocaleString("en")} events (${megabytes(stream.bytes)} of JSON): what came later in the file is missing from the view and from every sum.`);
	if (!trace.spans.some((span) => span.kind === RUN)) notes.push(`${name} shows no GPU work: profile with ProfilerActivity.CUDA, and let the profiler stop after the GPU has finished.`);
	return notes;
}

const RUN = 0;
const megabytes = (bytes) => (bytes < 1e6 ? `${Math.ceil(bytes / 1e3)} KB` : `${(bytes / 1e6).toFixed(1)} MB`);
