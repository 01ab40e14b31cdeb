#include "page.h"

#include "base/clock.h"
#include "base/emit.h"
#include "doctor.h"
#include "page_models.h"
#include "pick.h"
#include "recall.h"
#include "status.h"

#define PAGE_MAX (64 * 1024 * 1024)
#define REALMS_MAX 64

static void
fail(struct respond *r, const struct why *why)
{
	struct respond_error error = {.status = 503,
	    .code = "store_unavailable",
	    .message = text_span(why->text),
	    .retry_after_s = 1};

	respond_error(r, &error);
}

/* What /healthz counts, per realm and in all. */
struct health {
	struct serve *s;
	struct wall_ms now;
	unsigned total, healthy;
	unsigned nrealms;
	struct {
		struct span name;
		unsigned servable;
	} realms[REALMS_MAX];
};

static unsigned
pickable(struct health *h, struct txn *txn, size_t channel, struct span realm)
{
	struct pick_wish wish = {.pool = h->s->pool,
	    .channel = channel,
	    .model = "",
	    .realm = realm,
	    .insist = PICK_ANY};
	struct pick_reason reason;

	if (pick_look(txn, h->s->slot, &wish, h->now, &reason) != STORE_OK ||
	    reason.result == PICK_OPEN)
		return 0;
	return reason.out[SCORE_IN] + reason.out[SCORE_TIER];
}

static void
list_realms(struct health *h)
{
	const struct conf *conf = h->s->conf;

	h->nrealms = 0;
	for (size_t c = 0; c < conf->nchannels; c++)
		for (size_t a = 0; a < conf->channels[c].naccounts; a++) {
			struct span realm = conf->channels[c].accounts[a].realm;
			unsigned i = 0;

			while (i < h->nrealms && !text_equal(h->realms[i].name, realm))
				i++;
			if (realm.n > 0 && i == h->nrealms && i < REALMS_MAX)
				h->realms[h->nrealms++].name = realm;
		}
}

static enum store_rc
look(struct txn *txn, void *arg)
{
	struct health *h = arg;
	const struct conf *conf = h->s->conf;

	h->total = h->healthy = 0;
	list_realms(h);
	for (unsigned i = 0; i < h->nrealms; i++)
		h->realms[i].servable = 0;
	for (size_t c = 0; c < conf->nchannels; c++) {
		h->total += (unsigned)conf->channels[c].naccounts;
		h->healthy += pickable(h, txn, c, (struct span){"", 0});
		for (unsigned i = 0; i < h->nrealms; i++)
			h->realms[i].servable += pickable(h, txn, c, h->realms[i].name);
	}
	return STORE_OK;
}

static void
page_healthz(struct serve *s, struct respond *r)
{
	struct health h = {.s = s, .now = clock_wall()};
	struct buf *out = arena_buf(s->arena, 65536);
	struct emit e;

	if (env_view(s->env, look, &h) != STORE_OK) {
		struct why why;

		err_why(&why, "the store cannot be read");
		fail(r, &why);
		return;
	}
	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "service", "sluice");
	emit_i64(&e, "healthy", h.healthy);
	emit_i64(&e, "total", h.total);
	emit_object(&e, "realm_servable");
	for (unsigned i = 0; i < h.nrealms; i++)
		emit_i64(&e, arena_z(s->arena, h.realms[i].name), h.realms[i].servable);
	emit_end(&e);
	emit_end(&e);
	r->service = true;
	respond_json(r, h.healthy > 0 ? 200 : 503, buf_text(out));
}

static void
page_status(struct serve *s, struct respond *r)
{
	struct status_frame frame = {
	    .conf = s->conf,
	    .pool = s->pool,
	    .env = s->env,
	    .slot = s->slot,
	    .generation = s->generation,
	    .loaded_at = s->loaded_at,
	    .now = clock_wall(),
	    .conf_error = s->conf_error,
	};
	struct buf *out = arena_buf(s->arena, PAGE_MAX);
	struct why why;

	if (status_json(&frame, out, &why) != ERR_OK)
		fail(r, &why);
	else
		respond_json(r, 200, buf_text(out));
}

void
page_serve(struct serve *s, struct request *rq, struct respond *r)
{
	switch (rq->endpoint->work) {
	case ENDPOINT_HEALTHZ: page_healthz(s, r); break;
	case ENDPOINT_STATUS: page_status(s, r); break;
	case ENDPOINT_MODELS: page_models(s, rq, r, clock_wall()); break;
	case ENDPOINT_DOCTOR: doctor_serve(s, rq, r); break;
	case ENDPOINT_RECALL: recall_page(s, rq, r); break;
	case ENDPOINT_FORWARD: die("not a page");
	}
}
