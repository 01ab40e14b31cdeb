#include "store/verify.h"

#include "store/disk.h"
#include "store/why.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LEVELS 32 /* LMDB's own limit */
#define HEAD_BYTES 16
#define NODE_BYTES 8
#define KEY_BYTES 8

/* LMDB's names for kinds of pages and nodes */
#define P_BRANCH 0x01
#define P_LEAF 0x02
#define P_OVERFLOW 0x04
#define F_BIGDATA 0x01

struct head {
	uint64_t number;
	uint16_t pad, flags, lower, upper; /* of an overflow page the last two are its length */
};
_Static_assert(sizeof(struct head) == HEAD_BYTES, "LMDB's page head");

struct node {
	uint16_t size[2]; /* in the machine's order; of a branch: the page, with `flags` on top */
	uint16_t flags, key_bytes;
};
_Static_assert(sizeof(struct node) == NODE_BYTES, "LMDB's node head");

struct check {
	int fd;
	const char *name;
	struct store_why *why;
	verify_row_fn *fn;
	void *arg;
	struct disk_data data;
	uint64_t file_pages;
	unsigned char *seen; /* a bit for each page of the file */
	unsigned char *pages[LEVELS];
};

/* The way down to where a walk stands. */
struct walk {
	struct check *c;
	bool is_free_list;
	struct disk_tree found; /* counted on the way */
	struct {
		unsigned at, n;
	} level[LEVELS];
	unsigned depth;
	bool has_key;
	uint64_t last_key, floor; /* no key to come may be below `floor` */
};

static enum store_rc
damaged(struct check *c, uint64_t page, const char *what)
{
	why_say(c->why, "the store is damaged: %s/data.mdb, page %llu: %s", c->name,
	    (unsigned long long)page, what);
	return STORE_BAD;
}

static bool
bytes_read(const struct check *c, uint64_t at, void *p, size_t n)
{
	for (size_t got = 0; got < n;) {
		ssize_t k = pread(c->fd, (char *)p + got, n - got, (off_t)(at + got));

		if (k < 0 && errno == EINTR)
			continue;
		if (k <= 0)
			return false;
		got += (size_t)k;
	}
	return true;
}

static bool
page_exists(const struct check *c, uint64_t page, uint64_t n)
{
	return page >= 2 && page < c->file_pages && page <= c->data.last_page &&
	       n <= c->file_pages - page;
}

/* False when it was marked before. */
static bool
page_mark(struct check *c, uint64_t page)
{
	unsigned char bit = (unsigned char)(1u << page % 8);
	bool was = (c->seen[page / 8] & bit) != 0;

	c->seen[page / 8] |= bit;
	return !was;
}

static unsigned
even(size_t n)
{
	return (unsigned)(n + 1) & ~1u;
}

static uint32_t
node_size(const struct node *node)
{
	uint32_t size;

	memcpy(&size, node->size, sizeof size); /* low half first on either byte order */
	return size;
}

/* Node `at` of the page, or false where it does not lie inside. */
static bool
node_get(const struct check *c, const unsigned char *page, unsigned at, struct node *node_out,
    unsigned *offset_out)
{
	struct head head;
	uint16_t offset;

	memcpy(&head, page, sizeof head);
	memcpy(&offset, page + HEAD_BYTES + at * 2, sizeof offset);
	if (offset % 2 != 0 || offset < head.upper || offset > c->data.page_bytes - NODE_BYTES)
		return false;
	memcpy(node_out, page + offset, sizeof *node_out);
	*offset_out = offset;
	return true;
}

static uint64_t
key_at(const unsigned char *page, unsigned offset)
{
	uint64_t key;

	memcpy(&key, page + offset + NODE_BYTES, sizeof key);
	return key;
}

/* The bytes that a node takes of its page; 0: it is none of the expected kind, or reaches out of the page. */
static unsigned
node_room(const struct check *c, const struct node *node, unsigned offset, bool leaf, bool first)
{
	size_t room = NODE_BYTES + node->key_bytes;

	if (node->key_bytes != KEY_BYTES && !(!leaf && first && node->key_bytes == 0))
		return 0;
	if (leaf && (node->flags & ~F_BIGDATA) != 0)
		return 0;
	if (leaf)
		room += node->flags & F_BIGDATA ? sizeof(uint64_t) : node_size(node);
	return room <= c->data.page_bytes - offset ? even(room) : 0;
}

