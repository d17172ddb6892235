// Reads a JSON list of paths from standard input; prints for each file what the page makes of it: columns, report and notes, or a sentence.
import { openAsBlob } from "node:fs";
import fs from "node:fs";
import path from "node:path";
import { readTrace } from "../../refimpl/view/trace/read_trace.js";

const said = [];
for (const file of JSON.parse(fs.readFileSync(0, "utf8"))) {
	const blob = await openAsBlob(file);
	said.push(await readTrace(Object.assign(blob, { name: path.basename(file) })).catch((error) => ({ error: error.message, kind: error.constructor.name })));
}
console.log(JSON.stringify(said));
