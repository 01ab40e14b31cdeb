#include "base/log.h"

#include "base/date.h"
#include "base/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#define VALUE_MAX_BYTES 1024
#define FIELDS_MAX 40
/* every value can become six times as long by its escapes; a line that is cut would be no JSON */
#define LINE_MAX_BYTES ((FIELDS_MAX + 4) * VALUE_MAX_BYTES * 6 + 65536)
#define REPEAT_MS 1000

struct log {
	int fd; /* -1 = syslog */
	enum log_level level;
	bool json;
	struct buf line;
	/* the last warning or error, to hold back its repetitions */
	char last[128];
	int64_t last_ms;
	int64_t held_back;
};

static const char *const level_names[] = {
    [LOG_LEVEL_DEBUG] = "debug",
    [LOG_LEVEL_INFO] = "info",
    [LOG_LEVEL_WARN] = "warn",
    [LOG_LEVEL_ERROR] = "error",
};

struct log *
log_open(const char *target, enum log_level level, bool json)
{
	struct log *log = calloc(1, sizeof *log);

	if (log == NULL)
		die("no memory");
	log->level = level;
	log->json = json;
	log->fd = STDERR_FILENO;
	if (strcmp(target, "syslog") == 0) {
		log->fd = -1;
		openlog("sluice", LOG_PID, LOG_DAEMON);
	} else if (strcmp(target, "stderr") != 0) {
		log->fd = open(target, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
		if (log->fd < 0) {
			free(log);
			return NULL;
		}
	}
	buf_init(&log->line, LINE_MAX_BYTES);
	return log;
}

void
log_close(struct log **log)
{
	if (*log == NULL)
		return;
	if ((*log)->fd > STDERR_FILENO)
		close((*log)->fd);
	buf_release(&(*log)->line);
	free(*log);
	*log = NULL;
}

bool
log_wants(const struct log *log, enum log_level level)
{
	return level >= log->level;
}

static struct span
cut(struct span s)
{
	return (struct span){s.p, text_cut(s, VALUE_MAX_BYTES)};
}

static void
write_json(struct buf *line, enum log_level level, struct wall_ms now, const char *message,
    const struct log_field *fields, size_t n)
{
	struct emit e;

	emit_init(&e, line);
	emit_object(&e, NULL);
	emit_time(&e, "time", now);
	emit_z(&e, "level", level_names[level]);
	emit_z(&e, "msg", message);
	for (size_t i = 0; i < n; i++) {
		if (fields[i].type == LOG_FIELD_NUMBER)
			emit_i64(&e, fields[i].key, fields[i].number);
		else if (fields[i].type == LOG_FIELD_JSON)
			emit_raw(&e, fields[i].key, fields[i].text);
		else
			emit_text(&e, fields[i].key, cut(fields[i].text));
	}
	emit_end(&e);
}

static void
write_text(struct buf *line, enum log_level level, struct wall_ms now, const char *message,
    const struct log_field *fields, size_t n)
{
	char time[DATE_TEXT];

	date_print(now, time);
	buf_print(line, "%s %s %s", time, level_names[level], message);
	for (size_t i = 0; i < n; i++) {
		buf_print(line, " %s=", fields[i].key);
		if (fields[i].type == LOG_FIELD_NUMBER)
			buf_i64(line, fields[i].number);
		else if (fields[i].type == LOG_FIELD_JSON)
			buf_span(line, fields[i].text);
		else
			emit_quoted(line, cut(fields[i].text));
	}
}

/* Warnings and errors of one kind in a burst: the first, then how many were left out. */
static bool
held_back(struct log *log, enum log_level level, struct wall_ms now, const char *message)
{
	if (level < LOG_LEVEL_WARN)
		return false;
	if (strncmp(log->last, message, sizeof log->last - 1) == 0 && now.v - log->last_ms >= 0 &&
	    now.v - log->last_ms < REPEAT_MS) {
		log->held_back++;
		return true;
	}
	text_clean(log->last, sizeof log->last, text_span(message));
	log->last_ms = now.v;
	return false;
}

/* DEL and C1 are orders to some terminals, and JSON lets them through. Both have as many bytes as what stands for them. */
static void
disarm(struct buf *line)
{
	for (size_t i = 0; i < line->n; i++) {
		unsigned char c = (unsigned char)line->p[i];
		unsigned char next = i + 1 < line->n ? (unsigned char)line->p[i + 1] : 0;

		if (c == 0x7f)
			line->p[i] = '?';
		else if (c == 0xc2 && next >= 0x80 && next < 0xa0)
			memset(line->p + i, '?', 2);
	}
}

static void
send_line(struct log *log, enum log_level level)
{
	static const int priorities[] = {[LOG_LEVEL_DEBUG] = LOG_DEBUG,
	    [LOG_LEVEL_INFO] = LOG_INFO,
	    [LOG_LEVEL_WARN] = LOG_WARNING,
	    [LOG_LEVEL_ERROR] = LOG_ERR};

	if (log->fd < 0) {
		syslog(priorities[level], "%.*s", (int)log->line.n, log->line.p);
		return;
	}
	buf_char(&log->line, '\n');
	/* one write a line, so that lines of several processes do not mix; a log that is full is not our end */
	if (write(log->fd, log->line.p, log->line.n) < 0)
		return;
}

void
log_write(struct log *log, enum log_level level, struct wall_ms now, const char *message,
    const struct log_field *fields, size_t n)
{
	int saved = errno;

	if (log_wants(log, level) && !held_back(log, level, now, message)) {
		struct log_field more[FIELDS_MAX];
		size_t total = n < NELEM(more) - 1 ? n : NELEM(more) - 1;

		if (total > 0)
			memcpy(more, fields, total * sizeof *fields);
		if (log->held_back > 0 && level >= LOG_LEVEL_WARN) {
			more[total++] = LOG_NUMBER("left_out_before", log->held_back);
			log->held_back = 0;
		}
		buf_clear(&log->line);
		if (log->json)
			write_json(&log->line, level, now, message, more, total);
		else
			write_text(&log->line, level, now, message, more, total);
		disarm(&log->line);
		send_line(log, level);
	}
	errno = saved;
}
