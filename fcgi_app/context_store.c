#include "context_store.h"

#include "dialect/form_pack.h"
#include "keeping.h"

#define SWEEP_MOST 64

/* One call in the store; its function may run again from the start. */
struct context_job {
	const uint8_t *key;
	struct talk_limits limits;
	struct talk_append append;
	struct context_texts texts;
	uint64_t most_bytes; /* that may be read */
	unsigned most, removed;
};

static struct talk_limits
limits_of(struct serve *s, struct wall_ms now)
{
	int64_t session = s->conf->context.max_session_bytes, body = s->conf->server.max_body_bytes;

	return (struct talk_limits){.now = now,
	    .ttl_ms = s->conf->context.ttl_ms,
	    .max_bytes = (uint64_t)(session < body ? session : body),
	    .max_total_bytes = keeping_bytes(s)};
}

static struct context_job
job_of(const struct context_store *at)
{
	return (struct context_job){.key = at->key,
	    .limits = limits_of(at->s, at->now),
	    .most_bytes = (uint64_t)at->s->conf->server.max_body_bytes};
}

static enum store_rc
failed(struct serve *s, enum store_rc rc, struct why *why)
{
	if (rc != STORE_OK && rc != STORE_NONE)
		err_why(why, "%s", env_error(s->env));
	return rc;
}

/* ---- reading ---- */

static char *
room(const struct talk_head *head, void *arg)
{
	struct context_texts *texts = arg;

	texts->head = *head;
	texts->turns = arena_alloc(texts->arena, (head->turns + 1) * sizeof *texts->turns);
	return arena_alloc(texts->arena, head->bytes + 1);
}

static enum store_rc
take_turn(uint32_t place, struct env_bytes turn, void *arg)
{
	const struct context_texts *texts = arg;

	if (place >= texts->head.turns)
		return STORE_BAD;
	texts->turns[place] = turn;
	return STORE_OK;
}

enum store_rc
context_store_texts(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    struct context_texts *texts)
{
	const struct talk_reader reader = {room, take_turn, texts};

	return talk_read(book, key, limits, &reader);
}

static enum store_rc
head_in(struct txn *book, void *arg)
{
	struct context_job *job = arg;

	return talk_find(book, job->key, &job->limits, &job->texts.head);
}

/* STORE_FULL: the limits were larger when it was kept, and the arena may not have room for it. */
static enum store_rc
get_in(struct txn *book, void *arg)
{
	struct context_job *job = arg;
	enum store_rc rc = head_in(book, job);

	if (rc == STORE_OK && job->texts.head.bytes > job->most_bytes)
		rc = STORE_FULL;
	return rc == STORE_OK ? context_store_texts(book, job->key, &job->limits, &job->texts) : rc;
}

static enum store_rc
unpack(const struct context_texts *texts, struct context_turns *turns_out, struct why *why)
{
	const uint32_t n = texts->head.turns;
	struct form_turn *turns = arena_alloc(texts->arena, (n + 1) * sizeof *turns);

	for (uint32_t i = 0; i < n; i++) {
		struct span text = {texts->turns[i].p, texts->turns[i].n};

		if (form_unpack(texts->arena, text, &turns[i], why) != ERR_OK) {
			err_prefix(why, "turn %u of the conversation cannot be read", i);
			return STORE_BAD;
		}
	}
	*turns_out = (struct context_turns){turns, n, texts->head};
	return STORE_OK;
}

enum store_rc
context_store_get(const struct context_store *at, struct arena *arena,
    struct context_turns *turns_out, struct why *why)
{
	struct context_job job = job_of(at);
	enum store_rc rc;

	job.texts.arena = arena;
	rc = keeping_view(at->s, get_in, &job, at->now);
	if (rc == STORE_FULL) {
		err_why(why, "the conversation is larger than server.max_body");
		return rc;
	}
	return rc == STORE_OK ? unpack(&job.texts, turns_out, why) : failed(at->s, rc, why);
}

/* ---- appending ---- */

static enum store_rc
append_in(struct txn *book, void *arg)
{
	const struct context_job *job = arg;

	return talk_append(book, job->key, &job->append, &job->limits);
}

