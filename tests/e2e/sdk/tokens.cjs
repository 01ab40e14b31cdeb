// Counts of gpt-tokenizer and tiktoken, for the texts on standard input (a JSON list): {encoding: {package: [...]}}.
const fs = require("fs");
const { get_encoding } = require("tiktoken");

const texts = JSON.parse(fs.readFileSync(0, "utf8"));
const out = {};
for (const encoding of ["o200k", "cl100k"]) {
	const gpt = require(`gpt-tokenizer/encoding/${encoding}_base`);
	const tiktoken = get_encoding(encoding + "_base");
	out[encoding] = {
		"gpt-tokenizer": texts.map((t) => gpt.countTokens(t, { disallowedSpecial: new Set() })),
		tiktoken: texts.map((t) => tiktoken.encode(t, [], []).length),
	};
	tiktoken.free();
}
console.log(JSON.stringify(out));
