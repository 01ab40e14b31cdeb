#include "session.h"

#include "lib/store_dir.h"

static const struct session_secret counted = {{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15,
    16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}};

#define UUID "0b2c3d4e-1111-2222-3333-444455556666"
#define OLD_ID "user_0123456789abcdef_account__session_" UUID
#define OLD_ID_ACCOUNT "user_0123456789abcdef_account_aaaa_session_" UUID
#define NEW_ID                                                                                    \
	"{\\\"device_id\\\":\\\"d\\\",\\\"account_uuid\\\":\\\"\\\",\\\"session_id\\\":\\\"" UUID \
	"\\\"}"

/* Every request is {"model":"m","messages":[],<more>}; "" wants no key. */
static const struct {
	const char *what, *header1, *header2, *more;
	enum session_kind kind;
	const char *value;
} keys[] = {
    {"nothing", NULL, NULL, NULL, SESSION_NONE, ""},
    {"no body", "HTTP_X_SESSION_ID=s", NULL, "-", SESSION_HEADER, "s"},
    {"no body, no header", NULL, NULL, "-", SESSION_NONE, ""},
    {"the first header of the list wins", "HTTP_THREAD_ID=t", "HTTP_X_SESSION_ID=s", NULL,
        SESSION_HEADER, "s"},
    {"an empty header is absent", "HTTP_THREAD_ID=t", "HTTP_X_SESSION_ID=", NULL, SESSION_HEADER,
        "t"},
    {"a blank header is absent", "HTTP_THREAD_ID= t ", "HTTP_X_SESSION_ID= ", NULL, SESSION_HEADER,
        "t"},
    {"a header before the body", "HTTP_THREAD_ID=t", NULL, "\"session_id\":\"b\"", SESSION_HEADER,
        "t"},
    {"a header that is not asked for", "HTTP_THREAD_IDS=t", NULL, NULL, SESSION_NONE, ""},
    {"keys in order", NULL, NULL, "\"session_id\":\"b\",\"metadata\":{\"conversation_id\":\"a\"}",
        SESSION_BODY, "a"},
    {"an empty string is absent", NULL, NULL, "\"conversation_id\":\"\",\"session_id\":\"b\"",
        SESSION_BODY, "b"},
    {"null, true, list and object are absent", NULL, NULL,
        "\"conversation_id\":null,\"conversationId\":[1],\"session_id\":true,"
        "\"prompt_cache_key\":\"c\"",
        SESSION_BODY, "c"},
    {"a number", NULL, NULL, "\"session_id\":17", SESSION_BODY, "17"},
    {"escapes are decoded", NULL, NULL, "\"session_id\":\"\\u0061b\"", SESSION_BODY, "ab"},
    {"Claude Code, older", NULL, NULL, "\"metadata\":{\"user_id\":\"" OLD_ID "\"}", SESSION_BODY,
        UUID},
    {"Claude Code, older, with account", NULL, NULL,
        "\"metadata\":{\"user_id\":\"" OLD_ID_ACCOUNT "\"}", SESSION_BODY, UUID},
    {"Claude Code, newer", NULL, NULL, "\"metadata\":{\"user_id\":\"" NEW_ID "\"}", SESSION_BODY,
        UUID},
    {"another user_id", NULL, NULL, "\"metadata\":{\"user_id\":\"joe_session_1\"}", SESSION_BODY,
        "joe_session_1"},
    {"no session part", NULL, NULL, "\"metadata\":{\"user_id\":\"user_a_account_b_session_\"}",
        SESSION_BODY, "user_a_account_b_session_"},
    {"broken JSON in user_id", NULL, NULL, "\"metadata\":{\"user_id\":\"{\\\"session_id\\\":\"}",
        SESSION_BODY, "{\"session_id\":"},
    {"the form is known in metadata.user_id only", NULL, NULL,
        "\"session_id\":\"user_a_account_b_session_c\"", SESSION_BODY,
        "user_a_account_b_session_c"},
    {"a path of the configuration", NULL, NULL, "\"mine\":{\"deep\":[{\"id\":\"x\"}]}",
        SESSION_BODY, "x"},
    {"it stands behind the others", NULL, NULL,
        "\"mine\":{\"deep\":[{\"id\":\"x\"}]},\"prompt_cache_key\":\"c\"", SESSION_BODY, "c"},
    {"a name that stands twice names nothing", NULL, NULL, "\"mine\":1,\"mine\":2", SESSION_NONE,
        ""},
    {"previous_response_id last", NULL, NULL,
        "\"previous_response_id\":\"resp_1\",\"mine\":{\"deep\":[{\"id\":7}]}", SESSION_BODY, "7"},
    {"previous_response_id alone", NULL, NULL, "\"previous_response_id\":\"resp_1\"",
        SESSION_RESPONSE, "resp_1"},
    {"previous_response_id null", NULL, NULL, "\"previous_response_id\":null", SESSION_NONE, ""},
};

