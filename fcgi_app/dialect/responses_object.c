#include "dialect/responses.h"
#include "dialect/seal.h"

void
responses_emit_part(struct emit *e, const char *key, const struct responses_part *part)
{
	emit_object(e, key);
	emit_z(e, "type", part->refusal ? "refusal" : "output_text");
	if (part->refusal) {
		emit_text(e, "refusal", part->text);
	} else {
		emit_raw(
		    e, "annotations", part->annotations.n > 0 ? part->annotations : SPAN("[]"));
		emit_raw(e, "logprobs", SPAN("[]"));
		emit_text(e, "text", part->text);
	}
	emit_end(e);
}

static void
emit_message(struct emit *e, const struct responses_item *item)
{
	emit_z(e, "role", "assistant");
	emit_array(e, "content");
	for (size_t i = 0; i < item->nparts; i++)
		responses_emit_part(e, NULL, &item->parts[i]);
	emit_end(e);
}

/* What this API itself gave goes back to it byte for byte, without the mark. */
static struct span
own_seal(struct span seal)
{
	struct seal open = seal_open(seal);

	return open.marked && open.wire == FORM_RESPONSES ? open.payload : seal;
}

static void
emit_reasoning(struct emit *e, const struct responses_item *item)
{
	emit_array(e, "summary");
	for (size_t i = 0; i < item->nparts; i++) {
		emit_object(e, NULL);
		emit_z(e, "type", "summary_text");
		emit_text(e, "text", item->parts[i].text);
		emit_end(e);
	}
	emit_end(e);
	if (item->seal.n > 0)
		emit_text(e, "encrypted_content", own_seal(item->seal));
}

static void
emit_call(struct emit *e, const struct responses_item *item, const char *arguments)
{
	emit_text(e, "call_id", item->call_id);
	emit_text(e, "name", item->name);
	if (item->namespace.n > 0)
		emit_text(e, "namespace", item->namespace);
	emit_text(e, arguments, item->arguments);
}

void
responses_emit_item(struct emit *e, const char *key, const struct responses_item *item)
{
	static const char *const types[] = {
	    [RESPONSES_MESSAGE] = "message",
	    [RESPONSES_REASONING] = "reasoning",
	    [RESPONSES_CALL] = "function_call",
	    [RESPONSES_CUSTOM] = "custom_tool_call",
	};

	emit_object(e, key);
	emit_text(e, "id", item->id);
	emit_z(e, "type", types[item->kind]);
	if (item->status != NULL)
		emit_z(e, "status", item->status);
	switch (item->kind) {
	case RESPONSES_MESSAGE: emit_message(e, item); break;
	case RESPONSES_REASONING: emit_reasoning(e, item); break;
	case RESPONSES_CALL: emit_call(e, item, "arguments"); break;
	case RESPONSES_CUSTOM: emit_call(e, item, "input"); break;
	}
	emit_end(e);
}

void
responses_emit_citation(struct emit *e, const char *key, struct span raw)
{
	struct scan_value v;
	struct span name;
	size_t at = 0;

	emit_object(e, key);
	emit_z(e, "type", "url_citation");
	while (scan_next(raw, &at, &name, &v)) {
		static const char *const names[] = {"url", "title", "start_index", "end_index"};

		for (size_t i = 0; i < NELEM(names); i++)
			if (scan_is(name, names[i]))
				emit_raw(e, names[i], v.raw);
	}
	emit_end(e);
}

void
responses_restore(const struct form_loss *loss, struct responses_item *item, bool *wrapped_out)
{
	*wrapped_out = false;
	for (size_t i = 0; loss != NULL && i < loss->nnames; i++) {
		const struct form_name *name = &loss->names[i];

		if (!text_equal(name->sent, item->name))
			continue;
		item->name = name->original;
		item->namespace = name->namespace;
		*wrapped_out = name->custom && item->kind == RESPONSES_CALL;
		if (*wrapped_out)
			item->kind = RESPONSES_CUSTOM;
		return;
	}
}

struct span
responses_unwrap(struct arena *arena, struct span arguments)
{
	static const char *const paths[] = {"input"};
	static struct scan_plan *plan;
	struct scan_value v;

	if (responses_scan(&plan, paths, NELEM(paths), arguments, &v) && v.type == SCAN_STRING)
		return scan_string(arena, v.raw);
	return arguments;
}

