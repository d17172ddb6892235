// Reads programs as JSON from standard input and writes, for each, what the timeline component's model makes of it.
import { readFileSync } from "node:fs";
import { compile, schedule } from "../../refimpl/view/model/model.js";

function solve(program) {
	try {
		const c = compile(program), T = schedule(c);
		if (c.never.size) return { stuck: true };
		return { spans: c.ops.map((o) => ({ op: o.src, lane: o.lane, kind: o.kind, implicit: Boolean(o.implicit), start: T[o.i].start, end: T[o.i].end })) };
	} catch (error) {
		return { error: String(error) };
	}
}

process.stdout.write(JSON.stringify(JSON.parse(readFileSync(0, "utf8")).map(solve)));