static enum store_rc
sweep_in(struct txn *book, void *arg)
{
	struct context_job *job = arg;

	return talk_sweep(book, &job->limits, job->most, &job->removed);
}

static uint64_t
bytes_of(const struct talk_append *append)
{
	uint64_t n = 0;

	for (size_t i = 0; i < append->nturns; i++)
		n += append->turns[i].n;
	return n;
}

/* What is full: the conversation, or the store? */
static bool
is_too_large(struct serve *s, struct context_job *job)
{
	bool replaces = job->append.first == TALK_REPLACE;
	uint64_t n = bytes_of(&job->append) - (replaces ? job->append.turns[0].n : 0);
	enum store_rc rc = env_book_view(s->env, head_in, job);

	if (rc != STORE_OK)
		job->texts.head = (struct talk_head){.turns = 0};
	return job->texts.head.bytes + n > job->limits.max_bytes ||
	       job->texts.head.turns + job->append.nturns > TALK_TURNS_MAX;
}

/* No room although little is kept: what else is in the store needs it. */
static enum store_rc
append_again(struct serve *s, const struct context_job *full)
{
	struct context_job sweep = {.limits = full->limits, .most = SWEEP_MOST}, job = *full;
	enum store_rc rc;

	sweep.limits.max_total_bytes /= 4;
	rc = env_book_update(s->env, sweep_in, &sweep);
	return rc == STORE_OK ? env_book_update(s->env, append_in, &job) : rc;
}

static enum store_rc
append_packed(const struct context_store *at, const struct talk_append *append, struct why *why)
{
	struct context_job job = job_of(at);
	enum store_rc rc;

	job.append = *append;
	rc = keeping_add(at->s, append_in, &job, at->now);
	if (rc == STORE_FULL && is_too_large(at->s, &job)) {
		err_why(why, "the conversation is larger than context.max_session");
		return rc;
	}
	if (rc == STORE_FULL)
		rc = append_again(at->s, &job);
	if (rc == STORE_NONE)
		err_why(why, "meanwhile the conversation was dropped, expired or had to give way");
	return failed(at->s, rc, why);
}

/* Each text ends where the next one begins; what could not be read again is refused now. */
static enum store_rc
pack(const struct form_turn *turns, size_t n, struct buf *text, size_t *ends, struct why *why)
{
	struct arena *arena = arena_new(SIZE_MAX / 4);
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < n && rc == STORE_OK; i++) {
		size_t begin = text->n;
		struct form_turn back;

		form_pack(&turns[i], text);
		ends[i] = text->n;
		if (text->over) {
			err_why(why, "the conversation is larger than context.max_session");
			rc = STORE_FULL;
		} else if (form_unpack(arena, text_from(buf_text(text), begin), &back, why) !=
		           ERR_OK) {
			err_prefix(why, "a turn cannot be kept");
			rc = STORE_BAD;
		}
	}
	arena_free(&arena);
	return rc;
}

enum store_rc
context_store_append(const struct context_store *at, const struct form_turn *turns, size_t n,
    enum talk_first first, struct why *why)
{
	struct env_bytes *list = arena_alloc(at->s->arena, (n + 1) * sizeof *list);
	size_t *ends = arena_alloc(at->s->arena, (n + 1) * sizeof *ends);
	struct talk_append append = {
	    .client = {at->client.p, text_cut(at->client, TALK_CLIENT_MAX)},
	    .turns = list,
	    .nturns = n,
	    .had = at->had,
	    .first = first};
	struct buf text;
	enum store_rc rc;

	buf_init(&text, limits_of(at->s, at->now).max_bytes);
	rc = pack(turns, n, &text, ends, why);
	for (size_t i = 0; i < n && rc == STORE_OK; i++) {
		size_t begin = i == 0 ? 0 : ends[i - 1];

		list[i] = (struct env_bytes){text.p + begin, ends[i] - begin};
	}
	if (rc == STORE_OK && n > 0)
		rc = append_packed(at, &append, why);
	buf_release(&text);
	return rc;
}

bool
context_store_sweep(struct serve *s, struct wall_ms now, unsigned most)
{
	struct context_job job = {.limits = limits_of(s, now), .most = most};

	return env_book_update(s->env, sweep_in, &job) == STORE_OK && job.removed >= most;
}
