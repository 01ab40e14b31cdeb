#include "fcgi_params.h"

#include "base/err.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define S(literal) (literal), sizeof(literal) - 1
#define LONG_NAME                                                          \
	"N23456789_123456789_123456789_123456789_123456789_123456789_1234" \
	"5678_123456789_123456789_123456789_123456789_123456789_123456789_12345"

static const struct {
	const char *what, *bytes;
	size_t n;
	enum err err;
	const char *got; /* the strings, each behind a blank */
} cases[] = {
    {"none", S(""), ERR_OK, ""},
    {"one",
        S("\x01\x02"
          "Abc"),
        ERR_OK, " A=bc"},
    {"two",
        S("\x01\x01"
          "Ab"
          "\x02\x03"
          "CDefg"),
        ERR_OK, " A=b CD=efg"},
    {"empty value",
        S("\x01\x00"
          "A"
          "\x01\x01"
          "Bc"),
        ERR_OK, " A= B=c"},
    {"lengths of four bytes",
        S("\x80\x00\x00\x01\x80\x00\x00\x02"
          "Abc"
          "\x01\x01"
          "De"),
        ERR_OK, " A=bc D=e"},
    {"a name of 134", S("\x80\x00\x00\x86\x01" LONG_NAME "x"), ERR_OK, " " LONG_NAME "=x"},
    {"no name",
        S("\x00\x02"
          "ab"
          "\x01\x01"
          "Bc"),
        ERR_OK, " B=c"},
    {"'=' in a name",
        S("\x03\x01"
          "A=bc"
          "\x01\x01"
          "Bc"),
        ERR_OK, " B=c"},
    {"NUL in a name",
        S("\x03\x01"
          "A\0bc"
          "\x01\x01"
          "Bc"),
        ERR_OK, " B=c"},
    {"'=' in a value",
        S("\x01\x03"
          "Ab=c"),
        ERR_OK, " A=b=c"},
    {"NUL in a value",
        S("\x01\x03"
          "Ab\0c"
          "\x01\x01"
          "Bc"),
        ERR_OK, " A=b B=c"},
    {"a name that is cut",
        S("\x04\x00"
          "Abc"),
        ERR_BAD_INPUT, NULL},
    {"a value that is cut",
        S("\x01\x03"
          "Abc"),
        ERR_BAD_INPUT, NULL},
    {"lengths alone", S("\x01\x01"), ERR_BAD_INPUT, NULL},
    {"one length", S("\x01"), ERR_BAD_INPUT, NULL},
    {"half a length", S("\x80\x00\x00"), ERR_BAD_INPUT, NULL},
    {"half the other length", S("\x01\x80\x00\x00"), ERR_BAD_INPUT, NULL},
    {"2 GiB each: libfcgi adds them up",
        S("\xff\xff\xff\xff\xff\xff\xff\xff"
          "x"),
        ERR_BAD_INPUT, NULL},
    {"2 GiB - 2 each: libfcgi aborts",
        S("\xff\xff\xff\xfe\xff\xff\xff\xfe"
          "x"),
        ERR_BAD_INPUT, NULL},
    {"four",
        S("\x01\x00"
          "A\x01\x00"
          "B\x01\x00"
          "C\x01\x00"
          "D"),
        ERR_OK, " A= B= C= D="},
    {"five, one too many",
        S("\x01\x00"
          "A\x01\x00"
          "B\x01\x00"
          "C\x01\x00"
          "D\x01\x00"
          "E"),
        ERR_TOO_BIG, NULL},
};

static void
test_cases(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		char *bytes = malloc(cases[i].n), *out[5], got[400] = "";
		struct why why = {""};
		enum err err;

		memcpy(bytes, cases[i].bytes, cases[i].n);
		err = fcgi_params(bytes, cases[i].n, out, NELEM(out), &why);
		if (err != cases[i].err)
			fail_msg("%s: got %d (%s)", cases[i].what, (int)err, why.text);
		if (err != ERR_OK && why.text[0] == '\0')
			fail_msg("%s: no reason given", cases[i].what);
		for (size_t k = 0, n = 0; err == ERR_OK && out[k] != NULL; k++)
			n += (size_t)snprintf(got + n, sizeof got - n, " %s", out[k]);
		if (err == ERR_OK && strcmp(got, cases[i].got) != 0)
			fail_msg("%s: got '%s', want '%s'", cases[i].what, got, cases[i].got);
		free(bytes);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_cases),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
