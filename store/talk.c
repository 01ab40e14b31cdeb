#include "store/talk.h"

#include <string.h>

#define VERSION 1
#define NAMES_MAX 48    /* conversations of one hash: the row must lie inside a leaf page */
#define ORIGIN 4096     /* piece of the first turn: those that come before it have room */
#define EVICT_MOST 1024 /* in one transaction */
#define LEAF_MOST 1350  /* of larger rows one or two have a page */

struct talk_row {
	struct talk_head head;
	uint64_t number, room; /* of its turns' rows; bytes of pages */
	uint32_t first, next;  /* pieces: its own are from `first` on, before `next` */
};
_Static_assert(sizeof(struct talk_row) == 88, "talk_row has no padding");

struct talk_name {
	uint8_t key[TALK_KEY_BYTES];
	uint64_t place; /* of its talk_row */
};
_Static_assert(sizeof(struct talk_name) == 40, "talk_name has no padding");

/* A conversation, copied out of the transaction. */
struct talk {
	struct talk_row row;
	uint64_t place; /* 0: it is new */
	size_t client_n;
	char client[TALK_CLIENT_MAX];
};

static uint64_t
row_key(uint64_t place)
{
	return shelf_key(KEY_TALK, place);
}

/* Small turns share pages, which are half to two thirds full. */
static uint64_t
room_of(uint64_t n)
{
	return n <= LEAF_MOST ? (n + 32) * 2 : shelf_room(n);
}

/* With the row that ends a turn of whole pieces. */
static uint64_t
pieces_of(uint64_t n)
{
	return n / SHELF_PIECE + 1;
}

static bool
is_past(const struct talk_row *row, const struct talk_limits *limits)
{
	return shelf_is_past(row->head.used_ms, limits->now, limits->ttl_ms);
}

enum store_rc
talk_sums(struct txn *book, struct shelf_sum *sum_out)
{
	return shelf_sums(book, KEY_TALK, sum_out);
}

/* ---- heads ---- */

static enum store_rc
talk_of(struct env_bytes bytes, struct talk *talk_out)
{
	const size_t head_n = sizeof talk_out->row;

	if (bytes.n < head_n || bytes.n - head_n > TALK_CLIENT_MAX)
		return STORE_BAD;
	memcpy(&talk_out->row, bytes.p, head_n);
	talk_out->client_n = bytes.n - head_n;
	memcpy(talk_out->client, (const char *)bytes.p + head_n, talk_out->client_n);
	return talk_out->row.head.version == VERSION && talk_out->row.first <= talk_out->row.next &&
	               talk_out->row.next <= SHELF_PIECES_MAX
	           ? STORE_OK
	           : STORE_BAD;
}

static enum store_rc
row_get(struct txn *book, uint64_t place, struct talk *talk_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(book, row_key(place), &bytes);

	if (rc == STORE_OK)
		rc = talk_of(bytes, talk_out);
	talk_out->place = place;
	return rc == STORE_NONE ? STORE_BAD : rc;
}

static enum store_rc
row_put(struct txn *book, const struct talk *talk)
{
	char bytes[sizeof talk->row + TALK_CLIENT_MAX];

	memcpy(bytes, &talk->row, sizeof talk->row);
	memcpy(bytes + sizeof talk->row, talk->client, talk->client_n);
	return txn_put(book, row_key(talk->place), bytes, sizeof talk->row + talk->client_n);
}

/* ---- names ---- */

struct names {
	size_t n, at; /* at == n: the key is not among them */
	struct talk_name list[NAMES_MAX];
};

/* The key is a keyed hash itself. */
static uint64_t
name_key(const uint8_t *key)
{
	uint64_t hash;

	memcpy(&hash, key, sizeof hash);
	return key_hashed(KEY_TALK_NAME, hash);
}

static enum store_rc
names_get(struct txn *book, const uint8_t *key, struct names *names_out)
{
	struct env_bytes bytes;
	enum store_rc rc = txn_get(book, name_key(key), &bytes);

	names_out->n = names_out->at = 0;
	if (rc != STORE_OK)
		return rc == STORE_NONE ? STORE_OK : rc;
	if (bytes.n % sizeof *names_out->list != 0 || bytes.n > sizeof names_out->list)
		return STORE_BAD;
	memcpy(names_out->list, bytes.p, bytes.n);
	names_out->n = bytes.n / sizeof *names_out->list;
	while (names_out->at < names_out->n &&
	       memcmp(names_out->list[names_out->at].key, key, TALK_KEY_BYTES) != 0)
		names_out->at++;
	return STORE_OK;
}

