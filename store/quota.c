#include "store/quota.h"

#define VERSION 1

bool
quota_is_set(const struct quota_limits *limits)
{
	return (limits->total_tokens | limits->rpm | limits->rpd | limits->tpm | limits->tpd) != 0;
}

/* The row's window stays for a time slightly before it: see "Clock". */
static uint32_t
window(uint32_t of_row, uint32_t now)
{
	return of_row > now && of_row - now <= 1 ? of_row : now;
}

/* Begin the windows of `now`. */
static void
roll(struct quota_row *row, struct quota_time now)
{
	uint32_t minute = window(row->minute, now.minute), day = window(row->day, now.day);

	row->version = VERSION;
	if (row->minute != minute) {
		row->minute = minute;
		row->minute_requests = 0;
		row->minute_tokens = 0;
		row->told &= (uint8_t)~QUOTA_MINUTE;
	}
	if (row->day != day) {
		row->day = day;
		row->day_requests = 0;
		row->day_tokens = 0;
		row->told &= (uint8_t)~QUOTA_DAY;
	}
}

/* One limit against what is used of it. */
struct gauge {
	int64_t limit; /* 0 = none */
	uint64_t used;
};

static void
gauges_of(const struct quota_row *row, const struct quota_limits *limits,
    struct gauge gauges[QUOTA_TOTAL + 1])
{
	gauges[QUOTA_FITS] = (struct gauge){0, 0};
	gauges[QUOTA_RPM] = (struct gauge){limits->rpm, row->minute_requests};
	gauges[QUOTA_TPM] = (struct gauge){limits->tpm, row->minute_tokens};
	gauges[QUOTA_RPD] = (struct gauge){limits->rpd, row->day_requests};
	gauges[QUOTA_TPD] = (struct gauge){limits->tpd, row->day_tokens};
	gauges[QUOTA_TOTAL] = (struct gauge){limits->total_tokens, row->total_tokens};
}

static const enum quota_frees frees_of[] = {
    [QUOTA_FITS] = QUOTA_NOW,
    [QUOTA_RPM] = QUOTA_NEXT_MINUTE,
    [QUOTA_TPM] = QUOTA_NEXT_MINUTE,
    [QUOTA_RPD] = QUOTA_NEXT_DAY,
    [QUOTA_TPD] = QUOTA_NEXT_DAY,
    [QUOTA_TOTAL] = QUOTA_NEVER,
};

/* One that takes nothing needs room too, or it would fit for ever. */
static inline bool
has_room(int64_t limit, uint64_t used, uint64_t n)
{
	return limit == 0 || (used < (uint64_t)limit && n <= (uint64_t)limit - used);
}

/* The common answer of a long scan. */
static bool
fits_all(const struct quota_row *row, const struct quota_limits *limits, uint64_t n,
    struct quota_time now)
{
	bool minute = row->minute == window(row->minute, now.minute);
	bool day = row->day == window(row->day, now.day);

	return has_room(limits->rpm, minute ? row->minute_requests : 0, 1) &&
	       has_room(limits->tpm, minute ? row->minute_tokens : 0, n) &&
	       has_room(limits->rpd, day ? row->day_requests : 0, 1) &&
	       has_room(limits->tpd, day ? row->day_tokens : 0, n) &&
	       has_room(limits->total_tokens, row->total_tokens, n);
}

struct quota_fit
quota_fits(const struct quota_row *row, const struct quota_limits *limits, uint64_t tokens,
    struct quota_time now)
{
	struct quota_fit fit = {QUOTA_FITS, QUOTA_NOW};
	struct gauge gauges[QUOTA_TOTAL + 1];
	struct quota_row copy = *row;

	if (fits_all(row, limits, tokens, now))
		return fit;
	roll(&copy, now);
	gauges_of(&copy, limits, gauges);
	for (enum quota_limit i = QUOTA_RPM; i <= QUOTA_TOTAL; i++) {
		uint64_t n = i == QUOTA_RPM || i == QUOTA_RPD ? 1 : tokens;
		enum quota_frees frees = n > (uint64_t)gauges[i].limit ? QUOTA_NEVER : frees_of[i];

		if (!has_room(gauges[i].limit, gauges[i].used, n) && frees >= fit.frees)
			fit = (struct quota_fit){i, frees};
	}
	return fit;
}

