// Runs calls of the openai SDK. A line in: {base, key, calls: [{op, params}]}; a line out: a list of {ok} or {error}.
// The module is found through NODE_PATH.
"use strict";
const OpenAI = require("openai");
const lines = require("./lines.cjs");

const ops = {
	chat: (c, p) => c.chat.completions.create(p),
	async stream(c, p) {
		const chunks = [];
		for await (const chunk of await c.chat.completions.create({ ...p, stream: true })) chunks.push(chunk);
		return chunks;
	},
	helper: (c, p) => c.chat.completions.stream(p).finalChatCompletion(),
	async cancel(c, p) {
		let n = 0;
		for await (const _ of await c.chat.completions.create({ ...p, stream: true })) if (++n === 2) break;
		return n;
	},
	embeddings: (c, p) => c.embeddings.create(p),
	async models(c) {
		const ids = [];
		for await (const model of c.models.list()) ids.push(model.id);
		return ids;
	},
};

async function run({ base, key, calls, options }) {
	const client = new OpenAI({ baseURL: base, apiKey: key, maxRetries: 0, timeout: 20000, ...options });
	const out = [];
	for (const { op, params } of calls) {
		try {
			out.push({ ok: await ops[op](client, params) });
		} catch (e) {
			out.push({ error: { name: e.constructor.name, status: e.status ?? null, code: e.code ?? null,
				type: e.type ?? null, message: e.message } });
		}
	}
	return out;
}
lines(run);