static enum store_rc
names_put(struct txn *book, const uint8_t *key, const struct names *names)
{
	return names->n == 0
	           ? txn_del(book, name_key(key))
	           : txn_put(book, name_key(key), names->list, names->n * sizeof *names->list);
}

/* STORE_NONE: there is none; expired ones are. */
static enum store_rc
find(struct txn *book, const uint8_t *key, struct talk *talk_out)
{
	struct names names;
	enum store_rc rc = names_get(book, key, &names);

	if (rc != STORE_OK)
		return rc;
	if (names.at == names.n)
		return STORE_NONE;
	rc = row_get(book, names.list[names.at].place, talk_out);
	if (rc == STORE_OK && memcmp(talk_out->row.head.key, key, TALK_KEY_BYTES) != 0)
		return STORE_BAD;
	return rc;
}

/* ---- dropping ---- */

static struct shelf_place
piece_place(const struct talk_row *row, uint64_t piece)
{
	return (struct shelf_place){KEY_TALK_TURN, row->number, piece};
}

/* All rows of it; the sums are the caller's to write. */
static enum store_rc
drop(struct txn *book, const struct talk *talk, struct shelf_sum *sum)
{
	const struct talk_row *row = &talk->row;
	struct names names;
	enum store_rc rc = names_get(book, row->head.key, &names);

	if (rc == STORE_OK && names.at < names.n) {
		names.list[names.at] = names.list[--names.n];
		rc = names_put(book, row->head.key, &names);
	}
	if (rc == STORE_OK)
		rc = shelf_del(book, piece_place(row, row->first), row->next - row->first);
	if (rc == STORE_OK)
		rc = txn_del(book, row_key(talk->place));
	shelf_sums_less(sum, row->room);
	return rc;
}

static enum store_rc
drop_old(struct txn *book, uint64_t place, bool too_much, struct shelf_sum *sum, const void *limits)
{
	struct talk talk;
	enum store_rc rc = row_get(book, place, &talk);

	if (rc != STORE_OK)
		return rc;
	return too_much || is_past(&talk.row, limits) ? drop(book, &talk, sum) : STORE_NONE;
}

/* What is in the way of `need` more bytes goes. */
static enum store_rc
evict(struct txn *book, const struct talk_limits *limits, uint64_t need, struct shelf_sum *sum)
{
	const struct shelf_eviction eviction = {
	    KEY_TALK, limits->max_total_bytes - need, EVICT_MOST, drop_old, limits};
	unsigned removed;

	return need > limits->max_total_bytes ? STORE_FULL
	                                      : shelf_evict(book, &eviction, sum, &removed);
}

enum store_rc
talk_drop(struct txn *book, const uint8_t *key, const struct talk_limits *limits)
{
	struct shelf_sum sum;
	struct talk talk;
	enum store_rc rc = find(book, key, &talk);

	if (rc == STORE_OK && is_past(&talk.row, limits))
		return STORE_NONE;
	if (rc == STORE_OK)
		rc = talk_sums(book, &sum);
	if (rc == STORE_OK)
		rc = drop(book, &talk, &sum);
	return rc == STORE_OK ? shelf_sums_put(book, KEY_TALK, &sum) : rc;
}

enum store_rc
talk_sweep(struct txn *book, const struct talk_limits *limits, unsigned most, unsigned *removed_out)
{
	const struct shelf_eviction eviction = {
	    KEY_TALK, limits->max_total_bytes, most, drop_old, limits};

	return shelf_sweep(book, &eviction, removed_out);
}

/* ---- appending ---- */

struct appending {
	const uint8_t *key;
	const struct talk_append *append;
	const struct talk_limits *limits;
	struct shelf_sum sum;
	struct talk talk;
};

