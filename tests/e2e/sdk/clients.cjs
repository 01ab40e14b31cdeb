// Runs calls of many client packages and tells what each made of the answer, in one form.
// A line in: {url, key, calls: [{client, way, model, text, tools}]}; a line out: a list of {ok: {meaning, raw}} or {error}.
// meaning: text, reasoning, calls [[id, name, input]], finish, prompt, completion, cached, reasoned; null: not shown by it.
// The packages are found through NODE_PATH.
"use strict";
const lines = require("./lines.cjs");
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");

const AT_ONCE = 4;
const ENOUGH = 4000; // max_tokens
const SCHEMA = { type: "object", properties: {}, additionalProperties: true };
const FINISH = { stop: "stop", end_turn: "stop", stop_sequence: "stop", completed: "stop", length: "length",
	max_tokens: "length", incomplete: "length", tool_calls: "calls", "tool-calls": "calls", tool_use: "calls",
	content_filter: "filtered", "content-filter": "filtered", refusal: "filtered" };
const input = (v) => (typeof v === "string" ? JSON.parse(v || "{}") : v ?? {});
const finish = (v) => FINISH[v] ?? String(v);
const gone = (what) => Object.assign(new Error(what.message ?? JSON.stringify(what)), { told: what });

// What the answers of the two makers' own packages mean.
const meaning = {
	chat(a) {
		const { message: m, finish_reason } = a.choices[0], u = a.usage ?? {};
		return { text: m.content ?? "", reasoning: m.reasoning_content ?? m.reasoning ?? "",
			calls: (m.tool_calls ?? []).map((c) => [c.id, c.function.name, input(c.function.arguments)]),
			finish: finish(finish_reason), prompt: u.prompt_tokens ?? null, completion: u.completion_tokens ?? null,
			cached: u.prompt_tokens_details?.cached_tokens ?? u.prompt_cache_hit_tokens ?? null,
			reasoned: u.completion_tokens_details?.reasoning_tokens ?? null, total: u.total_tokens };
	},
	responses(a) {
		const of = (type) => a.output.filter((i) => i.type === type), u = a.usage ?? {};
		const calls = of("function_call").map((i) => [i.call_id, i.name, input(i.arguments)]);
		return { text: of("message").flatMap((i) => i.content.map((p) => p.text ?? "")).join(""),
			reasoning: of("reasoning").flatMap((i) => (i.summary?.length ? i.summary : i.content ?? []).map((p) => p.text))
				.join(""),
			calls, finish: a.status === "completed" && calls.length ? "calls" : finish(a.status),
			prompt: u.input_tokens ?? null, completion: u.output_tokens ?? null,
			cached: u.input_tokens_details?.cached_tokens ?? null,
			reasoned: u.output_tokens_details?.reasoning_tokens ?? null };
	},
	messages(a) {
		const u = a.usage, of = (type) => a.content.filter((b) => b.type === type);
		const cached = u.cache_read_input_tokens ?? 0;
		return { text: of("text").map((b) => b.text).join(""), reasoning: of("thinking").map((b) => b.thinking).join(""),
			calls: of("tool_use").map((b) => [b.id, b.name, b.input]), finish: finish(a.stop_reason),
			prompt: u.input_tokens + cached + (u.cache_creation_input_tokens ?? 0), completion: u.output_tokens,
			cached, reasoned: null };
	},
};

function foldChat(chunks) {
	const message = { content: "", reasoning_content: "", tool_calls: [] };
	const whole = { choices: [{ message, finish_reason: null }] };
	for (const chunk of chunks) {
		if (chunk.usage) whole.usage = chunk.usage;
		for (const { delta = {}, finish_reason } of chunk.choices ?? []) {
			message.content += delta.content ?? "";
			message.reasoning_content += delta.reasoning_content ?? delta.reasoning ?? "";
			for (const c of delta.tool_calls ?? []) {
				const call = (message.tool_calls[c.index] ??= { function: { name: "", arguments: "" } });
				if (c.id) call.id = c.id;
				call.function.name ||= c.function?.name ?? "";
				call.function.arguments += c.function?.arguments ?? "";
			}
			whole.choices[0].finish_reason = finish_reason ?? whole.choices[0].finish_reason;
		}
	}
	message.tool_calls = message.tool_calls.filter(Boolean);
	return whole;
}

