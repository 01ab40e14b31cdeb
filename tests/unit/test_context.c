#include "serve_job.h"

#include "base/clock.h"
#include "lib/conf_text.h"
#include "lib/store_boot.h"
#include "store/hold.h"
#include "store/talk.h"

#define CONF                                                                                        \
	"{'state_dir':'/tmp','context':{'enabled':true,'on_conflict':'refuse','max_session':'20k'," \
	"'system_prompt':'ours'},'channels':{'c':{'provider':'openai','accounts':[{'id':'a',"       \
	"'api_key':'sk-test-0123456789'}]}}}"
#define SESSION "the name"

static struct serve s;
static struct watch watch;
static struct buf answer;

static bool
take(void *io, const char *bytes, size_t n)
{
	(void)io;
	buf_add(&answer, bytes, n);
	return true;
}

static bool
flush(void *io)
{
	(void)io;
	return true;
}

static char *params[] = {
    (char[]){"HTTP_X_CONTEXT=append"}, (char[]){"HTTP_X_SESSION_ID=" SESSION}, NULL};
static struct exchange exchange = {
    .params = params, .client_fd = -1, .write = take, .flush = flush};

static void
begin(const struct store_dir *dir)
{
	watch = (struct watch){.signal_fd = -1, .client_fd = -1};
	s = (struct serve){.conf = conf_text(dir->path, CONF),
	    .env = store_dir_open(dir),
	    .watch = &watch,
	    .log = log_open("/dev/null", LOG_LEVEL_ERROR, false),
	    .arena = arena_new((size_t)1 << 26),
	    .has_secret = true};
	assert_non_null(s.env);
	buf_init(&answer, 1 << 20);
}

static void
end(void)
{
	struct conf *conf = (struct conf *)(uintptr_t)s.conf;

	env_close(&s.env);
	log_close(&s.log);
	arena_free(&s.arena);
	conf_free(&conf);
	buf_release(&answer);
}

/* A request of the conversation, as far as its begin; the status of what it was answered with, 0 = not answered. */
static int
ask(struct serve_job *j, const char *body)
{
	struct why why = {""};
	bool begun;

	*j = (struct serve_job){
	    .s = &s,
	    .x = &exchange,
	    .rq = {.endpoint = endpoint_find(SPAN("/v1/chat/completions")), .client = SPAN("joe")},
	};
	j->respond =
	    (struct respond){.x = &exchange, .arena = s.arena, .dialect = j->rq.endpoint->dialect};
	buf_clear(&answer);
	if (dialect_read(j->rq.endpoint->dialect, text_span(body), &j->rq.read, &why) != ERR_OK)
		fail_msg("%s", why.text);
	convert_begin(&j->convert, s.arena, &j->rq, 0);
	begun = context_begin(j);
	assert_true(begun == (j->respond.status == 0));
	return j->respond.status;
}

/* What was sent is kept, with this answer; NULL: it was cut. */
static void
keep(struct serve_job *j, const char *text)
{
	struct flow_answer whole = {.finish = FLOW_STOP, .ended = true};

	whole.turn.role = FORM_ASSISTANT;
	if (text != NULL) {
		form_add_part(s.arena, &whole.turn, FORM_TEXT)->text = text_span(text);
		j->walk.outcome.answer = &whole;
		context_keep(j);
		context_keep(j);
	}
	context_end(j);
	context_end(j);
}

/* What would be said: roles by their letters, and the texts. */
static const char *
said(const struct serve_job *j)
{
	struct buf *out = arena_buf(s.arena, 1 << 20);
	const struct form *form = context_whole(j);

	for (size_t i = 0; i < form->nturns; i++) {
		buf_char(out, "sduat"[form->turns[i].role]);
		buf_char(out, form->turns[i].at == FORM_AT_KEPT ? '*' : ':');
		for (size_t k = 0; k < form->turns[i].nparts; k++)
			buf_span(out, form->turns[i].parts[k].text);
		buf_char(out, ' ');
	}
	return out->n == 0 ? "" : out->p;
}

#define MESSAGES(list) "{\"model\":\"m\",\"messages\":[" list "]}"
#define SAY(role, text) "{\"role\":\"" role "\",\"content\":\"" text "\"}"

/* The turns of one conversation: what is sent, what is said, what comes back. */
static void
joined(void **state)
{
	static const struct {
		const char *body, *answer, *want;
	} rows[] = {
	    {MESSAGES(SAY("user", "1")), "a1", "s*ours u:1 "},
	    {MESSAGES(SAY("user", "2")), "a2", "s*ours u*1 a*a1 u:2 "},
	    {MESSAGES(SAY("system", "S") "," SAY("user", "3")), NULL, "s:S u*1 a*a1 u*2 a*a2 u:3 "},
	    {MESSAGES(SAY("system", "S") "," SAY("developer", "D") "," SAY("user", "3")), "a3",
	        "s:S d:D u*1 a*a1 u*2 a*a2 u:3 "},
	    {MESSAGES(SAY("user", "4")), "a4", "s*SD u*1 a*a1 u*2 a*a2 u*3 a*a3 u:4 "},
	    {MESSAGES(SAY("system", "T") "," SAY("user", "5") "," SAY("assistant", "x") "," SAY(
	         "user", "6")),
	        "a6", "s:T u*1 a*a1 u*2 a*a2 u*3 a*a3 u*4 a*a4 u:5 a:x u:6 "},
	    {MESSAGES(SAY("user", "7")), NULL,
	        "s*T u*1 a*a1 u*2 a*a2 u*3 a*a3 u*4 a*a4 u*5 a*x u*6 a*a6 u:7 "},
	};
	struct serve_job j;

	begin(*state);
	for (size_t i = 0; i < NELEM(rows); i++) {
		if (ask(&j, rows[i].body) != 0)
			fail_msg("row %zu: %s", i, answer.p);
		if (strcmp(said(&j), rows[i].want) != 0)
			fail_msg("row %zu: got '%s'\nwant '%s'", i, said(&j), rows[i].want);
		keep(&j, rows[i].answer);
		assert_false(j.respond.not_kept);
	}
	end();
}

