#include "path.h"

#include "endpoint.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define CHAT "/v1/chat/completions"
#define C PATH_CLIENT
#define A PATH_ADMIN
#define NO PATH_UNKNOWN

struct row {
	const char *what;
	const char *path_info, *script_name, *request_uri, *mount; /* NULL = not set */
	enum path_kind kind;
	const char *route;
};

/* hosting.md 7, each mount that was measured there. */
static const struct row mounts[] = {
    {"ScriptAlias /llm", CHAT, "/llm", "/llm" CHAT "?q", NULL, C, CHAT},
    {"ProxyPass /llm", NULL, "/llm" CHAT, "/llm" CHAT, NULL, C, CHAT},
    {"ProxyPass with proxy-fcgi-pathinfo", "/llm" CHAT, "", "/llm" CHAT, NULL, C, CHAT},
    {"ProxyPass with ProxyFCGISetEnvIf", CHAT, "/llm", "/llm" CHAT, NULL, C, CHAT},
    {"SetHandler, a folder of that name: cut in the middle", "/chat/completions", "/llm/v1",
        "/llm" CHAT, NULL, C, CHAT},
    {"SetHandler at the root", "/chat/completions", "/v1", CHAT, NULL, C, CHAT},
    {".htaccess [P]: cut in the middle", "/models/x", "/shost/p/v1", "/shost/p/v1/models/x", NULL,
        C, "/v1/models/x"},
    {".htaccess ^v1/(.*)", CHAT, "/shost/a/sluice.fcgi", "/shost/a" CHAT, NULL, C, CHAT},
    {".htaccess ^v1/(.*) in the document root", CHAT, "/sluice.cgi", CHAT, NULL, C, CHAT},
    {".htaccess catch-all: only REQUEST_URI tells", NULL, "/shost/c/sluice.fcgi",
        "/shost/c/v1/models/x%20y", NULL, C, "/v1/models/x y"},
    {".htaccess catch-all with a query", NULL, "/shost/c/sluice.fcgi",
        "/shost/c" CHAT "?beta=true&x=/v1/models", NULL, C, CHAT},
    {".htaccess ^api/chat$", CHAT, "/shost/d/sluice.fcgi", "/shost/d/api/chat", NULL, C, CHAT},
    {"lighttpd \"/llm\"", CHAT, "/llm", "/llm" CHAT, NULL, C, CHAT},
    {"lighttpd \"\", nginx fastcgi_params", NULL, CHAT, CHAT, NULL, C, CHAT},
    {"lighttpd \"\" with an empty PATH_INFO", "", CHAT, CHAT, NULL, C, CHAT},
    {"lighttpd \"\" below a prefix", "", "/a/b" CHAT, "/a/b" CHAT, NULL, C, CHAT},
    {"lighttpd \"/\"", "v1/chat/completions", "/", CHAT, NULL, C, CHAT},
    {"nginx fastcgi_split_path_info", CHAT, "/llm", "/llm" CHAT, NULL, C, CHAT},
    {"nginx fastcgi_split_path_info ^()(/.*)$", CHAT, "", CHAT, NULL, C, CHAT},
    {"only REQUEST_URI", NULL, NULL, "/llm" CHAT "?a=/status", NULL, C, CHAT},
    {"nothing at all", NULL, NULL, NULL, NULL, NO, ""},
    {"all empty", "", "", "", "", NO, ""},
};

