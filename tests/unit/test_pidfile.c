#include "pidfile.h"

#include "lib/store_dir.h"

#include <fcntl.h>
#include <sys/wait.h>

#define TEXT \
	"pid 12\nstate ready\nserial 3\nkilled 1\nversion 0.1\nprogram /p\nlisten unix:/a b\nwhy x y\nend\n"

static const struct {
	const char *what, *text;
	bool good;
} cases[] = {
    {"whole", TEXT, true},
    {"blank lines behind it", TEXT "\n\n\n\n", true},
    {"something behind its end", TEXT "pid x\n", true},
    {"a word of a later version", "pid 12\ncolour red\nend\n", true},
    {"no more than a pid", "pid 12\nend\n", true},
    {"empty values", "pid 12\nlisten \nwhy \nend\n", true},
    {"empty", "", false},
    {"no end: not whole", "pid 12\nstate ready\n", false},
    {"no pid", "state ready\nend\n", false},
    {"pid 0", "pid 0\nend\n", false},
    {"a negative pid", "pid -1\nend\n", false},
    {"every process", "pid 99999999999999999999\nend\n", false},
    {"pid is no number", "pid 12x\nend\n", false},
    {"a state that is none", "pid 12\nstate dead\nend\n", false},
    {"a serial that is none", "pid 12\nserial -1\nend\n", false},
    {"a bare word", "pid\nend\n", false},
};

static void
test_parse(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct pidfile_text text = {.pid = -7};
		bool got = pidfile_parse(text_span(cases[i].text), &text);

		if (got != cases[i].good || (text.pid == 12) != got || (!got && text.pid != -7))
			fail_msg("%s: %d, pid %lld", cases[i].what, got, (long long)text.pid);
	}
}

static void
test_round(void **state)
{
	struct pidfile_text in = {.pid = 4711,
	    .state = PIDFILE_STOPPING,
	    .serial = 1LL << 40,
	    .killed = 3,
	    .version = "0.1.0",
	    .listen = "unix:/run/with blank/s",
	    .why = "line 3: no"};
	struct pidfile_text got;
	char bytes[PIDFILE_BYTES];

	(void)state;
	memset(in.program, 'p', sizeof in.program - 1);
	pidfile_print(&in, bytes);
	assert_true(pidfile_parse((struct span){bytes, sizeof bytes}, &got));
	assert_int_equal(got.pid, in.pid);
	assert_int_equal(got.state, in.state);
	assert_int_equal(got.serial, in.serial);
	assert_int_equal(got.killed, in.killed);
	assert_string_equal(got.version, in.version);
	assert_string_equal(got.program, in.program);
	assert_string_equal(got.listen, in.listen);
	assert_string_equal(got.why, in.why);
}

/* The pid that holds it, seen from another process: a process does not see its own lock. */
static pid_t
holder_elsewhere(const char *dir, bool *could_lock_out)
{
	int fds[2], status;
	struct {
		pid_t holder;
		bool locked;
	} seen = {-1, false};
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct pidfile_text text;
		int fd = pidfile_open(dir);

		seen.holder = pidfile_holder(fd, &text);
		seen.locked = pidfile_lock(fd);
		_exit(write(fds[1], &seen, sizeof seen) != (ssize_t)sizeof seen);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(read(fds[0], &seen, sizeof seen), sizeof seen);
	close(fds[0]);
	close(fds[1]);
	*could_lock_out = seen.locked;
	return seen.holder;
}

static void
test_lock(void **state)
{
	const struct store_dir *dir = *state;
	struct pidfile_text text = {.pid = getpid()};
	bool locked;
	struct stat st;
	int fd = pidfile_open(dir->path);

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_true(pidfile_is_of(fd, dir->path));
	assert_int_equal(holder_elsewhere(dir->path, &locked), 0);
	assert_true(locked);
	assert_true(pidfile_lock(fd));
	assert_true(pidfile_write(fd, &text));
	assert_int_equal(holder_elsewhere(dir->path, &locked), getpid());
	assert_false(locked);
	close(fd); /* as the kernel does at the end */
	assert_int_equal(holder_elsewhere(dir->path, &locked), 0);
	assert_true(locked);
}

/* Held by nobody who has a pid here: never a number that kill() takes for many. */
static void
test_no_pid(void **state)
{
	const struct store_dir *dir = *state;
	struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1};
	bool locked;
	int fd = pidfile_open(dir->path);

	assert_int_equal(fcntl(fd, F_OFD_SETLK, &lock), 0);
	assert_int_equal(holder_elsewhere(dir->path, &locked), -1);
	assert_false(locked);
	close(fd);
}

static void
test_replaced(void **state)
{
	const struct store_dir *dir = *state;
	char path[200];
	int fd = pidfile_open(dir->path), other;

	snprintf(path, sizeof path, "%s/%s", dir->path, PIDFILE_NAME);
	assert_int_equal(unlink(path), 0);
	assert_false(pidfile_is_of(fd, dir->path));
	other = pidfile_open(dir->path);
	assert_false(pidfile_is_of(fd, dir->path));
	assert_true(pidfile_is_of(other, dir->path));
	close(other);
	close(fd);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("elsewhere", path), 0); /* is not followed */
	assert_int_equal(pidfile_open(dir->path), -1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(pidfile_open("/nowhere/at/all"), -1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_parse),
	    cmocka_unit_test(test_round),
	    TEST(test_lock),
	    TEST(test_no_pid),
	    TEST(test_replaced),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
