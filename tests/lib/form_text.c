#include "lib/form_text.h"

#include <stdio.h>

static void
put(struct buf *out, const char *name, struct span text)
{
	if (text.n == 0)
		return;
	buf_z(out, name);
	buf_char(out, '=');
	buf_span(out, text);
	buf_char(out, ' ');
}

static void
put_media(struct buf *out, const struct form_media *media)
{
	put(out, "url", media->url);
	put(out, "data", media->data);
	put(out, "plain", media->plain);
	put(out, "type", media->media_type);
	put(out, "file", media->file_id);
	put(out, "title", media->title);
	put(out, "detail", media->detail);
}

static void
put_part(struct buf *out, const struct form_part *part)
{
	static const char *const kinds[] = {
	    "text", "refusal", "image", "document", "audio", "thought", "call", "result", "opaque"};

	buf_print(out, "[%s ", kinds[part->kind]);
	put(out, "", part->text);
	put(out, "cache", part->cache_control);
	put_media(out, &part->media);
	put(out, "seal", part->thought.seal);
	if (part->thought.redacted)
		buf_z(out, "redacted ");
	put(out, "id", part->call.id);
	put(out, "name", part->call.name);
	put(out, part->call.custom ? "input" : "args", part->call.arguments);
	put(out, "ns", part->call.namespace);
	put(out, "of", part->result.id);
	put(out, "by", part->result.name);
	if (part->result.custom)
		buf_z(out, "custom ");
	if (part->result.is_error)
		buf_z(out, "error ");
	for (size_t i = 0; i < part->result.nparts; i++)
		put_part(out, &part->result.parts[i]);
	buf_z(out, "]");
}

static void
put_turn(struct buf *out, const struct form_turn *turn)
{
	static const char *const roles[] = {"system", "developer", "user", "assistant", "tool"};

	buf_print(out, "%s@%d", roles[turn->role], turn->at == SIZE_MAX ? -1 : (int)turn->at);
	if (turn->name.n > 0)
		buf_print(out, "(%.*s)", (int)turn->name.n, turn->name.p);
	for (size_t i = 0; i < turn->nparts; i++)
		put_part(out, &turn->parts[i]);
	buf_char(out, ';');
}

static void
put_tool(struct buf *out, const struct form_tool *tool)
{
	static const char *const kinds[] = {"function", "custom", "hosted"};

	buf_print(out, "tool %s ", kinds[tool->kind]);
	put(out, "name", tool->name);
	put(out, "description", tool->description);
	put(out, "schema", tool->schema);
	put(out, "format", tool->format);
	put(out, "raw", tool->raw);
	put(out, "hosted", tool->hosted);
	put(out, "ns", tool->namespace);
	put(out, "cache", tool->cache_control);
	if (tool->strict != FORM_UNSET)
		buf_z(out, tool->strict == FORM_TRUE ? "strict " : "loose ");
	buf_char(out, ';');
}

static void
put_number(struct buf *out, const char *name, int64_t n)
{
	if (n >= 0)
		buf_print(out, "%s=%lld ", name, (long long)n);
}

static void
put_words(struct buf *out, const struct form *form)
{
	static const char *const choices[] = {NULL, "none", "auto", "required", "named"};
	static const char *const efforts[] = {
	    NULL, "none", "minimal", "low", "medium", "high", "xhigh", "max", "auto"};
	static const char *const shapes[] = {NULL, "text", "object", "schema"};
	static const char *const switches[] = {NULL, "false", "true"};

	put(out, "choice", text_span(choices[form->choice]));
	put(out, "named", form->choice_name);
	for (size_t i = 0; i < form->nallowed; i++)
		put(out, "allowed", form->allowed[i]);
	put(out, "parallel", text_span(switches[form->parallel]));
	put(out, "effort", text_span(efforts[form->effort]));
	put(out, "shape", text_span(shapes[form->shape]));
	put(out, "schema", form->schema);
	put(out, "schema_name", form->schema_name);
	put(out, "schema_description", form->schema_description);
	put(out, "schema_strict", text_span(switches[form->schema_strict]));
}

