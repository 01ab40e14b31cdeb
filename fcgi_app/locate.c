#include "locate.h"

#include "base/lex.h"

#include <string.h>

#define TEXT_MAX_BYTES 4096
#define PLAIN_MAX_BYTES 1024 /* a longer text without structure is no message */
#define CODE_MAX_BYTES 128
#define LIST_MAX 8

/* ------------------------------------------------------------------ bytes */

/* The data of the first event that has any, where an error came as a stream. */
static struct span
without_framing(struct span body)
{
	struct span line;

	if (!text_starts(body, "data:") && !text_starts(body, "event:") &&
	    !text_starts(body, "id:"))
		return body;
	while (text_token(&body, "\r\n", &line))
		if (text_starts(line, "data:"))
			return text_trim(text_from(line, 5));
	return (struct span){0};
}

static bool
looks_like_page(struct span body, struct span content_type)
{
	if (body.n > 0 && (body.p[0] == '{' || body.p[0] == '[' || body.p[0] == '"'))
		return false;
	return (body.n > 0 && body.p[0] == '<') || text_has_fold(content_type, "text/html");
}

/* ------------------------------------------------------------------ fields */

static void
add_code(struct locate_error *out, struct span code)
{
	code = text_trim(code);
	if (code.n == 0 || code.n > CODE_MAX_BYTES || out->ncodes == LOCATE_CODES_MAX)
		return;
	for (size_t i = 0; i < out->ncodes; i++)
		if (text_equal(out->codes[i], code))
			return;
	out->codes[out->ncodes++] = code;
	out->found = true;
}

/* A text or a whole number; three digits of an error status are kept as such, too. */
static void
add_code_at(
    struct arena *arena, const struct json *node, const char *path, struct locate_error *out)
{
	struct span text;
	int64_t v;

	if (json_text(node, path, &text))
		add_code(out, text);
	if (!json_i64(node, path, &v))
		return;
	if (!json_text(node, path, &text) && v != 0)
		add_code(out, text_span(arena_print(arena, "%lld", (long long)v)));
	if (v >= 400 && v <= 599 && out->status == 0)
		out->status = (int)v;
}

static void
add_message(struct buf *text, struct locate_error *out, struct span message)
{
	size_t room = TEXT_MAX_BYTES - text->n;

	message = text_trim(message);
	if (message.n == 0 || room < 2)
		return;
	if (out->message.n == 0)
		out->message = message;
	else if (text_find(buf_text(text), message) < text->n)
		return; /* the same once more */
	if (text->n > 0)
		buf_char(text, '\n');
	message.n = text_cut(message, room - 1);
	buf_span(text, message);
	out->found = true;
}

static void
add_message_at(
    const struct json *node, const char *path, struct buf *text, struct locate_error *out)
{
	struct span s;

	if (json_text(node, path, &s))
		add_message(text, out, s);
}

/* Reasons and quotas of Google's details; other hosts put a text there, which repeats the message. */
static void
read_details(const struct json *object, struct locate_error *out)
{
	const struct json *details = json_at(object, "details");
	struct span s;

	if (json_text(details, "error_code", &s))
		add_code(out, s);
	for (size_t i = 0; i < json_count(details) && i < LIST_MAX; i++) {
		const struct json *detail = json_item(details, i);
		const struct json *violations = json_at(detail, "violations");

		if (json_text(detail, "reason", &s))
			add_code(out, s);
		for (size_t j = 0; j < json_count(violations) && j < LIST_MAX; j++)
			if (json_text(json_item(violations, j), "quotaId", &s))
				add_code(out, s);
	}
}

/* What a router says of the provider behind it. */
static void
read_metadata(const struct json *object, struct locate_error *out)
{
	struct span s;

	if (json_count(json_at(object, "metadata.reasons")) > 0)
		add_code(out, SPAN("moderation_reasons"));
	if (json_text(object, "metadata.provider_name", &s))
		add_code(out, SPAN("provider_name"));
	json_text(object, "metadata.raw", &out->raw);
}

