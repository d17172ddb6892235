/** Traces that come with the page, for readers who have none at hand. */
import { TraceError } from "../trace/json_stream.js";

/** @typedef {{name: string, words: string, gz: string}} Example words: what it shows; gz: the file, packed, in base64 */

/** The examples of a script beside the page: a page opened from disk may load a script, and nothing else. @param {string} address @returns {Promise<Example[]>} */
export function examplesFrom(address) {
	if (window.streamOrderExamples) return Promise.resolve(window.streamOrderExamples);
	return new Promise((done, fail) => {
		const script = document.createElement("script");
		script.src = address;
		script.onload = () => done(window.streamOrderExamples);
		script.onerror = () => { script.remove(); fail(new TraceError("The example could not be loaded: it lies in _static beside this page.")); };
		document.head.append(script);
	});
}

/** An example as a file. @param {Example} example */
export function fileOf({ name, gz }) {
	return new File([Uint8Array.from(atob(gz), (c) => c.charCodeAt(0))], name, { type: "application/gzip" });
}