/* Held by one request until it ends, however it does; then it is free. */
static void
held(void **state)
{
	struct serve_job j, other;

	begin(*state);
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "1"))), 0);
	assert_true(j.context.held);
	context_end(&j);
	/* another process has it */
	{
		struct session_key key;
		struct hold hold;
		uint64_t name;
		int ready[2];
		pid_t pid;
		char c;

		session_name(&s.secret, SPAN("joe"), SESSION_HEADER, SPAN(SESSION), &key);
		memcpy(&name, key.hash, sizeof name);
		assert_int_equal(pipe(ready), 0);
		pid = fork();
		if (pid == 0) {
			struct store_why why = {""};
			struct env *env = NULL;

			alarm(30);
			if (env_open(env_dir(s.env), TEST_MAX_BYTES, false, &env, &why) !=
			        STORE_OK ||
			    hold_take(env, name, &hold) != STORE_OK || write(ready[1], "x", 1) != 1)
				_exit(1);
			pause();
			_exit(0);
		}
		assert_int_equal(read(ready[0], &c, 1), 1);
		assert_int_equal(ask(&other, MESSAGES(SAY("user", "2"))), 409);
		assert_non_null(strstr(answer.p, "conversation_busy"));
		assert_false(other.context.held);
		kill(pid, SIGKILL);
		assert_int_equal(child_end(pid), 128 + SIGKILL);
		close(ready[0]);
		close(ready[1]);
	}
	assert_int_equal(ask(&other, MESSAGES(SAY("user", "2"))), 0);
	context_end(&other);
	end();
}

struct raw {
	const uint8_t *key;
	const char *turn;
};

static enum store_rc
append_raw(struct txn *book, void *arg)
{
	const struct raw *raw = arg;
	struct env_bytes turn = {raw->turn, strlen(raw->turn)};
	struct talk_append append = {
	    .client = {"joe", 3}, .turns = &turn, .nturns = 1, .had = 2, .first = TALK_APPEND};
	struct talk_limits limits = {clock_wall(), 1000000, 1 << 20, 1 << 24};

	return talk_append(book, raw->key, &append, &limits);
}

/* What another version, or a fault, has written: told, and not passed over. */
static void
damaged(void **state)
{
	static const char *const turns[] = {"", "{", "null", "{\"role\":\"pope\",\"parts\":[]}"};
	struct serve_job j;

	for (size_t i = 0; i < NELEM(turns); i++) {
		struct raw raw = {NULL, turns[i]};

		store_dir_teardown(state);
		store_dir_setup(state);
		begin(*state);
		assert_int_equal(ask(&j, MESSAGES(SAY("user", "1"))), 0);
		raw.key = j.context.key.hash;
		keep(&j, "a1");
		assert_int_equal(env_book_update(s.env, append_raw, &raw), STORE_OK);
		if (ask(&j, MESSAGES(SAY("user", "2"))) != 500)
			fail_msg("'%s': %d %s", turns[i], j.respond.status, answer.p);
		assert_non_null(strstr(answer.p, "conversation_damaged"));
		context_end(&j);
		end();
	}
}

/* Calls that cannot be told apart, or are of no name, would spoil it for ever. */
static void
unsound(void **state)
{
	struct flow_answer whole = {.finish = FLOW_CALLS, .ended = true};
	struct serve_job j;

	begin(*state);
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "1"))), 0);
	for (unsigned i = 0; i < 2; i++)
		form_add_part(s.arena, &whole.turn, FORM_CALL)->call = (struct form_call){
		    .id = SPAN("c1"), .name = SPAN("f"), .arguments = SPAN("{}")};
	j.walk.outcome.answer = &whole;
	context_keep(&j);
	assert_true(j.respond.not_kept);
	context_end(&j);
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "2"))), 0);
	assert_string_equal(said(&j), "s*ours u:2 ");
	context_end(&j);
	end();
}

static void
refused(void **state)
{
	struct serve_job j;

	begin(*state);
	s.has_secret = false;
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "1"))), 503);
	s.has_secret = true;
	/* the client has left: neither asked nor answered */
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "1"))), 0);
	watch.client_gone = true;
	keep(&j, "a1");
	watch.client_gone = false;
	assert_int_equal(ask(&j, MESSAGES(SAY("user", "2"))), 0);
	assert_string_equal(said(&j), "s*ours u:2 ");
	context_end(&j);
	assert_int_equal(
	    ask(&j, MESSAGES("{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":\"x\"}")), 400);
	context_end(&j);
	end();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(joined),
	    TEST(held),
	    TEST(damaged),
	    TEST(unsound),
	    TEST(refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