static enum store_rc
nodes_check(struct check *c, uint64_t number, const unsigned char *page, bool leaf)
{
	struct head head;
	unsigned n, sum = 0;

	memcpy(&head, page, sizeof head);
	n = (head.lower - HEAD_BYTES) / 2u;
	for (unsigned i = 0; i < n; i++) {
		struct node node;
		unsigned offset, room;

		if (!node_get(c, page, i, &node, &offset))
			return damaged(c, number, "a node outside");
		room = node_room(c, &node, offset, leaf, i == 0);
		if (room == 0)
			return damaged(c, number, "a node of no known kind");
		sum += room;
	}
	return sum == c->data.page_bytes - head.upper
	           ? STORE_OK
	           : damaged(c, number, "nodes and free room do not add up");
}

/* Read a page into level `depth` and look at it as a whole. */
static enum store_rc
page_enter(struct walk *w, uint64_t number, unsigned depth)
{
	struct check *c = w->c;
	bool leaf = depth + 1 == w->depth;
	unsigned char *page = c->pages[depth];
	struct head head;

	if (!page_exists(c, number, 1))
		return damaged(c, number, "is outside of the file");
	if (!page_mark(c, number))
		return damaged(c, number, "is used twice");
	if (!bytes_read(c, number * c->data.page_bytes, page, c->data.page_bytes))
		return damaged(c, number, "cannot be read");
	memcpy(&head, page, sizeof head);
	if (head.number != number)
		return damaged(c, number, "has another number");
	if (head.flags != (leaf ? P_LEAF : P_BRANCH))
		return damaged(c, number, "is of the wrong kind");
	if (head.lower <= HEAD_BYTES || head.lower % 2 != 0 || head.lower > head.upper ||
	    head.upper > c->data.page_bytes)
		return damaged(c, number, "has impossible limits");
	w->level[depth].at = 0;
	w->level[depth].n = (head.lower - HEAD_BYTES) / 2u;
	if (leaf)
		w->found.leaf_pages++;
	else
		w->found.branch_pages++;
	return nodes_check(c, number, page, leaf);
}

/* A list of free pages: a count, then their numbers, falling. */
static enum store_rc
free_pages(struct check *c, uint64_t page, const unsigned char *row, size_t n)
{
	uint64_t count, last = UINT64_MAX;

	if (n < sizeof count)
		return damaged(c, page, "a list of free pages is cut");
	memcpy(&count, row, sizeof count);
	if (count > n / sizeof count - 1)
		return damaged(c, page, "a list of free pages is cut");
	for (uint64_t i = 1; i <= count; i++) {
		uint64_t number;

		memcpy(&number, row + i * sizeof number, sizeof number);
		if (number < 2 || number > c->data.last_page || number >= last)
			return damaged(c, page, "a list of free pages is wrong");
		if (number < c->file_pages && !page_mark(c, number))
			return damaged(c, number, "is in use and free");
		last = number;
	}
	return STORE_OK;
}

static enum store_rc
row_check(struct walk *w, uint64_t page, uint64_t key, const unsigned char *row, size_t n)
{
	if (w->is_free_list)
		return free_pages(w->c, page, row, n);
	if (w->c->fn != NULL && !w->c->fn(key, row, n, w->c->arg))
		return damaged(w->c, page, "a row does not match its check");
	return STORE_OK;
}

/* A row in pages of its own. */
static enum store_rc
big_row(struct walk *w, uint64_t key, uint64_t number, size_t n)
{
	struct check *c = w->c;
	uint64_t pages = (HEAD_BYTES - 1 + n) / c->data.page_bytes + 1;
	uint64_t at = number * c->data.page_bytes;
	struct head head;
	uint32_t length;
	enum store_rc rc;
	unsigned char *row;

	if (!page_exists(c, number, pages))
		return damaged(c, number, "is outside of the file");
	if (!bytes_read(c, at, &head, sizeof head))
		return damaged(c, number, "cannot be read");
	memcpy(&length, &head.lower, sizeof length);
	/* a row that shrank keeps its pages */
	if (head.number != number || head.flags != P_OVERFLOW || length < pages ||
	    !page_exists(c, number, length))
		return damaged(c, number, "is not the large row that it should be");
	for (uint64_t i = 0; i < length; i++)
		if (!page_mark(c, number + i))
			return damaged(c, number + i, "is used twice");
	w->found.overflow_pages += length;
	row = malloc(n + 1);
	if (row == NULL) {
		why_say(c->why, "no memory to look through '%s'", c->name);
		return STORE_IO;
	}
	rc = bytes_read(c, at + HEAD_BYTES, row, n) ? row_check(w, number, key, row, n)
	                                            : damaged(c, number, "cannot be read");
	free(row);
	return rc;
}

static uint64_t
page_number(const unsigned char *page)
{
	uint64_t number;

	memcpy(&number, page, sizeof number);
	return number;
}