/* The admin routes in each of them; a "/debug/x" stands for those of two segments. */
static const struct row admin_mounts[] = {
    {"ScriptAlias /llm", "/status", "/llm", "/llm/status?q", NULL, A, "/status"},
    {"ProxyPass /llm", NULL, "/llm/status", "/llm/status", NULL, A, "/status"},
    {"ProxyPass with proxy-fcgi-pathinfo", "/llm/status", "", "/llm/status", NULL, A, "/status"},
    {"SetHandler, a folder of that name", NULL, "/llm/status", "/llm/status", NULL, A, "/status"},
    {"SetHandler, two segments", "/x", "/llm/debug", "/llm/debug/x", NULL, A, "/debug/x"},
    {"SetHandler at the root, two segments", "/x", "/debug", "/debug/x", NULL, A, "/debug/x"},
    {".htaccess [P]", "/status", "/shost/p", "/shost/p/status", NULL, A, "/status"},
    {".htaccess ^(status|...)$", "/status", "/shost/a/sluice.fcgi", "/shost/a/status", NULL, A,
        "/status"},
    {".htaccess ^(status|...)$ with the mount", "/status", "/shost/a/sluice.fcgi",
        "/shost/a/status", "/shost/a", A, "/status"},
    {".htaccess catch-all", NULL, "/shost/c/sluice.fcgi", "/shost/c/status", NULL, NO, NULL},
    {".htaccess catch-all with the mount", NULL, "/shost/c/sluice.fcgi", "/shost/c/status",
        "/shost/c", NO, NULL},
    {"lighttpd \"\"", NULL, "/status", "/status", NULL, A, "/status"},
    {"lighttpd \"/\"", "status", "/", "/status", NULL, A, "/status"},
    {"nginx fastcgi_split_path_info ^()(/.*)$", "/status", "", "/status", NULL, A, "/status"},
    {"a name that holds /v1/", "/debug/v1/models", "/llm", NULL, NULL, A, "/debug/v1/models"},
};

/* SPEC.md 4.1: what is forgiven, and what is not. */
static const struct row forgiven[] = {
    {"/v1/v1", "/v1" CHAT, "/llm", NULL, NULL, C, CHAT},
    {"/v1/v1/v1", "/v1/v1/v1/models", "", NULL, NULL, C, "/v1/models"},
    {"/v1/v1 cut in the middle", CHAT, "/v1", NULL, NULL, C, CHAT},
    {"/v1/v1 in REQUEST_URI", NULL, NULL, "/v1" CHAT, NULL, C, CHAT},
    {"trailing slash", CHAT "/", "/llm", NULL, NULL, C, CHAT},
    {"trailing slashes", CHAT "///", "/llm", NULL, NULL, C, CHAT},
    {"slashes in a row", "//v1//chat///completions", "/llm", NULL, NULL, C, CHAT},
    {"dot segments", "/v1/./x/../chat/./completions/.", "/llm", NULL, NULL, C, CHAT},
    {"raw dot segments", NULL, NULL, "/llm//v1/../v1/models", NULL, C, "/v1/models"},
    {"raw encoded dot segments", NULL, NULL, "/v1/x/%2e%2E/models", NULL, C, "/v1/models"},
    {"the query is no path", NULL, NULL, "/llm/v1/models?/v1/chat/completions", NULL, C,
        "/v1/models"},
    {"absolute form", NULL, NULL, "http://h.example:80/llm" CHAT "?q", NULL, C, CHAT},
    {"absolute form, https", NULL, NULL, "HTTPS://h/v1/models", NULL, C, "/v1/models"},
    {"absolute form without a path", NULL, NULL, "http://h", NULL, NO, NULL},
    {"encoded slash, decoded by the server", "/v1/models/a/b", "", NULL, NULL, C, "/v1/models/a/b"},
    {"encoded slash in REQUEST_URI", NULL, NULL, "/v1/models/a%2Fb", NULL, C, "/v1/models/a/b"},
    {"encoded twice: decoded once", NULL, NULL, "/v1/models/a%252Fb", NULL, C, "/v1/models/a%2Fb"},
    {"a decoded variable is not decoded again", "/v1/models/a%2Fb", "", NULL, NULL, C,
        "/v1/models/a%2Fb"},
    {"an encoded route in a decoded variable", "/v1/chat%2Fcompletions", "", NULL, NULL, NO, NULL},
    {"UTF-8", "/v1/models/\xc3\xa9", "/llm", NULL, NULL, C, "/v1/models/\xc3\xa9"},
    {"UTF-8, raw", NULL, NULL, "/v1/models/%C3%A9", NULL, C, "/v1/models/\xc3\xa9"},
    {"a plus is no blank", NULL, NULL, "/v1/models/a+b", NULL, C, "/v1/models/a+b"},
    {"groq's SDK", "/openai" CHAT, "/llm", NULL, NULL, C, CHAT},
    {"alibaba's SDK", "/compatible-mode" CHAT, "/llm", NULL, NULL, C, CHAT},
    {"model with a /v1/ in its name", "/v1/models/org/v1/m", "/llm", NULL, NULL, C,
        "/v1/models/org/v1/m"},
    {"the last of two routes", "/v1/models" CHAT, "/llm", NULL, NULL, C, CHAT},
    {"model of many parts", "/v1/models/org/m:free@1", "/llm", NULL, NULL, C,
        "/v1/models/org/m:free@1"},
    {"model that is named like a route", "/v1/models/status", "/llm", NULL, NULL, C,
        "/v1/models/status"},
    {"model that is named like an admin route, cut", "/models/status", "/llm/v1", NULL, NULL, C,
        "/v1/models/status"},
    {"healthz", "/healthz", "/llm", NULL, NULL, C, "/healthz"},
    {"healthz, whole", NULL, "/a/b/healthz", NULL, NULL, C, "/healthz"},
    {"healthz in REQUEST_URI", NULL, "/shost/c/sluice.fcgi", "/shost/c/healthz", NULL, C,
        "/healthz"},
};

