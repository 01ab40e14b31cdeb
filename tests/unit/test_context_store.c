#include "context_store.h"

#include "lib/conf_text.h"
#include "lib/store_boot.h"

#define NOW INT64_C(1700000000000)

#define CONF                                                                                            \
	"{'state_dir':'/tmp','context':{'ttl':'1m','max_session':'20k','max_total':'60k'},'channels':{" \
	"'c':{'provider':'openai','accounts':[{'id':'a','api_key':'sk-test-0123456789'}]}}}"

static struct serve s;
static struct why why;

static void
begin(const struct store_dir *dir)
{
	s = (struct serve){.conf = conf_text(dir->path, CONF),
	    .env = store_dir_open(dir),
	    .log = log_open("/dev/null", LOG_LEVEL_ERROR, false),
	    .arena = arena_new((size_t)1 << 26)};
	assert_non_null(s.env);
}

static void
end(void)
{
	struct conf *conf = (struct conf *)(uintptr_t)s.conf;

	env_close(&s.env);
	log_close(&s.log);
	arena_free(&s.arena);
	conf_free(&conf);
}

static struct context_store
at(char letter, int64_t at_ms)
{
	static uint8_t keys[256][TALK_KEY_BYTES];
	uint8_t *key = keys[(unsigned char)letter];

	key[0] = (uint8_t)letter;
	return (struct context_store){&s, SPAN("joe"), key, {NOW + at_ms}, 0};
}

static struct form_turn
turn(enum form_role role, struct span text)
{
	struct form_part *part = arena_alloc(s.arena, sizeof *part);

	*part = (struct form_part){.kind = FORM_TEXT, .text = text};
	return (struct form_turn){.role = role, .parts = part, .nparts = 1};
}

static struct span
long_text(size_t n)
{
	char *text = arena_alloc(s.arena, n + 1);

	memset(text, 'x', n);
	return (struct span){text, n};
}

static size_t
turns_of(struct context_store where)
{
	struct context_turns turns = {.n = 999};
	enum store_rc rc = context_store_get(&where, s.arena, &turns, &why);

	if (rc == STORE_NONE)
		return 0;
	if (rc != STORE_OK)
		fail_msg("%d: %s", rc, why.text);
	assert_int_equal(turns.head.turns, turns.n);
	return turns.n;
}

/* A question of `n` bytes, and an answer. */
static enum store_rc
ask(struct context_store where, size_t n, enum talk_first first)
{
	struct form_turn turns[] = {
	    turn(FORM_USER, long_text(n)), turn(FORM_ASSISTANT, SPAN("so"))};

	where.had = (uint32_t)turns_of(where);
	why.text[0] = '\0';
	return context_store_append(&where, turns, 2, first, &why);
}

/* Nothing is there, not even a book; then turns come back as they were. */
static void
from_nothing(void **state)
{
	struct context_store a = at('a', 0), b = at('b', 0);
	struct context_turns turns;

	begin(*state);
	assert_int_equal(context_store_get(&a, s.arena, &turns, &why), STORE_NONE);
	assert_false(context_store_sweep(&s, a.now, 10));
	assert_int_equal(ask(a, 10, TALK_APPEND), STORE_OK);
	assert_int_equal(ask(a, 3, TALK_REPLACE), STORE_OK);
	assert_int_equal(context_store_get(&a, s.arena, &turns, &why), STORE_OK);
	assert_int_equal(turns.n, 3);
	assert_true(turns.turns[0].role == FORM_USER && turns.turns[0].parts[0].text.n == 3);
	assert_true(text_is(turns.turns[2].parts[0].text, "so"));
	assert_int_equal(turns_of(b), 0);
	assert_int_equal(context_store_append(&a, NULL, 0, TALK_APPEND, &why), STORE_OK);
	assert_int_equal(turns_of(a), 3);
	end();
}