function foldResponses(events) {
	const last = events.at(-1);
	const said = events.filter((e) => e.type === "response.output_text.delta").map((e) => e.delta).join("");
	if (!["response.completed", "response.incomplete"].includes(last.type)) throw gone(last.response?.error ?? last);
	if (meaning.responses(last.response).text !== said) throw new Error(`deltas differ from the whole: ${said}`);
	return last.response;
}

function foldMessages(events) {
	let whole, json = "";
	for (const e of events) {
		const block = whole?.content.at(-1), d = e.delta;
		if (e.type === "message_start") whole = { ...e.message, content: [] };
		if (e.type === "content_block_start") whole.content.push({ ...e.content_block }), (json = "");
		if (d?.type === "text_delta") block.text += d.text;
		if (d?.type === "thinking_delta") block.thinking += d.thinking;
		if (d?.type === "input_json_delta") json += d.partial_json;
		if (e.type === "content_block_stop" && json) (block.input = JSON.parse(json)), (json = "");
		if (e.type === "message_delta") {
			whole.stop_reason = d.stop_reason;
			for (const [name, n] of Object.entries(e.usage)) if (n != null) whole.usage[name] = n;
		}
	}
	if (events.at(-1)?.type !== "message_stop") throw new Error("no message_stop");
	return whole;
}

async function collect(stream) {
	const all = [];
	for await (const one of await stream) all.push(one);
	return all;
}

// The makers' packages: (client, params) -> [raw, whole answer].
const makers = {
	chat: { plain: async (c, p) => [await c.chat.completions.create(p)],
		async stream(c, p) {
			const chunks = await collect(c.chat.completions.create({ ...p, stream: true, stream_options: { include_usage: true } }));
			return [chunks, foldChat(chunks)];
		},
		helper: async (c, p) => [await c.chat.completions.stream({ ...p, stream_options: { include_usage: true } })
			.finalChatCompletion()] },
	responses: { plain: async (c, p) => [await c.responses.create(p)],
		async stream(c, p) {
			const events = await collect(c.responses.create({ ...p, stream: true }));
			return [events, foldResponses(events)];
		},
		helper: async (c, p) => [await c.responses.stream(p).finalResponse()] },
	messages: { plain: async (c, p) => [await c.messages.create(p)],
		async stream(c, p) {
			const events = await collect(c.messages.create({ ...p, stream: true }));
			return [events, foldMessages(events)];
		},
		helper: async (c, p) => [await c.messages.stream(p).finalMessage()] },
};

function paramsOf(wire, { model, text, tools, more }) {
	const turns = [{ role: "user", content: text }], fn = (name) => ({ name, parameters: SCHEMA });
	const list = { chat: (n) => ({ type: "function", function: fn(n) }), responses: (n) => ({ type: "function", ...fn(n) }),
		messages: (name) => ({ name, input_schema: SCHEMA }) }[wire];
	return { model, ...(wire === "responses" ? { input: turns } : { messages: turns }),
		...(wire === "messages" ? { max_tokens: ENOUGH } : {}), ...(tools?.length ? { tools: tools.map(list) } : {}), ...more };
}

async function maker(url, key, wire, call) {
	const options = { apiKey: key, maxRetries: 0, timeout: 20000 };
	const client = wire === "messages" ? new Anthropic({ ...options, baseURL: url })
		: new OpenAI({ ...options, baseURL: url + "/v1" });
	const [raw, whole] = await makers[wire][call.way](client, paramsOf(wire, call));
	if (raw.status === "failed") throw gone(raw.error);
	const meant = meaning[wire](whole ?? raw);
	if (wire === "chat" && call.way === "helper") meant.reasoning = null; // it keeps the last piece only
	return { raw, meaning: meant };
}