static const struct row unknown[] = {
    {"misspelt", "/v1/chat/completion", "/llm", "/llm/v1/chat/completion", NULL, NO,
        "/v1/chat/completion"},
    {"misspelt too", "/v1/response", "/llm", NULL, NULL, NO, NULL},
    {"root", "/", "/llm", "/llm/", NULL, NO, NULL},
    {"one segment more", CHAT "/x", "", NULL, NULL, NO, NULL},
    {"longer word", CHAT "x", "", NULL, NULL, NO, NULL},
    {"a line's end", "/\n" CHAT, "/llm", NULL, NULL, NO, NULL},
    {"a line's end, raw", NULL, NULL, "/llm/%0A" CHAT, NULL, NO, NULL},
    {"a line's end, where the server did not cut", NULL, "/llm/\n/status", "/llm/%0a/status", NULL,
        NO, NULL},
    {"a control character", "/v1/models/a\x7f", "/llm", NULL, NULL, NO, NULL},
    {"word before", "/xv1/models", "", NULL, NULL, NO, NULL},
    {"without its /v1", "/chat/completions", "", "/chat/completions", NULL, NO, NULL},
    {"without its /v1, below a prefix", "/chat/completions", "/llm", "/llm/chat/completions", NULL,
        NO, "/chat/completions"},
    {"a client's hello", "/api/hello", "/llm", NULL, NULL, NO, "/api/hello"},
    {"a version before /v1", "/v10/chat/completions", "", NULL, NULL, NO, NULL},
    {"v1beta", "/v1beta/models", "", NULL, NULL, NO, NULL},
    {"just /v1", "/v1/", "/llm", NULL, NULL, NO, NULL},
    {"healthz below /v1", "/v1/healthz", "/llm", NULL, NULL, NO, NULL},
    {"upper case", "/V1/MODELS", "", NULL, NULL, NO, NULL},
    {"above the root", "/../v1/models", "", NULL, NULL, NO, NULL},
    {"above the root, raw", NULL, NULL, "/v1/../../v1/models", NULL, NO, NULL},
    {"backslash", "/v1\\models", "", NULL, NULL, NO, NULL},
    {"backslash, raw", NULL, NULL, "/llm/..%5c/v1/models", NULL, NO, NULL},
    {"NUL, raw", NULL, NULL, "/v1/models%00/x", NULL, NO, NULL},
    {"broken escape", NULL, NULL, "/v1/models/%2", NULL, NO, NULL},
    {"escape of no digits", NULL, NULL, "/v1/models/%zz", NULL, NO, NULL},
    {"asterisk", NULL, NULL, "*", NULL, NO, NULL},
    {"a route in the query", NULL, NULL, "/x?" CHAT, NULL, NO, NULL},
    {"a route in the host", NULL, NULL, "http://h" CHAT "@x/y", NULL, NO, NULL},
};

