#include "respond.h"

#define ERROR_MAX 65536

static const char *
reason_phrase(int status)
{
	static const struct {
		int status;
		const char *phrase;
	} table[] = {{200, "OK"}, {204, "No Content"}, {400, "Bad Request"}, {401, "Unauthorized"},
	    {403, "Forbidden"}, {404, "Not Found"}, {405, "Method Not Allowed"}, {409, "Conflict"},
	    {408, "Request Timeout"}, {413, "Content Too Large"}, {429, "Too Many Requests"},
	    {500, "Internal Server Error"}, {502, "Bad Gateway"}, {503, "Service Unavailable"},
	    {504, "Gateway Timeout"}};

	for (size_t i = 0; i < NELEM(table); i++)
		if (table[i].status == status)
			return table[i].phrase;
	return "Upstream Status";
}

/* A header from a value that is not ours: control characters never pass. */
static void
header(struct buf *b, const char *name, struct span value)
{
	char clean[512];

	if (value.n == 0)
		return;
	buf_z(b, name);
	buf_add(b, ": ", 2);
	buf_add(b, clean, text_clean(clean, sizeof clean, value));
	buf_add(b, "\r\n", 2);
}

static void
number(struct buf *b, const char *name, int64_t value)
{
	buf_z(b, name);
	buf_add(b, ": ", 2);
	buf_i64(b, value);
	buf_add(b, "\r\n", 2);
}

static void
head_names(const struct respond *r, struct buf *b)
{
	header(b, "X-Request-Id", r->request_id);
	header(b, "X-Sluice-Channel", r->channel);
	header(b, "X-Sluice-Account", r->account);
	header(b, "X-Sluice-Model", r->model);
	number(b, "X-Sluice-Attempts", r->attempts);
	header(b, "X-Upstream-Request-Id", r->upstream_id);
	header(b, "X-Sluice-Dropped", r->dropped);
	header(b, "X-Sluice-Trimmed", r->trimmed);
	if (r->not_kept)
		buf_z(b, "X-Sluice-Context: not-kept\r\n");
	if (r->origin.n > 0) {
		header(b, "Access-Control-Allow-Origin", r->origin);
		buf_z(b, "Vary: Origin\r\n");
		if (r->preflight)
			buf_z(b,
			    "Access-Control-Allow-Methods: GET, POST, DELETE, OPTIONS\r\n"
			    "Access-Control-Allow-Headers: Authorization, Content-Type, "
			    "X-Api-Key, X-Request-Id, X-Session-Id, X-Context, Anthropic-Version, "
			    "Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access\r\n"
			    "Access-Control-Max-Age: 600\r\n");
	}
}

void
respond_head(struct respond *r, const struct respond_head *head)
{
	struct buf *b = arena_buf(r->arena, 16384);

	buf_z(b, "Status: ");
	buf_i64(b, head->status);
	buf_char(b, ' ');
	buf_z(b, reason_phrase(head->status));
	buf_z(b, "\r\n");
	header(b, "Content-Type", head->content_type);
	if (head->length >= 0)
		number(b, "Content-Length", head->length);
	else
		buf_z(b, "X-Accel-Buffering: no\r\n");
	buf_z(b, "Cache-Control: no-cache\r\n");
	if (head->retry_after_s >= 0)
		number(b, "Retry-After", head->retry_after_s);
	if (head->no_retry)
		buf_z(b, "x-should-retry: false\r\n");
	if (head->allow != NULL)
		header(b, "Allow", text_span(head->allow));
	if (r->service)
		buf_z(b, "X-Service: sluice\r\n");
	if (r->estimated)
		buf_z(b, "X-Sluice-Estimated: 1\r\n");
	head_names(r, b);
	buf_z(b, "\r\n");
	r->status = head->status;
	if (!r->x->write(r->x->io, b->p, b->n))
		r->gone = true;
}

void
respond_bytes(struct respond *r, struct span bytes)
{
	r->committed = true;
	if (r->gone || r->head_only || bytes.n == 0)
		return;
	if (!r->x->write(r->x->io, bytes.p, bytes.n))
		r->gone = true;
	else
		r->bytes += bytes.n;
}

void
respond_flush(struct respond *r)
{
	if (!r->gone && !r->x->flush(r->x->io))
		r->gone = true;
}

void
respond_whole(struct respond *r, const struct respond_head *head, struct span body)
{
	struct respond_head whole = *head;

	whole.length = (int64_t)body.n;
	respond_head(r, &whole);
	respond_bytes(r, body);
}

void
respond_json(struct respond *r, int status, struct span body)
{
	struct respond_head head = {
	    .status = status, .content_type = SPAN("application/json"), .retry_after_s = -1};

	respond_whole(r, &head, body);
}

void
respond_error(struct respond *r, const struct respond_error *error)
{
	struct buf *b = arena_buf(r->arena, ERROR_MAX);
	struct respond_head head = {
	    .status = error->status,
	    .content_type = SPAN("application/json"),
	    .retry_after_s = error->retry_after_s,
	    .no_retry = error->no_retry,
	    .allow = error->allow,
	};

	r->dialect->error_body(b, error->status, error->type, error->code, error->message);
	respond_whole(r, &head, buf_text(b));
}

void
respond_error_event(struct respond *r, int status, const char *code, struct span message)
{
	struct buf *b = arena_buf(r->arena, ERROR_MAX);

	r->dialect->error_event(b, status, NULL, code, message);
	respond_bytes(r, buf_text(b));
}