static void
read_codes(struct arena *arena, const struct json *object, struct locate_error *out)
{
	static const char *const paths[] = {"code", "error_code", "err_code", "errcode",
	    "innererror.code", "type", "status", "reason", "status_code"};

	for (size_t i = 0; i < NELEM(paths); i++)
		add_code_at(arena, object, paths[i], out);
	read_details(object, out);
	read_metadata(object, out);
}

static void
read_messages(const struct json *object, struct buf *text, struct locate_error *out)
{
	static const char *const paths[] = {"message", "msg", "error_msg", "error_message",
	    "errmsg", "err", "error", "error_description", "detail", "status_msg", "title"};
	const struct json *detail = json_at(object, "detail");

	for (size_t i = 0; i < NELEM(paths); i++)
		add_message_at(object, paths[i], text, out);
	/* a list of faults of the request: their texts, not the input that they quote */
	for (size_t i = 0; i < json_count(detail) && i < LIST_MAX; i++)
		add_message_at(json_item(detail, i), "msg", text, out);
}

/* ------------------------------------------------------------------ envelopes */

static const struct json *
object_in(const struct json *root)
{
	static const char *const paths[] = {"error.error", "error", "response.error", "errors.0",
	    "errors", "detail.error", "detail", "data.error"};

	for (size_t i = 0; i < NELEM(paths); i++) {
		const struct json *node = json_at(root, paths[i]);

		if (json_is_object(node))
			return node;
	}
	return root;
}

static void
read_object(
    struct arena *arena, const struct json *root, struct buf *text, struct locate_error *out)
{
	const struct json *base = json_at(root, "base_resp");
	int64_t code;

	if (json_is_object(base) && json_i64(base, "status_code", &code) && code != 0) {
		out->base_resp = true;
		out->object = base;
		add_code(out, text_span(arena_print(arena, "%lld", (long long)code)));
		add_message_at(base, "status_msg", text, out);
		return;
	}
	json_text(root, "choices.0.finish_reason", &out->finish);
	out->object = object_in(root);
	read_codes(arena, out->object, out);
	read_messages(out->object, text, out);
	if (out->object != root) {
		add_code_at(arena, root, "code", out);
		add_message_at(root, "message", text, out);
		add_message_at(root, "msg", text, out);
	}
}

static void
read_json(struct arena *arena, const struct json *root, struct buf *text, struct locate_error *out)
{
	struct span s;

	if (json_is_array(root))
		root = json_item(root, 0);
	out->root = root;
	if (json_text(root, "", &s))
		add_message(text, out, s);
	else if (json_is_object(root))
		read_object(arena, root, text, out);
}

/* Some hosts speak another encoding: the codes, which are ASCII, still count. */
static struct span
mended(struct arena *arena, struct span body)
{
	struct buf *b;

	if (text_utf8(body))
		return body;
	b = arena_buf(arena, body.n);
	while (body.n > 0) {
		size_t n = lex_utf8(body);

		if (n == 0)
			buf_char(b, '?');
		else
			buf_add(b, body.p, n);
		body = text_from(body, n == 0 ? 1 : n);
	}
	return buf_text(b);
}

void
locate_error(
    struct arena *arena, struct span body, struct span content_type, struct locate_error *out)
{
	struct buf *text = arena_buf(arena, TEXT_MAX_BYTES);
	const struct json *root;

	*out = (struct locate_error){0};
	if (text_starts(body, "\xef\xbb\xbf"))
		body = text_from(body, 3);
	body = without_framing(text_trim(body));
	if (body.n == 0)
		return;
	out->html = looks_like_page(body, content_type);
	if (out->html)
		return;
	if (json_parse(arena, mended(arena, body), &root, NULL) == ERR_OK)
		read_json(arena, root, text, out);
	else if (body.p[0] != '{' && body.p[0] != '[' && body.n <= PLAIN_MAX_BYTES &&
	         text_utf8(body))
		add_message(text, out, body);
	out->text = buf_text(text);
}
