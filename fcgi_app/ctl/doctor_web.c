#include "ctl/doctor_web.h"

#include "base/emit.h"
#include "ctl/doctor_local.h"

#include <string.h>

#define FORGED "sluice-doctor-forged"

static const char *
version_name(int version)
{
	switch (version) {
	case 10: return "HTTP/1.0";
	case 11: return "HTTP/1.1";
	case 20: return "HTTP/2";
	case 30: return "HTTP/3";
	default: return "HTTP";
	}
}

static const char *
tls_words(const struct doctor_peer *peer)
{
	if (!text_starts_fold(text_span(peer->url), "https:"))
		return "no TLS";
	return peer->insecure ? "TLS, certificate not checked" : "TLS, certificate good";
}

static bool
is_loopback(const char *url)
{
	struct span host = text_from(text_span(url), strlen("http://"));

	return text_starts(host, "127.") || text_starts_fold(host, "localhost") ||
	       text_starts(host, "[::1]");
}

void
doctor_web_reach(struct doctor *d)
{
	struct doctor_call call = {.path = "/healthz", .anonymous = true};
	struct doctor_answer *a = &d->hello;

	doctor_ask(d, &call, a);
	doctor_call_release(a);
	if (a->status == 0) {
		doctor_problem(d,
		    a->fault == DOCTOR_FAULT_TLS ? DOCTOR_BAD_TLS : DOCTOR_UNREACHABLE,
		    "no HTTP answer from %s: %s", d->peer.url, a->error);
		return;
	}
	d->reached = true;
	d->setup = doctor_judge_server(text_span(a->server));
	if (d->peer.http2 && a->version < 20)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "it answers, but by %s: HTTP/2 is not switched on in the web server",
		    version_name(a->version));
	else if (text_starts_fold(text_span(d->peer.url), "http:") && !is_loopback(d->peer.url))
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "it answers without TLS: tokens and prompts travel in the clear");
	else
		doctor_ok(d, "it answers: %s, %s, Server: %s", version_name(a->version),
		    tls_words(&d->peer), a->server[0] == '\0' ? "(none)" : a->server);
}

void
doctor_web_gateway(struct doctor *d)
{
	const struct doctor_answer *a = &d->hello;

	d->there = true;
	if (strcmp(a->service, "sluice") == 0 && a->status == 200)
		doctor_ok(d, "/healthz is answered by sluice: an account could be picked now");
	else if (strcmp(a->service, "sluice") == 0 || a->ours)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "sluice answers /healthz with %d: no account could be picked now, see sluicectl status",
		    a->status);
	else if (doctor_is_refused(a))
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "/healthz is refused without credentials (HTTP %d): a load balancer cannot ask",
		    a->status);
	else
		d->there = false;
	if (d->there)
		return;
	if (a->status >= 500)
		doctor_problem(d, DOCTOR_DOWN,
		    "the web server answers HTTP %d by itself: it has no gateway to ask",
		    a->status);
	else
		doctor_problem(d, DOCTOR_NOT_THERE,
		    "%s/healthz is not sluice's (HTTP %d%s%s): another path, or another program",
		    d->peer.url, a->status, a->location[0] != '\0' ? ", to " : "", a->location);
}

/* May anybody come in? */
static void
judge_anonymous(struct doctor *d, const struct doctor_answer *a)
{
	char outcome[DOCTOR_OUTCOME];

	doctor_outcome(a, outcome);
	if (doctor_is_refused(a))
		doctor_ok(d, "a request without credentials is refused by the %s (HTTP %d)",
		    a->ours ? "gateway: the web server sets no user" : "web server", a->status);
	else if (a->status >= 300 && a->status < 400)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "a request without credentials is sent to a page to log in (%s): programs cannot",
		    a->location);
	else if (a->status != 200 || !a->ours)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "whether a request without credentials is refused could not be told: %s",
		    outcome);
	else if (d->a.conf != NULL && d->a.conf->auth.mode == CONF_AUTH_OPEN)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "auth.mode is \"open\": whoever comes may spend your accounts");
	else
		doctor_problem(d, DOCTOR_OPEN,
		    "a request without credentials is let in: the web server names a user for everybody");
}

void
doctor_web_anonymous(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/models", .anonymous = true};
	struct doctor_answer a;

	doctor_ask(d, &call, &a);
	judge_anonymous(d, &a);
	doctor_call_release(&a);
}

static const char *
credentials_name(const struct doctor_peer *peer)
{
	return peer->token != NULL ? "token" : "name and password";
}

static void
judge_refusal(struct doctor *d, const struct doctor_answer *a)
{
	bool given = d->peer.token != NULL || d->peer.user != NULL;

	if (!given)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "give --token or --user: what only a client sees was not looked at");
	else if (!a->ours)
		doctor_problem(d, DOCTOR_REFUSED, "the web server refuses this %s (HTTP %d)",
		    credentials_name(&d->peer), a->status);
	else
		doctor_problem(d, DOCTOR_NO_USER,
		    "the web server lets the request through, but sets no user for this %s: %s is empty, so the gateway refuses it (HTTP %d)",
		    credentials_name(&d->peer),
		    d->a.conf == NULL || d->a.conf->auth.user_variables.n == 0
		        ? "REMOTE_USER"
		        : d->a.conf->auth.user_variables.at[0].p,
		    a->status);
}