static const struct row admins[] = {
    {"PATH_INFO", "/status", "/llm", "/llm/status", NULL, A, "/status"},
    {"SCRIPT_NAME", NULL, "/llm/status", "/llm/status", NULL, A, "/status"},
    {"trailing slash", "/status/", "/llm", NULL, NULL, A, "/status"},
    {"REQUEST_URI alone", NULL, NULL, "/status", NULL, NO, NULL},
    {"REQUEST_URI beside a catch-all", NULL, "/shost/c/sluice.fcgi", "/shost/c/status", NULL, NO,
        NULL},
    {"REQUEST_URI, encoded", NULL, "/sluice.fcgi", "/%73tatus", NULL, NO, NULL},
    {"REQUEST_URI, by dots", NULL, "/sluice.fcgi", "/x/../status", NULL, NO, NULL},
    {"REQUEST_URI, absolute form", NULL, NULL, "http://h/status", NULL, NO, NULL},
    {"REQUEST_URI, with the mount", NULL, "/sluice.fcgi", "/llm/status", "/llm", NO, NULL},
    {"REQUEST_URI, with the mount, encoded", NULL, "/sluice.fcgi", "/llm/%73tatus", "/llm", NO,
        NULL},
    {"REQUEST_URI, with a mount at the root", NULL, "/sluice.fcgi", "/status", "/", NO, NULL},
    {"REQUEST_URI, two segments", NULL, "/sluice.fcgi", "/llm/debug/x", NULL, NO, NULL},
    {"an encoded variable", "/%73tatus", "/llm", NULL, NULL, NO, NULL},
    {"upper case", "/STATUS", "/llm", "/llm/STATUS", NULL, NO, NULL},
    {"one segment more", "/status/x", "/llm", NULL, NULL, NO, NULL},
    {"with a parameter", "/status;x", "/llm", NULL, NULL, NO, NULL},
    {"deeper than the cut", "/x/status", "/llm", "/llm/x/status", NULL, NO, NULL},
    {"deeper than the cut, by the healthz", "/healthz/status", "/llm", NULL, NULL, NO, NULL},
    {"deeper than the cut, with the mount", "/x/status", "/llm", NULL, "/llm", NO, NULL},
    {"deeper than the cut, by dots", "/x/../status", "/llm", NULL, NULL, A, "/status"},
    {"below /v1", "/v1/status", "/llm", "/llm/v1/status", NULL, NO, NULL},
    {"below a client's route", CHAT "/status", "/llm", NULL, NULL, NO, NULL},
    {"below /v1, not cut", NULL, "/llm/v1/status", "/llm/v1/status", NULL, NO, NULL},
    {"below /v1, all in PATH_INFO", "/llm/v1/x/status", "", NULL, NULL, NO, NULL},
    {"below /v1 in SCRIPT_NAME", "/x/status", "/llm/v1", NULL, NULL, NO, NULL},
    {"a variable says chat, REQUEST_URI status", CHAT, "/llm", "/llm/status", NULL, C, CHAT},
    {"a variable says nothing known, REQUEST_URI status", "/x", "/llm", "/llm/status", NULL, NO,
        "/x"},
    {"a variable says model, REQUEST_URI status", "/v1/models/x", "", "/status", NULL, C,
        "/v1/models/x"},
    {"with the mount", "/status", "/llm", "/llm/status", "/llm", A, "/status"},
};

