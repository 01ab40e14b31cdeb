#include "fcgi_guard.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S(literal) (literal), sizeof(literal) - 1
#define TEXT_10 "0123456789"
#define TEXT_130                                                                                \
	TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 TEXT_10 \
	    TEXT_10 TEXT_10

enum { BEGIN = 1, ABORT = 2, PARAMS = 4, STDIN = 5, GET_VALUES = 9 };

static void
add_record(struct buf *b, unsigned kind, unsigned id, const char *content, size_t n, size_t pad)
{
	const unsigned char head[8] = {1, (unsigned char)kind, (unsigned char)(id >> 8 & 0xff),
	    (unsigned char)(id & 0xff), (unsigned char)(n >> 8 & 0xff), (unsigned char)(n & 0xff),
	    (unsigned char)pad};

	buf_add(b, head, sizeof head);
	buf_add(b, content, n);
	buf_add(b, "\xff\xff\xff\xff\xff\xff\xff\xff", pad);
}

struct run {
	enum fcgi_guard_rc rc;
	struct buf out;
	char answers[64]; /* kind of each, and the status of an end */
	struct why why;
	size_t rest; /* not looked at */
};

/* In pieces of `size` bytes, each in memory of its own, up to a decision that is not HEAD. */
static void
run(struct run *r, const char *bytes, size_t n, size_t size)
{
	struct fcgi_guard g;
	size_t at = 0;

	*r = (struct run){.rc = FCGI_GUARD_MORE};
	fcgi_guard_init(&g);
	buf_init(&r->out, 4u << 20);
	while (at < n && r->rc <= FCGI_GUARD_HEAD) {
		size_t piece = size < n - at ? size : n - at, have = strlen(r->answers);
		char *copy = malloc(piece);
		struct span in = {copy, piece};
		enum fcgi_guard_rc rc;

		memcpy(copy, bytes + at, piece);
		rc = fcgi_guard_pass(&g, &in, &r->out, &r->why);
		if (rc != FCGI_GUARD_MORE)
			r->rc = rc;
		if (g.answer_n > 0)
			snprintf(r->answers + have, sizeof r->answers - have,
			    g.answer[1] == 3 ? "%u:%u " : "%u ", g.answer[1], g.answer[12]);
		at += piece - in.n;
		free(copy);
	}
	r->rest = n - at;
}

static const struct {
	const char *what, *bytes;
	size_t n;
	const char *why; /* NULL = good */
} variables[] = {
    {"none", S(""), NULL},
    {"one",
        S("\x01\x02"
          "Abc"),
        NULL},
    {"two",
        S("\x01\x01"
          "Ab"
          "\x02\x03"
          "CDefg"),
        NULL},
    {"empty value",
        S("\x01\x00"
          "A"
          "\x01\x01"
          "Bc"),
        NULL},
    {"no name",
        S("\x00\x02"
          "ab"),
        NULL},
    {"nothing at all", S("\x00\x00"), NULL},
    {"lengths of four bytes",
        S("\x80\x00\x00\x01\x80\x00\x00\x02"
          "Abc"
          "\x01\x01"
          "De"),
        NULL},
    {"a name of 130", S("\x80\x00\x00\x82\x01" TEXT_130 "x"), NULL},
    {"a value of 130",
        S("\x01\x80\x00\x00\x82"
          "A" TEXT_130 "\x01\x00"
          "B"),
        NULL},
    {"'=' in a value",
        S("\x01\x03"
          "Ab=c"),
        NULL},
    {"NUL in a value",
        S("\x01\x03"
          "Ab\0c"),
        NULL},
    {"'=' in a name",
        S("\x03\x01"
          "A=bc"),
        "holds '=' or NUL"},
    {"NUL in a name",
        S("\x03\x01"
          "A\0bc"),
        "holds '=' or NUL"},
    {"a name that is cut",
        S("\x04\x00"
          "Abc"),
        "longer than what came"},
    {"a value that is cut",
        S("\x01\x03"
          "Abc"),
        "longer than what came"},
    {"lengths alone", S("\x01\x01"), "longer than what came"},
    {"one length", S("\x01"), "longer than what came"},
    {"half a length", S("\x80\x00\x00"), "longer than what came"},
    {"half the other length", S("\x01\x80\x00\x00"), "longer than what came"},
    {"2 GiB - 1 each",
        S("\xff\xff\xff\xff\xff\xff\xff\xff"
          "x"),
        "a variable of 4294967294 bytes"},
    {"2 GiB - 2 each",
        S("\xff\xff\xff\xfe\xff\xff\xff\xfe"
          "x"),
        "a variable of 4294967292 bytes"},
    {"2 GiB in all",
        S("\xff\xff\xff\xe0\x10"
          "x"),
        "a variable of 2147483632 bytes"},
    {"1 MiB",
        S("\x01\x80\x10\x00\x00"
          "x"),
        "a variable of 1048577 bytes"},
    {"almost 1 MiB, that does not come",
        S("\x01\x80\x0f\xff\xff"
          "x"),
        "longer than what came"},
    {"2 GiB behind a good one",
        S("\x01\x01"
          "Ab"
          "\x01\xff\xff\xff\xfe"
          "x"),
        "a variable of 2147483647 bytes"},
};