void
form_text(struct buf *out, const struct form *form)
{
	for (size_t i = 0; i < form->nturns; i++)
		put_turn(out, &form->turns[i]);
	for (size_t i = 0; i < form->ntools; i++)
		put_tool(out, &form->tools[i]);
	put_words(out, form);
	put_number(out, "max", form->max_output);
	put_number(out, "budget", form->thinking_budget);
	put(out, "temperature", form->temperature);
	put(out, "top_p", form->top_p);
	put(out, "top_k", form->top_k);
	put(out, "frequency", form->frequency_penalty);
	put(out, "presence", form->presence_penalty);
	put(out, "seed", form->seed);
	put(out, "top_logprobs", form->top_logprobs);
	for (size_t i = 0; i < form->nstops; i++)
		put(out, "stop", form->stops[i]);
	put(out, "user", form->user);
	put(out, "verbosity", form->verbosity);
	put(out, "tier", form->service_tier);
	put(out, "cache_key", form->prompt_cache_key);
	put(out, "stream", text_span(form->stream ? "true" : NULL));
	put(out, "usage", text_span(form->wants_usage ? "true" : NULL));
	for (size_t i = 0; i < form->nextras; i++) {
		buf_z(out, "+");
		buf_span(out, form->extras[i].name);
		put(out, "", form->extras[i].value);
	}
	if (out->n > 0 && out->p[out->n - 1] == ' ')
		out->n--;
}

/* A piece continues the last entry of that name. */
static void
put_piece(struct buf *out, const char *name, struct span text)
{
	struct span all = buf_text(out), last = all;

	for (size_t i = all.n; i > 0; i--)
		if (all.p[i - 1] == '|') {
			last = text_from(all, i);
			break;
		}
	if (!text_starts(last, name))
		buf_print(out, "%s%s", out->n > 0 ? "|" : "", name);
	buf_span(out, text);
}

static void
put_usage(struct buf *out, const struct dialect_usage *u)
{
	buf_print(out, "|usage:%lld,%lld,%lld,%lld,%lld", (long long)u->prompt,
	    (long long)u->completion, (long long)u->cached, (long long)u->cache_write,
	    (long long)u->reasoning);
}

void
flow_text(void *arg, const struct flow *step)
{
	static const char *const finishes[] = {
	    "stop", "length", "calls", "filtered", "paused", "stop_text"};
	struct buf *out = arg;
	char name[32];

	switch (step->kind) {
	case FLOW_START:
		buf_print(out, "start:%.*s,%.*s", (int)step->id.n, step->id.p, (int)step->model.n,
		    step->model.p);
		break;
	case FLOW_TEXT: put_piece(out, "text:", step->text); break;
	case FLOW_REFUSAL: put_piece(out, "refusal:", step->text); break;
	case FLOW_THOUGHT: put_piece(out, "thought:", step->text); break;
	case FLOW_SEAL: buf_print(out, "|seal:%.*s", (int)step->text.n, step->text.p); break;
	case FLOW_REDACTED:
		buf_print(out, "|redacted:%.*s", (int)step->text.n, step->text.p);
		break;
	case FLOW_CALL:
		buf_print(out, "|call%zu:%.*s,%.*s%s", step->call, (int)step->id.n, step->id.p,
		    (int)step->name.n, step->name.p, step->custom ? ",custom" : "");
		break;
	case FLOW_ARGUMENTS:
		snprintf(name, sizeof name, "args%zu:", step->call);
		put_piece(out, name, step->text);
		break;
	case FLOW_CALL_END: buf_print(out, "|end%zu", step->call); break;
	case FLOW_CITATION: buf_print(out, "|cite:%.*s", (int)step->text.n, step->text.p); break;
	case FLOW_BREAK: buf_z(out, "|break"); break;
	case FLOW_FINISH: buf_print(out, "|%s", finishes[step->finish]); break;
	case FLOW_USAGE: put_usage(out, step->usage); break;
	case FLOW_END: buf_z(out, "|end"); break;
	}
}
