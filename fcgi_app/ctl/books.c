#include "ctl/books.h"

#include "base/clock.h"
#include "base/date.h"
#include "base/emit.h"
#include "ctl/args.h"
#include "ctl/attach.h"
#include "ctl/human.h"
#include "store/ledger.h"
#include "store/price.h"

#define OUTPUT_MAX (512u << 20)
#define DAYS_DEFAULT 30

/* Filled inside the transaction, begun anew with it. */
struct book {
	const struct attach *attach;
	struct wall_ms now;
	bool json;
	uint16_t from_day, to_day;
	struct txn *txn;
	struct buf out;
	struct emit emit;
	struct ledger_sum sum; /* of the rows shown */
	size_t n;
	enum store_rc rc;
};

static void
begin(struct book *book, struct txn *txn, const char *head)
{
	book->txn = txn;
	book->sum = (struct ledger_sum){.requests = 0};
	book->n = 0;
	book->rc = STORE_OK;
	buf_clear(&book->out);
	emit_init(&book->emit, &book->out);
	if (book->json)
		emit_array(&book->emit, NULL);
	else
		buf_z(&book->out, head);
}

static void
end(struct book *book)
{
	if (!book->json)
		return;
	emit_end(&book->emit);
	buf_char(&book->out, '\n');
}

static void
price_json(struct book *book, const struct price_seen *seen, const struct conf_channel *channel,
    size_t account, const char *tier)
{
	struct emit *e = &book->emit;

	emit_object(e, NULL);
	emit_text(e, "channel", channel->name);
	emit_text(e, "account", channel->accounts[account].id);
	emit_z(e, "model", seen->model);
	emit_real(e, "price", (double)seen->entry.micros / 1e6, 6);
	emit_z(e, "tier", tier);
	emit_time(e, "at", (struct wall_ms){seen->entry.at_ms});
	emit_i64(e, "age_s",
	    book->now.v > seen->entry.at_ms ? (book->now.v - seen->entry.at_ms) / 1000 : 0);
	emit_end(e);
}

static bool
put_price(const struct price_seen *seen, void *arg)
{
	struct book *book = arg;
	const struct conf_channel *channel;
	struct price_view view;
	size_t at, account;
	const char *tier;
	char name[160], age[HUMAN_TIME], model[PRICE_MODEL_MAX + 1];

	if (!attach_whose(book->attach, seen->ref, &at, &account))
		return true;
	channel = &book->attach->conf->channels[at];
	book->rc = price_open(book->txn, seen->ref.channel, seen->model,
	    channel->policy.pool.cost_ttl_ms, book->now, &view);
	if (book->rc != STORE_OK)
		return false;
	tier = price_tier_name(price_tier(&view, seen->ref.number));
	book->n++;
	if (book->json) {
		price_json(book, seen, channel, account, tier);
		return true;
	}
	snprintf(name, sizeof name, "%s/%s", channel->name.p, channel->accounts[account].id.p);
	human_left(book->now.v - seen->entry.at_ms, age);
	text_clean(model, sizeof model, text_span(seen->model)); /* a caller's word */
	buf_print(&book->out, "%-24s %-28s %12.6f  %-10s  %s\n", name, model,
	    (double)seen->entry.micros / 1e6, tier, age);
	return true;
}

static enum store_rc
costs_in(struct txn *txn, void *arg)
{
	struct book *book = arg;
	char head[128];
	enum store_rc rc;

	snprintf(head, sizeof head, "%-24s %-28s %12s  %-10s  %s\n", "ACCOUNT", "MODEL",
	    "PER 1,000", "TIER", "AGE");
	begin(book, txn, head);
	rc = price_walk(txn, put_price, book);
	end(book);
	return rc == STORE_OK ? book->rc : rc;
}

static void
usage_json(
    struct book *book, const struct ledger_key *key, const char *day, const struct ledger_sum *sum)
{
	struct emit *e = &book->emit;

	emit_object(e, NULL);
	emit_z(e, "day", day);
	emit_z(e, "client", key->client);
	emit_z(e, "channel", key->channel);
	emit_z(e, "account", key->account);
	emit_z(e, "model", key->model);
	emit_i64(e, "requests", (int64_t)sum->requests);
	emit_i64(e, "failed", (int64_t)sum->failed);
	emit_i64(e, "cancelled", (int64_t)sum->cancelled);
	emit_i64(e, "prompt", (int64_t)sum->prompt);
	emit_i64(e, "completion", (int64_t)sum->completion);
	emit_i64(e, "cached", (int64_t)sum->cached);
	emit_i64(e, "cache_write", (int64_t)sum->cache_write);
	emit_i64(e, "reasoning", (int64_t)sum->reasoning);
	emit_real(e, "cost", sum->priced > 0 ? (double)sum->cost_micros / 1e6 : EMIT_UNKNOWN, 6);
	emit_i64(e, "estimated", (int64_t)sum->estimated);
	emit_end(e);
}