static void
check_variables(size_t i, size_t record, size_t piece)
{
	struct buf sent, want;
	struct run r;

	buf_init(&sent, 1 << 16);
	buf_init(&want, 1 << 16);
	add_record(&sent, BEGIN, 1, "\0\1\0\0\0\0\0\0", 8, 3);
	add_record(&want, BEGIN, 1, "\0\1\0\0\0\0\0\0", 8, 0);
	for (size_t at = 0; at < variables[i].n; at += record) {
		size_t n = record < variables[i].n - at ? record : variables[i].n - at;

		add_record(&sent, PARAMS, 1, variables[i].bytes + at, n, 5);
		add_record(&want, PARAMS, 1, variables[i].bytes + at, n, 0);
	}
	add_record(&sent, PARAMS, 1, "", 0, 7);
	add_record(&want, PARAMS, 1, "", 0, 0);
	run(&r, sent.p, sent.n, piece);
	if (r.rc != (variables[i].why == NULL ? FCGI_GUARD_HEAD : FCGI_GUARD_REFUSED))
		fail_msg("%s (%zu, %zu): got %d (%s)", variables[i].what, record, piece, (int)r.rc,
		    r.why.text);
	if (variables[i].why != NULL && strstr(r.why.text, variables[i].why) == NULL)
		fail_msg("%s (%zu, %zu): got '%s', want '%s'", variables[i].what, record, piece,
		    r.why.text, variables[i].why);
	if (variables[i].why == NULL &&
	    (r.out.n != want.n || memcmp(r.out.p, want.p, want.n) != 0 || r.rest > 0))
		fail_msg("%s (%zu, %zu): other bytes came out", variables[i].what, record, piece);
	buf_release(&r.out);
	buf_release(&sent);
	buf_release(&want);
}

static void
test_variables(void **state)
{
	static const size_t records[] = {1, 2, 3, 7, 65535}, pieces[] = {1, 5, 8, 65536};

	(void)state;
	for (size_t i = 0; i < NELEM(variables); i++)
		for (size_t k = 0; k < NELEM(records); k++)
			for (size_t m = 0; m < NELEM(pieces); m++)
				check_variables(i, records[k], pieces[m]);
}

/*
 * One letter a record: B begin, R begin of an authorizer, T of role 257, 2 another begin, 0 a begin without number,
 * S short begin, P variables, p their end, C variables that end in a length, I the body, i its end, J the body of
 * another request, X abort, Y abort of another one, G get values, U an unknown one of the connection, D data of a
 * filter, V another version, H half a head.
 */
static void
add_letter(struct buf *b, char letter)
{
	static const struct {
		char letter;
		unsigned kind, id;
		const char *content;
		size_t n, pad;
	} table[] = {
	    {'B', BEGIN, 1, S("\0\1\0\0\0\0\0\0"), 0},
	    {'R', BEGIN, 1, S("\0\2\0\0\0\0\0\0"), 0},
	    {'T', BEGIN, 1, S("\1\1\0\0\0\0\0\0"), 0},
	    {'2', BEGIN, 2, S("\0\1\0\0\0\0\0\0"), 1},
	    {'0', BEGIN, 0, S("\0\1\0\0\0\0\0\0"), 0},
	    {'S', BEGIN, 1, S("\0\1\0\0"), 0},
	    {'P', PARAMS, 1, S("\1\1Ab"), 4},
	    {'C', PARAMS, 1, S("\1\1Ab\1"), 0},
	    {'p', PARAMS, 1, S(""), 0},
	    {'I', STDIN, 1, S("hi"), 6},
	    {'i', STDIN, 1, S(""), 8},
	    {'J', STDIN, 3, S("no"), 6},
	    {'X', ABORT, 1, S(""), 0},
	    {'Y', ABORT, 3, S(""), 0},
	    {'G', GET_VALUES, 0, S("\xff\xff\xff\xfe\xff\xff\xff\xfe"), 2},
	    {'U', 77, 0, S("xxxxx"), 3},
	    {'D', 8, 1, S("x"), 0},
	    {'V', STDIN, 1, S(""), 0},
	    {'H', STDIN, 1, S(""), 0},
	};

	for (size_t i = 0; i < NELEM(table); i++) {
		size_t at = b->n;

		if (table[i].letter != letter)
			continue;
		add_record(
		    b, table[i].kind, table[i].id, table[i].content, table[i].n, table[i].pad);
		if (letter == 'V')
			b->p[at] = 2;
		if (letter == 'H')
			b->n -= 3;
	}
}

