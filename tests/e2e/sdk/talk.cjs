// A conversation by the SDKs of OpenAI and Anthropic. argv: JSON {url, key, headers}. stdin: a request in each line,
// {path, body}; stdout: a line for each, {status, headers, body}, the body being the whole answer, streamed or not.
// The packages are found through NODE_PATH.
"use strict";
const readline = require("node:readline");
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");

const { url, key, headers } = JSON.parse(process.argv[2]);
const options = { apiKey: key, maxRetries: 0, timeout: 20000, defaultHeaders: headers };
const openai = new OpenAI({ ...options, baseURL: url + "/v1" });
const anthropic = new Anthropic({ ...options, baseURL: url });

async function foldChat(stream) {
	const message = { content: "", tool_calls: [] }, whole = { choices: [{ message, finish_reason: null }] };
	for await (const chunk of stream) {
		whole.model = chunk.model;
		whole.usage = chunk.usage ?? whole.usage;
		for (const { delta, finish_reason } of chunk.choices) {
			message.content += delta.content ?? "";
			for (const c of delta.tool_calls ?? []) {
				const call = (message.tool_calls[c.index] ??= { id: c.id, function: { name: c.function.name, arguments: "" } });
				call.function.arguments += c.function.arguments ?? "";
			}
			whole.choices[0].finish_reason ??= finish_reason;
		}
	}
	return whole;
}

async function ask(path, body) {
	if (path.endsWith("/messages") && body.stream) {
		const { stream, ...params } = body, helper = anthropic.messages.stream(params);
		const { response } = await helper.withResponse();
		return [response, await helper.finalMessage()];
	}
	const api = path.endsWith("/messages") ? anthropic.messages : openai.chat.completions;
	const { data, response } = await api.create(body).withResponse();
	return [response, body.stream ? await foldChat(data) : data];
}

async function main() {
	for await (const line of readline.createInterface({ input: process.stdin })) {
		const { path, body } = JSON.parse(line);
		let told;
		try {
			const [response, whole] = await ask(path, body);
			told = { status: response.status, headers: Object.fromEntries(response.headers), body: whole };
		} catch (e) {
			told = { status: e.status ?? 0, headers: {}, body: { error: String(e) } };
		}
		process.stdout.write(JSON.stringify(told) + "\n");
	}
}
main();
