// How long npm's packages take to count: node tokens.cjs BEFORE FILE; {encoding: {package: {tokens, first_ms, ms}}}.
const fs = require("fs");
const { get_encoding } = require("tiktoken");

const [before, text] = process.argv.slice(2, 4).map((path) => fs.readFileSync(path, "utf8"));
const TIMES = 15;

// Warm by another text; then this one for the first time, and the fastest of more.
function measure(count) {
	for (let i = 0; i < 3; i++) count(before);
	const took = [];
	let tokens;
	for (let i = 0; i < TIMES; i++) {
		const begin = performance.now();
		tokens = count(text);
		took.push(performance.now() - begin);
	}
	return { tokens, first_ms: took[0], ms: Math.min(...took) };
}

const out = {};
for (const encoding of ["o200k", "cl100k"]) {
	const gpt = require(`gpt-tokenizer/encoding/${encoding}_base`);
	const tiktoken = get_encoding(encoding + "_base");
	const all = { disallowedSpecial: new Set() };
	out[encoding] = {
		"gpt-tokenizer": measure((t) => gpt.countTokens(t, all)),
		tiktoken: measure((t) => tiktoken.encode(t, [], []).length),
	};
	tiktoken.free();
}
console.log(JSON.stringify(out));
