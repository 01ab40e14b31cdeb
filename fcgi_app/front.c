#include "front.h"

#include "access.h"
#include "answer.h"
#include "base/clock.h"
#include "doctor.h"

/* No key may ever be served: once per document root, is the configuration below it? */
static bool
is_exposed(struct serve *s, const struct exchange *x)
{
	struct span root = exchange_param(x, "DOCUMENT_ROOT");

	if (root.n == 0 || text_is(root, s->checked_root))
		return root.n > 0 && s->exposed;
	s->exposed = conf_is_exposed(s->conf, root);
	text_clean(s->checked_root, sizeof s->checked_root, root);
	if (s->exposed)
		log_fields(s->log, LOG_LEVEL_ERROR, clock_wall(),
		    "the configuration lies below the document root: move it out of the web's reach",
		    LOG_TEXT("document_root", root));
	return s->exposed;
}

/* Only what would be forwarded can be explained. */
static bool
wants_explain(const struct serve_job *j)
{
	return j->rq.endpoint != NULL && j->rq.endpoint->work == ENDPOINT_FORWARD &&
	       text_is(exchange_param(j->x, "HTTP_X_SLUICE_EXPLAIN"), "1");
}

static bool
may_enter(struct serve_job *j)
{
	const struct endpoint *endpoint = j->rq.endpoint;
	enum access_answer answer;

	if (endpoint != NULL && endpoint->who == ENDPOINT_ANYONE)
		return true;
	answer = access_client(j->s->conf, j->x, &j->rq.client);
	if (answer == ACCESS_OK &&
	    (j->explain || (endpoint != NULL && endpoint->who == ENDPOINT_ADMIN)))
		answer = access_admin(j->s->conf, j->rq.client);
	switch (answer) {
	case ACCESS_OK: return true;
	case ACCESS_UNKNOWN:
		answer_refuse(j, 401, "unauthenticated",
		    access_hint(exchange_param(j->x, "SERVER_SOFTWARE")));
		break;
	case ACCESS_UNFIT:
		answer_refuse(j, 403, "forbidden",
		    "the web server's name for the user does not do: it must be one, UTF-8 without "
		    "control characters, and at most 255 bytes");
		break;
	case ACCESS_REFUSED:
		answer_refuse(j, 403, "forbidden",
		    j->explain ? "X-Sluice-Explain is for admins: see auth.admins"
		               : "this path is for admins: see auth.admins");
		break;
	case ACCESS_UNBUILT:
		answer_refuse(
		    j, 503, "unavailable", "auth.mode 'keys' is not built into this version");
		break;
	}
	return false;
}

/* OPTIONS: a preflight only where CORS is configured. */
static bool
is_preflight(struct serve_job *j)
{
	struct respond_head head = {.status = 204, .length = 0, .retry_after_s = -1};

	if (j->respond.origin.n == 0 ||
	    exchange_param(j->x, "HTTP_ACCESS_CONTROL_REQUEST_METHOD").n == 0)
		return false;
	head.allow = j->rq.endpoint == NULL ? "OPTIONS" : endpoint_allow(j->rq.endpoint);
	j->respond.preflight = true;
	j->record.outcome = "preflight";
	respond_head(&j->respond, &head);
	return true;
}

static bool
is_degraded(struct serve_job *j)
{
	char message[512];

	if (!j->s->degraded || j->explain || j->rq.endpoint->work != ENDPOINT_FORWARD)
		return false;
	text_clean(message, sizeof message, j->s->conf->degrade.message);
	answer_refuse(j, 503, "degraded", message);
	return true;
}

static bool
is_served(struct serve_job *j)
{
	struct why why;

	if (j->s->env != NULL || j->rq.endpoint->work == ENDPOINT_DOCTOR)
		return true;
	err_why(&why, "%s", j->s->store_error);
	answer_store_failed(j, &why);
	return false;
}

/* To all but the operator it is an unknown path like any other, also in how it refuses. */
static void
hide_doctor(struct serve_job *j)
{
	if (j->rq.endpoint != NULL && j->rq.endpoint->work == ENDPOINT_DOCTOR &&
	    doctor_is_hidden(j->s, j->x))
		j->rq.endpoint = NULL;
}

/* What a client may be told of. */
static enum path_kind
is_public(struct span path)
{
	const struct endpoint *endpoint = endpoint_find(path);

	return endpoint != NULL && endpoint->work != ENDPOINT_DOCTOR ? endpoint_known(path)
	                                                             : PATH_UNKNOWN;
}

bool
front_admit(struct serve_job *j)
{
	hide_doctor(j);
	if (text_is(j->rq.method, "OPTIONS") && !is_preflight(j) && j->rq.endpoint != NULL) {
		answer_method(j);
		return false;
	}
	if (j->respond.preflight)
		return false;
	if (is_exposed(j->s, j->x)) {
		answer_refuse(
		    j, 503, "misconfigured", "the gateway is not set up safely, see its log");
		return false;
	}
	j->explain = wants_explain(j);
	if (!may_enter(j))
		return false;
	if (j->rq.endpoint == NULL) {
		answer_refuse(j, 404, "not_found", path_hint(text_span(j->rq.path), is_public));
		return false;
	}
	if (!endpoint_takes(j->rq.endpoint, j->rq.method)) {
		answer_method(j);
		return false;
	}
	return is_served(j) && !is_degraded(j);
}