// The AI SDK.
async function vercel(url, key, kind, { way, model, text, tools }) {
	const { generateText, streamText, tool, jsonSchema } = require("ai");
	const baseURL = url + "/v1", options = { baseURL, apiKey: key };
	const { createOpenAI } = require("@ai-sdk/openai");
	const made = { chat: () => createOpenAI(options).chat(model), responses: () => createOpenAI(options).responses(model),
		compatible: () => require("@ai-sdk/openai-compatible")
			.createOpenAICompatible({ ...options, name: "x", includeUsage: true })(model),
		messages: () => require("@ai-sdk/anthropic").createAnthropic(options)(model) }[kind]();
	const asked = { model: made, prompt: text, maxRetries: 0, maxOutputTokens: ENOUGH,
		tools: Object.fromEntries((tools ?? []).map((name) => [name, tool({ inputSchema: jsonSchema(SCHEMA) })])) };
	let r = way === "plain" ? await generateText(asked) : null;
	if (!r) {
		let broken = null;
		const s = streamText({ ...asked, onError: ({ error }) => (broken = error) });
		await s.consumeStream();
		if (broken) throw broken instanceof Error ? broken : gone(broken);
		r = { text: await s.text, reasoningText: await s.reasoningText, toolCalls: await s.toolCalls,
			finishReason: await s.finishReason, usage: await s.usage };
	}
	const calls = r.toolCalls.map((c) => [c.toolCallId, c.toolName, c.input]), u = r.usage;
	const raw = { text: r.text, reasoning: r.reasoningText ?? "", calls, finish: r.finishReason, usage: u };
	return { raw, meaning: { text: r.text, reasoning: kind === "chat" ? null : r.reasoningText ?? "", calls,
		finish: finish(r.finishReason), prompt: u.inputTokens ?? null, completion: u.outputTokens ?? null,
		cached: u.inputTokenDetails?.cacheReadTokens ?? null, reasoned: null } };
}

// LangChain.
async function langchain(url, key, kind, { way, model, text, tools }) {
	const common = { model, maxRetries: 0, maxTokens: ENOUGH, apiKey: key };
	let chat = kind === "messages"
		? new (require("@langchain/anthropic").ChatAnthropic)({ ...common, anthropicApiUrl: url })
		: new (require("@langchain/openai").ChatOpenAI)({ ...common, configuration: { baseURL: url + "/v1" },
			useResponsesApi: kind === "responses" });
	if (tools?.length) chat = chat.bindTools(tools.map((name) => ({ type: "function", function: { name, description: name, parameters: SCHEMA } })));
	let m = way === "plain" ? await chat.invoke(text) : null;
	if (!m) for (const chunk of await collect(chat.stream(text))) m = m ? m.concat(chunk) : chunk;
	const blocks = typeof m.content === "string" ? [{ type: "text", text: m.content }] : m.content;
	const calls = (m.tool_calls ?? []).map((c) => [c.id, c.name, c.args]), u = m.usage_metadata ?? {};
	const meta = m.response_metadata, said = meta.finish_reason ?? meta.stop_reason ?? m.additional_kwargs.stop_reason ?? meta.status;
	const raw = { content: m.content, calls, usage: u, meta, more: m.additional_kwargs };
	return { raw, meaning: { text: blocks.filter((b) => b.type === "text").map((b) => b.text).join(""),
		reasoning: kind === "messages" ? blocks.filter((b) => b.type === "thinking").map((b) => b.thinking).join("") : null,
		calls, finish: said === "completed" && calls.length ? "calls" : finish(said), prompt: u.input_tokens ?? null,
		completion: u.output_tokens ?? null, cached: u.input_token_details?.cache_read ?? null, reasoned: null } };
}

const PACKAGES = { maker, vercel, langchain };

async function one(url, key, call) {
	const [package_, kind] = call.client.split(" ");
	try {
		return { ok: await PACKAGES[package_](url, key, kind, call) };
	} catch (e) {
		const from = e.told ?? e;
		return { error: { name: e.constructor.name, status: from.status ?? from.statusCode ?? null, message: String(e.message),
			code: from.code ?? from.data?.error?.code ?? null, type: from.type ?? from.data?.error?.type ?? from.error?.error?.type ?? null } };
	}
}

async function run({ url, key, calls }) {
	const out = new Array(calls.length);
	let next = 0;
	await Promise.all(Array.from({ length: AT_ONCE }, async () => {
		for (let i = next++; i < calls.length; i = next++) out[i] = await one(url, key, calls[i]);
	}));
	return out;
}

globalThis.AI_SDK_LOG_WARNINGS = false;
console.log = console.warn = console.error = () => {};
lines(run);
