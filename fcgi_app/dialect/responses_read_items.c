#include "dialect/responses_read_items.h"

#include "dialect/seal.h"
#include "dialect/value.h"

#include <stdio.h>
#include <string.h>

#define WHERE_BYTES 96

static const char *const item_paths[RESPONSES_READ__MAX] = {
    [RESPONSES_READ_TYPE] = "type",
    [RESPONSES_READ_ROLE] = "role",
    [RESPONSES_READ_CONTENT] = "content",
    [RESPONSES_READ_CALL_ID] = "call_id",
    [RESPONSES_READ_ID] = "id",
    [RESPONSES_READ_NAME] = "name",
    [RESPONSES_READ_NAMESPACE] = "namespace",
    [RESPONSES_READ_ARGUMENTS] = "arguments",
    [RESPONSES_READ_INPUT] = "input",
    [RESPONSES_READ_OUTPUT] = "output",
    [RESPONSES_READ_SUMMARY] = "summary",
    [RESPONSES_READ_ENCRYPTED] = "encrypted_content",
    [RESPONSES_READ_ACTION] = "action",
    [RESPONSES_READ_OPERATION] = "operation",
    [RESPONSES_READ_STATUS] = "status",
    [RESPONSES_READ_TOOLS] = "tools",
};

static const struct responses_read_kind kinds[] = {
    {.type = "message", .what = RESPONSES_READ_A_MESSAGE},
    {.type = "function_call", .what = RESPONSES_READ_A_CALL, .arguments = RESPONSES_READ_ARGUMENTS},
    {.type = "function_call_output", .what = RESPONSES_READ_A_RESULT},
    {.type = "reasoning", .what = RESPONSES_READ_A_THOUGHT},
    {.type = "custom_tool_call",
        .what = RESPONSES_READ_A_CALL,
        .arguments = RESPONSES_READ_INPUT,
        .custom = true},
    {.type = "custom_tool_call_output", .what = RESPONSES_READ_A_RESULT, .custom = true},
    {.type = "local_shell_call",
        .what = RESPONSES_READ_A_CALL,
        .name = "local_shell",
        .arguments = RESPONSES_READ_ACTION},
    {.type = "local_shell_call_output", .what = RESPONSES_READ_A_RESULT},
    {.type = "shell_call",
        .what = RESPONSES_READ_A_CALL,
        .name = "shell",
        .arguments = RESPONSES_READ_ACTION},
    {.type = "shell_call_output", .what = RESPONSES_READ_A_RESULT, .raw = true},
    {.type = "apply_patch_call",
        .what = RESPONSES_READ_A_CALL,
        .name = "apply_patch",
        .arguments = RESPONSES_READ_OPERATION},
    {.type = "apply_patch_call_output", .what = RESPONSES_READ_A_RESULT},
    {.type = "additional_tools", .what = RESPONSES_READ_SOME_TOOLS},
    {.type = "item_reference", .what = RESPONSES_READ_A_REFERENCE},
    {.type = "compaction", .what = RESPONSES_READ_A_REFERENCE},
    {.type = "compaction_summary", .what = RESPONSES_READ_A_REFERENCE},
    {.type = "compaction_trigger", .what = RESPONSES_READ_A_REFERENCE},
    {.type = "web_search_call"},
    {.type = "file_search_call"},
    {.type = "computer_call"},
    {.type = "computer_call_output"},
    {.type = "code_interpreter_call"},
    {.type = "image_generation_call"},
    {.type = "mcp_list_tools"},
    {.type = "mcp_approval_request"},
    {.type = "mcp_approval_response"},
    {.type = "mcp_call"},
    {.type = "tool_search_call"},
    {.type = "tool_search_output"},
    {.type = "program"},
    {.type = "program_output"},
};

static enum err
find_kind(struct responses_reader *r, const struct responses_read_item *item,
    const struct responses_read_kind **kind_out)
{
	const struct scan_value *type = &item->v[RESPONSES_READ_TYPE];

	*kind_out = &kinds[0]; /* an easy message has no type */
	if (type->type == SCAN_ABSENT && item->v[RESPONSES_READ_ROLE].type == SCAN_STRING)
		return ERR_OK;
	if (type->type != SCAN_STRING)
		return responses_read_refuse(r, "'input[%zu].type' is missing", item->at);
	for (size_t i = 0; i < NELEM(kinds); i++)
		if (scan_is(type->raw, kinds[i].type)) {
			*kind_out = &kinds[i];
			return ERR_OK;
		}
	return responses_read_refuse(r, "'input[%zu].type' %.*s is not known here", item->at,
	    (int)text_cut(type->raw, 60), type->raw.p);
}

enum err
responses_read_item(
    struct responses_reader *r, struct span raw, size_t at, struct responses_read_item *item_out)
{
	static struct scan_plan *plan;
	enum err err;

	item_out->at = at;
	item_out->raw = raw;
	if (plan == NULL)
		plan = scan_plan_new(item_paths, RESPONSES_READ__MAX);
	err = scan_run(plan, raw, item_out->v, r->why);
	if (err != ERR_OK) {
		err_prefix(r->why, "'input[%zu]'", at);
		return err;
	}
	for (size_t i = 0; i < RESPONSES_READ__MAX; i++)
		if (item_out->v[i].type == SCAN_NULL)
			item_out->v[i].type = SCAN_ABSENT;
	return find_kind(r, item_out, &item_out->kind);
}

