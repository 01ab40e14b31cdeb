#include "page_models.h"

#include "access.h"
#include "base/emit.h"
#include "offer.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PAGE_MAX (64 * 1024 * 1024)
#define KEEP_MS 1000
#define KEEP_MAX 1048576 /* bytes of a list */
#define LIMIT_MAX 1000   /* formats.md C.10 */

struct page {
	struct serve *s;
	struct respond *r;
	bool anthropic;
	struct offer offer;
	struct emit e;
};

static enum store_rc
look(struct txn *txn, void *arg)
{
	struct page *page = arg;

	return offer_look(txn, &page->offer);
}

/* Millionths for 1,000 tokens as an amount for one: "0.0000025". */
static void
emit_price(struct emit *e, const char *key, int64_t micros)
{
	char text[40];
	size_t n;

	snprintf(
	    text, sizeof text, "%" PRId64 ".%09" PRId64, micros / 1000000000, micros % 1000000000);
	n = strlen(text);
	while (text[n - 1] == '0')
		n--;
	if (text[n - 1] == '.')
		n--;
	emit_text(e, key, (struct span){text, n});
}

static void
put_openai(struct page *page, const struct offer_model *model)
{
	struct emit *e = &page->e;

	emit_object(e, NULL);
	emit_text(e, "id", model->name);
	emit_z(e, "object", "model");
	emit_i64(e, "created", page->s->loaded_at.v / 1000);
	emit_text(e, "owned_by", model->owner);
	emit_known(e, "context_length", model->context_window, model->context_window > 0);
	emit_known(e, "max_output", model->max_output, model->max_output > 0);
	emit_bool(e, "available", model->available);
	if (model->cost.given) {
		emit_object(e, "pricing");
		emit_price(e, "prompt", model->cost.input_micros);
		emit_price(e, "completion", model->cost.output_micros);
		emit_price(e, "input_cache_read", model->cost.cached_micros);
		emit_end(e);
	}
	emit_end(e);
}

static void
put_anthropic(struct page *page, const struct offer_model *model)
{
	struct emit *e = &page->e;

	emit_object(e, NULL);
	emit_z(e, "type", "model");
	emit_text(e, "id", model->name);
	emit_text(e, "display_name", model->name);
	emit_time(e, "created_at", (struct wall_ms){page->s->loaded_at.v / 1000 * 1000});
	emit_known(e, "max_input_tokens", model->context_window, model->context_window > 0);
	emit_known(e, "max_tokens", model->max_output, model->max_output > 0);
	emit_bool(e, "available", model->available);
	emit_end(e);
}

static void
put_model(struct page *page, const struct offer_model *model)
{
	if (page->anthropic)
		put_anthropic(page, model);
	else
		put_openai(page, model);
}

/* A name as it stands in a path or a query; one with a slash may be encoded there. */
static struct span
decoded(struct page *page, struct span raw)
{
	char *id = arena_alloc(page->s->arena, PATH_MAX_BYTES);

	return raw.n > 0 && path_normalise(raw, true, id) ? text_from(text_span(id), 1) : raw;
}

static struct span
query_value(struct page *page, const char *name)
{
	struct span rest = exchange_param(page->r->x, "QUERY_STRING"), token;

	while (text_token(&rest, "&", &token)) {
		size_t at = text_find(token, SPAN("="));

		if (text_is((struct span){token.p, at}, name))
			return decoded(page, text_from(token, at + 1));
	}
	return (struct span){"", 0};
}

/* Which of the models a list tells. */
struct part {
	size_t first, end;
	bool more; /* there are others on the side that was asked for */
};

static size_t
place_of(const struct offer *offer, struct span name, size_t otherwise)
{
	for (size_t i = 0; i < offer->n; i++)
		if (text_equal(offer->models[i].name, name))
			return i;
	return otherwise;
}

static struct part
part_of(struct page *page)
{
	const struct offer *offer = &page->offer;
	struct span after = query_value(page, "after_id"), before = query_value(page, "before_id");
	struct part part = {0, offer->n, false};
	int64_t limit;

	if (!page->anthropic)
		return part;
	if (!text_i64(query_value(page, "limit"), 1, LIMIT_MAX, &limit))
		limit = LIMIT_MAX;
	if (after.n > 0) {
		part.first = place_of(offer, after, offer->n) + 1;
		part.first = part.first < part.end ? part.first : part.end;
	} else if (before.n > 0) {
		part.end = place_of(offer, before, 0);
	}
	part.more = part.end - part.first > (size_t)limit;
	if (part.more && after.n == 0 && before.n > 0)
		part.first = part.end - (size_t)limit;
	else if (part.more)
		part.end = part.first + (size_t)limit;
	return part;
}

static void
emit_id(struct page *page, const char *key, const struct part *part, size_t at)
{
	if (part->first < part->end)
		emit_text(&page->e, key, page->offer.models[at].name);
	else
		emit_null(&page->e, key);
}