/* A new one, whatever stood there: of as many of one hash the first one goes. */
static enum store_rc
begin(struct txn *book, struct appending *a)
{
	struct env_bytes client = a->append->client;
	struct names names;
	enum store_rc rc = names_get(book, a->key, &names);

	if (rc == STORE_OK && names.n == NAMES_MAX) {
		struct talk other;

		rc = row_get(book, names.list[0].place, &other);
		if (rc == STORE_OK)
			rc = drop(book, &other, &a->sum);
	}
	a->talk = (struct talk){.row = {.head = {.version = VERSION},
	                            .number = a->sum.next++,
	                            .room = shelf_room(0),
	                            .first = ORIGIN,
	                            .next = ORIGIN},
	    .client_n = client.n};
	memcpy(a->talk.row.head.key, a->key, TALK_KEY_BYTES);
	if (client.n > 0)
		memcpy(a->talk.client, client.p, client.n);
	return rc;
}

/* The one to append to: in none of the sums until it is put back, so that nobody evicts it. */
static enum store_rc
take(struct txn *book, struct appending *a)
{
	enum store_rc rc = find(book, a->key, &a->talk);

	if (rc == STORE_OK && is_past(&a->talk.row, a->limits)) {
		rc = drop(book, &a->talk, &a->sum);
		rc = rc == STORE_OK ? STORE_NONE : rc;
	}
	if (rc == STORE_NONE)
		return a->append->had == 0 ? begin(book, a) : STORE_NONE;
	if (rc != STORE_OK)
		return rc;
	if (a->talk.row.head.turns != a->append->had)
		return STORE_NONE;
	shelf_sums_less(&a->sum, a->talk.row.room);
	return txn_del(book, row_key(a->talk.place));
}

/* The other way round: it is the one that was used last now. */
static enum store_rc
put_back(struct txn *book, struct appending *a)
{
	struct talk *talk = &a->talk;
	struct talk_head *head = &talk->row.head;
	struct names names;
	enum store_rc rc = names_get(book, head->key, &names);

	if (talk->place == 0)
		head->created_ms = a->limits->now.v;
	head->used_ms = a->limits->now.v;
	talk->place = a->sum.next++;
	a->sum.rows++;
	a->sum.bytes += talk->row.room;
	if (rc != STORE_OK)
		return rc;
	memcpy(names.list[names.at].key, head->key, TALK_KEY_BYTES);
	names.list[names.at].place = talk->place;
	names.n += names.at == names.n;
	rc = names_put(book, head->key, &names);
	if (rc == STORE_OK)
		rc = row_put(book, talk);
	return rc == STORE_OK ? shelf_sums_put(book, KEY_TALK, &a->sum) : rc;
}

static enum store_rc
drop_first(struct txn *book, struct talk_row *row)
{
	struct env_bytes piece = {NULL, SHELF_PIECE};
	uint64_t n = 0;

	while (piece.n == SHELF_PIECE) {
		struct shelf_place at = piece_place(row, row->first);
		enum store_rc rc = shelf_get(book, at, &piece);

		if (rc != STORE_OK || row->first == row->next)
			return rc == STORE_NONE || rc == STORE_OK ? STORE_BAD : rc;
		n += piece.n;
		rc = shelf_del(book, at, 1);
		if (rc != STORE_OK)
			return rc;
		row->first++;
	}
	row->head.bytes -= n;
	row->head.turns--;
	row->room -= room_of(n);
	return STORE_OK;
}

static enum store_rc
put_turn(struct txn *book, struct talk_row *row, struct env_bytes turn, bool leads)
{
	uint64_t pieces = pieces_of(turn.n), at = leads ? row->first - pieces : row->next;
	enum store_rc rc;

	if (leads ? pieces > row->first : pieces > SHELF_PIECES_MAX - row->next)
		return STORE_FULL;
	if (leads)
		row->first -= (uint32_t)pieces;
	else
		row->next += (uint32_t)pieces;
	row->head.bytes += turn.n;
	row->head.turns++;
	row->room += room_of(turn.n);
	rc = shelf_put(book, piece_place(row, at), turn);
	if (rc == STORE_OK && turn.n % SHELF_PIECE == 0)
		rc = shelf_put_end(book, piece_place(row, at + pieces - 1));
	return rc;
}

