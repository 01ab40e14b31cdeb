#include "doctor.h"

#include "access.h"
#include "base/clock.h"
#include "base/emit.h"
#include "doctor_ask.h"
#include "doctor_pass.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#define ECHO_MAX 65536
#define READ_BYTES 16384
#define LOOK_MS 500 /* between looks whether only the client's sending side is closed */

bool
doctor_is_hidden(const struct serve *s, const struct exchange *x)
{
	struct span client, nonce = exchange_param(x, "HTTP_X_SLUICE_DOCTOR");

	if (access_client(s->conf, x, &client) != ACCESS_OK)
		return true;
	return access_admin(s->conf, client) != ACCESS_OK &&
	       !doctor_pass_shown(s->conf->state_dir.p, nonce, clock_wall());
}

static void
refuse(struct respond *r, int status, const char *code, const char *message)
{
	struct respond_error error = {
	    .status = status, .code = code, .message = text_span(message), .retry_after_s = -1};

	respond_error(r, &error);
}

/* Who runs this process: the web server, one process a request or more; or nobody that it knows. */
static const char *
mode_of(const struct serve *s, const struct exchange *x)
{
	if (exchange_param(x, "FCGI_ROLE").n == 0)
		return "cgi";
	if (s->board == NULL)
		return "single";
	return s->listen_fd == STDIN_FILENO ? "spawned" : "external";
}

static const char *
auth_mode(const struct conf *conf)
{
	switch ((enum conf_auth)conf->auth.mode) {
	case CONF_AUTH_WEB_SERVER: return "web-server";
	case CONF_AUTH_KEYS: return "keys";
	case CONF_AUTH_OPEN: return "open";
	}
	return "";
}

static void
echo_variables(struct emit *e, const struct exchange *x)
{
	static const char *const names[] = {"SERVER_SOFTWARE", "SERVER_PROTOCOL",
	    "GATEWAY_INTERFACE", "FCGI_ROLE", "REQUEST_URI", "SCRIPT_NAME", "PATH_INFO",
	    "SCRIPT_FILENAME", "DOCUMENT_ROOT", "CONTEXT_DOCUMENT_ROOT", "HTTPS", "AUTH_TYPE",
	    "REMOTE_ADDR", "REDIRECT_URL", "SLUICE_MOUNT", "SLUICE_REALM"};

	emit_object(e, "variables");
	for (size_t i = 0; i < NELEM(names); i++) {
		struct span value = exchange_param(x, names[i]);

		if (value.n > 0)
			emit_text(e, names[i], value);
	}
	emit_end(e);
}

/* Under which names credentials came, never what they are. */
static void
echo_credentials(struct emit *e, const struct exchange *x)
{
	static const char *const names[] = {"HTTP_AUTHORIZATION", "REDIRECT_HTTP_AUTHORIZATION",
	    "REDIRECT_REDIRECT_HTTP_AUTHORIZATION", "Authorization"};

	emit_array(e, "authorization");
	for (size_t i = 0; i < NELEM(names); i++)
		if (exchange_param(x, names[i]).n > 0)
			emit_z(e, NULL, names[i]);
	emit_end(e);
	emit_bool(e, "api_key", exchange_param(x, "HTTP_X_API_KEY").n > 0);
}

static void
echo_user(struct emit *e, const struct serve *s, const struct exchange *x, struct span client)
{
	emit_text(e, "client", client);
	emit_z(e, "auth_mode", auth_mode(s->conf));
	emit_bool(e, "admin", access_admin(s->conf, client) == ACCESS_OK);
	emit_array(e, "user_variables");
	for (size_t i = 0; i < s->conf->auth.user_variables.n; i++)
		if (exchange_param(x, s->conf->auth.user_variables.at[i].p).n > 0)
			emit_text(e, NULL, s->conf->auth.user_variables.at[i]);
	emit_end(e);
}

static void
echo(struct serve *s, const struct request *rq, struct respond *r)
{
	struct buf *out = arena_buf(s->arena, ECHO_MAX);
	struct emit e;

	emit_init(&e, out);
	emit_object(&e, NULL);
	emit_z(&e, "service", "sluice");
	emit_z(&e, "version", SLUICE_VERSION);
	emit_i64(&e, "pid", getpid());
	emit_z(&e, "mode", mode_of(s, r->x));
	emit_z(&e, "route", rq->path);
	echo_user(&e, s, r->x, rq->client);
	echo_credentials(&e, r->x);
	echo_variables(&e, r->x);
	emit_z(&e, "store_error", s->env == NULL ? s->store_error : NULL);
	emit_end(&e);
	if (out->over)
		refuse(r, 413, "request_too_large", "the variables are too long to tell");
	else
		respond_json(r, 200, buf_text(out));
}