/* No echo came, and it was not for want of credentials. */
static void
judge_no_echo(struct doctor *d, const struct doctor_answer *a, const struct why *why)
{
	struct span code = doctor_code(d, a);
	char outcome[DOCTOR_OUTCOME];

	doctor_outcome(a, outcome);
	if (text_is(code, "misconfigured"))
		doctor_problem(d, DOCTOR_EXPOSED,
		    "the configuration lies below the document root, so the gateway serves nobody");
	else if (text_is(code, "unavailable"))
		doctor_problem(d, DOCTOR_AUTH_MODE,
		    "the gateway cannot check client keys: auth.mode \"keys\" is not built");
	else if (a->status == 404 && a->ours)
		doctor_problem(d, DOCTOR_NOT_OURS,
		    "the client is let in, but the gateway does not know this sluicectl: %s",
		    why->text[0] != '\0' ? why->text
		                         : "it has another state_dir, or is an older version");
	else if (a->status >= 500 && !a->ours)
		doctor_problem(d, DOCTOR_DOWN, "%s: the web server has no gateway to ask", outcome);
	else
		doctor_problem(
		    d, DOCTOR_PATHS, "/healthz is answered, /v1/doctor is not: %s", outcome);
}

static void
judge_echo(struct doctor *d)
{
	struct doctor_seen *seen = &d->seen;

	d->echoed = true;
	if (seen->software.n == 0) /* as nginx.conf does not tell it */
		seen->software = text_span(d->hello.server);
	d->setup = doctor_judge_setup(seen);
	if (seen->client.n > 0)
		doctor_ok(d, "accepted as '%.*s', by %.*s", (int)seen->client.n, seen->client.p,
		    (int)seen->user_variable.n, seen->user_variable.p);
	else
		doctor_ok(d, "accepted without a name: auth.mode is \"%.*s\"",
		    (int)seen->auth_mode.n, seen->auth_mode.p);
}

void
doctor_web_access(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/doctor"};
	struct doctor_answer a;
	struct why why = {""};

	doctor_local_pass(d, &why);
	doctor_ask(d, &call, &a);
	if (a.status == 200 && doctor_judge_seen(d->arena, buf_text(&a.body), &d->seen))
		judge_echo(d);
	else if (doctor_is_refused(&a))
		judge_refusal(d, &a);
	else
		judge_no_echo(d, &a, &why);
	doctor_call_release(&a);
}

void
doctor_web_setup(struct doctor *d)
{
	const struct doctor_seen *seen = &d->seen;
	struct emit e;

	emit_init(&e, &d->measured);
	emit_object(&e, NULL);
	emit_text(&e, "software", seen->software);
	emit_text(&e, "mode", seen->mode);
	emit_text(&e, "version", seen->version);
	emit_i64(&e, "pid", seen->pid);
	emit_text(&e, "script_name", seen->script_name);
	emit_text(&e, "path_info", seen->path_info);
	emit_text(&e, "document_root", seen->document_root);
	emit_end(&e);
	if (!text_is(seen->version, SLUICE_VERSION))
		doctor_note(d, DOCTOR_NO_TROUBLE, "%s; the gateway is version %.*s, this is %s",
		    doctor_judge_setups[d->setup].name, (int)seen->version.n, seen->version.p,
		    SLUICE_VERSION);
	else
		doctor_ok(d, "%s (%.*s)", doctor_judge_setups[d->setup].name, (int)seen->software.n,
		    seen->software.p);
}

void
doctor_web_state(struct doctor *d)
{
	if (d->seen.store_error.n > 0)
		doctor_problem(d, DOCTOR_STORE, "the gateway serves nobody: %.*s",
		    (int)d->seen.store_error.n, d->seen.store_error.p);
	else
		doctor_ok(d, "the gateway has its store open");
}

/* One echo with these headers; false when there was none. */
static bool
echo_with(struct doctor *d, const struct doctor_call *call, struct doctor_seen *seen_out)
{
	struct doctor_answer a;
	bool ok;

	doctor_ask(d, call, &a);
	ok = a.status == 200 && doctor_judge_seen(d->arena, buf_text(&a.body), seen_out);
	doctor_call_release(&a);
	return ok;
}

