#include "session.h"

#include "base/digest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATH_BYTES 4200
#define VARIABLE_BYTES 200

_Static_assert(SESSION_HASH_BYTES == DIGEST_BYTES, "HMAC-SHA256");

/* Words of the hash by kind; a value that stands for itself, and one whose SHA-256 stands for it. */
static const char *const words[][2] = {
    [SESSION_NONE] = {"", ""},
    [SESSION_HEADER] = {"header", "header+"},
    [SESSION_BODY] = {"body", "body+"},
    [SESSION_RESPONSE] = {"response", "response+"},
};

static enum err
refuse(struct why *why, const char *path, const char *what)
{
	err_why(why, "%s ('%s')", what, path);
	return ERR_STORE;
}

/* errno as the caller left it */
static enum err
failed(struct why *why, const char *path, const char *what)
{
	err_why(why, "the secret cannot be %s: %s ('%s')", what, strerror(errno), path);
	return ERR_STORE;
}

static enum err
check_file(int fd, const char *path, struct why *why)
{
	struct stat st;

	if (fstat(fd, &st) != 0)
		return failed(why, path, "read");
	if (!S_ISREG(st.st_mode) || st.st_uid != geteuid())
		return refuse(why, path, "the secret must be a file of this user");
	if ((st.st_mode & 077) != 0)
		return refuse(why, path,
		    "others can read the secret: remove it (sessions begin anew), or chmod 600");
	if (st.st_size != SESSION_SECRET_BYTES)
		return refuse(
		    why, path, "the secret has not 32 bytes: remove it, then sessions begin anew");
	return ERR_OK;
}

/* ERR_NOT_FOUND: there is none yet. */
static enum err
read_secret(const char *path, struct session_secret *secret, struct why *why)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	enum err err;

	if (fd < 0 && errno == ENOENT)
		return ERR_NOT_FOUND;
	if (fd < 0)
		return failed(why, path, "read");
	err = check_file(fd, path, why);
	if (err == ERR_OK &&
	    read(fd, secret->bytes, sizeof secret->bytes) != (ssize_t)sizeof secret->bytes)
		err = failed(why, path, "read");
	close(fd);
	return err;
}

static bool
write_synced(int fd, const uint8_t *bytes, size_t n)
{
	ssize_t written = write(fd, bytes, n);

	if (written >= 0 && written != (ssize_t)n) {
		errno = ENOSPC;
		return false;
	}
	return written >= 0 && fsync(fd) == 0;
}

