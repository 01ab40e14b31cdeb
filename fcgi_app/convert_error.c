#include "convert_error.h"

#include "base/emit.h"
#include "locate.h"

#define TOO_LONG \
	"prompt is too long" /* clients shorten the conversation by these words: formats.md E.9 */
#define SEQUENCE "\"sequence_number\":"

/* The code as the upstream has it; the types of the other API are nothing to the client. */
static const char *
code_of(const struct convert *c, const struct convert_error *error, const struct json *object)
{
	struct span code;

	if (error->context_length)
		return "context_length_exceeded";
	if (object == NULL)
		return error->code[0] == '\0' ? NULL : error->code;
	if (json_text(object, "code", &code) || json_text(object, "details.error_code", &code))
		return arena_z(c->arena, code);
	return NULL;
}

void
convert_error_body(const struct convert *c, const struct convert_error *error, struct buf *out)
{
	const struct dialect *client = c->rq->endpoint->dialect;
	struct locate_error found = {.html = false};
	struct span message = text_span(error->message);

	locate_error(c->arena, error->body, error->content_type, &found);
	if (found.message.n > 0)
		message = found.message;
	if (message.n == 0)
		message = SPAN("the upstream refuses this request");
	if (error->context_length && c->rq->endpoint->wire == FORM_MESSAGES &&
	    !text_has_fold(message, TOO_LONG))
		message = text_span(
		    arena_join(c->arena, (struct span[]){SPAN(TOO_LONG ": "), message}, 2));
	client->error_body(out, error->status, NULL, code_of(c, error, found.object), message);
}

/* A member of the event, decoded as far as it can be compared. */
static bool
has_type(struct span data, const char *const *types, size_t n)
{
	static const char *const path = "type";
	struct scan_value type;

	if (scan_pick(data, &path, &type, 1, NULL) != ERR_OK || type.type != SCAN_STRING)
		return false;
	for (size_t i = 0; i < n; i++)
		if (scan_is(type.raw, types[i]))
			return true;
	return false;
}

static bool
has_error(struct span data, bool or_text)
{
	static const char *const path = "error";
	struct scan_value error;

	return scan_pick(data, &path, &error, 1, NULL) == ERR_OK &&
	       (error.type == SCAN_OBJECT || (or_text && error.type == SCAN_STRING));
}

bool
convert_error_is_own(const struct convert *c, const struct sse_event *event)
{
	static const char *const ends[] = {"error", "response.failed"};

	switch (c->rq->endpoint->wire) {
	case FORM_CHAT: return has_error(event->data, true);
	case FORM_MESSAGES:
		return text_is(event->name, "error") && has_type(event->data, ends, 1) &&
		       has_error(event->data, false);
	case FORM_RESPONSES: return has_type(event->data, ends, NELEM(ends));
	case FORM_WIRE__MAX: break;
	}
	return false;
}

void
convert_error_note(
    const struct convert *c, struct convert_error_trail *trail, const struct sse_event *event)
{
	static const char *const path = "response.id";
	struct scan_value id;
	struct span rest, number;
	size_t at;

	if (c->rq->endpoint->wire != FORM_RESPONSES || !c->rq->endpoint->converts)
		return;
	/* inside a string the quotes were escaped */
	at = text_find(event->data, SPAN(SEQUENCE));
	rest = text_from(event->data, at + sizeof SEQUENCE - 1);
	if (at < event->data.n && text_token(&rest, ",} \t\r\n", &number))
		(void)text_i64(number, 0, INT64_MAX - 1, &trail->sequence);
	if (trail->id.n > 0 || text_find(event->data, SPAN("\"response\"")) == event->data.n ||
	    scan_pick(event->data, &path, &id, 1, NULL) != ERR_OK || id.type != SCAN_STRING)
		return;
	trail->id = arena_copy(c->arena, scan_string(c->arena, id.raw));
}

static void
emit_failed(const struct convert *c, const struct convert_error_trail *trail, const char *code,
    struct span message, struct buf *out)
{
	struct emit e;

	buf_z(out, "event: response.failed\ndata: ");
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "type", "response.failed");
	emit_i64(&e, "sequence_number", trail->sequence + 1);
	emit_object(&e, "response");
	emit_text(&e, "id", trail->id);
	emit_z(&e, "object", "response");
	emit_i64(&e, "created_at", c->created_s);
	emit_z(&e, "status", "failed");
	emit_object(&e, "error");
	emit_z(&e, "code", code == NULL ? "server_error" : code);
	emit_text(&e, "message", message);
	emit_end(&e);
	emit_null(&e, "incomplete_details");
	emit_text(&e, "model", c->rq->model);
	emit_array(&e, "output");
	emit_end(&e);
	emit_null(&e, "usage");
	emit_end(&e);
	emit_end(&e);
	buf_z(out, "\n\n");
}

void
convert_error_event(const struct convert *c, const struct convert_error_trail *trail, int status,
    const char *code, struct span message, struct buf *out)
{
	const struct endpoint *endpoint = c->rq->endpoint;

	if (endpoint->converts && endpoint->wire == FORM_RESPONSES)
		emit_failed(c, trail, code, message, out);
	else
		endpoint->dialect->error_event(out, status, NULL, code, message);
}
