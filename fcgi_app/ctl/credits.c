#include "ctl/credits.h"

#include "balance.h"
#include "base/clock.h"
#include "conf/quantity.h"
#include "ctl/attach.h"

#include <string.h>

static enum store_rc
write_word(struct txn *txn, void *arg)
{
	return balance_write(txn, arg);
}

static bool
read_number(const char *word, int64_t *micros_out)
{
	double credits;

	if (!quantity_real(text_span(word), &credits) || credits < 0 || credits > BALANCE_MOST)
		return false;
	*micros_out = (int64_t)(credits * 1e6 + 0.5);
	return true;
}

int
credits_run(struct ctl *ctl, int argc, char **argv)
{
	struct balance_word word = {.who = "sluicectl"};
	struct attach a;
	int status = CTL_FAILED;

	if (argc == 4 && strcmp(argv[3], "--json") == 0) {
		ctl->json = true;
		argc--;
	}
	if (argc != 3 || !read_number(argv[2], &word.micros)) {
		fprintf(ctl->err,
		    "usage: sluicectl account credits ID N  [--json]    N: 0 to 1000000000000\n");
		return CTL_USAGE;
	}
	if (!attach_open(ctl, &a, true))
		return CTL_FAILED;
	word.pool = a.pool;
	word.now = clock_wall();
	if (attach_find(ctl, &a, argv[1], &word.channel, &word.account)) {
		if (env_update(a.env, write_word, &word) == STORE_OK) {
			struct account_ref ref = pool_ref(a.pool, word.channel, word.account);

			attach_save(ctl, &a, &ref, 1);
			fprintf(ctl->out,
			    ctl->json ? "{\"changed\":1,\"rest_ended\":%s}\n" : "1 changed%s\n",
			    ctl->json ? (word.thawed ? "true" : "false")
			              : (word.thawed ? ", its rest is over" : ""));
			status = CTL_DONE;
		} else {
			fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
		}
	}
	attach_close(&a);
	return status;
}
