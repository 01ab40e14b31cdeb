#include "dialect/run.h"

#include "base/emit.h"
#include "dialect/read.h"

#define FAILED "Request failed: "

static enum err
refuse(struct why *why, const char *name, const char *text)
{
	err_why(why, "'%s' %s", name, text);
	return ERR_BAD_INPUT;
}

static bool
is_given(const struct scan_value *value)
{
	return value->type != SCAN_ABSENT && value->type != SCAN_NULL;
}

static enum err
check_input(const struct scan_value *input, struct why *why)
{
	struct scan_value part;
	struct span none;
	size_t at = 0;

	if (!is_given(input))
		return refuse(why, "input", "is missing: a string or an array of parts is wanted");
	if (input->type != SCAN_STRING && input->type != SCAN_ARRAY)
		return refuse(why, "input", "must be a string or an array of parts");
	if (input->type == SCAN_STRING ? input->raw.n == 2
	                               : !scan_next(input->raw, &at, &none, &part))
		return refuse(why, "input", "must not be empty");
	return ERR_OK;
}

static enum err
check_text(const struct scan_value *value, const char *name, struct why *why)
{
	return is_given(value) && value->type != SCAN_STRING ? refuse(why, name, "must be a string")
	                                                     : ERR_OK;
}

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = is_given(&request->model) ? dialect_check_model(request, why) : ERR_OK;

	if (err == ERR_OK)
		err = check_input(&request->input, why);
	if (err == ERR_OK)
		err = check_text(&request->session_id, "session_id", why);
	if (err == ERR_OK)
		err = check_text(&request->task_type, "task_type", why);
	return err;
}

static void
emit_error(struct buf *out, struct span message)
{
	struct emit e;
	struct buf text;

	buf_init(&text, sizeof FAILED + message.n + 1);
	buf_z(&text, FAILED);
	buf_span(&text, message);
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_bool(&e, "success", false);
	emit_text(&e, "error", buf_text(&text));
	emit_end(&e);
	buf_release(&text);
}

/* Type and code have no place in it: the status says what they would. */
static void
error_body(struct buf *out, int status, const char *type, const char *code, struct span message)
{
	(void)status;
	(void)type;
	(void)code;
	emit_error(out, message);
	buf_char(out, '\n');
}

void
run_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message)
{
	(void)status;
	(void)type;
	(void)code;
	buf_z(out, "data: ");
	emit_error(out, message);
	buf_z(out, "\n\n");
}

const struct dialect dialect_run = {
    .name = "run",
    .path = "",
    .judged = true,
    .streams = true,
    .check = check,
    .end_marker = "",
    .error_body = error_body,
    .error_event = run_error_event,
};
