import test from "node:test";
import assert from "node:assert/strict";
import fs from "node:fs";
import * as M from "../../refimpl/view/model/model.js";
import { complete, question, solve, structure } from "../../refimpl/view/explorable/solve.js";
import { units } from "../../refimpl/view/shared/dom.js";
import { inWords, narrate, opWords, orderAnswer } from "../../refimpl/view/explorable/words.js";

const { cases } = JSON.parse(fs.readFileSync(new URL("../cases/stream-programs.json", import.meta.url), "utf8"));

test("every program of the shared catalogue gets its verdict", () => {
	const wrong = cases.filter((p) => M.verdict(p).verdict !== p.expect).map((p) => p.id);
	assert.deepEqual(wrong, []);
	assert.ok(cases.length >= 129);
});
test("every litmus program gets its verdict", () => {
	const { cases: litmus } = JSON.parse(fs.readFileSync(new URL("../litmus/programs.json", import.meta.url), "utf8"));
	const wrong = litmus.filter((p) => M.verdict(p).verdict !== p.expect).map((p) => p.id);
	assert.deepEqual(wrong, []);
});
test("a listed racing pair is among those found, and no other pair is", () => {
	for (const p of cases) {
		const listed = new Set(p.racing_ops.map(String)), pairs = M.verdict(p).pairs.map(String);
		assert.ok(listed.size === 0 || pairs.some((x) => listed.has(x)), `${p.id}: none of ${[...listed]} in ${pairs}`);
		assert.deepEqual(pairs.filter((x) => !listed.has(x)), [], p.id);
	}
});
test("every program is scheduled in finite time, no op before its call", () => {
	for (const p of cases) for (const t of M.schedule(M.compile(p))) assert.ok([t.submit, t.ready, t.start, t.end].every(Number.isFinite) && t.start >= t.submit && t.end >= t.start, p.id);
});
test("every program can be told in words, and every op of it", () => {
	for (const p of cases) {
		const spec = complete(p), s = structure(spec.variants[0].program, spec.hero), m = solve(s, new Map(), spec), U = units(m.end), say = narrate(m, U, spec, spec.variants[0]);
		assert.match(say, p.expect === "race" ? /race/ : p.expect === "ok" ? /[Ss]afe/ : /deadlock/, p.id);
		assert.equal(/Missing|hazard|unordered/.test(inWords(m, U, say, spec.variants[0])), true, p.id);
		m.ops.forEach((o) => assert.ok(opWords(m, U, o.i).length > 5, p.id));
		const pair = question(spec, [s]);
		if (pair) assert.match(orderAnswer(m, s.at.get(pair[0]), s.at.get(pair[1]), 0).html, /unordered|happens before/, p.id);
	}
});
test("a race can be forced: after a delay the second op ends before the first begins, and without one it goes wrong as timed", () => {
	let forced = 0;
	for (const p of cases) {
		const c = M.compile(p);
		for (const race of M.races(c)) {
			const { T, stalled } = M.forceBadOrder(c, race);
			assert.ok(stalled ? T[race.b].end <= T[race.a].start + 1e-9 : M.goesWrong(c, M.schedule(c), race), `${p.id}: ${race.a} and ${race.b}`);
			forced++;
		}
	}
	assert.ok(forced > 50);
});