static void
add(uint64_t *sum, uint64_t n)
{
	*sum = n > UINT64_MAX - *sum ? UINT64_MAX : *sum + n;
}

static void
take_off(uint64_t *sum, uint64_t n)
{
	*sum = n > *sum ? 0 : *sum - n;
}

void
quota_reserve(
    struct quota_row *row, uint64_t tokens, struct quota_time now, struct quota_hold *hold_out)
{
	roll(row, now);
	if (row->minute_requests < UINT32_MAX)
		row->minute_requests++;
	if (row->day_requests < UINT32_MAX)
		row->day_requests++;
	add(&row->minute_tokens, tokens);
	add(&row->day_tokens, tokens);
	add(&row->total_tokens, tokens);
	*hold_out = (struct quota_hold){{row->minute, row->day}, tokens};
}

/* `same`: the window is still that of the reservation. */
static void
settle_tokens(uint64_t *sum, uint64_t reserved, uint64_t tokens, bool same)
{
	if (tokens > reserved)
		add(sum, tokens - reserved);
	else if (same)
		take_off(sum, reserved - tokens);
}

void
quota_settle(struct quota_row *row, const struct quota_hold *hold, uint64_t tokens, bool sent,
    struct quota_time now)
{
	bool same_minute, same_day;

	roll(row, now);
	same_minute = row->minute == hold->at.minute;
	same_day = row->day == hold->at.day;
	settle_tokens(&row->minute_tokens, hold->tokens, tokens, same_minute);
	settle_tokens(&row->day_tokens, hold->tokens, tokens, same_day);
	settle_tokens(&row->total_tokens, hold->tokens, tokens, true);
	if (!sent && same_minute && row->minute_requests > 0)
		row->minute_requests--;
	if (!sent && same_day && row->day_requests > 0)
		row->day_requests--;
}

static unsigned
permille(struct gauge gauge)
{
	uint64_t limit = (uint64_t)gauge.limit;

	if (limit == 0)
		return 0;
	if (gauge.used >= limit)
		return 1000;
	return (unsigned)(limit > UINT64_MAX / 1000 ? gauge.used / (limit / 1000)
	                                            : gauge.used * 1000 / limit);
}

static unsigned
larger(unsigned a, unsigned b)
{
	return a > b ? a : b;
}

unsigned
quota_used_permille(
    const struct quota_row *row, const struct quota_limits *limits, struct quota_time now)
{
	struct gauge gauges[QUOTA_TOTAL + 1];
	struct quota_row copy = *row;
	unsigned used = 0;

	roll(&copy, now);
	gauges_of(&copy, limits, gauges);
	for (enum quota_limit i = QUOTA_RPM; i <= QUOTA_TOTAL; i++)
		used = larger(used, permille(gauges[i]));
	return used;
}

static int64_t
left(struct gauge gauge)
{
	if (gauge.limit == 0)
		return -1;
	return gauge.used >= (uint64_t)gauge.limit ? 0 : gauge.limit - (int64_t)gauge.used;
}

struct quota_limits
quota_left(const struct quota_row *row, const struct quota_limits *limits, struct quota_time now)
{
	struct gauge gauges[QUOTA_TOTAL + 1];
	struct quota_row copy = *row;

	roll(&copy, now);
	gauges_of(&copy, limits, gauges);
	return (struct quota_limits){
	    .total_tokens = left(gauges[QUOTA_TOTAL]),
	    .rpm = left(gauges[QUOTA_RPM]),
	    .rpd = left(gauges[QUOTA_RPD]),
	    .tpm = left(gauges[QUOTA_TPM]),
	    .tpd = left(gauges[QUOTA_TPD]),
	};
}

static int64_t
capped(uint64_t n)
{
	return n > INT64_MAX ? INT64_MAX : (int64_t)n;
}

struct quota_limits
quota_used(const struct quota_row *row, struct quota_time now)
{
	struct quota_row copy = *row;

	roll(&copy, now);
	return (struct quota_limits){
	    .total_tokens = capped(copy.total_tokens),
	    .rpm = copy.minute_requests,
	    .rpd = copy.day_requests,
	    .tpm = capped(copy.minute_tokens),
	    .tpd = capped(copy.day_tokens),
	};
}

