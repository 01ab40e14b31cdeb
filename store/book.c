#include "store/book.h"

#include "store/book_kind.h"
#include "store/gate.h"
#include "store/kept.h"
#include "store/talk.h"

#define BATCH 512
#define SLICE_ROWS 100000 /* about 10 ms: a look at `live` must stay far below 100 ms */

struct save {
	const struct account_ref *refs; /* NULL: everything */
	size_t n;
	bool complete;   /* no slices */
	bool whole;      /* everything was saved, or is in slices */
	uint64_t cursor; /* where the next slice begins */
	uint64_t txn;
	unsigned rows;
};

/* Rows that differ, copied after the walk: a walk must not write. */
struct batch {
	unsigned n;
	struct {
		uint64_t key;
		struct env_bytes row; /* p is NULL: delete */
	} at[BATCH];
};

static enum store_rc
batch_add(uint64_t key, const struct env_bytes *row, void *arg)
{
	struct batch *batch = arg;

	batch->at[batch->n].key = key;
	batch->at[batch->n].row = row == NULL ? (struct env_bytes){NULL, 0} : *row;
	return ++batch->n < BATCH ? STORE_OK : STORE_FULL;
}

static enum store_rc
batch_copy(struct txn *book, const struct batch *batch)
{
	enum store_rc rc = STORE_OK;

	for (unsigned i = 0; i < batch->n && rc == STORE_OK; i++)
		rc = batch->at[i].row.p == NULL
		         ? txn_del(book, batch->at[i].key)
		         : txn_put(book, batch->at[i].key, batch->at[i].row.p, batch->at[i].row.n);
	return rc;
}

static enum store_rc
save_some(struct txn *live, struct txn *book, struct env_range *range, unsigned *rows)
{
	struct batch batch;
	enum store_rc rc = STORE_FULL;

	while (rc == STORE_FULL) {
		enum store_rc copied;

		batch.n = 0;
		rc = txn_diff(live, book, range, batch_add, &batch);
		if (rc != STORE_OK && (rc != STORE_FULL || batch.n < BATCH))
			return rc;
		copied = batch_copy(book, &batch);
		if (copied != STORE_OK)
			return copied;
		*rows += batch.n;
	}
	return rc;
}

static enum store_rc
save_range(struct txn *live, struct txn *book, uint64_t first, uint64_t last, unsigned *rows)
{
	struct env_range range = {first, last, UINT64_MAX};

	return save_some(live, book, &range, rows);
}

/* The ends of a kind in both; STORE_NONE: one of them has no row. */
struct ends {
	uint64_t live_first, live_last, book_first, book_last;
};

static enum store_rc
ends_get(struct txn *live, struct txn *book, const struct book_kind *kind, struct ends *ends)
{
	uint64_t first = key_of(kind->kind, 0, 0), last = key_last_of(kind->kind);
	enum store_rc rc = txn_ends(book, first, last, &ends->book_first, &ends->book_last);

	return rc == STORE_OK ? txn_ends(live, first, last, &ends->live_first, &ends->live_last)
	                      : rc;
}

static enum store_rc
save_all_of(struct txn *live, struct txn *book, const struct book_kind *kind, unsigned *rows)
{
	return save_range(live, book, key_of(kind->kind, 0, 0), key_last_of(kind->kind), rows);
}

/* Only what was added behind the last row of `book`, and what went before the first of `live`. */
static enum store_rc
save_grown(struct txn *live, struct txn *book, const struct book_kind *kind, unsigned *rows)
{
	struct ends ends;
	enum store_rc rc = ends_get(live, book, kind, &ends);

	if (rc == STORE_NONE || (rc == STORE_OK && ends.live_last < ends.book_last))
		return save_all_of(live, book, kind, rows);
	if (rc == STORE_OK)
		rc = save_range(live, book, ends.book_last + 1, key_last_of(kind->kind), rows);
	if (rc == STORE_OK && ends.book_first < ends.live_first)
		rc = save_range(live, book, key_of(kind->kind, 0, 0), ends.live_first - 1, rows);
	return rc;
}

/* From the day before the newest that both know; one that ends is still written to for a while. */
static enum store_rc
save_days(struct txn *live, struct txn *book, const struct book_kind *kind, unsigned *rows)
{
	struct ends ends;
	enum store_rc rc = ends_get(live, book, kind, &ends);
	uint16_t day;

	if (rc != STORE_OK)
		return rc == STORE_NONE ? save_all_of(live, book, kind, rows) : rc;
	day = (uint16_t)((ends.live_last < ends.book_last ? ends.live_last : ends.book_last) >> 40);
	return save_range(live, book, key_of(kind->kind, day > 0 ? (uint16_t)(day - 1) : 0, 0),
	    key_last_of(kind->kind), rows);
}