static void
put_list(struct page *page)
{
	struct part part = part_of(page);

	emit_object(&page->e, NULL);
	if (!page->anthropic)
		emit_z(&page->e, "object", "list");
	emit_array(&page->e, "data");
	for (size_t i = part.first; i < part.end; i++)
		put_model(page, &page->offer.models[i]);
	emit_end(&page->e);
	if (page->anthropic) {
		emit_bool(&page->e, "has_more", part.more);
		emit_id(page, "first_id", &part, part.first);
		emit_id(page, "last_id", &part, part.end - 1);
	}
	emit_end(&page->e);
}

static void
refuse(struct page *page, int status, const char *code, const char *message)
{
	struct respond_error error = {.status = status,
	    .code = code,
	    .message = text_span(message),
	    .retry_after_s = status == 503 ? 1 : -1};

	respond_error(page->r, &error);
}

/* ---- what is kept ---- */

static bool
is_kept(const struct page *page, const struct serve_models *kept, uint64_t newest)
{
	return kept->text.n > 0 && kept->generation == page->s->generation &&
	       kept->newest == newest && kept->anthropic == page->anthropic &&
	       page->offer.now.v >= kept->at.v && page->offer.now.v < kept->at.v + KEEP_MS &&
	       text_is(page->offer.realm, kept->realm);
}

static const struct serve_models *
find_kept(const struct page *page, uint64_t newest)
{
	for (size_t i = 0; i < SERVE_MODELS_MAX; i++)
		if (is_kept(page, &page->s->models[i], newest))
			return &page->s->models[i];
	return NULL;
}

/* `newest` was asked for before the look: what came in between shows as a change. */
static void
keep(struct page *page, uint64_t newest, struct span text)
{
	struct serve_models *kept = &page->s->models[page->s->nmodels++ % SERVE_MODELS_MAX];

	if (text.n > KEEP_MAX || page->offer.realm.n >= sizeof kept->realm)
		return;
	if (kept->text.max == 0)
		buf_init(&kept->text, KEEP_MAX);
	buf_clear(&kept->text);
	buf_span(&kept->text, text);
	kept->generation = page->s->generation;
	kept->newest = newest;
	kept->anthropic = page->anthropic;
	kept->at = page->offer.now;
	memcpy(kept->realm, page->offer.realm.p, page->offer.realm.n);
	kept->realm[page->offer.realm.n] = '\0';
}

void
page_models_forget(struct serve *s)
{
	for (size_t i = 0; i < SERVE_MODELS_MAX; i++)
		if (s->models[i].text.max > 0)
			buf_release(&s->models[i].text);
}

/* ---- the page ---- */

static void
show_list(struct page *page, struct buf *out)
{
	bool whole = exchange_param(page->r->x, "QUERY_STRING").n == 0;
	uint64_t newest = env_newest(page->s->env);
	const struct serve_models *kept = whole ? find_kept(page, newest) : NULL;

	if (kept != NULL) {
		respond_json(page->r, 200, buf_text(&kept->text));
		return;
	}
	if (env_view(page->s->env, look, page) != STORE_OK) {
		refuse(page, 503, "store_unavailable", "the store cannot be read");
		return;
	}
	put_list(page);
	if (whole)
		keep(page, newest, buf_text(out));
	respond_json(page->r, 200, buf_text(out));
}

static void
show_one(struct page *page, struct buf *out)
{
	if (env_view(page->s->env, look, page) != STORE_OK) {
		refuse(page, 503, "store_unavailable", "the store cannot be read");
	} else if (page->offer.n == 0) {
		refuse(page, 404, "model_not_found", "no such model");
	} else {
		put_model(page, page->offer.models);
		respond_json(page->r, 200, buf_text(out));
	}
}

static bool
is_anthropic(const struct exchange *x)
{
	return exchange_param(x, "HTTP_ANTHROPIC_VERSION").n > 0 ||
	       (exchange_param(x, "HTTP_X_API_KEY").n > 0 &&
	           exchange_param(x, "HTTP_AUTHORIZATION").n == 0);
}

void
page_models(struct serve *s, const struct request *rq, struct respond *r, struct wall_ms now)
{
	struct page page = {.s = s, .r = r, .anthropic = is_anthropic(r->x)};
	struct buf *out = arena_buf(s->arena, PAGE_MAX);

	page.offer = (struct offer){.pool = s->pool,
	    .slot = s->slot,
	    .realm = access_realm(r->x),
	    .only = decoded(&page, text_from(text_span(rq->path), strlen("/v1/models/"))),
	    .now = now,
	    .arena = s->arena};
	if (page.anthropic)
		r->dialect = &dialect_messages;
	emit_init(&page.e, out);
	if (page.offer.only.n == 0)
		show_list(&page, out);
	else
		show_one(&page, out);
}
