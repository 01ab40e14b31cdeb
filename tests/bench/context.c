/*
 * context - what a conversation in the store costs a request: holding it, reading its turns, appending an exchange.
 *
 * A line for each length of a conversation, medians: CPU time of the hold, of reading it and unpacking its turns, of
 * joining them with what is sent and writing the body, for a channel of the client's API and for another, and of packing
 * and appending a question and an answer (in /dev/shm); and the time of such an append in a directory below TMPDIR, else
 * /tmp, where it waits for the disk.
 */
#include "base/clock.h"
#include "bench/measure.h"
#include "context_join.h"
#include "lib/conf_text.h"
#include "store/book.h"
#include "store/hold.h"

#include <ftw.h>
#include <stdlib.h>
#include <string.h>

#define STORE_BYTES (UINT64_C(1) << 30)
#define TIMES 200
#define TEXT_BYTES 300

struct bench {
	char dir[128];
	struct serve s;
	uint8_t key[TALK_KEY_BYTES];
	uint32_t turns; /* that are kept */
};

static void
append(struct bench *b, size_t nturns)
{
	static char text[TEXT_BYTES + 1];
	struct context_store at = {&b->s, SPAN("c"), b->key, clock_wall(), b->turns};
	struct form_turn *turns = arena_alloc(b->s.arena, nturns * sizeof *turns);
	struct form_part part = {.kind = FORM_TEXT, .text = {text, TEXT_BYTES}};
	struct why why = {""};

	memset(text, 'x', TEXT_BYTES);
	for (size_t i = 0; i < nturns; i++)
		turns[i] = (struct form_turn){
		    i % 2 == 0 ? FORM_USER : FORM_ASSISTANT, 0, {"", 0}, &part, 1};
	if (context_store_append(&at, turns, nturns, TALK_APPEND, &why) != STORE_OK)
		die("append: %s", why.text);
	b->turns += (uint32_t)nturns;
	arena_reset(b->s.arena);
}

static size_t
get(struct bench *b)
{
	struct context_store at = {&b->s, SPAN("c"), b->key, clock_wall(), b->turns};
	struct context_turns turns;
	struct why why = {""};

	if (context_store_get(&at, b->s.arena, &turns, &why) != STORE_OK)
		die("get: %s", why.text);
	arena_reset(b->s.arena);
	return turns.n;
}

static void
hold(struct bench *b)
{
	struct hold hold;

	if (hold_take(b->s.env, 7, &hold) != STORE_OK)
		die("hold: %s", "it is taken");
	hold_release(&hold);
}

static double
appending(struct bench *b, clockid_t clock)
{
	double us[TIMES];

	for (unsigned i = 0; i < TIMES; i++) {
		double begun = measure_us(clock);

		append(b, 2);
		us[i] = measure_us(clock) - begun;
	}
	return measure_median(us, TIMES);
}

static double
reading(struct bench *b, size_t nturns)
{
	double us[TIMES];

	for (unsigned i = 0; i < TIMES; i++) {
		double begun = measure_us(CLOCK_PROCESS_CPUTIME_ID);

		if (get(b) != nturns)
			die("not %zu turns", nturns);
		us[i] = measure_us(CLOCK_PROCESS_CPUTIME_ID) - begun;
	}
	return measure_median(us, TIMES);
}

/* A chat request that goes on with it; microseconds from the stored turns to the body. */
static double
say(struct bench *b, enum provider_wire wire)
{
	static const char body[] =
	    "{\"model\":\"m\",\"messages\":[{\"role\":\"user\",\"content\":\"and now?\"}]}";
	struct context_store at = {&b->s, SPAN("c"), b->key, clock_wall(), b->turns};
	struct conf_channel channel = b->s.conf->channels[0];
	struct convert_target target = {.channel = &channel, .model = SPAN("m")};
	struct serve_job j = {
	    .s = &b->s, .rq = {.endpoint = endpoint_find(SPAN("/v1/chat/completions"))}};
	struct why why = {""};
	double begun;

	channel.wire = wire;
	if (dialect_read(j.rq.endpoint->dialect, SPAN(body), &j.rq.read, &why) != ERR_OK ||
	    context_store_get(&at, b->s.arena, &j.context.had, &why) != STORE_OK)
		die("say: %s", why.text);
	convert_begin(&j.convert, b->s.arena, &j.rq, 0);
	begun = measure_us(CLOCK_PROCESS_CPUTIME_ID);
	if (context_join(&j, &why) != ERR_OK)
		die("join: %s", why.text);
	j.convert.say = &j.context.whole;
	if (convert_aim(&j.convert, &target, &why) != ERR_OK)
		die("aim: %s", why.text);
	begun = measure_us(CLOCK_PROCESS_CPUTIME_ID) - begun;
	arena_reset(b->s.arena);
	return begun;
}