#define USAGE_LINE "%-10s  %-16s %-24s %-24s %9s %7s %12s %12s %12s\n"

static void
usage_line(
    struct book *book, const char *day, const char *const names[3], const struct ledger_sum *sum)
{
	char n[5][24];

	snprintf(n[0], sizeof n[0], "%llu", (unsigned long long)sum->requests);
	snprintf(n[1], sizeof n[1], "%llu", (unsigned long long)sum->failed);
	snprintf(n[2], sizeof n[2], "%llu", (unsigned long long)sum->prompt);
	snprintf(n[3], sizeof n[3], "%llu", (unsigned long long)sum->completion);
	if (sum->priced > 0)
		snprintf(n[4], sizeof n[4], "%.6f", (double)sum->cost_micros / 1e6);
	else
		snprintf(n[4], sizeof n[4], "-");
	buf_print(&book->out, USAGE_LINE, day, names[0][0] == '\0' ? "-" : names[0], names[1],
	    names[2], n[0], n[1], n[2], n[3], n[4]);
}

static bool
put_usage(const struct ledger_key *key, const struct ledger_sum *sum, void *arg)
{
	struct book *book = arg;
	char day[DATE_TEXT], name[2 * LEDGER_NAME_MAX + 2];
	char client[LEDGER_NAME_MAX + 1], model[LEDGER_NAME_MAX + 1];
	const char *const names[] = {client, name, model};

	date_print((struct wall_ms){(int64_t)key->day * 86400000}, day);
	day[10] = '\0'; /* the date alone */
	book->n++;
	ledger_sum_add(&book->sum, sum);
	if (book->json) {
		usage_json(book, key, day, sum);
		return true;
	}
	text_clean(client, sizeof client, text_span(key->client)); /* callers' words */
	text_clean(model, sizeof model, text_span(key->model));
	snprintf(name, sizeof name, "%s/%s", key->channel, key->account);
	usage_line(book, day, names, sum);
	return true;
}

static enum store_rc
usage_in(struct txn *txn, void *arg)
{
	static const char *const all[] = {"", "", ""};
	struct book *book = arg;
	char head[192];
	enum store_rc rc;

	snprintf(head, sizeof head, USAGE_LINE, "DAY", "CLIENT", "ACCOUNT", "MODEL", "REQUESTS",
	    "FAILED", "PROMPT", "COMPLETION", "COST");
	begin(book, txn, head);
	rc = ledger_walk(txn, book->from_day, book->to_day, put_usage, book);
	if (!book->json && book->n > 1)
		usage_line(book, "all", all, &book->sum);
	end(book);
	return rc;
}

static int
run(struct ctl *ctl, struct book *book, env_fn *fn)
{
	struct attach a;
	int status = CTL_FAILED;

	if (!attach_open(ctl, &a, false))
		return CTL_FAILED;
	book->attach = &a;
	book->json = ctl->json;
	buf_init(&book->out, OUTPUT_MAX);
	if (env_view(a.env, fn, book) == STORE_OK)
		status = human_print(ctl, &book->out);
	else
		fprintf(ctl->err, "sluicectl: %s\n", env_error(a.env));
	buf_release(&book->out);
	attach_close(&a);
	return status;
}

int
books_costs_run(struct ctl *ctl, int argc, char **argv)
{
	struct book book = {.now = clock_wall()};

	if (!args_only(ctl, argc, argv, NULL, 0))
		return CTL_USAGE;
	return run(ctl, &book, costs_in);
}

int
books_usage_run(struct ctl *ctl, int argc, char **argv)
{
	struct book book = {.now = clock_wall()};
	int64_t days = DAYS_DEFAULT;
	const struct args_option options[] = {
	    {.name = "--days", .number = &days, .min = 1, .max = LEDGER_KEEP_DAYS}};

	if (!args_only(ctl, argc, argv, options, NELEM(options)))
		return CTL_USAGE;
	book.to_day = ledger_day(book.now);
	book.from_day = book.to_day >= days ? (uint16_t)(book.to_day - days + 1) : 0;
	return run(ctl, &book, usage_in);
}