static enum store_rc
leaf_node(struct walk *w, const unsigned char *page, unsigned at)
{
	struct check *c = w->c;
	struct node node;
	unsigned offset;
	uint64_t key, number;

	if (!node_get(c, page, at, &node, &offset))
		return damaged(c, page_number(page), "a node outside");
	key = key_at(page, offset);
	if (key < w->floor || (w->has_key && key <= w->last_key))
		return damaged(c, page_number(page), "keys out of order");
	w->has_key = true;
	w->last_key = key;
	w->found.entries++;
	offset += NODE_BYTES + KEY_BYTES;
	if ((node.flags & F_BIGDATA) == 0)
		return row_check(w, page_number(page), key, page + offset, node_size(&node));
	memcpy(&number, page + offset, sizeof number);
	return big_row(w, key, number, node_size(&node));
}

/* The page below node `at` of a branch. */
static enum store_rc
branch_node(struct walk *w, const unsigned char *page, unsigned at, uint64_t *child_out)
{
	struct check *c = w->c;
	struct node node;
	unsigned offset;

	if (!node_get(c, page, at, &node, &offset))
		return damaged(c, page_number(page), "a node outside");
	*child_out = node_size(&node) | (uint64_t)node.flags << 32;
	if (at == 0)
		return STORE_OK;
	if (key_at(page, offset) < w->floor || (w->has_key && key_at(page, offset) <= w->last_key))
		return damaged(c, page_number(page), "keys out of order");
	w->floor = key_at(page, offset);
	return STORE_OK;
}

static enum store_rc
walk_down(struct walk *w, uint64_t root)
{
	enum store_rc rc = page_enter(w, root, 0);
	unsigned depth = 0;

	while (rc == STORE_OK) {
		unsigned at = w->level[depth].at++;
		uint64_t child;

		if (at == w->level[depth].n) {
			if (depth-- == 0)
				break;
		} else if (depth + 1 == w->depth) {
			rc = leaf_node(w, w->c->pages[depth], at);
		} else {
			rc = branch_node(w, w->c->pages[depth], at, &child);
			if (rc == STORE_OK)
				rc = page_enter(w, child, ++depth);
		}
	}
	return rc;
}

static enum store_rc
tree_check(struct check *c, const struct disk_tree *tree, bool is_free_list)
{
	struct walk w = {.c = c, .is_free_list = is_free_list, .depth = tree->depth};
	enum store_rc rc = STORE_OK;

	if ((tree->root == DISK_NO_ROOT) != (tree->depth == 0) || tree->depth > LEVELS)
		return damaged(c, 0, "impossible depth");
	for (unsigned i = 0; i < tree->depth; i++)
		if (c->pages[i] == NULL && (c->pages[i] = malloc(c->data.page_bytes)) == NULL) {
			why_say(c->why, "no memory to look through '%s'", c->name);
			return STORE_IO;
		}
	if (tree->depth > 0)
		rc = walk_down(&w, tree->root);
	if (rc == STORE_OK &&
	    (w.found.entries != tree->entries || w.found.leaf_pages != tree->leaf_pages ||
	        w.found.branch_pages != tree->branch_pages ||
	        w.found.overflow_pages != tree->overflow_pages))
		return damaged(c, 0, "the totals are wrong");
	return rc;
}

/* Each transaction writes the head that its number's last bit names, so they are one apart. */
static bool
heads_agree(const uint64_t txn[2])
{
	return (txn[0] == 0 && txn[1] <= 1) ||
	       (txn[0] % 2 == 0 && txn[1] % 2 == 1 && txn[0] - txn[1] + 1 <= 2);
}

enum store_rc
verify_file(int fd, const char *name, verify_row_fn *fn, void *arg, struct store_why *why)
{
	struct check c = {.fd = fd, .name = name, .why = why, .fn = fn, .arg = arg};
	enum store_rc rc = disk_heads(fd, name, &c.data, why);
	struct stat st;

	if (rc == STORE_NONE)
		return damaged(&c, 0, "the file is empty");
	if (rc != STORE_OK)
		return rc;
	if (!heads_agree(c.data.txn))
		return damaged(&c, 0, "the heads do not agree");
	if (fstat(fd, &st) != 0)
		return damaged(&c, 0, "cannot be read");
	c.file_pages = (uint64_t)st.st_size / c.data.page_bytes;
	c.seen = calloc(1, c.file_pages / 8 + 1);
	if (c.seen == NULL) {
		why_say(why, "no memory to look through '%s'", name);
		return STORE_IO;
	}
	rc = tree_check(&c, &c.data.rows, false);
	if (rc == STORE_OK)
		rc = tree_check(&c, &c.data.free_list, true);
	free(c.seen);
	for (unsigned i = 0; i < LEVELS; i++)
		free(c.pages[i]);
	return rc;
}
