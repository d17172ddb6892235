import test from "node:test";
import assert from "node:assert/strict";
import { holds, questionOf, veil } from "../../refimpl/view/explorable/predict.js";
import { complete, edited, solve, structure } from "../../refimpl/view/explorable/solve.js";
import { facts, inWords, laneState, listing } from "../../refimpl/view/explorable/words.js";
import { units } from "../../refimpl/view/shared/dom.js";
import { verifyDone } from "./example.mjs";

const U = units(1e4), made = (more, us = {}) => {
	const spec = complete({ ...verifyDone(), ...more }), solveOne = (v) => solve(edited(structure(v.program, spec.hero), v.program, [], spec.hero), new Map(Object.entries(us)), spec);
	return { spec, all: new Map(spec.variants.map((v) => [v.id, solveOne(v)])) };
};
const rightOf = (more, us) => { const { spec, all } = made(more, us), q = questionOf(spec, all); return q.choices.filter((c) => holds(c, all.get(q.variant), all)).map((c) => c.text); };
const SPOILS = /\b(RAW|WAR|WAW|unordered|race|safe|hazard|luck)\b/;

test("the question about races names pairs of ops, one of them wrong and one of them right, and one choice for none", () => {
	const asked = (initial) => { const { spec, all } = made({ predict: true, initial }); return questionOf(spec, all); };
	assert.equal(asked("none").question, "Under none: is there a race?");
	assert.deepEqual(asked("none").choices, asked("synchronize").choices.slice(), "the choices give nothing away");
	assert.deepEqual(rightOf({ predict: true, initial: "none" }), ["Yes: gather may read new_seq_lens before forward has written it"]);
	assert.deepEqual(rightOf({ predict: true, initial: "wait" }), ["No: every pair that shares a byte is ordered"]);
});
test("a step under synchronize is host and forward in turn, without a fence the longer alone, by the durations of the program", () => {
	const step = (variant, us) => rightOf({ predict: { about: "step", variant } }, us)[0];
	assert.match(step("synchronize"), /^As long as both/);
	assert.match(step("none"), /^As long as the longer/);
	// under wait a gather of 180 comes between two forwards of 2600: more than the longer alone, far from the sum
	assert.match(step("wait"), /^In between/);
	assert.match(step("none", { host: 4000, graph: 400 }), /^As long as the longer/);
});
test("what holds the host, what forward waits for and which is fastest follow the model", () => {
	assert.deepEqual(rightOf({ predict: { about: "blocked", variant: "synchronize" } }), ["For verify_done"]);
	assert.deepEqual(rightOf({ predict: { about: "blocked", variant: "wait" } }), ["For copy_done"]);
	assert.deepEqual(rightOf({ predict: { about: "waits", variant: "synchronize" } }), ["For the host, which is late"]);
	assert.deepEqual(rightOf({ predict: "fastest" }), ["none"]);
});
test("every built-in question has a right choice and a wrong one, whatever the durations", () => {
	for (const about of ["race", "step", "blocked", "waits", "fastest"])
		for (const variant of ["none", "synchronize", "wait"])
			for (const us of [{}, { host: 0 }, { host: 4000, graph: 400 }, { host: 3000, graph: 3000 }]) {
				const { spec, all } = made({ predict: { about, variant } }, us), q = questionOf(spec, all), right = rightOf({ predict: { about, variant } }, us).length;
				assert.ok(right >= 1 && right < q.choices.length, `${about} of ${variant}: ${right} of ${q.choices.length}`);
			}
});
test("a question of the author's claims, and the model says what holds; what cannot be claimed is never right", () => {
	const choices = [{ text: "both", holds: { races: true, blocked: "copy_done" } }, { text: "half", holds: { races: true, blocked: "verify_done" } }, { text: "pair", holds: { race: ["gather", "forward"] } }, { text: "number", holds: { races: 1 } }, { text: "odd", holds: { answer: true } }];
	assert.deepEqual(rightOf({ predict: { question: "Well?", choices, variant: "none" } }), ["both", "pair", "number"]);
	const { spec, all } = made({ predict: { question: "Well?", choices } });
	assert.equal(questionOf(spec, all).question, "Well?");
});
test("a plain program is asked about, and one that may never end may be said to", () => {
	const plain = (program) => { const spec = complete({ ...program, predict: true }), v = spec.variants[0], all = new Map([[v.id, solve(edited(structure(v.program, "a"), v.program, [], "a"), new Map(), spec)]]); const q = questionOf(spec, all); return [q.question, q.choices.filter((c) => holds(c, all.get(q.variant), all)).map((c) => c.text)]; };
	const range = { buf: "x", off: 0, len: 8 }, op = (stream, name) => ({ op: "launch", stream, name, writes: [range] });
	assert.deepEqual(plain({ id: "p", streams: { a: {}, b: {} }, buffers: { x: { bytes: 8 } }, ops: [op("a", "one"), op("b", "two")] }), ["Is there a race?", ["Yes: one and two may write x in either order"]]);
	const stuck = { id: "s", streams: { a: {} }, ops: [{ op: "stream_wait_value", stream: "a", flag: "go" }], predict: true }, whole = complete(stuck), m = solve(edited(structure(stuck, "a"), stuck, [], "a"), new Map(), whole);
	assert.equal(questionOf(whole, new Map([["program", m]])).picture, false, "the picture would show who is stuck");
	assert.deepEqual(plain({ id: "s", streams: { a: {} }, ops: [{ op: "stream_wait_value", stream: "a", flag: "go" }] })[1], ["It never ends: a deadlock"]);
});
test("no question, no veil; an unknown one is about races", () => {
	const { spec, all } = made({});
	assert.equal(questionOf(spec, all), null);
	assert.deepEqual(["race", "step", "blocked", "waits", "fastest"].map((about) => questionOf({ ...spec, predict: about }, all).picture), [true, false, false, false, false], "a picture with times would answer");
	assert.equal(questionOf({ ...spec, predict: "weather" }, all).choices.length, questionOf({ ...spec, predict: true }, all).choices.length);
});
test("under the veil neither a card nor a lane nor the listing answers", () => {
	const { all } = made({}), m = all.get("none"), v = veil(m), i = m.race.b, told = facts(v, U, i).map((r) => r.join(" ")).join(". ");
	assert.match(facts(m, U, i).map((r) => r.join(" ")).join(". "), /RAW unordered with/);
	assert.doesNotMatch(told, SPOILS);
	assert.doesNotMatch(told, /waited for/);
	assert.equal(laneState(v, "schedule", m.gaps.find((g) => g.lane === "schedule").from + 1), "idle");
	assert.doesNotMatch(listing(v, U), SPOILS);
	assert.match(listing(v, U), /<b>schedule<\/b> gather 1, 0\.18 ms/);
	assert.match(inWords(m, U, "", { words: "" }), /unordered/, "which is why the words are not shown");
});