#define S(z)                     \
	{                        \
		z, sizeof(z) - 1 \
	}
static struct span default_headers[] = {S("X-Session-Id"), S("X-Claude-Code-Session-Id"),
    S("Session-Id"), S("X-Session-Affinity"), S("Thread-Id"), S("")};
static struct span default_keys[] = {S("metadata.conversation_id"), S("metadata.conversationId"),
    S("metadata.user_id"), S("conversation_id"), S("conversationId"), S("session_id"),
    S("prompt_cache_key"), S(""), S("a.b.c.d.e.f.g.h.i"), S("mine.deep.0.id")};

struct world {
	struct conf conf;
	struct arena *arena;
};

static struct world *
world_new(void)
{
	struct world *w = calloc(1, sizeof *w);

	assert_non_null(w);
	w->arena = arena_new(4 << 20);
	w->conf.sticky.headers = (struct conf_strings){default_headers, NELEM(default_headers)};
	w->conf.sticky.keys = (struct conf_strings){default_keys, NELEM(default_keys)};
	return w;
}

static void
world_end(struct world *w)
{
	arena_free(&w->arena);
	free(w);
}

/* `more` "-": no body. */
static struct session_key
key_of_request(struct world *w, const char *client, const char **headers, const char *more)
{
	struct dialect_request read;
	struct session_key key;
	struct why why = {""};
	char method[] = "REQUEST_METHOD=POST";
	char *params[4] = {
	    method, (char *)(uintptr_t)headers[0], (char *)(uintptr_t)headers[1], NULL};
	struct exchange x = {.params = params};
	struct session_source from = {
	    .conf = &w->conf, .x = &x, .read = &read, .client = text_span(client)};
	char *body =
	    arena_print(w->arena, "{\"model\":\"m\",\"messages\":[{\"role\":\"user\"}]%s%s}",
	        more == NULL ? "" : ",", more == NULL ? "" : more);

	if (more != NULL && strcmp(more, "-") == 0)
		from.read = NULL;
	else if (dialect_read(&dialect_chat, text_span(body), &read, &why) != ERR_OK)
		fail_msg("%.200s: %s", body, why.text);
	session_key(&counted, &from, w->arena, &key);
	return key;
}

static void
keys_of_requests(void **state)
{
	struct world *w = world_new();

	(void)state;
	for (size_t i = 0; i < NELEM(keys); i++) {
		const char *headers[2] = {keys[i].header1, keys[i].header2};
		struct session_key got = key_of_request(w, "alice", headers, keys[i].more), want;

		memset(&want, 0, sizeof want);
		if (keys[i].kind != SESSION_NONE)
			session_name(
			    &counted, SPAN("alice"), keys[i].kind, text_span(keys[i].value), &want);
		if (got.kind != keys[i].kind)
			fail_msg("%s: got kind %d, want %d", keys[i].what, (int)got.kind,
			    (int)keys[i].kind);
		if (memcmp(&got, &want, sizeof got) != 0)
			fail_msg("%s: got %s, want %s of '%s'", keys[i].what, got.brief, want.brief,
			    keys[i].value);
	}
	world_end(w);
}

/* Computed with Python's hmac from the words of session.h. */
static const struct {
	const char *what, *client;
	enum session_kind kind;
	size_t value_n; /* so many 'x' in place of the value */
	const char *value, *hex;
} hashes[] = {
    {"header", "alice", SESSION_HEADER, 0, "s-1",
        "3d97313e9c6bc38bad5583153ecb65fa0a373ceada1bb56a0032f5e34206752f"},
    {"response, no client", "", SESSION_RESPONSE, 0, "resp_1",
        "a8e7f99720a9e95f664eca11781e82e5f42ecce4e1152b4012a2ac9f0794542d"},
    {"over-long", "alice", SESSION_BODY, 5000, NULL,
        "a6a4789b636d0ab323dc89e0e1611b278413d4ac1e856704b96b059be0efb2d9"},
};

