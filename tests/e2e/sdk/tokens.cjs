// Counts of gpt-tokenizer and tiktoken. A line in: a list of texts; a line out: {encoding: {package: [...]}}.
"use strict";
const { get_encoding } = require("tiktoken");
const lines = require("./lines.cjs");

function run(texts) {
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
	return out;
}
lines(run);
