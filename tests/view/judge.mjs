// Reads a JSON list of programs from standard input; prints for each what the component's model says: verdict, racing pairs, times.
import fs from "node:fs";
import { compile, schedule, verdict } from "../../refimpl/view/model.js";

const KIND = { run: "run", record: "record", wait: "wait", sync: "blocked", host: "host", agent: "host" };
const judge = (program) => {
	const { verdict: said, pairs, stuck } = verdict(program), c = compile(program), T = schedule(c);
	const shown = c.ops.filter((o) => KIND[o.kind] && !(o.implicit && (o.kind === "record" || o.kind === "host")) && !c.never.has(o.i));
	return { verdict: said, pairs, stuck, spans: shown.map((o) => [o.src, o.lane, KIND[o.kind], T[o.i].start, T[o.i].end]) };
};
console.log(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(judge)));
