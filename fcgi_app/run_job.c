#include "run_job.h"

#include "answer.h"
#include "base/nonce.h"

#define NAME_DIGITS 32 /* of a name that we make: nobody can guess another's */

static bool
is_run(const struct serve_job *j)
{
	return j->rq.endpoint->dialect == &dialect_run;
}

static bool
find_session(struct serve_job *j)
{
	const struct scan_value *given = &j->rq.read.session_id;
	const char *name = "'session_id'";
	struct request *rq = &j->rq;

	if (given->type == SCAN_STRING)
		rq->session = scan_string(j->s->arena, given->raw);
	if (rq->session.n == 0) {
		rq->session = text_trim(exchange_param(j->x, "HTTP_X_SESSION_ID"));
		name = "X-Session-Id";
	}
	if (rq->session.n == 0)
		rq->session = nonce_name(j->s->arena, "run_", NAME_DIGITS);
	if (rq->session.n <= SESSION_NAME_MAX && text_utf8(rq->session))
		return true;
	if (rq->session.n <= SESSION_NAME_MAX) { /* the answer would name another one */
		answer_refuse(j, 400, "invalid_request_error", "X-Session-Id is not UTF-8");
		return false;
	}
	answer_refuse(j, 400, "invalid_request_error",
	    arena_print(j->s->arena, "%s has %zu bytes, at most %d are allowed", name,
	        rq->session.n, SESSION_NAME_MAX));
	return false;
}

static bool
find_model(struct serve_job *j)
{
	const struct conf *conf = j->s->conf;

	if (j->rq.model.n > 0)
		return true;
	if (conf_model(conf, SPAN(CONF_AUTO)) != NULL || route_is_auto(conf, SPAN(CONF_AUTO))) {
		j->rq.model = SPAN(CONF_AUTO);
		return true;
	}
	if (conf->nmodels > 0) {
		j->rq.model = conf->models[0].name;
		return true;
	}
	answer_refuse(j, 400, "invalid_request_error",
	    "'model' is missing, and the gateway has no 'models' of its own to choose from: give "
	    "one");
	return false;
}

/* What is told to be left out counts nowhere. */
static void
forget_others(struct dialect_request *read)
{
	const struct scan_value absent = {.type = SCAN_ABSENT};

	read->max_tokens = read->max_completion_tokens = read->max_output_tokens = absent;
	read->metadata_task_type = read->task_type;
}

bool
run_job_begin(struct serve_job *j)
{
	if (!is_run(j))
		return true;
	forget_others(&j->rq.read);
	if (!find_session(j) || !find_model(j))
		return false;
	context_wish(j, j->rq.session);
	return true;
}

void
run_job_session(const struct serve_job *j, struct session_key *key_out)
{
	struct session_source source = {j->s->conf, j->x, &j->rq.read, j->rq.client};

	*key_out = (struct session_key){.kind = SESSION_NONE};
	if (!j->s->has_secret)
		return;
	if (is_run(j))
		session_name(&j->s->secret, j->rq.client, SESSION_HEADER, j->rq.session, key_out);
	else
		session_key(&j->s->secret, &source, j->s->arena, key_out);
}
