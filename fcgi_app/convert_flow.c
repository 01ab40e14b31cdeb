#include "convert_flow.h"

#include "dialect/gather.h"

struct convert_flow {
	const struct flow_wire *up, *client;
	struct flow_job job;
	struct flow_reader *reader;
	struct flow_writer *writer; /* NULL: gathered, or only listened to */
	struct gather *gather;
	struct gather *whole; /* NULL: nobody wants it */
	struct buf *out;      /* of the running call */
};

static struct convert_flow *
begin(const struct convert *c)
{
	struct convert_flow *f = arena_alloc(c->arena, sizeof *f);
	const struct request *rq = c->rq;

	f->client = &flow_wires[rq->endpoint->wire];
	f->up = c->way.same ? f->client : &flow_wires[c->way.channel->wire];
	f->job = (struct flow_job){
	    .arena = c->arena,
	    .model = rq->model,
	    .id = rq->id,
	    .created_s = c->created_s,
	    .wants_usage = rq->wants_usage,
	    /* on its own API the client's bytes went out: it is given what it made the channel give */
	    .wants_seals = c->way.same || (c->state == CONVERT_READ && c->form.wants_seals),
	    .form = &c->form,
	    .loss = &c->way.loss,
	    .channel = c->way.channel->name,
	    .response_id = c->response_id,
	    .previous_id = c->previous_id,
	    .store = c->store,
	    .session_id = rq->session,
	    .account = c->account,
	    .model_used = c->way.model,
	};
	f->reader = f->up->reader->begin(c->arena, c->way.channel->name);
	if (c->gathers)
		f->whole = gather_begin(c->arena);
	return f;
}

struct convert_flow *
convert_flow_listen(const struct convert *c)
{
	return begin(c);
}

const struct flow_answer *
convert_flow_answer(const struct convert_flow *f)
{
	if (f->whole == NULL || !gather_answer(f->whole)->ended || gather_answer(f->whole)->cut)
		return NULL;
	return gather_answer(f->whole);
}

struct convert_flow *
convert_flow_begin(const struct convert *c, bool plain)
{
	struct convert_flow *f = begin(c);

	if (plain)
		f->gather = gather_begin(c->arena);
	else
		f->writer = f->client->writer->begin(&f->job);
	return f;
}

/* A flow_sink_fn. What clients are told of usage agrees in itself, and with what is booked. */
static void
take(void *arg, const struct flow *given)
{
	struct convert_flow *f = arg;
	const struct flow *step = given;
	struct dialect_usage usage;
	struct flow agreed;

	if (given->usage != NULL) {
		usage = *given->usage;
		dialect_add_up(&usage);
		agreed = *given;
		agreed.usage = &usage;
		step = &agreed;
	}
	if (f->whole != NULL)
		gather_step(f->whole, step);
	if (f->writer != NULL)
		f->client->writer->step(f->writer, step, f->out);
	else if (f->gather != NULL)
		gather_step(f->gather, step);
}

void
convert_flow_event(struct convert_flow *f, const struct sse_event *event, struct buf *out)
{
	f->out = out;
	f->up->reader->event(f->reader, event, take, f);
}

void
convert_flow_body(struct convert_flow *f, struct span body, struct buf *out)
{
	f->out = out;
	f->up->reader->body(f->reader, body, take, f);
}

void
convert_flow_end(struct convert_flow *f, struct buf *out)
{
	f->out = out;
	f->up->reader->end(f->reader, take, f);
	if (f->gather != NULL)
		f->client->answer(&f->job, gather_answer(f->gather), out);
}

void
convert_flow_error(
    struct convert_flow *f, int status, const char *code, struct span message, struct buf *out)
{
	f->client->writer->error(f->writer, status, NULL, code, message, out);
}