static enum store_rc
save_kind(struct txn *live, struct txn *book, const struct book_kind *kind, unsigned *rows)
{
	switch (kind->how) {
	case BOOK_ANY: return save_all_of(live, book, kind, rows);
	case BOOK_GROWS: return save_grown(live, book, kind, rows);
	case BOOK_DAYS: return save_days(live, book, kind, rows);
	case BOOK_SLICES: break;
	}
	return STORE_OK;
}

/* One slice over all kinds that are saved so, from where the last one ended. */
static enum store_rc
save_slices(struct txn *live, struct txn *book, struct save *save)
{
	struct env_range range = {.most = save->complete ? UINT64_MAX : SLICE_ROWS};
	uint64_t from = save->complete ? 0 : save->cursor;
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < BOOK_KINDS && rc == STORE_OK; i++) {
		uint64_t first = key_of(book_kinds[i].kind, 0, 0);

		range.last = key_last_of(book_kinds[i].kind);
		if ((book_kinds[i].how != BOOK_SLICES && book_kinds[i].how != BOOK_DAYS) ||
		    range.last < from)
			continue;
		range.first = first > from ? first : from;
		rc = save_some(live, book, &range, &save->rows);
		if (rc != STORE_OK || range.first <= range.last) {
			save->cursor = range.first;
			return rc;
		}
	}
	save->cursor = 0;
	return rc;
}

static enum store_rc
save_refs(struct txn *live, struct txn *book, const struct book_kind *kind, struct save *save)
{
	enum store_rc rc = STORE_OK;

	for (size_t i = 0; i < save->n && rc == STORE_OK; i++) {
		struct account_ref ref = save->refs[i];
		uint64_t rest =
		    kind->now == BOOK_NOW_SHARD ? ref.number / ACCOUNT_SHARD : ref.number;
		uint64_t key = key_of(kind->kind, ref.channel, rest);

		rc = save_range(live, book, key, key, &save->rows);
	}
	return rc;
}

static enum store_rc
save_hard(struct txn *live, struct txn *book, const struct book_kind *kind, struct save *save)
{
	switch (kind->now) {
	case BOOK_NOW_NOT: return STORE_OK;
	case BOOK_NOW_ALL: return save_kind(live, book, kind, &save->rows);
	case BOOK_NOW_SHARD:
	case BOOK_NOW_ACCOUNT: break;
	}
	return save_refs(live, book, kind, save);
}

static enum store_rc
stop_at_once(uint64_t key, const struct env_bytes *row, void *arg)
{
	(void)key, (void)row, (void)arg;
	return STORE_FULL;
}

/* Names that `book` has not heard of: without them an account's row would be nobody's. */
static enum store_rc
names_differ(struct txn *live, struct txn *book, bool *differ_out)
{
	struct env_range range = {key_of(KEY_CHANNEL, 0, 0), key_last_of(KEY_CHANNEL), UINT64_MAX};
	enum store_rc rc = txn_diff(live, book, &range, stop_at_once, NULL);

	*differ_out = rc == STORE_FULL;
	return rc == STORE_FULL ? STORE_OK : rc;
}

/* *new_out: `book` is empty. */
static enum store_rc
header_have(struct txn *book, bool *new_out)
{
	struct env_header header = {.format = EPOCH_FORMAT};
	struct env_bytes row;
	enum store_rc rc = txn_get(book, key_of(KEY_HEADER, 0, 0), &row);

	*new_out = rc == STORE_NONE;
	return *new_out ? txn_put(book, key_of(KEY_HEADER, 0, 0), &header, sizeof header) : rc;
}

static enum store_rc
save_in(struct txn *live, struct txn *book, void *arg)
{
	struct save *save = arg;
	bool whole = save->refs == NULL, is_new = false, differ = false;
	enum store_rc rc = header_have(book, &is_new);
	struct env_note note;

	env_note_get(txn_env(live), &note);
	save->rows = 0;
	save->cursor = note.cursor;
	save->txn = txn_seen(live);
	save->complete = save->complete || is_new;
	if (rc == STORE_OK && !whole && !is_new)
		rc = names_differ(live, book, &differ);
	whole = whole || is_new || differ;
	for (size_t i = 0; i < BOOK_KINDS && rc == STORE_OK; i++)
		rc = whole ? save_kind(live, book, &book_kinds[i], &save->rows)
		           : save_hard(live, book, &book_kinds[i], save);
	if (rc == STORE_OK && whole)
		rc = save_slices(live, book, save);
	save->whole = whole;
	return rc;
}

