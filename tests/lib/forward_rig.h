/*
 * forward_rig - forward_send() between a scripted provider and a client in memory.
 */
#ifndef TESTS_LIB_FORWARD_RIG_H
#define TESTS_LIB_FORWARD_RIG_H

#include "base/clock.h"
#include "forward.h"
#include "lib/conf_text.h"
#include "lib/memory.h"
#include "lib/scripted.h"

#define RIG_KEY "sk-rig-secret"

static struct forward_rig {
	struct scripted server;
	struct conf *conf;
	struct trust *trust;
	struct upstream *up;
	struct watch watch;
	struct arena *arena;
	struct memory m;
	struct respond respond;
	struct forward_outcome out;
	int64_t took_ms;
} rig;

/* A provider that follows `steps`; `settings` are members of "upstream". */
static inline void
forward_rig_begin(
    const struct scripted_step steps[][SCRIPTED_STEPS], size_t n, const char *settings)
{
	static const char *const params[] = {NULL};
	char json[600];
	struct why why;

	scripted_bind(&rig.server);
	snprintf(json, sizeof json,
	    "{'upstream': {'heartbeat': '0s'%s%s},"
	    " 'channels': {'c': {'provider': 'openai', 'base_url': 'http://127.0.0.1:%d/v1',"
	    " 'accounts': [{'id': 'a', 'api_key': '" RIG_KEY "'}]}}}",
	    settings[0] == '\0' ? "" : ", ", settings, rig.server.port);
	rig.conf = conf_alone(json);
	assert_int_equal(trust_load(rig.conf, &rig.trust, &why), ERR_OK);
	assert_true(watch_open(&rig.watch, 0) >= 0);
	rig.up = upstream_new(rig.trust);
	rig.arena = arena_new((size_t)512 << 20);
	memory_init(&rig.m, params, SPAN(""));
	rig.respond = (struct respond){.x = &rig.m.x,
	    .arena = rig.arena,
	    .dialect = &dialect_chat,
	    .request_id = SPAN("req_1")};
	scripted_start(&rig.server, steps, n);
}

static inline int
forward_rig_end(void **state)
{
	(void)state;
	upstream_free(&rig.up);
	trust_free(&rig.trust);
	memory_release(&rig.m);
	arena_free(&rig.arena);
	conf_free(&rig.conf);
	close(rig.watch.signal_fd);
	scripted_stop(&rig.server);
	return 0;
}

static inline void
forward_rig_send(bool stream, bool wants_usage)
{
	struct upstream_call call = {.channel = &rig.conf->channels[0],
	    .account = &rig.conf->channels[0].accounts[0],
	    .path = "/chat/completions",
	    .body = SPAN("{\"model\":\"m\",\"messages\":[]}"),
	    .stream = stream};
	struct forward_task task = {.up = rig.up,
	    .arena = rig.arena,
	    .conf = rig.conf,
	    .call = &call,
	    .dialect = &dialect_chat,
	    .respond = &rig.respond,
	    .watch = &rig.watch,
	    .model = SPAN("m"),
	    .wants_usage = wants_usage,
	    .clock = clock_mono,
	    .wall = clock_wall};
	int64_t from = clock_mono().v;

	forward_send(&task, &rig.out);
	rig.took_ms = clock_mono().v - from;
}

/* Begin, send once. */
#define FORWARD(steps, settings, stream)                                                    \
	do {                                                                                \
		forward_rig_begin((steps), sizeof(steps) / sizeof((steps)[0]), (settings)); \
		forward_rig_send((stream), false);                                          \
	} while (0)

/* What the client got behind the head; "" when nothing went out. */
static inline const char *
forward_rig_body(void)
{
	const char *at = strstr(memory_text(&rig.m), "\r\n\r\n");

	return at == NULL ? "" : at + 4;
}

static inline void
forward_rig_want(enum verdict verdict, enum classify_transport transport, int status)
{
	if (rig.out.finding.verdict != verdict || rig.out.transport != transport ||
	    rig.out.status != status)
		fail_msg("got %s (%s), transport %d, status %d",
		    verdict_table[rig.out.finding.verdict].name, rig.out.finding.message,
		    (int)rig.out.transport, rig.out.status);
}

#endif