static void
bounds(void **state)
{
	begin(*state);
	assert_int_equal(ask(at('a', 0), 12000, TALK_APPEND), STORE_OK);
	assert_int_equal(ask(at('b', 0), 12000, TALK_APPEND), STORE_OK);
	assert_int_equal(ask(at('b', 0), 12000, TALK_APPEND), STORE_FULL);
	assert_non_null(strstr(why.text, "context.max_session"));
	assert_int_equal(turns_of(at('b', 0)), 2);
	assert_int_equal(turns_of(at('a', 0)), 2); /* nobody had to give way to it */
	assert_int_equal(ask(at('c', 0), 30000, TALK_APPEND), STORE_FULL);
	assert_non_null(strstr(why.text, "context.max_session"));
	for (char c = 'c'; c < 'g'; c++)
		assert_int_equal(ask(at(c, 1), 12000, TALK_APPEND), STORE_OK);
	assert_int_equal(turns_of(at('a', 1)), 0);
	assert_int_equal(turns_of(at('f', 1)), 2);
	assert_true(context_store_sweep(&s, (struct wall_ms){NOW + 60001}, 1));
	assert_false(context_store_sweep(&s, (struct wall_ms){NOW + 60001}, 10));
	end();
}

/* What cannot be read again is not kept; what is there and cannot be read is not passed over. */
static enum store_rc
spoil(struct txn *book, void *arg)
{
	struct context_store *where = arg;
	struct env_bytes text = {"{\"role\":\"user\",\"parts\":[{\"kind\":\"later\"}]}", 43};
	struct talk_append append = {.client = {"joe", 3}, .turns = &text, .nturns = 1, .had = 2};
	struct talk_limits limits = {where->now, 60000, 1 << 20, 1 << 20};

	return talk_append(book, where->key, &append, &limits);
}

static void
unreadable(void **state)
{
	struct context_store a = at('a', 0);
	struct form_part call = {.kind = FORM_CALL,
	    .call = {.id = SPAN("c"), .name = SPAN("f"), .arguments = SPAN("{")}};
	struct form_turn turns[2];
	struct context_turns got;

	begin(*state);
	turns[0] = turn(FORM_USER, SPAN("x"));
	turns[1] = (struct form_turn){.role = FORM_ASSISTANT, .parts = &call, .nparts = 1};
	assert_int_equal(context_store_append(&a, turns, 2, TALK_APPEND, &why), STORE_BAD);
	assert_non_null(strstr(why.text, "'parts[0].arguments'"));
	assert_int_equal(turns_of(a), 0);
	assert_int_equal(ask(a, 1, TALK_APPEND), STORE_OK);
	assert_int_equal(env_book_update(s.env, spoil, &a), STORE_OK);
	why.text[0] = '\0';
	assert_int_equal(context_store_get(&a, s.arena, &got, &why), STORE_BAD);
	assert_non_null(strstr(why.text, "turn 2 of the conversation"));
	end();
}

/* A book that is damaged is made anew, and used. */
static void
damaged(void **state)
{
	struct context_store a = at('a', 0);
	struct context_turns got;

	begin(*state);
	for (int i = 0; i < 3; i++)
		assert_int_equal(ask(a, 5000, TALK_APPEND), STORE_OK);
	env_close(&s.env);
	for (off_t page = 2; page < 12; page++)
		store_dir_flip(*state, "book/data.mdb", page * 4096 + 40, 0xff);
	store_reboot(*state);
	s.env = store_dir_open(*state);
	assert_non_null(s.env);
	assert_int_equal(context_store_get(&a, s.arena, &got, &why), STORE_NONE);
	assert_int_equal(ask(a, 5000, TALK_APPEND), STORE_OK);
	assert_int_equal(turns_of(a), 2);
	end();
}

/* A small store: conversations have a quarter of it, whatever is configured, and leave room. */
static void
small_store(void **state)
{
	struct store_why store_why = {""};
	unsigned kept = 0;

	begin(*state);
	env_close(&s.env);
	store_dir_remove(*state, "live");
	store_dir_remove(*state, "epoch");
	assert_int_equal(
	    env_open(((struct store_dir *)*state)->path, MIB, true, &s.env, &store_why), STORE_OK);
	((struct conf *)(uintptr_t)s.conf)->context.max_total_bytes = 1 << 30;
	for (char c = 'A'; c < 'z'; c++)
		assert_int_equal(ask(at(c, 0), 12000, TALK_APPEND), STORE_OK);
	for (char c = 'A'; c < 'z'; c++)
		kept += turns_of(at(c, 0)) == 2;
	assert_in_range(kept, 15, 19);
	assert_int_equal(turns_of(at('y', 0)), 2);
	end();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(from_nothing),
	    TEST(bounds),
	    TEST(unreadable),
	    TEST(damaged),
	    TEST(small_store),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
