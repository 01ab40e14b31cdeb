/*
 * alert - tell people of new events of level alert, each once: by a command, and by a POST.
 *
 * Command   /bin/sh -c alerts.command: the event as JSON on its standard input, and in SLUICE_* variables; of ours it gets
 *           PATH, HOME, LANG and TZ alone, as others may hold keys; its output goes nowhere. After ALERT_COMMAND_MS it and
 *           what it started are ended. A worker for whom a request waits (errand.h) goes back to it and looks later.
 * URL       POST of the same JSON; any 2xx will do; at most ALERT_TRIES times within a minute. No key goes
 *           along. Later events wait meanwhile.
 * Once      an event is told when its turn comes and not again, unless this process dies in between. Events that are
 *           older than an hour are news to nobody: the setting is new, or nothing ran since.
 * Cursor    bits 0..55 the number of the last event that was told, bits 56..63 tries of the next one
 * Source    SPEC.md sections 3 ("alerts"), 10
 */
#ifndef ALERT_H
#define ALERT_H

#include "serve.h"
#include "store/journal.h"

#define ALERT_COMMAND_MS 10000
#define ALERT_TRIES 3
#define ALERT_OLD_MS 3600000

bool alert_is_wanted(const struct conf *conf);

/* The event as JSON, and as a line for people. */
void alert_json(uint64_t sequence, const struct journal_row *event, struct buf *out);
void alert_line(const struct journal_row *event, char *line_out, size_t cap);

/* Nothing is there to be told: not worth a claim. */
enum store_rc alert_idle(
    struct txn *txn, const struct serve *s, uint64_t cursor, bool *idle_out) STORE_MUST_CHECK;
/* A part of the job; true: there is more to do. */
bool alert_run(struct serve *s, uint64_t *cursor);

/* alert_command.c: begin the command for one event; false with the reason. s->alert_pid must be 0. */
bool alert_begin(
    struct serve *s, uint64_t sequence, const struct journal_row *event, struct why *why);
/* Look whether it has ended, end it when its time is over, and log how it went. True: it still runs. */
bool alert_runs(struct serve *s);
/* Wait for that, but not longer than may be (errand.h). */
void alert_wait(struct serve *s);

#endif