struct span
responses_read_call_id(struct responses_reader *r, const struct responses_read_item *item)
{
	const struct scan_value *id = &item->v[RESPONSES_READ_CALL_ID];

	/* those of the shells had only an id once */
	if (id->type == SCAN_ABSENT && !text_starts(text_span(item->kind->type), "function_") &&
	    !item->kind->custom)
		id = &item->v[RESPONSES_READ_ID];
	return responses_string(r->arena, id);
}

static enum err
read_arguments(
    struct responses_reader *r, const struct responses_read_item *item, struct form_call *call)
{
	const struct scan_value *v = &item->v[item->kind->arguments];
	const char *name = item_paths[item->kind->arguments];

	if (v->type == SCAN_STRING)
		call->arguments = scan_string(r->arena, v->raw);
	else if (v->type == SCAN_OBJECT && !call->custom)
		call->arguments = v->raw;
	else if (v->type != SCAN_ABSENT)
		return responses_read_refuse(r, "'input[%zu].%s' must be a string", item->at, name);
	if (call->custom)
		return ERR_OK;
	call->arguments = text_trim(call->arguments);
	if (call->arguments.n == 0)
		call->arguments = SPAN("{}");
	if (!text_starts(call->arguments, "{") ||
	    scan_pick(call->arguments, NULL, NULL, 0, NULL) != ERR_OK)
		return responses_read_refuse(
		    r, "'input[%zu].%s' is no whole JSON object", item->at, name);
	return ERR_OK;
}

enum err
responses_read_call(
    struct responses_reader *r, const struct responses_read_item *item, struct form_turn *turn)
{
	struct form_call call = {.id = responses_read_call_id(r, item),
	    .name = responses_string(r->arena, &item->v[RESPONSES_READ_NAME]),
	    .namespace = responses_string(r->arena, &item->v[RESPONSES_READ_NAMESPACE]),
	    .item_id = responses_string(r->arena, &item->v[RESPONSES_READ_ID]),
	    .arguments = {"", 0},
	    .custom = item->kind->custom};
	struct form_part *part;
	enum err err;

	if (item->kind->name != NULL)
		call.name = text_span(item->kind->name);
	if (call.name.n == 0)
		return responses_read_refuse(r, "'input[%zu].name' is missing", item->at);
	if (call.id.n == 0)
		return responses_read_refuse(r, "'input[%zu].call_id' is missing", item->at);
	err = read_arguments(r, item, &call);
	if (err != ERR_OK)
		return err;
	part = form_add_part(r->arena, turn, FORM_CALL);
	part->at = item->at; /* a turn may hold several items */
	part->call = call;
	return ERR_OK;
}

/* The name of the call is not in the item: form_check() pairs them by id. */
enum err
responses_read_result(
    struct responses_reader *r, const struct responses_read_item *item, struct form_turn *turn)
{
	const struct scan_value *output = &item->v[RESPONSES_READ_OUTPUT];
	const struct scan_value *status = &item->v[RESPONSES_READ_STATUS];
	struct form_turn parts = {.at = item->at};
	struct form_part *result;
	char where[WHERE_BYTES];
	enum err err = ERR_OK;

	snprintf(where, sizeof where, "input[%zu].output", item->at);
	if (item->kind->raw && output->type != SCAN_STRING && output->type != SCAN_ABSENT)
		form_add_part(r->arena, &parts, FORM_TEXT)->text = output->raw;
	else
		err = responses_read_parts(r, &parts, output, where);
	if (err != ERR_OK)
		return err;
	for (size_t i = 0; i < parts.nparts; i++)
		parts.parts[i].of = 0;
	result = form_add_part(r->arena, turn, FORM_RESULT);
	result->at = item->at;
	result->result = (struct form_result){.id = responses_read_call_id(r, item),
	    .is_error = status->type == SCAN_STRING && scan_is(status->raw, "failed"),
	    .custom = item->kind->custom,
	    .parts = parts.parts,
	    .nparts = parts.nparts};
	return ERR_OK;
}

/* The texts of a list of parts, a blank line between them. */
static struct span
join_texts(struct responses_reader *r, const struct scan_value *list)
{
	struct buf *out;
	struct scan_value part;
	struct span none;
	size_t at = 0;

	if (list->type != SCAN_ARRAY)
		return responses_string(r->arena, list);
	out = arena_buf(r->arena, list->raw.n * 2 + 1);
	while (scan_next(list->raw, &at, &none, &part)) {
		struct scan_value text = responses_member(&part, "text");

		if (!value_says(&text) || text.type != SCAN_STRING)
			continue;
		if (out->n > 0)
			buf_z(out, "\n\n");
		buf_span(out, scan_string(r->arena, text.raw));
	}
	return buf_text(out);
}

void
responses_read_thought(
    struct responses_reader *r, const struct responses_read_item *item, struct form_turn *turn)
{
	struct span text = join_texts(r, &item->v[RESPONSES_READ_CONTENT]);
	struct form_thought thought = {
	    .seal = responses_string(r->arena, &item->v[RESPONSES_READ_ENCRYPTED]),
	    .id = responses_string(r->arena, &item->v[RESPONSES_READ_ID])};
	struct form_part *part;

	if (text.n == 0)
		text = join_texts(r, &item->v[RESPONSES_READ_SUMMARY]);
	if (text_starts(thought.seal, RESPONSES_REDACTED) &&
	    seal_open(text_from(thought.seal, strlen(RESPONSES_REDACTED))).marked) {
		thought.redacted = true;
		thought.seal = text_from(thought.seal, strlen(RESPONSES_REDACTED));
		text = (struct span){"", 0};
	}
	if (text.n == 0 && thought.seal.n == 0)
		return; /* it only names what a server once kept */
	part = form_add_part(r->arena, turn, FORM_THOUGHT);
	part->text = text;
	part->thought = thought;
}