/* Sleep and look after the client. False: nobody reads any more, or this process must end. */
static bool
pause_for(struct serve *s, int64_t ms)
{
	struct mono_ms now = clock_mono(), end = {now.v + ms};

	while (now.v < end.v && !s->watch->client_gone && !s->watch->half_closed &&
	       !watch_must_end(s->watch, now)) {
		watch_sleep(
		    s->watch, end.v - now.v < LOOK_MS ? end.v - now.v : LOOK_MS, clock_mono);
		now = clock_mono();
	}
	return now.v >= end.v && !s->watch->client_gone && !watch_must_end(s->watch, now);
}

static void
stream(struct serve *s, const struct doctor_ask *ask, struct respond *r)
{
	struct respond_head head = {.status = 200,
	    .content_type = SPAN("text/event-stream"),
	    .length = -1,
	    .retry_after_s = -1};
	struct mono_ms began = clock_mono();

	if (!pause_for(s, ask->first_ms))
		return;
	respond_head(r, &head);
	for (int64_t i = 0; i < ask->n && !r->gone; i++) {
		char event[80];

		if (i > 0 && !pause_for(s, ask->gap_ms))
			return;
		snprintf(event, sizeof event, "data: {\"n\":%lld,\"ms\":%lld}\n\n",
		    (long long)i + 1, (long long)(clock_mono().v - began.v));
		respond_bytes(r, text_span(event));
		respond_flush(r);
	}
	respond_bytes(r, SPAN("data: [DONE]\n\n"));
}

/* Read the body to its end; nothing of it is kept. */
static enum err
swallow(const struct serve *s, const struct exchange *x, int64_t *bytes_out, uint64_t *sum_out)
{
	char *room = arena_alloc(s->arena, READ_BYTES);
	uint64_t sum = DOCTOR_SUM_SEED;
	int64_t bytes = 0;
	ssize_t n;

	while ((n = x->read(x->io, room, READ_BYTES)) > 0) {
		bytes += n;
		sum = doctor_ask_sum(sum, (struct span){room, (size_t)n});
		if (bytes > s->conf->server.max_body_bytes)
			return ERR_TOO_BIG;
	}
	if (n < 0)
		return errno == EAGAIN ? ERR_TIMEOUT : ERR_IO;
	*bytes_out = bytes;
	*sum_out = sum;
	return ERR_OK;
}

static void
tell_swallowed(struct serve *s, struct respond *r, int64_t bytes, uint64_t sum)
{
	char *text = arena_print(s->arena, "{\"bytes\":%lld,\"sum\":\"%016llx\"}\n",
	    (long long)bytes, (unsigned long long)sum);

	respond_json(r, 200, text_span(text));
}

static bool
read_whole(struct serve *s, struct respond *r, int64_t *bytes_out, uint64_t *sum_out)
{
	enum err err = swallow(s, r->x, bytes_out, sum_out);

	if (err == ERR_TOO_BIG)
		refuse(r, 413, "request_too_large", "the body is larger than server.max_body");
	else if (err == ERR_TIMEOUT)
		refuse(r, 408, "request_timeout", "the body did not arrive in time");
	else if (err != ERR_OK)
		r->gone = true;
	return err == ERR_OK;
}

void
doctor_serve(struct serve *s, const struct request *rq, struct respond *r)
{
	struct doctor_ask ask;
	struct why why;
	uint64_t sum;
	int64_t bytes;

	if (!read_whole(s, r, &bytes, &sum))
		return;
	if (doctor_ask_read(exchange_param(r->x, "QUERY_STRING"), &ask, &why) != ERR_OK) {
		refuse(r, 400, "invalid_request_error", why.text);
		return;
	}
	/* only now is everything read, so that a readable connection means: closed */
	watch_begin(s->watch, r->x->client_fd);
	switch (ask.work) {
	case DOCTOR_ECHO: echo(s, rq, r); break;
	case DOCTOR_STREAM: stream(s, &ask, r); break;
	case DOCTOR_SWALLOW: tell_swallowed(s, r, bytes, sum); break;
	}
}
