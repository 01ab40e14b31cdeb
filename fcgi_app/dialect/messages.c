#include "dialect/messages.h"

#include "base/emit.h"
#include "dialect/read.h"
#include "dialect/value.h"

#include <string.h>

static enum err
check_count(const struct dialect_request *request, struct why *why)
{
	enum err err = dialect_check_model(request, why);

	return err == ERR_OK ? dialect_check_messages(request, why) : err;
}

static enum err
check(const struct dialect_request *request, struct why *why)
{
	enum err err = check_count(request, why);
	const struct scan_value *limit = &request->max_tokens;
	int64_t n;

	if (err != ERR_OK)
		return err;
	if (limit->type == SCAN_ABSENT || limit->type == SCAN_NULL) {
		err_why(why, "'max_tokens' is missing: a whole number is wanted");
		return ERR_BAD_INPUT;
	}
	if (limit->type != SCAN_NUMBER || !scan_i64(limit, 0, INT64_MAX, &n)) {
		err_why(why, "'max_tokens' must be a whole number, 0 or more");
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

static const char *
type_of(int status)
{
	switch (status) {
	case 401: return "authentication_error";
	case 402: return "billing_error";
	case 403: return "permission_error";
	case 404: return "not_found_error";
	case 408:
	case 504: return "timeout_error";
	case 409: return "conflict_error";
	case 413: return "request_too_large";
	case 429: return "rate_limit_error";
	case 503:
	case 529: return "overloaded_error";
	default: return status >= 500 ? "api_error" : "invalid_request_error";
	}
}

/* The given type where it says more than the status does and this API has it. */
static const char *
own_type(int status, const char *type, const char *code)
{
	static const char *const known[] = {"authentication_error", "billing_error",
	    "permission_error", "not_found_error", "timeout_error", "conflict_error",
	    "request_too_large", "rate_limit_error", "overloaded_error", "api_error"};

	/* waiting does not help: it is no overload */
	if (status == 503 && code != NULL && strcmp(code, "no_account") == 0)
		return "api_error";
	for (size_t i = 0; type != NULL && i < NELEM(known); i++)
		if (strcmp(type, known[i]) == 0)
			return type;
	return type_of(status);
}

static void
emit_error(struct buf *out, int status, const char *type, const char *code, struct span message)
{
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "type", "error");
	emit_object(&e, "error");
	emit_z(&e, "type", own_type(status, type, code));
	emit_text(&e, "message", message);
	if (code != NULL) {
		emit_object(&e, "details");
		emit_z(&e, "error_code", code);
		emit_end(&e);
	}
	emit_end(&e);
	emit_end(&e);
}

void
messages_error_body(
    struct buf *out, int status, const char *type, const char *code, struct span message)
{
	emit_error(out, status, type, code, message);
	buf_char(out, '\n');
}

void
messages_error_event(
    struct buf *out, int status, const char *type, const char *code, struct span message)
{
	buf_z(out, "event: error\ndata: ");
	emit_error(out, status, type, code, message);
	buf_z(out, "\n\n");
}

static bool
answer_count(struct span body, struct dialect_tap *tap)
{
	static const char *const names[] = {"input_tokens"};
	struct scan_value v;
	int64_t n;

	(void)tap; /* counting costs nothing */
	return scan_pick(body, names, &v, 1, NULL) == ERR_OK &&
	       scan_i64(&v, 0, MESSAGES_TOKENS_MAX, &n);
}

const struct dialect dialect_messages = {
    .name = "messages",
    .path = "/messages",
    .judged = true,
    .streams = true,
    .check = check,
    .event = messages_event,
    .answer = messages_answer,
    .end_marker = "event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n",
    .error_body = messages_error_body,
    .error_event = messages_error_event,
};

const struct dialect dialect_count_tokens = {
    .name = "count_tokens",
    .path = "/messages/count_tokens",
    .check = check_count,
    .event = messages_event,
    .answer = answer_count,
    .end_marker = "",
    .error_body = messages_error_body,
    .error_event = messages_error_event,
};
