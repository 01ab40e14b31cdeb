#include "dialect/messages.h"

#include "dialect/value.h"

enum {
	TYPE,
	ERROR,
	ERROR_LIST,
	CODE,
	MESSAGE, /* an object in message_start, a text in flat errors */
	MSG,
	MINIMAX,
	MODEL,
	CONTENT,
	USAGE,
	STOP,
	START_MODEL,
	START_CONTENT,
	START_USAGE,
	BLOCK,
	BLOCK_TYPE,
	BLOCK_TEXT,
	BLOCK_THINKING,
	BLOCK_NAME,
	DELTA_TYPE,
	DELTA_STOP,
	TEXT, /* what a delta may bring, up to SIGNATURE */
	THINKING,
	JSON,
	SIGNATURE,
	EVENT__MAX
};

static const char *const paths[EVENT__MAX] = {
    [TYPE] = "type",
    [ERROR] = "error",
    [ERROR_LIST] = "0.error",
    [CODE] = "code",
    [MESSAGE] = "message",
    [MSG] = "msg",
    [MINIMAX] = "base_resp.status_code",
    [MODEL] = "model",
    [CONTENT] = "content",
    [USAGE] = "usage",
    [STOP] = "stop_reason",
    [START_MODEL] = "message.model",
    [START_CONTENT] = "message.content",
    [START_USAGE] = "message.usage",
    [BLOCK] = "content_block",
    [BLOCK_TYPE] = "content_block.type",
    [BLOCK_TEXT] = "content_block.text",
    [BLOCK_THINKING] = "content_block.thinking",
    [BLOCK_NAME] = "content_block.name",
    [DELTA_TYPE] = "delta.type",
    [DELTA_STOP] = "delta.stop_reason",
    [TEXT] = "delta.text",
    [THINKING] = "delta.thinking",
    [JSON] = "delta.partial_json",
    [SIGNATURE] = "delta.signature",
};

static bool
run_plan(struct span text, struct scan_value v[EVENT__MAX])
{
	static struct scan_plan *plan;

	if (plan == NULL) {
		plan = scan_plan_new(paths, EVENT__MAX);
		scan_plan_lax(plan);
	}
	return scan_run(plan, text, v, NULL) == ERR_OK;
}

static bool
is_text(const struct scan_value *v)
{
	return v->type == SCAN_STRING && v->raw.n > 2;
}

static bool
is_named(const struct scan_value *v, const char *z)
{
	return v->type == SCAN_STRING && scan_is(v->raw, z);
}

static bool
is_good_code(struct span code)
{
	static const char *const good[] = {"0", "200", "\"0\"", "\"200\"", "null"};

	for (size_t i = 0; i < NELEM(good); i++)
		if (text_is(code, good[i]))
			return true;
	return false;
}

/* The API's own error, those of OpenAI's shape, and the flat ones of hosts behind a clone. */
static bool
is_error(const struct scan_value v[EVENT__MAX])
{
	if (is_named(&v[TYPE], "error") || value_says(&v[ERROR]) || value_says(&v[ERROR_LIST]))
		return true;
	if (value_says(&v[MINIMAX]) && !text_is(v[MINIMAX].raw, "\"0\""))
		return true;
	if (v[TYPE].type == SCAN_STRING || (!is_text(&v[MESSAGE]) && !is_text(&v[MSG])))
		return false;
	return v[CODE].type == SCAN_ABSENT || !is_good_code(v[CODE].raw);
}

static void
note_model(const struct scan_value *model, struct dialect_tap *tap)
{
	if (tap->model[0] == '\0')
		value_copy(tap->model, sizeof tap->model, model);
}

static bool
note_finish(const struct scan_value *stop, struct dialect_tap *tap)
{
	if (!is_text(stop))
		return false;
	tap->finished = true;
	value_copy(tap->finish, sizeof tap->finish, stop);
	return true;
}

static enum dialect_part
content_if(bool content, struct dialect_tap *tap)
{
	tap->content |= content;
	return content ? PART_CONTENT : PART_PREAMBLE;
}

static enum dialect_part
read_start(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	note_model(&v[START_MODEL], tap);
	messages_usage(&v[START_USAGE], &tap->usage);
	return content_if(value_says(&v[START_CONTENT]), tap);
}