unsigned
quota_crossed(struct quota_row *row, const struct quota_limits *limits, struct quota_time now)
{
	struct gauge gauges[QUOTA_TOTAL + 1];
	unsigned total, high = 0, fresh;

	roll(row, now);
	gauges_of(row, limits, gauges);
	total = permille(gauges[QUOTA_TOTAL]);
	if (larger(permille(gauges[QUOTA_RPM]), permille(gauges[QUOTA_TPM])) >= QUOTA_HIGH_PERMILLE)
		high |= QUOTA_MINUTE;
	if (larger(permille(gauges[QUOTA_RPD]), permille(gauges[QUOTA_TPD])) >= QUOTA_HIGH_PERMILLE)
		high |= QUOTA_DAY;
	if (total >= QUOTA_HIGH_PERMILLE)
		high |= QUOTA_LIFE;
	/* the total has no end of a window: a raised limit begins a new one, a smaller settlement does not */
	if (total < QUOTA_HIGH_PERMILLE - 100)
		row->told &= (uint8_t)~QUOTA_LIFE;
	fresh = high & ~(unsigned)row->told;
	row->told |= (uint8_t)fresh;
	return fresh;
}

static uint64_t
shard_key(uint16_t channel, uint32_t number)
{
	return key_of(KEY_QUOTA, channel, number / QUOTA_SHARD);
}

static enum store_rc
shard_get(struct txn *txn, uint64_t key, const unsigned char **rows_out, unsigned *n_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(txn, key, &bytes);

	*n_out = 0;
	*rows_out = NULL;
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (bytes.n % sizeof(struct quota_row) != 0 ||
	    bytes.n > QUOTA_SHARD * sizeof(struct quota_row))
		return STORE_BAD;
	*rows_out = bytes.p;
	*n_out = (unsigned)(bytes.n / sizeof(struct quota_row));
	return STORE_OK;
}

static bool
row_at(const unsigned char *rows, unsigned n, unsigned at, struct quota_row *row_out)
{
	if (at < n)
		memcpy(row_out, rows + at * sizeof *row_out, sizeof *row_out);
	if (at < n && row_out->version == VERSION)
		return true;
	*row_out = (struct quota_row){.version = VERSION};
	return false;
}

enum store_rc
quota_get(struct txn *txn, struct account_ref ref, struct quota_row *row_out)
{
	const unsigned char *rows;
	unsigned n;
	enum store_rc rc = shard_get(txn, shard_key(ref.channel, ref.number), &rows, &n);

	if (rc != STORE_OK)
		return rc;
	return row_at(rows, n, ref.number % QUOTA_SHARD, row_out) ? STORE_OK : STORE_NONE;
}

enum store_rc
quota_put(struct txn *txn, struct account_ref ref, const struct quota_row *row)
{
	struct quota_row rows[QUOTA_SHARD] = {0};
	unsigned n, at = ref.number % QUOTA_SHARD;
	const unsigned char *old;
	enum store_rc rc = shard_get(txn, shard_key(ref.channel, ref.number), &old, &n);

	if (rc != STORE_OK)
		return rc;
	if (n > 0)
		memcpy(rows, old, n * sizeof *rows);
	rows[at] = *row;
	rows[at].version = VERSION;
	if (n <= at)
		n = at + 1;
	return txn_put(txn, shard_key(ref.channel, ref.number), rows, n * sizeof *rows);
}

void
quota_open(struct txn *txn, uint16_t channel, struct quota_view *view_out)
{
	*view_out = (struct quota_view){.txn = txn, .channel = channel, .shard = UINT32_MAX};
}

void
quota_at(struct quota_view *view, uint32_t number, struct quota_row *row_out)
{
	if (number / QUOTA_SHARD != view->shard) {
		view->shard = number / QUOTA_SHARD;
		if (shard_get(view->txn, shard_key(view->channel, number), &view->rows, &view->n) !=
		    STORE_OK)
			view->n = 0;
	}
	row_at(view->rows, view->n, number % QUOTA_SHARD, row_out);
}