static const struct {
	const char *what, *sent;
	enum fcgi_guard_rc rc;
	const char *passes, *answers, *why;
	size_t rest;
} orders[] = {
    {"nothing", "", FCGI_GUARD_MORE, "", "", "", 0},
    {"a begin", "B", FCGI_GUARD_MORE, "B", "", "", 0},
    {"variables", "BP", FCGI_GUARD_MORE, "BP", "", "", 0},
    {"a head", "BPp", FCGI_GUARD_HEAD, "BPp", "", "", 0},
    {"no variables", "Bp", FCGI_GUARD_HEAD, "Bp", "", "", 0},
    {"a request", "BPPpIIi", FCGI_GUARD_END, "BPPpIIi", "", "", 0},
    {"no body", "BPpi", FCGI_GUARD_END, "BPpi", "", "", 0},
    {"an abort behind it", "BPpiX", FCGI_GUARD_END, "BPpi", "", "", 8},
    {"values, asked for with lengths of 2 GiB", "GBPpi", FCGI_GUARD_END, "BPpi", "10 ", "", 0},
    {"values alone", "G", FCGI_GUARD_MORE, "", "10 ", "", 0},
    {"unknown ones everywhere", "UBUPUpUIUi", FCGI_GUARD_END, "BPpIi", "11 11 11 11 11 ", "", 0},
    {"a begin of the connection", "0BPp", FCGI_GUARD_HEAD, "BPp", "11 ", "", 0},
    {"a second request", "B2P2p2Ii", FCGI_GUARD_END, "BPpIi", "3:1 3:1 3:1 ", "", 0},
    {"the body of another one", "BJPJpJIJi", FCGI_GUARD_END, "BPpIi", "", "", 0},
    {"the abort of another one", "BYPYpYIYi", FCGI_GUARD_END, "BPpIi", "", "", 0},
    {"abort instead of variables", "BX", FCGI_GUARD_ABORTED, "B", "3:0 ", "", 0},
    {"abort among the variables", "BPX", FCGI_GUARD_ABORTED, "BP", "3:0 ", "", 0},
    {"abort instead of the body", "BPpX", FCGI_GUARD_ABORTED, "BPp", "", "", 0},
    {"abort in the body", "BPpIX", FCGI_GUARD_ABORTED, "BPpI", "", "", 0},
    {"abort of nothing", "X", FCGI_GUARD_REFUSED, "", "", "of kind 2 where a request", 0},
    {"an authorizer", "RPp", FCGI_GUARD_REFUSED, NULL, "3:3 ", "the role 2,", 24},
    {"a role of two bytes", "T", FCGI_GUARD_REFUSED, NULL, "3:3 ", "the role 257,", 0},
    {"a short begin", "SPp", FCGI_GUARD_REFUSED, NULL, "", "of kind 1 where a request", 28},
    {"no begin", "Pp", FCGI_GUARD_REFUSED, NULL, "", "of kind 4 where a request", 16},
    {"the begin twice", "BB", FCGI_GUARD_REFUSED, NULL, "", "of kind 1 among", 8},
    {"the body among the variables", "BPIp", FCGI_GUARD_REFUSED, NULL, "", "of kind 5 among", 16},
    {"variables in the body", "BpP", FCGI_GUARD_REFUSED, NULL, "", "of kind 4 in the body", 8},
    {"data of a filter", "BpD", FCGI_GUARD_REFUSED, NULL, "", "of kind 8 in the body", 1},
    {"a variable that is cut", "BCp", FCGI_GUARD_REFUSED, NULL, "", "longer than", 0},
    {"another version", "V", FCGI_GUARD_REFUSED, "", "", "no FastCGI", 0},
    {"another version later", "BPpIV", FCGI_GUARD_REFUSED, "BPpI", "", "no FastCGI", 0},
    {"half a head", "BPpIH", FCGI_GUARD_HEAD, "BPpI", "", "", 0},
};