void
doctor_web_forged(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/doctor",
	    .headers = {"Remote-User: " FORGED, "Remote_User: " FORGED, "X-Remote-User: " FORGED,
	        "X-Forwarded-User: " FORGED, "Redirect-Remote-User: " FORGED}};
	struct doctor_seen with = {.client = SPAN("")}, without = {.client = SPAN("")};
	bool in = echo_with(d, &call, &with);

	call.anonymous = true;
	if (echo_with(d, &call, &without) && without.client.n > 0)
		doctor_problem(d, DOCTOR_FORGED,
		    "a request that only claims to be '%.*s' in a header is let in as that user",
		    (int)without.client.n, without.client.p);
	else if (in && !text_equal(with.client, d->seen.client))
		doctor_problem(d, DOCTOR_FORGED,
		    "a header such as Remote-User changes who a client is: '%.*s' became '%.*s'",
		    (int)d->seen.client.n, d->seen.client.p, (int)with.client.n, with.client.p);
	else if (!in)
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "requests with a Remote-User header are refused, good credentials or not");
	else
		doctor_ok(d, "a client's Remote-User header changes nothing");
}

/* Only client keys need them. */
static void
judge_header(struct doctor *d, bool arrives, enum doctor_trouble trouble, const char *name)
{
	if (arrives)
		doctor_ok(d, "the gateway sees %s", name);
	else if (text_is(d->seen.auth_mode, "keys"))
		doctor_problem(d, trouble, "%s does not reach the gateway", name);
	else
		doctor_note(d, trouble,
		    "%s does not reach the gateway; only auth.mode \"keys\" needs it", name);
}

void
doctor_web_bearer(struct doctor *d)
{
	struct doctor_call call = {
	    .path = "/v1/doctor", .headers = {"Authorization: Bearer sluice-doctor"}};
	struct doctor_seen seen = d->seen;
	bool sent = d->peer.token != NULL || d->peer.user != NULL;

	if (!sent && !echo_with(d, &call, &seen)) {
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "whether Authorization reaches the gateway cannot be told: an unknown token is refused");
		return;
	}
	if (seen.authorization.n > 0 && !text_is(seen.authorization, "HTTP_AUTHORIZATION"))
		doctor_ok(d, "the gateway sees Authorization, as %.*s", (int)seen.authorization.n,
		    seen.authorization.p);
	else
		judge_header(d, seen.authorization.n > 0, DOCTOR_NO_BEARER, "Authorization");
}

void
doctor_web_api_key(struct doctor *d)
{
	struct doctor_call call = {.path = "/v1/doctor", .headers = {"X-Api-Key: sluice-doctor"}};
	struct doctor_seen seen;

	if (echo_with(d, &call, &seen))
		judge_header(d, seen.api_key, DOCTOR_NO_API_KEY, "X-Api-Key");
	else
		doctor_note(d, DOCTOR_NO_TROUBLE,
		    "whether X-Api-Key reaches the gateway cannot be told: an unknown key is refused");
}

void
doctor_web_paths(struct doctor *d)
{
	static const struct {
		const char *path, *what;
		int status;
		enum doctor_trouble trouble;
	} tries[] = {{"/v1/models", "/v1/models", 200, DOCTOR_PATHS},
	    {"/v1//doctor", "a double slash inside", 200, DOCTOR_NO_TROUBLE},
	    {"//v1/doctor", "a double slash before", 200, DOCTOR_NO_TROUBLE},
	    {"/v1/doctor/", "a slash at the end", 200, DOCTOR_NO_TROUBLE},
	    {"/v1/v1/doctor", "/v1/v1", 200, DOCTOR_NO_TROUBLE},
	    {"/v1/models/a%2Fb", "names of models with a slash, as %2F", 404, DOCTOR_SLASH}};

	for (size_t i = 0; i < NELEM(tries) && !d->interrupted; i++) {
		struct doctor_call call = {.path = tries[i].path};
		struct doctor_answer a;
		char outcome[DOCTOR_OUTCOME];

		doctor_ask(d, &call, &a);
		doctor_outcome(&a, outcome);
		doctor_call_release(&a);
		if (a.ours && (a.status == tries[i].status || a.status == 503))
			continue;
		if (i == 0)
			doctor_problem(d, DOCTOR_PATHS, "%s: %s", tries[i].what, outcome);
		else
			doctor_note(
			    d, tries[i].trouble, "found, but not %s: %s", tries[i].what, outcome);
		return;
	}
	doctor_ok(d, "found, also with //, /v1/v1, a slash at the end and %%2F");
}

void
doctor_web_admin(struct doctor *d)
{
	struct doctor_call call = {.path = "/status", .anonymous = true};
	struct doctor_answer a;
	bool open;

	doctor_ask(d, &call, &a);
	doctor_call_release(&a);
	open = a.status == 200 && a.ours;
	if (!open && d->echoed && !d->seen.admin) {
		call.anonymous = false;
		doctor_ask(d, &call, &a);
		doctor_call_release(&a);
		open = a.status == 200 && a.ours;
	}
	if (open)
		doctor_problem(d, DOCTOR_ADMIN_OPEN, "/status, which is for admins, is shown to %s",
		    call.anonymous ? "anybody" : "an ordinary client");
	else
		doctor_ok(d, "/status is refused by the %s (HTTP %d)",
		    a.ours ? "gateway" : "web server", a.status);
}
