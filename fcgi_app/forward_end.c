#include "forward_transfer.h"

static bool
stream_is_whole(const struct transfer *t)
{
	return t->mode == MODE_EVENTS && (t->out->tap.ended || t->out->tap.finished) &&
	       t->stop != STOP_ERROR && t->stop != STOP_EMPTY && t->stop != STOP_GRAMMAR &&
	       (t->stop != STOP_TOO_BIG || t->flow == NULL);
}

static bool
is_answer(struct transfer *t)
{
	if (!forward_is_success(t) || t->out->transport != TRANSPORT_OK)
		return false;
	if (forward_media_is_whole(t))
		return true;
	if (t->mode == MODE_EVENTS || t->mode == MODE_RAW ||
	    (t->task->call->stream && !forward_converts(t) && !t->task->dialect->media))
		return false; /* an object where a stream was asked for */
	return t->task->dialect->answer(buf_text(t->body), &t->out->tap);
}

static void
found(struct transfer *t, enum verdict verdict, const char *rule, const char *message)
{
	struct classify_finding *f = &t->out->finding;

	f->verdict = verdict;
	f->rule = rule;
	f->status = t->out->status;
	f->reset.stated = false;
	f->code[0] = '\0';
	text_clean(f->message, sizeof f->message, text_span(message));
}

static void
classify(struct transfer *t)
{
	/* redacted before it is read: what the classifier quotes goes into the store and to the client */
	struct span raw = t->stop == STOP_ERROR ? buf_text(t->error_event) : buf_text(t->body);
	struct span body = redact_all(t->task->conf, t->task->arena,
	    (struct span){raw.p, raw.n < ERROR_BODY_MAX ? raw.n : ERROR_BODY_MAX});
	struct classify_answer answer = {
	    .transport = t->out->transport,
	    .status = t->out->status,
	    .content_type = t->out->content_type,
	    .body = body,
	    .in_band = t->stop == STOP_ERROR || forward_is_success(t),
	    .headers = &t->headers,
	    .judged = t->task->dialect->judged,
	    .model = t->task->model,
	};

	classify_answer(
	    t->task->arena, t->task->call->channel, &answer, t->task->wall(), &t->out->finding);
}

/* What happened, where the upstream has no words for it. libcurl only knows its own reasons, not ours. */
static struct span
own_words(const struct transfer *t, const struct upstream_end *end)
{
	switch (t->stop) {
	case STOP_NOT: return text_span(end->text);
	case STOP_EMPTY: return SPAN("the answer is empty");
	case STOP_TOO_BIG: return SPAN("the answer is too large");
	case STOP_TIMEOUT: return text_span(t->timeout_text);
	case STOP_GRAMMAR: return SPAN("the upstream broke its own grammar");
	case STOP_END:
	case STOP_ERROR:
	case STOP_CLIENT:
	case STOP_DRAIN:
	case STOP_LATE: break;
	}
	return (struct span){"", 0};
}

void
forward_conclude(struct transfer *t, const struct upstream_end *end)
{
	switch (t->stop) {
	case STOP_CLIENT: found(t, VERDICT_CANCELLED, "client gone", "the client has gone"); return;
	case STOP_LATE: found(t, VERDICT_CANCELLED, "limit", "the time for it is over"); return;
	case STOP_DRAIN:
		found(t, VERDICT_CANCELLED, "drain", "the gateway is restarting");
		t->out->stopped = true;
		return;
	case STOP_TIMEOUT:
		if (stream_is_whole(t))
			break; /* all that mattered had come */
		if (t->out->status >= 300) {
			t->out->transport = TRANSPORT_TRUNCATED; /* the status speaks */
			break;
		}
		t->out->transport = TRANSPORT_TIMEOUT;
		found(t, VERDICT_NETWORK, "timeout", t->timeout_text);
		return;
	case STOP_TOO_BIG: t->out->transport = TRANSPORT_TOO_BIG; break;
	case STOP_GRAMMAR:
	case STOP_EMPTY: t->out->transport = TRANSPORT_TRUNCATED; break;
	case STOP_ERROR: t->out->transport = TRANSPORT_OK; break;
	case STOP_END:
	case STOP_NOT: break;
	}
	if (stream_is_whole(t) || is_answer(t)) {
		found(t, VERDICT_OK, NULL, "");
		t->out->transport = TRANSPORT_OK;
		return;
	}
	if (t->mode == MODE_EVENTS && t->out->transport == TRANSPORT_OK && t->stop == STOP_NOT)
		t->out->transport = TRANSPORT_TRUNCATED;
	classify(t);
	if (t->out->finding.message[0] == '\0')
		text_clean(
		    t->out->finding.message, sizeof t->out->finding.message, own_words(t, end));
}

static void
end_in_error(struct transfer *t)
{
	const struct classify_finding *f = &t->out->finding;
	int status = t->out->stopped ? 503 : verdict_table[f->verdict].status;
	struct span message =
	    text_span(f->message[0] != '\0' ? f->message : "the upstream broke off the answer");

	const char *code = f->code[0] != '\0' ? f->code : "upstream_error";

	status = status > 0 ? status : 502;
	if (t->task->convert == NULL) {
		respond_error_event(t->task->respond, status, code, message);
		return;
	}
	buf_clear(t->made);
	if (t->flow != NULL)
		convert_flow_error(t->flow, status, code, message, t->made);
	else
		convert_error_event(t->task->convert, &t->trail, status, code, message, t->made);
	respond_bytes(t->task->respond, buf_text(t->made));
}

static void
close_stream(struct transfer *t)
{
	enum verdict verdict = t->out->finding.verdict;
	struct respond *r = t->task->respond;

	if (!forward_committed(t) || r->gone || (verdict == VERDICT_CANCELLED && !t->out->stopped))
		return;
	if (!t->last_ends_blank)
		respond_bytes(r, SPAN("\n\n"));
	if (verdict != VERDICT_OK && !t->error_relayed)
		end_in_error(t);
	else if (verdict == VERDICT_OK && !t->out->tap.ended && t->flow == NULL)
		respond_bytes(r, text_span(t->task->dialect->end_marker));
}

void
forward_close(struct transfer *t)
{
	if (t->mode == MODE_RAW) /* no event can tell it */
		t->task->respond->x->cut = t->out->finding.verdict != VERDICT_OK;
	else
		close_stream(t);
}
