#include "request.h"

#include "dialect/multipart.h"
#include "spool.h"

#include <errno.h>

#define READ_BYTES 16384
#define ITEM_BYTES 3 /* at least, of one thing in a list */

static bool
id_is_good(struct span id)
{
	if (id.n == 0 || id.n > 128)
		return false;
	for (size_t i = 0; i < id.n; i++) {
		char c = id.p[i], low = text_lower(c);

		if (!((low >= 'a' && low <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
		        c == '_' || c == '-'))
			return false;
	}
	return true;
}

void
request_head(
    struct request *rq, const struct exchange *x, const struct conf *conf, struct span fresh_id)
{
	struct span mount = exchange_param(x, "SLUICE_MOUNT");
	struct path_vars vars = {
	    .path_info = exchange_param(x, "PATH_INFO"),
	    .script_name = exchange_param(x, "SCRIPT_NAME"),
	    .request_uri = exchange_param(x, "REQUEST_URI"),
	    .mount = mount.n > 0 ? mount : conf->server.mount,
	};

	*rq = (struct request){.method = exchange_param(x, "REQUEST_METHOD")};
	rq->id = exchange_param(x, "HTTP_X_REQUEST_ID");
	if (!id_is_good(rq->id))
		rq->id = fresh_id;
	if (path_find(&vars, endpoint_known, rq->path) != PATH_UNKNOWN)
		rq->endpoint = endpoint_find(text_span(rq->path));
}

static enum err
too_big(int64_t max_bytes, struct why *why)
{
	err_why(why, "the body is larger than %lld bytes (server.max_body)", (long long)max_bytes);
	return ERR_TOO_BIG;
}

/* One byte a minute would hold a worker for ever: for what came so far there is a time. */
static bool
is_too_slow(const struct request_limits *limits, struct mono_ms began, size_t n)
{
	int64_t allowed = limits->stall_ms + (int64_t)n * 1000 / REQUEST_MIN_RATE;

	return limits->clock().v - began.v > allowed;
}

static enum err
broke_off(struct why *why)
{
	bool late = errno == EAGAIN || errno == ECANCELED;

	err_why(why, errno == EAGAIN      ? "the body did not arrive in time"
	             : errno == ECANCELED ? "the gateway is stopping"
	                                  : "the body broke off");
	return late ? ERR_TIMEOUT : ERR_IO;
}

/* What came and where it goes: into the buffer, or through it. */
struct incoming {
	struct buf *buf;
	struct spool *spool; /* NULL: it stays there */
};

static size_t
came(const struct incoming *in)
{
	return in->spool == NULL ? in->buf->n : spool_size(in->spool);
}

static enum err
read_all(const struct exchange *x, const struct request_limits *limits, const struct incoming *in,
    struct why *why)
{
	struct buf *body = in->buf;
	enum err err;

	int64_t max_bytes = limits->max_bytes;
	struct mono_ms began = limits->clock();
	int64_t length = exchange_length(x);

	if (length > max_bytes)
		return too_big(max_bytes, why);
	for (;;) {
		char *room = buf_room(body, READ_BYTES);
		ssize_t n = room == NULL ? -1 : x->read(x->io, room, READ_BYTES);

		if (room == NULL)
			return too_big(max_bytes, why);
		if (n < 0)
			return broke_off(why);
		if (n == 0)
			break;
		body->n += (size_t)n;
		if (is_too_slow(limits, began, came(in))) {
			err_why(why, "the body arrives too slowly");
			return ERR_TIMEOUT;
		}
		if ((int64_t)came(in) > max_bytes)
			return too_big(max_bytes, why);
		err = in->spool == NULL ? ERR_OK : spool_step(in->spool, why);
		if (err != ERR_OK)
			return err;
	}
	if (length > (int64_t)came(in)) {
		err_why(why, "the body has %zu bytes, CONTENT_LENGTH says %lld", came(in),
		    (long long)length);
		return ERR_BAD_INPUT;
	}
	return ERR_OK;
}

/* A name that the store can hold whole: a rest of this model must be found again. */
static enum err
check_model(struct span model, struct why *why)
{
	if (model.n > REQUEST_MODEL_MAX) {
		err_why(why, "'model' has %zu bytes, at most %d are allowed", model.n,
		    REQUEST_MODEL_MAX);
		return ERR_BAD_INPUT;
	}
	for (size_t i = 0; i < model.n; i++)
		if ((unsigned char)model.p[i] < ' ' || model.p[i] == 0x7f) {
			err_why(why, "'model' holds a control character at byte %zu", i);
			return ERR_BAD_INPUT;
		}
	return ERR_OK;
}

/* Of what becomes a form: nobody writes so many things by hand, and each takes its memory. */
static enum err
check_items(const struct request *rq, struct span body, struct why *why)
{
	bool read = rq->endpoint->converts || rq->endpoint->dialect == &dialect_count_tokens;

	if (!read || body.n / ITEM_BYTES <= FORM_ITEMS_MAX ||
	    scan_items(body, FORM_ITEMS_MAX) <= FORM_ITEMS_MAX)
		return ERR_OK;
	err_why(why, "the body holds more than %d messages, parts of them, tools and parameters",
	    FORM_ITEMS_MAX);
	return ERR_TOO_BIG;
}

static enum err
read_json(struct request *rq, struct arena *arena, const struct buf *body, struct why *why)
{
	enum err err = dialect_read(rq->endpoint->dialect, buf_text(body), &rq->read, why);

	if (err == ERR_OK)
		err = check_items(rq, buf_text(body), why);
	if (err != ERR_OK)
		return err;
	if (rq->read.model.type == SCAN_STRING)
		rq->model = scan_string(arena, rq->read.model.raw);
	rq->stream = rq->endpoint->dialect->streams && rq->read.stream.type == SCAN_TRUE;
	rq->wants_usage = rq->read.include_usage.type == SCAN_TRUE;
	return ERR_OK;
}

static enum err
read_form(struct request *rq, struct arena *arena, struct spool *spool, struct why *why)
{
	struct multipart fields;
	struct span boundary;
	enum err err = spool_text(spool, &rq->form, why);

	if (err == ERR_OK)
		err = multipart_boundary(arena, rq->form_type, &boundary, why);
	if (err == ERR_OK)
		err = multipart_read(rq->form, boundary, &fields, why);
	if (err != ERR_OK)
		return err;
	if (fields.model.n == 0) {
		err_why(why, "'model' is missing: a field of the form must name it");
		return ERR_BAD_INPUT;
	}
	if (!text_utf8(fields.model)) {
		err_why(why, "'model' is not UTF-8");
		return ERR_BAD_INPUT;
	}
	rq->read = (struct dialect_request){.body = {"", 0}};
	rq->form_model = fields.model;
	rq->model = arena_copy(arena, fields.model);
	rq->stream = fields.stream.p != NULL && text_is_fold(fields.stream, "true");
	return ERR_OK;
}

enum err
request_body(struct request *rq, const struct exchange *x, struct arena *arena,
    const struct request_limits *limits, struct buf *body, struct why *why)
{
	struct span type = exchange_param(x, "CONTENT_TYPE");
	bool form = rq->endpoint->dialect->forms && multipart_is(type);
	struct incoming in = {body, form ? spool_new(arena, body, limits->spool_dir) : NULL};
	enum err err = read_all(x, limits, &in, why);

	if (form)
		rq->form_type = type;
	if (err == ERR_OK)
		err = form ? read_form(rq, arena, in.spool, why) : read_json(rq, arena, body, why);
	return err == ERR_OK ? check_model(rq->model, why) : err;
}
