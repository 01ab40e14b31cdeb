#include "recall.h"

#include "base/clock.h"
#include "base/emit.h"
#include "recall_store.h"

#include <string.h>

#define ITEMS "/input_items"
#define LIST_MAX 1024

static void
fail(struct respond *r, int status, const char *code, const char *message)
{
	struct respond_error error = {.status = status,
	    .code = code,
	    .message = text_span(message),
	    .retry_after_s = status == 503 ? 1 : -1};

	respond_error(r, &error);
}

static void
refuse(struct respond *r, enum store_rc rc, struct span id)
{
	char shown[160];

	text_clean(shown, sizeof shown, id);
	if (rc == STORE_NONE)
		fail(r, 404, "response_not_found",
		    arena_print(r->arena, "Response with id '%s' not found.", shown));
	else
		fail(r, 503, "store_unavailable",
		    "the gateway's state cannot be used now, try again shortly");
}

static void
put_deleted(struct respond *r, struct span id)
{
	struct buf *out = arena_buf(r->arena, LIST_MAX + 8 * id.n);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_text(&e, "id", id);
	emit_z(&e, "object", "response");
	emit_bool(&e, "deleted", true);
	emit_end(&e);
	respond_json(r, 200, buf_text(out));
}

/* All that led to the answer, oldest first, in one page. */
static void
put_items(struct respond *r, const struct history *history)
{
	struct buf *out = arena_buf(r->arena, LIST_MAX + history->items.n);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "object", "list");
	emit_raw(&e, "data", history->items);
	emit_null(&e, "first_id");
	emit_null(&e, "last_id");
	emit_bool(&e, "has_more", false);
	emit_end(&e);
	respond_json(r, 200, buf_text(out));
}

static bool
wants_stream(const struct respond *r)
{
	struct span query = exchange_param(r->x, "QUERY_STRING"), pair;

	while (text_token(&query, "&", &pair))
		if (text_is(pair, "stream=true") || text_is(pair, "stream=1"))
			return true;
	return false;
}

static void
forget(const struct recall_store *at, struct respond *r)
{
	enum store_rc rc = recall_store_del(at);

	if (rc == STORE_OK)
		put_deleted(r, at->id);
	else
		refuse(r, rc, at->id);
}

static void
show(const struct recall_store *at, bool items, struct respond *r)
{
	struct history history;
	struct span text;
	enum store_rc rc = recall_store_get(at, r->arena, &text);

	if (rc == STORE_OK && !history_read(r->arena, text, &history))
		rc = STORE_NONE;
	if (rc != STORE_OK)
		refuse(r, rc, at->id);
	else if (items)
		put_items(r, &history);
	else
		respond_json(r, 200, history.response);
}

void
recall_page(struct serve *s, const struct request *rq, struct respond *r)
{
	struct span id = text_from(text_span(rq->path), strlen("/v1/responses/"));
	bool items = text_ends(id, ITEMS), deletes = text_is(rq->method, "DELETE");
	struct recall_store at = {s, rq->client, id, clock_wall()};

	if (items)
		at.id.n -= strlen(ITEMS);
	if (at.id.n == 0 || text_find(at.id, SPAN("/")) < at.id.n || (items && deletes))
		fail(r, 404, "not_found", "no such path");
	else if (deletes)
		forget(&at, r);
	else if (wants_stream(r))
		fail(r, 400, "invalid_request_error",
		    "a kept response is not streamed: leave 'stream' out");
	else
		show(&at, items, r);
}
