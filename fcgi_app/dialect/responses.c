#include "dialect/responses.h"

#include "dialect/openai.h"
#include "dialect/read.h"

static enum err
check_items(const struct dialect_request *request, struct why *why)
{
	struct scan_value item;
	struct span none;
	size_t at = 0, n = 0;

	for (; scan_next(request->input.raw, &at, &none, &item); n++) {
		if (item.type != SCAN_OBJECT) {
			err_why(why, "'input[%zu]' must be an item object", n);
			return ERR_BAD_INPUT;
		}
	}
	if (n == 0) {
		err_why(why, "'input' must hold at least one item");
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = dialect_check_model(request, why);

	if (err != ERR_OK)
		return err;
	/* a stored prompt brings its own */
	if (request->input.type == SCAN_ABSENT && request->prompt.type == SCAN_OBJECT)
		return ERR_OK;
	err = dialect_check_text(&request->input, "input", why);
	if (err != ERR_OK)
		return err;
	if (request->input.type == SCAN_ARRAY)
		return check_items(request, why);
	if (request->input.raw.n > 2)
		return ERR_OK;
	err_why(why, "'input' must not be empty");
	return ERR_BAD_INPUT;
}

const char *
responses_error_code(int status, const char *code)
{
	if (code != NULL)
		return code;
	if (status == 429)
		return "rate_limit_exceeded";
	return status >= 400 && status < 500 ? "invalid_prompt" : "server_error";
}

/* Who writes this knows nothing of the stream before it: flow_write_responses does it better. */
static void
error_event(struct buf *out, int status, const char *type, const char *code, struct span message)
{
	struct emit e;

	(void)type;
	buf_z(out, "event: response.failed\ndata: ");
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "type", "response.failed");
	emit_i64(&e, "sequence_number", 0);
	emit_object(&e, "response");
	emit_z(&e, "id", "");
	emit_z(&e, "object", "response");
	emit_i64(&e, "created_at", 0);
	emit_z(&e, "status", "failed");
	emit_object(&e, "error");
	emit_z(&e, "code", responses_error_code(status, code));
	emit_text(&e, "message", message);
	emit_end(&e);
	emit_null(&e, "incomplete_details");
	emit_z(&e, "model", "");
	emit_array(&e, "output");
	emit_end(&e);
	emit_null(&e, "usage");
	emit_end(&e);
	emit_end(&e);
	buf_z(out, "\n\n");
}

const struct dialect dialect_responses = {
    .name = "responses",
    .path = "/responses",
    .judged = true,
    .streams = true,
    .usage_option = false,
    .check = check,
    .event = responses_event,
    .answer = responses_answer,
    .end_marker = "",
    .error_body = openai_error_body,
    .error_event = error_event,
};