static enum dialect_part
read_block(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	bool open = is_named(&v[BLOCK_TYPE], "text") || is_named(&v[BLOCK_TYPE], "thinking") ||
	            is_named(&v[BLOCK_TYPE], "compaction");

	tap->content_bytes += value_bytes(&v[BLOCK_TEXT]) + value_bytes(&v[BLOCK_THINKING]) +
	                      value_bytes(&v[BLOCK_NAME]);
	if (open)
		return content_if(is_text(&v[BLOCK_TEXT]) || is_text(&v[BLOCK_THINKING]), tap);
	return content_if(v[BLOCK].type == SCAN_OBJECT, tap);
}

/* A delta of a kind that is not known is content: nobody can tell that it is empty. */
static enum dialect_part
read_delta(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	bool known = false, content = false;

	for (int i = TEXT; i <= SIGNATURE; i++) {
		known |= v[i].type != SCAN_ABSENT;
		content |= is_text(&v[i]);
		tap->content_bytes += i == SIGNATURE ? 0 : value_bytes(&v[i]);
	}
	return content_if(content || (!known && v[DELTA_TYPE].type == SCAN_STRING), tap);
}

static enum dialect_part
read_end_of_message(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	messages_usage(&v[USAGE], &tap->usage);
	return note_finish(&v[DELTA_STOP], tap) ? PART_FINISH : PART_PREAMBLE;
}

static enum dialect_part
read_stop(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap)
{
	(void)v;
	tap->ended = true;
	return PART_END;
}

static const struct {
	const char *type;
	enum dialect_part (*read)(const struct scan_value v[EVENT__MAX], struct dialect_tap *tap);
} kinds[] = {
    {"content_block_delta", read_delta},
    {"content_block_start", read_block},
    {"message_start", read_start},
    {"message_delta", read_end_of_message},
    {"message_stop", read_stop},
};

static bool
is_kind(const struct scan_value *type, struct span name, const char *kind)
{
	return type->type == SCAN_STRING ? scan_is(type->raw, kind) : text_is(name, kind);
}

enum dialect_part
messages_event(const struct sse_event *event, struct dialect_tap *tap)
{
	struct scan_value v[EVENT__MAX];
	struct span data = text_trim(event->data);

	if (tap->ended)
		return PART_NOTHING;
	if (text_is(event->name, "error"))
		return PART_ERROR;
	/* the end marker of another API, which some hosts add */
	if (data.n == 0 || text_is(data, "[DONE]") || text_is(data, "DONE"))
		return PART_NOTHING;
	if (!run_plan(data, v)) {
		tap->invalid++;
		tap->content = true;
		return PART_CONTENT;
	}
	if (is_error(v))
		return PART_ERROR;
	for (size_t i = 0; i < NELEM(kinds); i++)
		if (is_kind(&v[TYPE], event->name, kinds[i].type))
			return kinds[i].read(v, tap);
	return PART_PREAMBLE;
}

static void
count_blocks(const struct scan_value *content, struct dialect_tap *tap)
{
	static const char *const names[] = {"text", "thinking", "name"};
	struct scan_value block;
	struct span none;
	size_t at = 0;

	while (scan_next(content->raw, &at, &none, &block)) {
		struct scan_value input = value_member(&block, "input");

		tap->content = true;
		for (size_t i = 0; i < NELEM(names); i++) {
			struct scan_value text = value_member(&block, names[i]);

			tap->content_bytes += value_bytes(&text);
		}
		tap->content_bytes += input.raw.n;
	}
}

bool
messages_answer(struct span body, struct dialect_tap *tap)
{
	struct scan_value v[EVENT__MAX];

	if (!run_plan(body, v) || is_error(v))
		return false;
	if (v[CONTENT].type != SCAN_ARRAY ||
	    (v[TYPE].type == SCAN_STRING && !is_named(&v[TYPE], "message")))
		return false;
	count_blocks(&v[CONTENT], tap);
	note_model(&v[MODEL], tap);
	note_finish(&v[STOP], tap);
	messages_usage(&v[USAGE], &tap->usage);
	return true;
}