/* Whole before it has its name, and the first to give it the name wins. */
static enum err
make_secret(const char *path, struct why *why)
{
	struct {
		uint8_t secret[SESSION_SECRET_BYTES];
		uint64_t name;
	} fresh;
	char temp[PATH_BYTES + 32];
	int fd, e;

	if (getrandom(&fresh, sizeof fresh, 0) != (ssize_t)sizeof fresh)
		return failed(why, path, "made");
	snprintf(temp, sizeof temp, "%s.%016llx", path, (unsigned long long)fresh.name);
	fd = open(temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return failed(why, path, "made");
	e = write_synced(fd, fresh.secret, sizeof fresh.secret) ? 0 : errno;
	if (e == 0 && link(temp, path) != 0 && errno != EEXIST)
		e = errno;
	close(fd);
	unlink(temp);
	explicit_bzero(&fresh, sizeof fresh);
	errno = e;
	return e == 0 ? ERR_OK : failed(why, path, "made");
}

enum err
session_secret(const char *state_dir, struct session_secret *secret_out, struct why *why)
{
	char path[PATH_BYTES];
	enum err err;

	if ((size_t)snprintf(path, sizeof path, "%s/secret", state_dir) >= sizeof path)
		return refuse(why, state_dir, "the path of state_dir is too long");
	err = read_secret(path, secret_out, why);
	if (err != ERR_NOT_FOUND)
		return err;
	err = make_secret(path, why);
	if (err == ERR_OK)
		err = read_secret(path, secret_out, why);
	if (err == ERR_NOT_FOUND)
		err = refuse(why, path, "the secret was removed while it was made");
	return err;
}

/* The HMAC's text: no client's name holds NUL (it comes from a variable), and no word does. */
static void
add_text(struct buf *text, struct span client, enum session_kind kind, struct span value)
{
	unsigned char digest[DIGEST_BYTES];
	bool big = value.n > SESSION_VALUE_BYTES;

	buf_span(text, client);
	buf_char(text, '\0');
	buf_z(text, words[kind][big]);
	buf_char(text, '\0');
	if (!big) {
		buf_span(text, value);
	} else {
		digest_sha256(value, digest);
		buf_add(text, digest, sizeof digest);
	}
}

void
session_name(const struct session_secret *secret, struct span client, enum session_kind kind,
    struct span value, struct session_key *key_out)
{
	struct span key = {(const char *)secret->bytes, sizeof secret->bytes};
	unsigned char hash[DIGEST_BYTES];
	struct buf text;

	buf_init(&text, client.n + SESSION_VALUE_BYTES + 64);
	add_text(&text, client, kind, value);
	if (text.over)
		die("a session's name of %zu bytes", client.n);
	digest_hmac(key, buf_text(&text), hash);
	buf_release(&text);
	*key_out = (struct session_key){.kind = kind};
	memcpy(key_out->hash, hash, sizeof key_out->hash);
	text_hex(hash, sizeof key_out->brief - 1, key_out->brief);
}

/* "X-Session-Id" -> HTTP_X_SESSION_ID */
static struct span
header_value(const struct exchange *x, struct span name)
{
	char variable[VARIABLE_BYTES] = "HTTP_";
	size_t at = strlen(variable);

	if (name.n == 0 || name.n >= sizeof variable - at)
		return (struct span){"", 0};
	for (size_t i = 0; i < name.n; i++) {
		char low = text_lower(name.p[i]);
		bool letter = low >= 'a' && low <= 'z', digit = low >= '0' && low <= '9';

		variable[at++] = letter ? (char)(low - 'a' + 'A') : digit ? low : '_';
	}
	return text_trim(exchange_param(x, variable));
}

/* Text or number; empty when it is neither. What is over-long is not decoded: only its hash is wanted. */
static struct span
value_text(struct arena *arena, const struct scan_value *value)
{
	if (value->type == SCAN_NUMBER)
		return value->raw;
	if (value->type != SCAN_STRING)
		return (struct span){"", 0};
	if (value->raw.n - 2 > SESSION_VALUE_BYTES)
		return (struct span){value->raw.p + 1, value->raw.n - 2};
	return scan_string(arena, value->raw);
}

/* user_<hash>_account_<uuid or nothing>_session_<uuid> */
static struct span
part_of_text(struct span value)
{
	size_t at;

	if (!text_starts(value, "user_"))
		return (struct span){"", 0};
	at = text_find(value, SPAN("_account_"));
	value = text_from(value, at);
	at = text_find(value, SPAN("_session_"));
	return at == value.n ? (struct span){"", 0} : text_from(value, at + SPAN("_session_").n);
}

/* {"device_id":"...","account_uuid":"...","session_id":"<uuid>"} */
static struct span
part_of_json(struct arena *arena, struct span value)
{
	static const char *const path = "session_id";
	struct scan_value found;

	if (scan_pick(value, &path, &found, 1, NULL) != ERR_OK || found.type != SCAN_STRING)
		return (struct span){"", 0};
	return value_text(arena, &found);
}

/* What Claude Code sends as metadata.user_id names user and session: the session, or the whole of another's. */
static struct span
session_part(struct arena *arena, struct span value)
{
	struct span part;

	if (value.n > SESSION_VALUE_BYTES)
		return value;
	part =
	    text_starts(text_trim(value), "{") ? part_of_json(arena, value) : part_of_text(value);
	return part.n > 0 ? part : value;
}

/* Paths that dialect_read() does not look for, all found by one more pass, and only if one of them is asked for. */
struct extra {
	bool looked;
	size_t n;
	size_t key[SCAN_PATHS_MAX]; /* index in sticky.keys */
	struct scan_value values[SCAN_PATHS_MAX];
};

static bool
path_fits(struct span path)
{
	unsigned parts = 1;

	for (size_t i = 0; i < path.n; i++)
		parts += path.p[i] == '.';
	return path.n > 0 && parts <= SCAN_PARTS_MAX && memchr(path.p, '\0', path.n) == NULL;
}

static void
extra_look(struct extra *extra, const struct session_source *from, struct arena *arena)
{
	const struct conf_strings *keys = &from->conf->sticky.keys;
	const char *paths[SCAN_PATHS_MAX];

	extra->looked = true;
	extra->n = 0;
	for (size_t i = 0; i < keys->n && extra->n < NELEM(paths); i++) {
		if (dialect_value(from->read, keys->at[i]) != NULL || !path_fits(keys->at[i]))
			continue;
		paths[extra->n] = arena_z(arena, keys->at[i]);
		extra->key[extra->n++] = i;
	}
	/* the body was read before, so this fails only for a name that stands twice: that names nothing */
	if (scan_pick(from->read->body, paths, extra->values, extra->n, NULL) != ERR_OK)
		extra->n = 0;
}

static struct span
extra_value(struct extra *extra, const struct session_source *from, size_t key, struct arena *arena)
{
	if (!extra->looked)
		extra_look(extra, from, arena);
	for (size_t i = 0; i < extra->n; i++)
		if (extra->key[i] == key)
			return value_text(arena, &extra->values[i]);
	return (struct span){"", 0};
}

static struct span
from_headers(const struct session_source *from)
{
	const struct conf_strings *headers = &from->conf->sticky.headers;
	struct span value = {"", 0};

	for (size_t i = 0; i < headers->n && value.n == 0; i++)
		value = header_value(from->x, headers->at[i]);
	return value;
}

static struct span
from_body(const struct session_source *from, struct arena *arena, enum session_kind *kind_out)
{
	const struct conf_strings *keys = &from->conf->sticky.keys;
	const struct scan_value *previous = &from->read->previous_response_id;
	struct extra extra = {.looked = false};

	for (size_t i = 0; i < keys->n; i++) {
		const struct scan_value *known = dialect_value(from->read, keys->at[i]);
		struct span value =
		    known != NULL ? value_text(arena, known) : extra_value(&extra, from, i, arena);

		if (known == &from->read->metadata_user_id)
			value = session_part(arena, value);
		*kind_out = known == previous ? SESSION_RESPONSE : SESSION_BODY;
		if (value.n > 0)
			return value;
	}
	*kind_out = SESSION_RESPONSE;
	return value_text(arena, previous);
}

void
session_key(const struct session_secret *secret, const struct session_source *from,
    struct arena *arena, struct session_key *key_out)
{
	enum session_kind kind = SESSION_HEADER;
	struct span value = from_headers(from);

	*key_out = (struct session_key){.kind = SESSION_NONE};
	if (value.n == 0 && from->read != NULL)
		value = from_body(from, arena, &kind);
	if (value.n > 0)
		session_name(secret, from->client, kind, value, key_out);
}