static void
hashes_are_kept(void **state)
{
	static char xs[5000];

	(void)state;
	memset(xs, 'x', sizeof xs);
	for (size_t i = 0; i < NELEM(hashes); i++) {
		struct span value = hashes[i].value_n > 0 ? (struct span){xs, hashes[i].value_n}
		                                          : text_span(hashes[i].value);
		struct session_key key;
		char hex[65] = "";

		session_name(&counted, text_span(hashes[i].client), hashes[i].kind, value, &key);
		for (size_t b = 0; b < sizeof key.hash; b++)
			snprintf(hex + 2 * b, 3, "%02x", key.hash[b]);
		if (strcmp(hex, hashes[i].hex) != 0)
			fail_msg("%s: got %s, want %s", hashes[i].what, hex, hashes[i].hex);
		if (strlen(key.brief) != 12 || strncmp(key.brief, hex, 12) != 0)
			fail_msg("%s: brief %s of %s", hashes[i].what, key.brief, hex);
	}
}

/* No two of these may have a hash in common. */
static void
nothing_is_shared(void **state)
{
	static char big[SESSION_VALUE_BYTES + 2];
	struct session_secret other = counted;
	struct session_key key[10];
	unsigned n = 0;

	(void)state;
	memset(big, 'x', sizeof big);
	other.bytes[31] ^= 1;
	session_name(&counted, SPAN("alice"), SESSION_HEADER, SPAN("1"), &key[n++]);
	session_name(&counted, SPAN("bob"), SESSION_HEADER, SPAN("1"), &key[n++]);
	session_name(&counted, SPAN(""), SESSION_HEADER, SPAN("1"), &key[n++]);
	session_name(&counted, SPAN("alice"), SESSION_BODY, SPAN("1"), &key[n++]);
	session_name(&counted, SPAN("alice"), SESSION_RESPONSE, SPAN("1"), &key[n++]);
	session_name(&other, SPAN("alice"), SESSION_HEADER, SPAN("1"), &key[n++]);
	session_name(&counted, SPAN("alice"), SESSION_HEADER, SPAN("1\0"), &key[n++]);
	for (size_t cut = 0; cut < 3; cut++)
		session_name(&counted, SPAN("alice"), SESSION_HEADER,
		    (struct span){big, sizeof big - cut}, &key[n++]);
	for (unsigned i = 0; i < n; i++)
		for (unsigned j = 0; j < i; j++)
			if (memcmp(key[i].hash, key[j].hash, sizeof key[i].hash) == 0)
				fail_msg("%u and %u", j, i);
}

/* Of an over-long value the bytes of the request count, escapes and all. */
static void
long_values_are_hashed_whole(void **state)
{
	struct world *w = world_new();
	const char *none[2] = {NULL, NULL};
	size_t n = 199980;
	char *value = arena_alloc(w->arena, n + 1);

	(void)state;
	memset(value, 'x', n);
	memcpy(value, "\\u0061", 6);
	for (char last = 'A'; last <= 'B'; last++) {
		struct session_key got, want;

		value[n - 1] = last;
		got = key_of_request(
		    w, "alice", none, arena_print(w->arena, "\"session_id\":\"%s\"", value));
		session_name(&counted, SPAN("alice"), SESSION_BODY, text_span(value), &want);
		assert_memory_equal(&got, &want, sizeof got);
	}
	world_end(w);
}

/* In the list of keys it stays what it is: an id that a response may have given. */
static void
previous_response_id_has_its_kind(void **state)
{
	static struct span own_keys[] = {S("previous_response_id"), S("session_id")};
	struct world *w = world_new();
	const char *none[2] = {NULL, NULL};
	struct session_key got, want;

	(void)state;
	w->conf.sticky.keys = (struct conf_strings){own_keys, NELEM(own_keys)};
	got =
	    key_of_request(w, "alice", none, "\"session_id\":\"s\",\"previous_response_id\":\"r\"");
	session_name(&counted, SPAN("alice"), SESSION_RESPONSE, SPAN("r"), &want);
	assert_memory_equal(&got, &want, sizeof got);
	got = key_of_request(w, "alice", none, "\"session_id\":\"s\"");
	session_name(&counted, SPAN("alice"), SESSION_BODY, SPAN("s"), &want);
	assert_memory_equal(&got, &want, sizeof got);
	world_end(w);
}

