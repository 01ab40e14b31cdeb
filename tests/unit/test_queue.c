#include "store/queue.h"

#include "lib/store_dir.h"

#include <sched.h>

#define CHANNEL 4
#define SIZE 6

enum op { MAY, JOIN, LEAVE, NEXT, COUNT, DIE, FORGET };

/*
 * Waiters 'a' to 'h' have a slot each. `want`: of MAY 0 or 1, of JOIN how many stand before (-1: full), of COUNT
 * how many wait. `wakes`: of LEAVE and NEXT, who is to be woken. DIE gives the slot up; the next step of the same
 * waiter gets it anew, as another process would.
 */
static const struct {
	const char *what;
	enum op op;
	char who;
	uint32_t wants;
	int want;
	const char *wakes;
} steps[] = {
    {"nobody waits", MAY, 'a', 0, 1, ""},
    {"nobody to wake", NEXT, 'a', 0, 0, ""},
    {"nobody to leave", LEAVE, 'a', 0, 0, ""},
    {"first", JOIN, 'a', 0, 0, ""},
    {"second", JOIN, 'b', 0, 1, ""},
    {"keeps its place", JOIN, 'a', 0, 0, ""},
    {"third", JOIN, 'c', 0, 2, ""},
    {"the first may", MAY, 'a', 0, 1, ""},
    {"the second may not", MAY, 'b', 0, 0, ""},
    {"who does not queue may not", MAY, 'h', 0, 0, ""},
    {"other wants may", MAY, 'h', 9, 1, ""},
    {"the first is woken", NEXT, 'h', 0, 0, "a"},
    {"the second leaves, the first stays", LEAVE, 'b', 0, 0, ""},
    {"the last moves up", JOIN, 'c', 0, 1, ""},
    {"the first leaves", LEAVE, 'a', 0, 0, "c"},
    {"the next may", MAY, 'c', 0, 1, ""},
    {"behind it", JOIN, 'a', 0, 1, ""},
    {"of other wants", JOIN, 'd', 9, 2, ""},
    {"of other wants, second", JOIN, 'e', 9, 3, ""},
    {"the first of each is woken", NEXT, 'h', 0, 0, "cd"},
    {"the first of its wants", MAY, 'd', 9, 1, ""},
    {"the second of them", MAY, 'e', 9, 0, ""},
    {"all wait", COUNT, 'h', 0, 4, ""},
    {"the first dies", DIE, 'c', 0, 0, ""},
    {"is not counted", COUNT, 'h', 0, 3, ""},
    {"the next may", MAY, 'a', 0, 1, ""},
    {"the first of the others dies", DIE, 'd', 0, 0, ""},
    {"the living are woken", NEXT, 'h', 0, 0, "ae"},
    {"the dead are gone", JOIN, 'e', 9, 1, ""},
    {"fill up", JOIN, 'b', 0, 2, ""},
    {"fill up", JOIN, 'f', 0, 3, ""},
    {"fill up", JOIN, 'g', 0, 4, ""},
    {"fill up", JOIN, 'c', 0, 5, ""},
    {"full", JOIN, 'd', 0, -1, ""},
    {"full for other wants, too", JOIN, 'h', 7, -1, ""},
    {"who is in stays in", JOIN, 'g', 0, 4, ""},
    {"one in the middle dies", DIE, 'f', 0, 0, ""},
    {"room again", JOIN, 'h', 0, 5, ""},
    {"other wants at the same place", JOIN, 'b', 9, 2, ""},
    {"it is behind e now", MAY, 'b', 9, 0, ""},
    {"e leaves", LEAVE, 'e', 9, 0, "b"},
    {"a dies and comes back with the same slot", DIE, 'a', 0, 0, ""},
    {"its old ticket is forgotten", FORGET, 'a', 0, 0, ""},
    {"so it may not", MAY, 'a', 0, 0, ""},
    {"and the next is woken", NEXT, 'f', 0, 0, "bg"},
    {"four are left", COUNT, 'f', 0, 4, ""},
    {"forgotten again", FORGET, 'a', 0, 0, ""},
    {"b leaves", LEAVE, 'b', 0, 0, ""},
    {"g leaves", LEAVE, 'g', 0, 0, "c"},
    {"c dies", DIE, 'c', 0, 0, ""},
    {"h leaves", LEAVE, 'h', 0, 0, ""},
    {"nobody is left", COUNT, 'f', 0, 0, ""},
    {"anybody may", MAY, 'f', 0, 1, ""},
};