static double
saying(struct bench *b, enum provider_wire wire)
{
	double us[TIMES];

	for (unsigned i = 0; i < TIMES; i++)
		us[i] = say(b, wire);
	return measure_median(us, TIMES);
}

static double
holding(struct bench *b)
{
	double us[TIMES];

	for (unsigned i = 0; i < TIMES; i++) {
		double begun = measure_us(CLOCK_PROCESS_CPUTIME_ID);

		hold(b);
		us[i] = measure_us(CLOCK_PROCESS_CPUTIME_ID) - begun;
	}
	return measure_median(us, TIMES);
}

static bool
begin(struct bench *b, const char *below)
{
	struct store_why why = {""};
	struct book_report report;

	*b = (struct bench){.s = {.arena = arena_new((size_t)1 << 28)}};
	snprintf(b->dir, sizeof b->dir, "%s/sluice-bench-XXXXXX", below);
	if (mkdtemp(b->dir) == NULL)
		return false;
	b->s.conf =
	    conf_text(b->dir, "{'state_dir':'/tmp','context':{'max_session':'20M'},'channels':"
	                      "{'c':{'provider':'openai','accounts':[{'id':'a','api_key':'k'}]}}}");
	b->s.log = log_open("stderr", LOG_LEVEL_ERROR, false);
	if (env_open(b->dir, STORE_BYTES, true, &b->s.env, &why) != STORE_OK ||
	    book_save(b->s.env, &report) != STORE_OK)
		die("store: %s", why.text);
	return true;
}

static int
remove_one(const char *path, const struct stat *st, int flag, struct FTW *at)
{
	(void)st, (void)flag, (void)at;
	return remove(path);
}

static void
end(struct bench *b)
{
	struct conf *conf = (struct conf *)(uintptr_t)b->s.conf;

	env_close(&b->s.env);
	log_close(&b->s.log);
	arena_free(&b->s.arena);
	conf_free(&conf);
	nftw(b->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void
measure(size_t nturns)
{
	const char *tmp = getenv("TMPDIR");
	double held, read, same, other, disk, memory = -1;
	struct bench b;

	if (!begin(&b, tmp == NULL ? "/tmp" : tmp))
		die("no temporary directory");
	append(&b, nturns);
	held = holding(&b);
	read = reading(&b, nturns);
	same = saying(&b, WIRE_CHAT);
	other = saying(&b, WIRE_MESSAGES);
	disk = appending(&b, CLOCK_MONOTONIC);
	end(&b);
	if (begin(&b, "/dev/shm")) {
		append(&b, nturns);
		memory = appending(&b, CLOCK_PROCESS_CPUTIME_ID);
		end(&b);
	}
	printf("%8zu %8.1f %8.1f %10.1f %10.1f %8.1f %14.0f\n", nturns, held, read, same, other,
	    memory, disk);
	fflush(stdout);
}

int
main(void)
{
	static const size_t sizes[] = {2, 20, 200, 2000};

	printf("== a conversation in the store, turns of %d bytes, us (median)\n", TEXT_BYTES);
	printf("%8s %8s %8s %10s %10s %8s %14s\n", "turns", "hold", "read", "same wire", "another",
	    "append", "with the disk");
	for (size_t i = 0; i < NELEM(sizes); i++)
		measure(sizes[i]);
	return 0;
}