static const struct row fixed[] = {
    {"mount, ScriptAlias", CHAT, "/llm", "/llm" CHAT, "/llm", C, CHAT},
    {"mount, ProxyPass", NULL, "/llm" CHAT, "/llm" CHAT, "/llm", C, CHAT},
    {"mount, pathinfo", "/llm" CHAT, "", "/llm" CHAT, "/llm", C, CHAT},
    {"mount, only REQUEST_URI", NULL, "/llm/sluice.fcgi", "/llm" CHAT, "/llm", C, CHAT},
    {"mount with a slash at its end", CHAT, "/llm", NULL, "/llm/", C, CHAT},
    {"mount that is the root", CHAT, "", NULL, "/", C, CHAT},
    {"/v1/v1 behind the mount", "/v1" CHAT, "/llm", NULL, "/llm", C, CHAT},
    {"a mount of two segments", CHAT, "/a/llm", NULL, "/a/llm", C, CHAT},
    {"a mount written badly", CHAT, "/llm", NULL, "llm//", C, CHAT},
    {"mount, the program's name from a rewrite", CHAT, "/shost/a/sluice.fcgi", "/shost/a" CHAT,
        "/shost/a/", C, CHAT},
    {"mount at the root, the program's name", CHAT, "/sluice.fcgi", CHAT, "/", C, CHAT},
    {"mount, another folder's program", "/healthz", "/b/sluice.fcgi", NULL, "/a", NO, NULL},
    {"mount, lighttpd \"\"", "", "/llm" CHAT, NULL, "/llm", C, CHAT},
    {"mount, without its /v1", "/chat/completions", "/llm", "/llm/chat/completions", "/llm", NO,
        "/chat/completions"},
    {"a mount that is the /v1", "/chat/completions", "/llm/v1", NULL, "/llm/v1", C, CHAT},
    {"a mount that is the /v1, and once more", CHAT, "/v1", NULL, "/v1/", C, CHAT},
    {"a mount that ends in v1", "/chat/completions", "/xv1", NULL, "/xv1", NO, NULL},
    {"a mount above the root", CHAT, "/llm", NULL, "/../llm", NO, NULL},
    {"elsewhere", CHAT, "/other", "/other" CHAT, "/llm", NO, NULL},
    {"begins alike", CHAT, "/llmx", "/llmx" CHAT, "/llm", NO, NULL},
    {"just the mount", NULL, "/llm", "/llm", "/llm", NO, NULL},
    {"deeper below the mount", "/x" CHAT, "/llm", "/llm/x" CHAT, "/llm", NO, NULL},
    {"left by dots", "/../other" CHAT, "/llm", "/llm/../other" CHAT, "/llm", NO, NULL},
    {"a mount in /v1", "/healthz", "/v1", NULL, "/v1", C, "/healthz"},
};

/* The table of paths, and what the next version has. */
static enum path_kind
known(struct span path)
{
	return text_starts(path, "/debug/") ? A : endpoint_known(path);
}

static void
check(const struct row *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct row *r = &rows[i];
		struct path_vars vars = {text_span(r->path_info), text_span(r->script_name),
		    text_span(r->request_uri), text_span(r->mount)};
		char out[PATH_MAX_BYTES];
		enum path_kind kind = path_find(&vars, known, out);

		if (kind != r->kind || (r->route != NULL && strcmp(out, r->route) != 0))
			fail_msg("%s: got %d '%s', want %d '%s'", r->what, (int)kind, out,
			    (int)r->kind, r->route == NULL ? "?" : r->route);
	}
}

static void
test_mounts(void **state)
{
	(void)state;
	check(mounts, NELEM(mounts));
}

static void
test_forgiven(void **state)
{
	(void)state;
	check(forgiven, NELEM(forgiven));
}

static void
test_unknown(void **state)
{
	(void)state;
	check(unknown, NELEM(unknown));
}

static void
test_admins(void **state)
{
	(void)state;
	check(admins, NELEM(admins));
	check(admin_mounts, NELEM(admin_mounts));
}