/* ---- when ---- */

/* The older half of what is kept for clients goes. */
static enum store_rc
give_way(struct txn *book, void *arg)
{
	struct kept_limits kept = {.ttl_ms = INT64_MAX};
	struct talk_limits talks = {.ttl_ms = INT64_MAX};
	unsigned *removed = arg, more = 0;
	struct shelf_sum sum;
	enum store_rc rc = kept_sums(book, &sum);

	kept.max_bytes = sum.bytes / 2;
	if (rc == STORE_OK)
		rc = kept_sweep(book, &kept, BATCH, removed);
	if (rc == STORE_OK)
		rc = talk_sums(book, &sum);
	talks.max_total_bytes = sum.bytes / 2;
	if (rc == STORE_OK)
		rc = talk_sweep(book, &talks, BATCH, &more);
	*removed += more;
	return rc;
}

/* What accounts did comes before what conversations left behind. */
static enum store_rc
save_first(struct env *env, struct save *save)
{
	struct save asked = *save;
	enum store_rc rc = env_save(env, save_in, save);

	while (rc == STORE_FULL) {
		unsigned removed = 0;

		if (env_book_update_held(env, give_way, &removed) != STORE_OK || removed == 0)
			return rc;
		*save = asked;
		rc = env_save(env, save_in, save);
	}
	return rc;
}

/* With the lock held: save, and note it for all processes. */
static enum store_rc
save_and_note(struct env *env, struct save *save, struct book_report *report)
{
	enum store_rc rc = save_first(env, save);
	struct env_note note;

	env_note_get(env, &note);
	report->rows = rc == STORE_OK ? save->rows : 0;
	if (rc == STORE_OK && !save->whole)
		return rc; /* a little may fit where the whole does not */
	report->news = (note.failed != 0) != (rc != STORE_OK);
	note.failed = rc != STORE_OK;
	if (rc == STORE_OK) {
		note.txn = save->txn;
		note.cursor = save->cursor;
	}
	env_note_put(env, &note);
	return rc;
}

/* Without the lock, or where it cannot be had: is it news that nothing is saved? */
static enum store_rc
no_lock(struct env *env, enum store_rc rc, struct book_report *report)
{
	struct env_note note;

	env_note_get(env, &note);
	report->news = note.failed == 0;
	note.failed = 1;
	env_note_put(env, &note);
	return rc;
}

/* Where saving fails already, as behind a stopped process, nobody waits for it again. */
static enum store_rc
lock_wait(struct env *env)
{
	struct env_note note;

	env_note_get(env, &note);
	return env_book_lock(env, note.failed ? 0 : GATE_WAIT_MS);
}

static enum store_rc
save_everything(struct env *env, bool complete, struct book_report *report)
{
	struct save save = {.complete = complete};
	enum store_rc rc = lock_wait(env);

	*report = (struct book_report){.rows = 0};
	if (rc != STORE_OK)
		return no_lock(env, rc, report);
	rc = save_and_note(env, &save, report);
	env_book_unlock(env);
	return rc;
}

enum store_rc
book_save(struct env *env, struct book_report *report_out)
{
	return save_everything(env, false, report_out);
}

enum store_rc
book_save_all(struct env *env, struct book_report *report_out)
{
	return save_everything(env, true, report_out);
}

enum store_rc
book_save_now(
    struct env *env, const struct account_ref *refs, size_t n, struct book_report *report_out)
{
	static const struct account_ref none;
	struct save save = {.refs = n == 0 ? &none : refs, .n = n};
	uint64_t mine = env_newest(env);
	struct env_note note;
	enum store_rc rc = env_book_lock(env, 0);

	*report_out = (struct book_report){.rows = 0};
	if (rc == STORE_BUSY) {
		rc = lock_wait(env);
		save.refs = NULL; /* others wait, too: save theirs with it */
	}
	if (rc != STORE_OK)
		return no_lock(env, rc, report_out);
	env_note_get(env, &note);
	if (mine == 0 || note.txn < mine)
		rc = save_and_note(env, &save, report_out);
	env_book_unlock(env);
	return rc;
}
