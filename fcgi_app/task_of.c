#include "task_of.h"

#include "ask.h"
#include "base/clock.h"
#include "run_job.h"
#include "task_ask.h"

#include "store/told.h"

#define ANSWER_TOKENS 64 /* one word, and room for hosts that want to say a little more */
#define IN_VAIN_MS \
	60000 /* a conversation that it could not name: asked again then, if it goes on */
#define LATE_REST_MS \
	30000 /* a classifier that was late: this process does not wait for it meanwhile */
#define CLIENT_NAME_MAX 256 /* bytes of a client's own name for it: a longer one is none */

_Static_assert(TOLD_KEY_BYTES == SESSION_HASH_BYTES, "a conversation's key");

/* ---- what the client says ---- */

static struct span
said_by_client(struct serve_job *j)
{
	const struct scan_value *value = &j->rq.read.metadata_task_type;
	struct span name = text_trim(exchange_param(j->x, "HTTP_X_TASK_TYPE"));

	if (name.n == 0 && value->type == SCAN_STRING)
		name = text_trim(scan_string(j->s->arena, value->raw));
	return name.n <= CLIENT_NAME_MAX ? name : (struct span){"", 0};
}

/* ---- what the request is about ---- */

/* The texts of the newest message of the user; what editors put before them stands in parts of its own. */
static struct span
text_of_turn(struct arena *arena, const struct form_turn *turn, bool *picture)
{
	struct span text = {"", 0};
	struct buf *out = NULL;

	for (size_t i = 0; i < turn->nparts; i++) {
		const struct form_part *part = &turn->parts[i];

		*picture |= part->kind == FORM_IMAGE;
		if (part->kind != FORM_TEXT || text_starts(part->text, "<system-reminder>"))
			continue;
		if (text.n == 0) {
			text = part->text;
			continue;
		}
		if (out == NULL) {
			out = arena_buf(arena, SIZE_MAX / 2);
			buf_span(out, text);
		}
		buf_char(out, '\n');
		buf_span(out, part->text);
	}
	return out == NULL ? text : buf_text(out);
}

static void
prompt_of_form(struct arena *arena, const struct form *form, struct task_prompt *prompt)
{
	struct span *tools = arena_alloc(arena, (form->ntools + 1) * sizeof *tools);
	size_t i = form->nturns;

	while (i > 0 && form->turns[i - 1].role != FORM_USER)
		i--;
	if (i > 0)
		prompt->text = text_of_turn(arena, &form->turns[i - 1], &prompt->has_picture);
	for (size_t t = 0; t < form->ntools; t++)
		tools[t] = form->tools[t].kind == FORM_HOSTED ? form->tools[t].hosted
		                                              : form->tools[t].name;
	prompt->tools = tools;
	prompt->ntools = form->ntools;
}

/*
 * What cannot be read says nothing here: whoever forwards it has the words for that. Read apart from j->convert, whose
 * body is not the client's once a conversation stands before it.
 */
static void
prompt_of(struct serve_job *j, struct task_prompt *prompt)
{
	const struct request *rq = &j->rq;
	struct arena *arena = j->s->arena;
	const struct form *form;
	struct why why;

	*prompt = (struct task_prompt){.text = {"", 0}};
	if (rq->endpoint->converts) {
		form = flow_read(arena, rq->endpoint->wire, rq->read.body, &why);
		if (form != NULL)
			prompt_of_form(arena, form, prompt);
	} else if (rq->read.prompt.type == SCAN_STRING) {
		prompt->text = scan_string(arena, rq->read.prompt.raw);
	}
}

/* ---- what a conversation was taken for before ---- */

struct memory {
	struct serve_job *j;
	struct session_key key; /* of no kind: nothing is remembered */
	struct wall_ms now;
	int64_t ttl_ms;
	struct span name; /* to be kept */
	struct told_row row;
};

static enum store_rc
get_in(struct txn *txn, void *arg)
{
	struct memory *m = arg;

	return told_get(txn, m->key.hash, m->now, &m->row);
}

static enum store_rc
put_in(struct txn *txn, void *arg)
{
	const struct memory *m = arg;
	struct env_bytes name = {m->name.p, m->name.n};

	return told_put(txn, m->key.hash, name, m->now, m->ttl_ms);
}

static void
begin_memory(struct serve_job *j, struct memory *m)
{
	*m = (struct memory){.j = j, .now = clock_wall(), .ttl_ms = j->s->conf->sticky.ttl_ms};
	run_job_session(j, &m->key);
}

static void
keep(struct memory *m, struct span name, int64_t ttl_ms)
{
	const struct serve *s = m->j->s;

	if (m->key.kind == SESSION_NONE || m->j->explain)
		return;
	m->name = name;
	m->ttl_ms = ttl_ms;
	m->now = clock_wall();
	if (env_update(s->env, put_in, m) != STORE_OK)
		serve_job_log(m->j, LOG_LEVEL_WARN, "a task was not kept", env_error(s->env));
}

/* False: it must be asked. */
static bool
recall(struct memory *m, struct span *name_out)
{
	if (m->key.kind == SESSION_NONE || env_view(m->j->s->env, get_in, m) != STORE_OK)
		return false;
	*name_out = arena_copy(m->j->s->arena, (struct span){m->row.name, m->row.n});
	if (m->row.n > 0 && told_fades(&m->row, m->now))
		keep(m, *name_out, m->ttl_ms);
	return true;
}

/* ---- the classifier ---- */

static bool
may_ask(const struct serve_job *j)
{
	return !j->explain && !j->inner && j->rq.endpoint->dialect != &dialect_count_tokens &&
	       clock_mono().v >= j->s->classifier_rests.v;
}

static struct span
classify(struct serve_job *j, struct memory *m, const struct task_prompt *prompt)
{
	struct arena *arena = j->s->arena;
	struct task_names *names = arena_alloc(arena, sizeof *names);
	struct ask ask = {
	    .purpose = "classify",
	    .model = j->s->conf->routing.classifier,
	    .text = task_ask_text(arena, prompt),
	    .max_tokens = ANSWER_TOKENS,
	    .limit_ms = TASK_OF_LIMIT_MS,
	};
	struct ask_answer answer;
	struct span name = {"", 0};
	int64_t ttl_ms = j->s->conf->sticky.ttl_ms;

	task_ask_names(j->s->conf, names);
	ask.system = task_ask_system(arena, names);
	ask_run(j, &ask, &answer);
	if (answer.ok)
		name = task_ask_answer(names, answer.text);
	if (answer.late)
		j->s->classifier_rests.v = clock_mono().v + LATE_REST_MS;
	if (!j->s->watch->client_gone)
		keep(m, name, name.n > 0 || ttl_ms < IN_VAIN_MS ? ttl_ms : IN_VAIN_MS);
	return name;
}

struct span
task_of(struct serve_job *j, bool guess)
{
	struct span name = said_by_client(j);
	struct task_prompt prompt;
	struct memory m;

	if (name.n > 0 || !guess)
		return name;
	prompt_of(j, &prompt);
	if (j->s->conf->routing.classifier.n > 0) {
		begin_memory(j, &m);
		if (!recall(&m, &name) && may_ask(j))
			name = classify(j, &m, &prompt);
	}
	return name.n > 0 ? name : text_span(task_name(task_guess(&prompt)));
}
