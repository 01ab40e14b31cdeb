#include "dialect/read.h"

#include <string.h>

#define FIELD(path, member)                                    \
	{                                                      \
		path, offsetof(struct dialect_request, member) \
	}

static const struct field {
	const char *path;
	size_t offset;
} fields[] = {
    FIELD("model", model),
    FIELD("stream", stream),
    FIELD("stream_options", stream_options),
    FIELD("stream_options.include_usage", include_usage),
    FIELD("max_tokens", max_tokens),
    FIELD("max_completion_tokens", max_completion_tokens),
    FIELD("max_output_tokens", max_output_tokens),
    FIELD("n", n),
    FIELD("user", user),
    FIELD("messages", messages),
    FIELD("prompt", prompt),
    FIELD("input", input),
    FIELD("metadata.conversation_id", metadata_conversation_id),
    FIELD("metadata.conversationId", metadata_conversation_id_camel),
    FIELD("metadata.user_id", metadata_user_id),
    FIELD("metadata.task_type", metadata_task_type),
    FIELD("conversation_id", conversation_id),
    FIELD("conversationId", conversation_id_camel),
    FIELD("session_id", session_id),
    FIELD("prompt_cache_key", prompt_cache_key),
    FIELD("previous_response_id", previous_response_id),
    FIELD("task_type", task_type),
};

static const struct scan_value *
value_of(const struct dialect_request *r, const struct field *field)
{
	return (const struct scan_value *)(const void *)((const char *)r + field->offset);
}

const struct scan_value *
dialect_value(const struct dialect_request *request, struct span path)
{
	for (size_t i = 0; i < NELEM(fields); i++)
		if (text_is(path, fields[i].path))
			return value_of(request, &fields[i]);
	return NULL;
}

int64_t
dialect_answer_limit(const struct dialect_request *request)
{
	int64_t most;

	if (scan_i64(&request->max_completion_tokens, 0, INT32_MAX, &most) ||
	    scan_i64(&request->max_tokens, 0, INT32_MAX, &most) ||
	    scan_i64(&request->max_output_tokens, 0, INT32_MAX, &most))
		return most;
	return -1;
}

static enum err
scan_fields(struct span body, struct dialect_request *r, struct why *why)
{
	static struct scan_plan *plan;
	struct scan_value values[NELEM(fields)];
	enum err err;

	if (plan == NULL) {
		const char *paths[NELEM(fields)];

		for (size_t i = 0; i < NELEM(fields); i++)
			paths[i] = fields[i].path;
		plan = scan_plan_new(paths, NELEM(fields));
	}
	err = scan_run(plan, body, values, why);
	if (err != ERR_OK) {
		err_prefix(why, "the body is not valid JSON");
		return err;
	}
	*r = (struct dialect_request){.body = body};
	for (size_t i = 0; i < NELEM(fields); i++)
		memcpy((char *)r + fields[i].offset, &values[i], sizeof values[i]);
	return ERR_OK;
}

static bool
is_switch(const struct scan_value *v)
{
	return v->type == SCAN_TRUE || v->type == SCAN_FALSE || v->type == SCAN_NULL ||
	       v->type == SCAN_ABSENT;
}

static enum err
check_stream(const struct dialect *d, const struct dialect_request *r, struct why *why)
{
	if (d->streams && !is_switch(&r->stream)) {
		err_why(why, "'stream' must be true or false");
		return ERR_BAD_INPUT;
	}
	if (!d->usage_option)
		return ERR_OK;
	if (r->stream_options.type != SCAN_OBJECT && r->stream_options.type != SCAN_NULL &&
	    r->stream_options.type != SCAN_ABSENT) {
		err_why(why, "'stream_options' must be an object");
		return ERR_BAD_INPUT;
	}
	if (!is_switch(&r->include_usage)) {
		err_why(why, "'stream_options.include_usage' must be true or false");
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

/* A control character can only stand in a validated string as an escape, but for DEL. */
static bool
has_control(struct span raw)
{
	for (size_t i = 0; i + 1 < raw.n; i++) {
		if (raw.p[i] == 0x7f)
			return true;
		if (raw.p[i] != '\\')
			continue;
		i++;
		if (memchr("bfnrt", raw.p[i], 5) != NULL)
			return true;
		if (raw.p[i] != 'u')
			continue;
		if (raw.p[i + 1] == '0' && raw.p[i + 2] == '0' &&
		    (raw.p[i + 3] < '2' || (raw.p[i + 3] == '7' && (raw.p[i + 4] | 32) == 'f')))
			return true;
	}
	return false;
}

enum err
dialect_check_model(const struct dialect_request *request, struct why *why)
{
	const struct scan_value *model = &request->model;
	const char *what = NULL;

	if (model->type == SCAN_ABSENT)
		what = "is missing";
	else if (model->type != SCAN_STRING)
		what = "must be a string";
	else if (model->raw.n == 2)
		what = "must not be empty";
	else if (has_control(model->raw))
		what = "must not hold control characters";
	if (what == NULL)
		return ERR_OK;
	err_why(why, "'model' %s", what);
	return ERR_BAD_INPUT;
}

enum err
dialect_check_messages(const struct dialect_request *request, struct why *why)
{
	struct scan_value message;
	struct span none;
	size_t at = 0, n = 0;

	if (request->messages.type != SCAN_ARRAY) {
		err_why(why, request->messages.type == SCAN_ABSENT
		                 ? "'messages' is missing: an array of message objects is wanted"
		                 : "'messages' must be an array of message objects");
		return ERR_BAD_INPUT;
	}
	for (; scan_next(request->messages.raw, &at, &none, &message); n++) {
		if (message.type != SCAN_OBJECT) {
			err_why(why, "'messages[%zu]' must be a message object", n);
			return ERR_BAD_INPUT;
		}
	}
	if (n == 0) {
		err_why(why, "'messages' must hold at least one message");
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

enum err
dialect_check_text(const struct scan_value *value, const char *name, struct why *why)
{
	if (value->type == SCAN_STRING || value->type == SCAN_ARRAY)
		return ERR_OK;
	if (value->type == SCAN_ABSENT)
		err_why(why, "'%s' is missing: a string or an array is wanted", name);
	else
		err_why(why, "'%s' must be a string or an array", name);
	return ERR_BAD_INPUT;
}

enum err
dialect_read(const struct dialect *dialect, struct span body, struct dialect_request *request_out,
    struct why *why)
{
	struct dialect_request r;
	enum err err;

	if (text_trim(body).n == 0) {
		err_why(why, "the request has no body");
		return ERR_BAD_INPUT;
	}
	err = scan_fields(body, &r, why);
	if (err == ERR_OK && text_trim(body).p[0] != '{') {
		err_why(why, "the body must be a JSON object");
		err = ERR_BAD_INPUT;
	}
	if (err == ERR_OK)
		err = check_stream(dialect, &r, why);
	if (err == ERR_OK)
		err = dialect->check(&r, why);
	if (err == ERR_OK)
		*request_out = r;
	return err;
}