const char *
responses_status(enum flow_finish finish, const char **reason_out)
{
	*reason_out = NULL;
	switch (finish) {
	case FLOW_LENGTH: *reason_out = "max_output_tokens"; break;
	case FLOW_FILTERED: *reason_out = "content_filter"; break;
	case FLOW_STOP:
	case FLOW_CALLS:
	case FLOW_PAUSED:
	case FLOW_STOP_TEXT: break;
	}
	return *reason_out == NULL ? "completed" : "incomplete";
}

static int64_t
figure(int64_t tokens)
{
	return tokens < 0 ? 0 : tokens;
}

static void
emit_usage(struct emit *e, const struct dialect_usage *usage)
{
	int64_t input, output;

	if (usage == NULL) {
		emit_null(e, "usage");
		return;
	}
	input = figure(usage->prompt);
	output = figure(usage->completion);
	emit_object(e, "usage");
	emit_i64(e, "input_tokens", input);
	emit_object(e, "input_tokens_details");
	emit_i64(e, "cached_tokens", figure(usage->cached));
	emit_i64(e, "cache_write_tokens", figure(usage->cache_write));
	emit_end(e);
	emit_i64(e, "output_tokens", output);
	emit_object(e, "output_tokens_details");
	emit_i64(e, "reasoning_tokens", figure(usage->reasoning));
	emit_end(e);
	emit_i64(e, "total_tokens", usage->total < 0 ? input + output : usage->total);
	emit_end(e);
}

static void
emit_reason(struct emit *e, const struct responses_object *o)
{
	if (o->error_code == NULL) {
		emit_null(e, "error");
	} else {
		emit_object(e, "error");
		emit_z(e, "code", o->error_code);
		emit_text(e, "message", o->error_message);
		emit_end(e);
	}
	if (o->incomplete_reason == NULL) {
		emit_null(e, "incomplete_details");
	} else {
		emit_object(e, "incomplete_details");
		emit_z(e, "reason", o->incomplete_reason);
		emit_end(e);
	}
}

static void
emit_extra(struct emit *e, const struct form *form, const char *name, struct span missing)
{
	const struct form_extra *extra = responses_extra(form, name);

	emit_raw(e, name, extra != NULL ? extra->value : missing);
}

static void
emit_effort(struct emit *e, const struct form *form)
{
	const struct form_extra *summary = responses_extra(form, "reasoning.summary");

	emit_object(e, "reasoning");
	emit_z(e, "effort", responses_effort(form));
	emit_raw(e, "summary", summary != NULL ? summary->value : SPAN("null"));
	emit_end(e);
}

/* What the request said, or what holds where it said nothing. */
static void
emit_echo(struct emit *e, const struct responses_object *o, const struct form *form)
{
	struct responses_out out = {.e = *e, .arena = o->job->arena, .form = form};

	emit_some(&out.e, "instructions", responses_instructions(o->job->arena, form));
	if (form->max_output < 0)
		emit_null(&out.e, "max_output_tokens");
	else
		emit_i64(&out.e, "max_output_tokens", form->max_output);
	emit_bool(&out.e, "parallel_tool_calls", form->parallel != FORM_FALSE);
	emit_effort(&out.e, form);
	emit_raw(&out.e, "temperature", form->temperature);
	emit_raw(&out.e, "top_p", form->top_p);
	responses_emit_text(&out);
	responses_emit_choice(&out);
	if (responses_emit_tools(&out) == 0)
		emit_raw(&out.e, "tools", SPAN("[]"));
	emit_extra(&out.e, form, "truncation", SPAN("\"disabled\""));
	emit_extra(&out.e, form, "metadata", SPAN("{}"));
	emit_text(&out.e, "service_tier",
	    form->service_tier.n > 0 ? form->service_tier : SPAN("default"));
	emit_some(&out.e, "user", form->user);
	emit_some(&out.e, "prompt_cache_key", form->prompt_cache_key);
	*e = out.e;
}

void
responses_emit_object(struct emit *e, const char *key, const struct responses_object *o)
{
	const struct flow_job *job = o->job;

	emit_object(e, key);
	emit_text(e, "id", o->id);
	emit_z(e, "object", "response");
	emit_i64(e, "created_at", job->created_s);
	emit_z(e, "status", o->status);
	emit_bool(e, "background", false);
	emit_null(e, "completed_at");
	emit_reason(e, o);
	emit_text(e, "model", job->model);
	emit_raw(e, "output", o->output.n > 0 ? o->output : SPAN("[]"));
	emit_some(e, "previous_response_id", job->previous_id);
	emit_bool(e, "store", job->store);
	if (job->form != NULL)
		emit_echo(e, o, job->form);
	emit_usage(e, o->usage);
	emit_end(e);
}