struct step {
	size_t i;
	struct slot *slot;
	int got;
	struct queue_wake wake;
};

static enum store_rc
do_step(struct txn *txn, void *arg)
{
	struct step *s = arg;
	struct queue_who who = {s->slot, CHANNEL, steps[s->i].wants};
	enum store_rc rc = STORE_OK;
	unsigned n = 0;
	bool may = false, looked;

	s->wake.n = 0;
	switch (steps[s->i].op) {
	case MAY:
		assert_int_equal(queue_look(txn, &who, &looked), STORE_OK);
		rc = queue_may_take(txn, &who, &may);
		assert_int_equal(looked, may);
		n = may;
		break;
	case JOIN: rc = queue_join(txn, &who, SIZE, &n); break;
	case LEAVE: rc = queue_leave(txn, &who, &s->wake); break;
	case NEXT: rc = queue_next(txn, &who, &s->wake); break;
	case COUNT: rc = queue_count(txn, &who, &n); break;
	case FORGET: rc = queue_forget(txn, s->slot); break;
	case DIE: break;
	}
	s->got = rc == STORE_FULL ? -1 : (int)n;
	return rc == STORE_FULL ? STORE_OK : rc;
}

static void
order_of_tickets(void **state)
{
	struct env *env = store_dir_open(*state);
	struct slot *slots[8] = {NULL};
	struct store_why why;

	for (unsigned i = 0; i < 8; i++) {
		assert_int_equal(slot_open(env, &slots[i], &why), STORE_OK);
		assert_int_equal(slot_number(slots[i]), i);
	}
	for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
		struct slot **slot = &slots[steps[i].who - 'a'];
		struct step step = {.i = i};
		char wakes[QUEUE_WAKE_MAX + 1] = "";

		if (steps[i].op == DIE) {
			slot_close(slot);
			continue;
		}
		if (*slot == NULL)
			assert_int_equal(slot_open(env, slot, &why), STORE_OK);
		step.slot = *slot;
		assert_int_equal(slot_number(*slot), steps[i].who - 'a');
		assert_int_equal(env_update(env, do_step, &step), STORE_OK);
		for (unsigned n = 0; n < step.wake.n; n++)
			wakes[n] = (char)('a' + step.wake.slot[n]);
		if (step.got != steps[i].want || strcmp(wakes, steps[i].wakes) != 0)
			fail_msg("%zu %s (%c): got %d '%s', want %d '%s'", i, steps[i].what,
			    steps[i].who, step.got, wakes, steps[i].want, steps[i].wakes);
	}
	for (unsigned i = 0; i < 8; i++)
		slot_close(&slots[i]);
	env_close(&env);
}

static enum store_rc
odd_rows(struct txn *txn, void *arg)
{
	static const char odd[20] = {9};
	struct queue_who who = {arg, CHANNEL, 0};
	bool may = false;
	unsigned n = 9;
	enum store_rc rc = txn_put(txn, key_of(KEY_QUEUE, CHANNEL, 0), odd, sizeof odd);

	if (rc == STORE_OK)
		rc = queue_may_take(txn, &who, &may);
	if (rc == STORE_OK)
		rc = queue_forget(txn, arg);
	if (rc == STORE_OK)
		rc = queue_join(txn, &who, 1, &n);
	return rc == STORE_OK && (!may || n != 0) ? STORE_BAD : rc;
}

static enum store_rc
only_watching(struct txn *txn, void *arg)
{
	struct queue_who who = {arg, CHANNEL, 0};
	enum store_rc rc;
	unsigned n = 0;

	rc = queue_count(txn, &who, &n);
	if (rc != STORE_OK || n != 1)
		return STORE_BAD;
	return queue_join(txn, &who, 10, &n);
}

static void
odd_things(void **state)
{
	struct env *env = store_dir_open(*state);
	struct slot *slot, *watch;
	struct store_why why;

	assert_int_equal(slot_open(env, &slot, &why), STORE_OK);
	assert_int_equal(slot_watch(env, &watch, &why), STORE_OK);
	assert_int_equal(env_update(env, odd_rows, slot), STORE_OK);
	assert_int_equal(env_update(env, only_watching, watch), STORE_NONE);
	slot_close(&watch);
	slot_close(&slot);
	env_close(&env);
}

#define WITH_DIR(f) cmocka_unit_test_setup_teardown(f, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    WITH_DIR(order_of_tickets),
	    WITH_DIR(odd_things),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