/* What comes out for the letters: the same without padding. */
static void
clean_letters(struct buf *b, const char *letters)
{
	for (; *letters != '\0'; letters++) {
		size_t at = b->n;

		add_letter(b, *letters);
		b->n -= (unsigned char)b->p[at + 6];
		b->p[at + 6] = 0;
	}
}

static void
check_order(size_t i, size_t piece)
{
	struct buf sent, want;
	struct run r;

	buf_init(&sent, 4096);
	buf_init(&want, 4096);
	for (const char *p = orders[i].sent; *p != '\0'; p++)
		add_letter(&sent, *p);
	run(&r, sent.p, sent.n, piece);
	if (r.rc != orders[i].rc)
		fail_msg("%s (%zu): got %d (%s)", orders[i].what, piece, (int)r.rc, r.why.text);
	if (strcmp(r.answers, orders[i].answers) != 0)
		fail_msg("%s (%zu): answered '%s'", orders[i].what, piece, r.answers);
	if (strstr(r.why.text, orders[i].why) == NULL)
		fail_msg("%s (%zu): because '%s'", orders[i].what, piece, r.why.text);
	if (piece > 1 && strchr(orders[i].sent, 'V') == NULL && r.rest != orders[i].rest)
		fail_msg("%s (%zu): %zu bytes are left", orders[i].what, piece, r.rest);
	if (orders[i].passes != NULL) {
		clean_letters(&want, orders[i].passes);
		if (r.out.n != want.n || (want.n > 0 && memcmp(r.out.p, want.p, want.n) != 0))
			fail_msg("%s (%zu): other bytes came out", orders[i].what, piece);
	}
	buf_release(&r.out);
	buf_release(&sent);
	buf_release(&want);
}

static void
test_orders(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(orders); i++) {
		check_order(i, 1);
		check_order(i, 65536);
	}
}

/* Nothing is decided by a part of a head, and no part of a record's head comes out. */
static void
test_cut_anywhere(void **state)
{
	struct buf sent;

	(void)state;
	buf_init(&sent, 4096);
	for (const char *p = "UB2PJPGp"; *p != '\0'; p++)
		add_letter(&sent, *p);
	for (size_t n = 0; n < sent.n; n++) {
		struct run r;
		size_t at = 0;

		run(&r, sent.p, n, 3);
		if (r.rc != FCGI_GUARD_MORE)
			fail_msg("%zu of %zu bytes: got %d", n, sent.n, (int)r.rc);
		while (at + 8 <= r.out.n)
			at += 8 + (size_t)(unsigned char)r.out.p[at + 5];
		if (at < r.out.n)
			fail_msg("%zu of %zu bytes: a part of a head came out", n, sent.n);
		buf_release(&r.out);
	}
	buf_release(&sent);
}

static void
test_limits(void **state)
{
	static char large[65000] = "\1\x80\0\xfd\xe2"
	                           "A"; /* one variable of 65,000 bytes */
	struct run r;
	struct buf sent;

	(void)state;
	for (size_t count = 16; count <= 17; count++) {
		buf_init(&sent, 4u << 20);
		add_letter(&sent, 'B');
		for (size_t i = 0; i < count; i++)
			add_record(&sent, PARAMS, 1, large, sizeof large, 0);
		add_letter(&sent, 'p');
		run(&r, sent.p, sent.n, 16384);
		assert_int_equal(r.rc, count == 16 ? FCGI_GUARD_HEAD : FCGI_GUARD_REFUSED);
		assert_true(count == 16 || strstr(r.why.text, "1048576") != NULL);
		buf_release(&r.out);
		buf_release(&sent);
	}
	for (size_t count = FCGI_GUARD_PARAMS_MAX; count <= FCGI_GUARD_PARAMS_MAX + 1; count++) {
		buf_init(&sent, 4u << 20);
		add_letter(&sent, 'B');
		for (size_t i = 0; i < count; i++)
			add_letter(&sent, 'P');
		add_letter(&sent, 'p');
		run(&r, sent.p, sent.n, 16384);
		assert_int_equal(
		    r.rc, count == FCGI_GUARD_PARAMS_MAX ? FCGI_GUARD_HEAD : FCGI_GUARD_REFUSED);
		buf_release(&r.out);
		buf_release(&sent);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_variables),
	    cmocka_unit_test(test_orders),
	    cmocka_unit_test(test_cut_anywhere),
	    cmocka_unit_test(test_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