static void
the_secret_is_made_once(void **state)
{
	struct store_dir *dir = *state;
	struct session_secret a, b;
	struct why why;
	struct stat st;
	DIR *d;
	unsigned files = 0;

	umask(022);
	assert_int_equal(session_secret(dir->path, &a, &why), ERR_OK);
	assert_int_equal(session_secret(dir->path, &b, &why), ERR_OK);
	assert_memory_equal(&a, &b, sizeof a);
	assert_int_equal(stat(store_dir_file(dir, "secret"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	assert_int_equal(st.st_size, 32);
	assert_int_equal(st.st_nlink, 1);
	d = opendir(dir->path);
	for (struct dirent *e; (e = readdir(d)) != NULL;)
		files += e->d_name[0] != '.';
	closedir(d);
	assert_int_equal(files, 1);
}

struct shared {
	const struct store_dir *dir;
	volatile int go, ready;
	struct session_secret secret[8];
};

struct one {
	struct shared *shared;
	unsigned number;
};

static int
make_one(void *arg)
{
	struct one *one = arg;
	struct why why;

	__atomic_add_fetch(&one->shared->ready, 1, __ATOMIC_SEQ_CST);
	while (one->shared->go == 0)
		;
	return session_secret(one->shared->dir->path, &one->shared->secret[one->number], &why) ==
	               ERR_OK
	           ? 0
	           : 1;
}

static void
all_get_the_same_secret(void **state)
{
	struct shared *s = shared_bytes(sizeof *s);
	pid_t pids[8];

	s->dir = *state;
	for (unsigned i = 0; i < NELEM(pids); i++)
		pids[i] = child_start(make_one, &(struct one){s, i});
	while (s->ready < (int)NELEM(pids))
		nap_ms(1);
	s->go = 1;
	for (unsigned i = 0; i < NELEM(pids); i++)
		assert_int_equal(child_end(pids[i]), 0);
	for (unsigned i = 1; i < NELEM(pids); i++)
		assert_memory_equal(&s->secret[0], &s->secret[i], sizeof s->secret[0]);
}

/* What stands at state_dir/secret. */
static const struct {
	const char *what;
	mode_t mode;
	size_t n;
	bool link, folder;
	const char *says;
} bad_files[] = {
    {"readable by the group", 0640, 32, false, false, "others can read"},
    {"readable by all", 0604, 32, false, false, "others can read"},
    {"too short", 0600, 31, false, false, "32 bytes"},
    {"empty", 0600, 0, false, false, "32 bytes"},
    {"too long", 0600, 33, false, false, "32 bytes"},
    {"a link", 0600, 32, true, false, "cannot be read"},
    {"a folder", 0700, 0, false, true, "must be a file"},
};

static void
bad_secrets_are_refused(void **state)
{
	struct store_dir *dir = *state;

	for (size_t i = 0; i < NELEM(bad_files); i++) {
		struct session_secret secret;
		struct why why = {""};
		char path[128], target[128];
		int fd;

		snprintf(path, sizeof path, "%s", store_dir_file(dir, "secret"));
		snprintf(target, sizeof target, "%s", store_dir_file(dir, "elsewhere"));
		remove(path);
		if (bad_files[i].folder) {
			assert_int_equal(mkdir(path, 0700), 0);
		} else {
			fd = open(bad_files[i].link ? target : path, O_WRONLY | O_CREAT, 0600);
			assert_int_equal(
			    write(fd, "0123456789012345678901234567890123", bad_files[i].n),
			    bad_files[i].n);
			assert_int_equal(fchmod(fd, bad_files[i].mode), 0);
			close(fd);
		}
		if (bad_files[i].link)
			assert_int_equal(symlink(target, path), 0);
		if (session_secret(dir->path, &secret, &why) != ERR_STORE ||
		    strstr(why.text, bad_files[i].says) == NULL)
			fail_msg("%s: '%s'", bad_files[i].what, why.text);
	}
}

static void
no_directory(void **state)
{
	struct session_secret secret;
	struct why why = {""};

	(void)state;
	assert_int_equal(session_secret("/nonexistent-sluice", &secret, &why), ERR_STORE);
	assert_non_null(strstr(why.text, "cannot be made"));
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(keys_of_requests),
	    cmocka_unit_test(hashes_are_kept),
	    cmocka_unit_test(nothing_is_shared),
	    cmocka_unit_test(long_values_are_hashed_whole),
	    cmocka_unit_test(previous_response_id_has_its_kind),
	    WITH_DIR(the_secret_is_made_once),
	    WITH_DIR(all_get_the_same_secret),
	    WITH_DIR(bad_secrets_are_refused),
	    cmocka_unit_test(no_directory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
