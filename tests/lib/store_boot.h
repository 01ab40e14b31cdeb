/*
 * store_boot - a machine that goes down, files that are damaged, and stores full of accounts.
 */
#ifndef TESTS_LIB_STORE_BOOT_H
#define TESTS_LIB_STORE_BOOT_H

#include "lib/store_dir.h"
#include "store/book.h"
#include "store/roster.h"

/* As if the machine had been started anew since the store was last used. */
static inline void
store_reboot(const struct store_dir *dir)
{
	char text[300] = "", *at;
	FILE *f = fopen(store_dir_file(dir, "epoch"), "r+");

	assert_non_null(f);
	text[fread(text, 1, sizeof text - 1, f)] = '\0';
	at = strstr(text, "boot ");
	assert_non_null(at);
	fseek(f, at - text + 5, SEEK_SET);
	fputs("00000000", f);
	fclose(f);
	unlink(store_dir_file(dir, "gate"));
	/* the note of this boot is of another one now */
	unlink(store_dir_file(dir, "book.lock"));
}

static inline void
store_dir_remove(const struct store_dir *dir, const char *name)
{
	nftw(store_dir_file(dir, name), store_dir_unlink, 16, FTW_DEPTH | FTW_PHYS);
}

static inline bool
store_dir_has(const struct store_dir *dir, const char *name)
{
	struct stat st;

	return lstat(store_dir_file(dir, name), &st) == 0;
}

/* How many names in the directory begin so? */
static inline unsigned
store_dir_count(const struct store_dir *dir, const char *prefix)
{
	DIR *d = opendir(dir->path);
	unsigned n = 0;

	for (struct dirent *e; (e = readdir(d)) != NULL;)
		n += strncmp(e->d_name, prefix, strlen(prefix)) == 0;
	closedir(d);
	return n;
}

/* Change one byte; the file must be that long. */
static inline void
store_dir_flip(const struct store_dir *dir, const char *name, off_t at, unsigned char bits)
{
	int fd = open(store_dir_file(dir, name), O_RDWR);
	unsigned char c;

	assert_int_equal(pread(fd, &c, 1, at), 1);
	c ^= bits;
	assert_int_equal(pwrite(fd, &c, 1, at), 1);
	close(fd);
}

static inline enum store_rc
store_save(struct env *env)
{
	struct book_report report;

	return book_save(env, &report);
}

static inline enum store_rc
store_save_now(struct env *env, const struct account_ref *refs, size_t n)
{
	struct book_report report;

	return book_save_now(env, refs, n, &report);
}

/* Accounts 0 .. n-1 of channel "c". */
static inline enum store_rc
store_enrol(struct txn *txn, void *arg)
{
	const unsigned *n = arg;
	uint8_t fingerprint[8] = {1};
	uint16_t channel;
	enum store_rc rc = roster_channel(txn, "c", true, &channel);

	for (unsigned i = 0; i < *n && rc == STORE_OK; i++) {
		struct account_ref ref;
		char id[24];
		bool rekeyed;

		snprintf(id, sizeof id, "account-%u", i);
		rc = roster_account(txn, channel, id, fingerprint, true, &ref, &rekeyed);
	}
	return rc;
}

/* What a settlement does to some accounts, as often as it is called. */
struct store_use {
	unsigned first, n;
};

static inline enum store_rc
store_settle(struct txn *txn, void *arg)
{
	const struct store_use *use = arg;
	enum store_rc rc = STORE_OK;

	for (unsigned i = use->first; i < use->first + use->n && rc == STORE_OK; i++) {
		struct account_ref ref = {0, i};
		struct account_row row;
		struct account_stat stat;

		rc = account_get(txn, ref, &row);
		if (rc == STORE_OK)
			rc = account_stat_get(txn, ref, &stat);
		row.success++;
		row.picked_txn = txn_number(txn);
		stat.calls++;
		if (rc == STORE_OK)
			rc = account_put(txn, ref, &row);
		if (rc == STORE_OK)
			rc = account_stat_put(txn, ref, &stat);
	}
	return rc;
}

#endif