static void
test_fixed(void **state)
{
	(void)state;
	check(fixed, NELEM(fixed));
}

/* Around the limits nothing is written beyond the buffer and nothing is cut to another route. */
static void
test_long(void **state)
{
	static char longest[3 * PATH_MAX_BYTES];
	char out[PATH_MAX_BYTES];

	(void)state;
	memcpy(longest, "/v1/models/", 11);
	memset(longest + 11, 'm', sizeof longest - 11);
	for (size_t n = PATH_MAX_BYTES - 4; n < sizeof longest;
	     n += n < PATH_MAX_BYTES + 4 ? 1 : 97) {
		struct span path = {longest, n};
		struct path_vars in_info = {.path_info = path}, in_uri = {.request_uri = path};
		bool fits = n < PATH_MAX_BYTES;

		for (int i = 0; i < 2; i++) {
			enum path_kind kind =
			    path_find(i == 0 ? &in_info : &in_uri, endpoint_known, out);

			if (fits != (kind == PATH_CLIENT))
				fail_msg("%zu bytes: kind %d", n, (int)kind);
			if (fits)
				assert_int_equal(strlen(out), n);
		}
	}
	/* each alone would do, together they are too long */
	struct path_vars both = {.script_name = {longest, 1500}, .path_info = {longest, 1500}};

	assert_int_equal(path_find(&both, endpoint_known, out), PATH_UNKNOWN);
	assert_string_equal(out, "");
}

static const struct {
	const char *raw;
	bool decode;
	const char *want; /* NULL: matches nothing */
} paths[] = {
    {"", false, "/"},
    {"/", false, "/"},
    {"a", false, "/a"},
    {"/a/b/", false, "/a/b"},
    {"/a/..", false, "/"},
    {"/a/../b", false, "/b"},
    {"/a/b/../../c", false, "/c"},
    {"/..", false, NULL},
    {"/a/../..", false, NULL},
    {"/...", false, "/..."},
    {"/.a/..b/c..", false, "/.a/..b/c.."},
    {"/%41", false, "/%41"},
    {"/%41%2f%2F%61", true, "/A/a"},
    {"/a%2e/%2e/%2E%2e/b", true, "/b"},
    {"/%c3%a9", true, "/\xc3\xa9"},
    {"/a+b", true, "/a+b"},
    {"/%", true, NULL},
    {"/%4", true, NULL},
    {"/%4g", true, NULL},
    {"/%00", true, NULL},
    {"/%5C", true, NULL},
    {"/\\", false, NULL},
};

static void
test_normalise(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(paths); i++) {
		char out[PATH_MAX_BYTES];
		bool good = path_normalise(text_span(paths[i].raw), paths[i].decode, out);

		if (good != (paths[i].want != NULL) || (good && strcmp(out, paths[i].want) != 0))
			fail_msg("'%s': got %d '%s'", paths[i].raw, good, out);
	}
	char out[PATH_MAX_BYTES];

	assert_false(path_normalise((struct span){"/a\0b", 4}, false, out));
}

static void
test_hint(void **state)
{
	static const struct {
		const char *path;
		bool hint;
	} hints[] = {{"/chat/completions", true}, {"/llm/models/x", true}, {"/chat", false},
	    {"/v1/chat", false}, {"/", false}, {"", false}, {"/status", false}};

	(void)state;
	for (size_t i = 0; i < NELEM(hints); i++) {
		const char *text = path_hint(text_span(hints[i].path), endpoint_known);

		if ((strstr(text, "/v1") != NULL) != hints[i].hint)
			fail_msg("'%s': got '%s'", hints[i].path, text);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_mounts),
	    cmocka_unit_test(test_forgiven),
	    cmocka_unit_test(test_unknown),
	    cmocka_unit_test(test_admins),
	    cmocka_unit_test(test_fixed),
	    cmocka_unit_test(test_long),
	    cmocka_unit_test(test_normalise),
	    cmocka_unit_test(test_hint),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
