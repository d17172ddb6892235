/** Reading apart from the page, so that it stays alive meanwhile: in a worker where there is one, else on the page in pieces. */
import { TraceError } from "../trace/json_stream.js";
import { readTrace } from "../trace/read_trace.js";

/** What the worker does: a file in, progress and a result out. @param {any} scope the worker's global */
export function serve(scope) {
	scope.onmessage = async ({ data: file }) => {
		const progress = (share, events) => scope.postMessage({ share, events });
		try {
			scope.postMessage({ result: await readTrace(named(file), progress) });
		} catch (error) {
			scope.postMessage({ error: error.message, known: error instanceof TraceError });
		}
	};
	scope.postMessage({ ready: true });
}

/**
 * @param {File} file
 * @param {{source: string, signal: AbortSignal, onProgress: (share: number, events: number) => void}} options source: a script that calls `serve(self)`
 * @returns {Promise<{columns: any, report: any, notes: string[]}>} rejected with an AbortError when the signal says so, and with a TraceError for a bad file
 */
export async function readApart(file, { source, signal, onProgress }) {
	const worker = await started(source);
	if (signal.aborted) { worker?.terminate(); throw stopped(); }
	return worker ? fromWorker(worker, file, signal, onProgress) : readHere(file, signal, onProgress);
}

/** A worker that answers, or null where pages may have none. @param {string} source */
function started(source) {
	return new Promise((done) => {
		try {
			const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" })), worker = new Worker(address);
			const give = (it) => { URL.revokeObjectURL(address); done(it); };
			worker.onerror = (event) => { event.preventDefault(); give(null); };
			worker.onmessage = () => give(worker);
		} catch {
			done(null);
		}
	});
}

function fromWorker(worker, file, signal, onProgress) {
	return new Promise((done, fail) => {
		const end = (settle, value) => { worker.terminate(); settle(value); };
		signal.addEventListener("abort", () => end(fail, stopped()), { once: true });
		worker.onerror = (event) => { event.preventDefault(); end(fail, new TraceError(`${file.name} could not be read: ${event.message || "the browser ran out of memory"}`)); };
		worker.onmessage = ({ data }) => {
			if (data.result) end(done, data.result);
			else if (data.error) end(fail, data.known ? new TraceError(data.error) : new TraceError(`${file.name} could not be read: ${data.error}`));
			else onProgress(data.share, data.events);
		};
		worker.postMessage(file);
	});
}

async function readHere(file, signal, onProgress) {
	return readTrace(named(file), async (share, events) => {
		onProgress(share, events);
		await new Promise((done) => setTimeout(done, 0));
		if (signal.aborted) throw stopped();
	});
}

/** A Blob that came without a name has one. */
const named = (file) => (file.name ? file : Object.assign(file, { name: "the trace" }));
const stopped = () => new DOMException("Reading was cancelled.", "AbortError");
