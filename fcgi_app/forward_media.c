#include "forward_transfer.h"

enum mode
forward_media_mode(const struct transfer *t)
{
	struct span type = t->out->content_type, text = buf_text(t->body);

	if (!forward_is_success(t))
		return MODE_PLAIN;
	if (text.n == 0)
		return MODE_OPEN;
	if (text_has_fold(type, "event-stream"))
		return MODE_EVENTS;
	/* a page of some server in between is no answer */
	if (text_has_fold(type, "json") || text_has_fold(type, "html"))
		return MODE_PLAIN;
	if (type.n == 0 && (text.p[0] == '{' || text.p[0] == '[' || text.p[0] == '<'))
		return MODE_PLAIN;
	return MODE_RAW;
}

static void
commit(struct transfer *t)
{
	struct respond_head head = {.status = t->out->status,
	    .content_type = t->out->content_type.n > 0 ? t->out->content_type
	                                               : SPAN("application/octet-stream"),
	    .length = t->length,
	    .retry_after_s = -1};

	t->out->first_content = t->task->clock();
	t->task->respond->upstream_id = t->out->upstream_id;
	respond_head(t->task->respond, &head);
	t->task->respond->committed = true;
}

void
forward_media(struct transfer *t, struct span bytes)
{
	if (bytes.n == 0)
		return;
	if (!forward_committed(t))
		commit(t);
	forward_relay(t, bytes);
	respond_flush(t->task->respond);
	t->dirty = false;
	t->last_sent = t->task->clock();
	if (t->task->respond->gone)
		t->stop = STOP_CLIENT;
}

bool
forward_media_is_whole(const struct transfer *t)
{
	bool ended = t->stop == STOP_NOT && t->out->transport == TRANSPORT_OK;

	if (t->mode == MODE_RAW)
		return ended;
	/* nothing was said: a text without words */
	return ended && t->mode == MODE_OPEN && t->task->dialect->media && forward_is_success(t) &&
	       text_starts_fold(t->out->content_type, "text/plain");
}