static enum store_rc
put_turns(struct txn *book, struct talk_row *row, const struct talk_append *append)
{
	bool leads = append->first != TALK_APPEND && row->head.turns > 0;
	enum store_rc rc = STORE_OK;

	if (leads && append->first == TALK_REPLACE)
		rc = drop_first(book, row);
	for (size_t i = 0; i < append->nturns && rc == STORE_OK; i++)
		rc = put_turn(book, row, append->turns[i], leads && i == 0);
	return rc;
}

enum store_rc
talk_append(struct txn *book, const uint8_t *key, const struct talk_append *append,
    const struct talk_limits *limits)
{
	struct appending a = {.key = key, .append = append, .limits = limits};
	const struct talk_row *row = &a.talk.row;
	uint64_t need = shelf_room(0);
	enum store_rc rc = talk_sums(book, &a.sum);

	for (size_t i = 0; i < append->nturns; i++)
		need += room_of(append->turns[i].n);
	if (append->client.n > TALK_CLIENT_MAX)
		return STORE_FULL;
	if (rc == STORE_OK)
		rc = take(book, &a);
	if (rc == STORE_OK)
		rc = evict(book, limits, row->room + need, &a.sum);
	if (rc == STORE_OK)
		rc = put_turns(book, &a.talk.row, append);
	if (rc == STORE_OK &&
	    (row->head.bytes > limits->max_bytes || row->head.turns > TALK_TURNS_MAX))
		rc = STORE_FULL;
	return rc == STORE_OK ? put_back(book, &a) : rc;
}

/* ---- reading ---- */

struct reading {
	const struct talk_reader *to;
	char *dst;
	size_t left, turn_n; /* bytes: of what is to come, and of the turn that has begun */
	uint32_t turns;
	bool begun;
};

static enum store_rc
read_piece(uint64_t key, struct env_bytes piece, void *arg)
{
	struct reading *r = arg;
	struct env_bytes turn;

	(void)key;
	if (piece.n > r->left || piece.n > SHELF_PIECE)
		return STORE_BAD;
	if (piece.n > 0)
		memcpy(r->dst, piece.p, piece.n);
	r->dst += piece.n;
	r->left -= piece.n;
	r->turn_n += piece.n;
	r->begun = piece.n == SHELF_PIECE;
	if (r->begun)
		return STORE_OK;
	turn = (struct env_bytes){r->dst - r->turn_n, r->turn_n};
	r->turn_n = 0;
	return r->to->turn(r->turns++, turn, r->to->arg);
}

enum store_rc
talk_read(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    const struct talk_reader *reader)
{
	struct reading r = {.to = reader};
	struct talk talk;
	enum store_rc rc = find(book, key, &talk);

	if (rc != STORE_OK || is_past(&talk.row, limits))
		return rc == STORE_OK ? STORE_NONE : rc;
	r.left = talk.row.head.bytes;
	r.dst = reader->room(&talk.row.head, reader->arg);
	rc =
	    shelf_walk(book, piece_place(&talk.row, talk.row.first), talk.row.next, read_piece, &r);
	if (rc == STORE_OK && (r.left > 0 || r.begun || r.turns != talk.row.head.turns))
		rc = STORE_BAD;
	return rc;
}

enum store_rc
talk_find(struct txn *book, const uint8_t *key, const struct talk_limits *limits,
    struct talk_head *head_out)
{
	struct talk talk;
	enum store_rc rc = find(book, key, &talk);

	if (rc == STORE_OK && is_past(&talk.row, limits))
		return STORE_NONE;
	if (rc == STORE_OK)
		*head_out = talk.row.head;
	return rc;
}

struct walk {
	const struct talk_limits *limits;
	talk_head_fn *fn;
	void *arg;
};

static enum store_rc
walk_row(uint64_t key, struct env_bytes bytes, void *arg)
{
	const struct walk *walk = arg;
	struct talk talk;
	enum store_rc rc = talk_of(bytes, &talk);

	(void)key;
	if (rc != STORE_OK || is_past(&talk.row, walk->limits))
		return rc;
	return walk->fn(&talk.row.head, (struct env_bytes){talk.client, talk.client_n}, walk->arg);
}

enum store_rc
talk_walk(struct txn *book, const struct talk_limits *limits, talk_head_fn *fn, void *arg)
{
	struct walk walk = {limits, fn, arg};

	return txn_walk(book, row_key(1), key_last_of(KEY_TALK), walk_row, &walk);
}
