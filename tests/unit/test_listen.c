#include "listen.h"

#include "lib/store_dir.h"

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/un.h>

#define NELEM(a) (sizeof(a) / sizeof((a)[0]))

static const struct {
	const char *address;
	enum err err;
} cases[] = {
    {"", ERR_BAD_INPUT},
    {"9000", ERR_BAD_INPUT},
    {":9000", ERR_BAD_INPUT},
    {"127.0.0.1", ERR_BAD_INPUT},
    {"127.0.0.1:", ERR_BAD_INPUT},
    {"127.0.0.1:0", ERR_BAD_INPUT},
    {"127.0.0.1:65536", ERR_BAD_INPUT},
    {"127.0.0.1:9000x", ERR_BAD_INPUT},
    {"127.0.0.1:-1", ERR_BAD_INPUT},
    {"0.0.0.0:9000", ERR_BAD_INPUT},
    {"10.0.0.1:9000", ERR_BAD_INPUT},
    {"127.1:9000", ERR_BAD_INPUT},
    {"localhost:9000", ERR_BAD_INPUT},
    {"[::1]:9000", ERR_BAD_INPUT},
    {"unix:", ERR_BAD_INPUT},
    {"unix:/nowhere/at/all/x.sock", ERR_IO},
    {"unix:/tmp/a-path-that-is-longer-than-any-socket-address-may-be-on-this-kind-of-system-which-is-108-bytes-at-the-most",
        ERR_BAD_INPUT},
};

static void
test_refused(void **state)
{
	(void)state;
	for (size_t i = 0; i < NELEM(cases); i++) {
		struct why why = {""};
		int fd = -7;
		enum err err = listen_open(cases[i].address, LISTEN_MODE, &fd, &why);

		if (err != cases[i].err || fd != -7 || why.text[0] == '\0')
			fail_msg("'%s': %d, fd %d, %s", cases[i].address, (int)err, fd, why.text);
	}
}

static int
connect_unix(const char *path)
{
	struct sockaddr_un to = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
		return fd;
	close(fd);
	return -1;
}

static void
test_unix(void **state)
{
	const struct store_dir *dir = *state;
	char address[100];
	const char *path = address + 5;
	struct why why = {""};
	struct stat st;
	int fd, second = -7, client;

	snprintf(address, sizeof address, "unix:%s/s.sock", dir->path);
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_OK);
	assert_true(listen_is(fd));
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0660);
	client = connect_unix(path);
	assert_true(client >= 0);
	assert_false(listen_is(client));
	close(client);
	assert_int_equal(listen_own(address, getuid(), getgid(), &why), ERR_OK);

	/* somebody listens there: hands off */
	assert_int_equal(listen_open(address, LISTEN_MODE, &second, &why), ERR_IO);
	assert_int_equal(second, -7);
	assert_non_null(strstr(why.text, "listens"));
	client = connect_unix(path);
	assert_true(client >= 0);
	close(client);

	close(fd); /* as kill -9 leaves it */
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_OK);
	client = connect_unix(path);
	assert_true(client >= 0);
	close(client);
	close(fd);
	listen_remove(address);
	assert_int_equal(stat(path, &st), -1);
	listen_remove(address); /* nothing there: fine */
}

static void
test_not_a_socket(void **state)
{
	const struct store_dir *dir = *state;
	char address[100];
	struct why why = {""};
	struct stat st;
	FILE *f;
	int fd = -7;

	snprintf(address, sizeof address, "unix:%s/file", dir->path);
	f = fopen(address + 5, "w");
	assert_non_null(f);
	fclose(f);
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_IO);
	assert_non_null(strstr(why.text, "no socket"));
	assert_int_equal(stat(address + 5, &st), 0);
	assert_true(S_ISREG(st.st_mode));
	/* a symbolic link is not followed */
	snprintf(address, sizeof address, "unix:%s/link", dir->path);
	assert_int_equal(symlink("/tmp/nowhere.sock", address + 5), 0);
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_IO);
	assert_int_equal(fd, -7);
}

/* A port that was free a moment ago. */
static int
free_port(void)
{
	struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
	socklen_t n = sizeof at;
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (const struct sockaddr *)&at, sizeof at), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &n), 0);
	close(fd);
	return ntohs(at.sin_port);
}

static void
test_tcp(void **state)
{
	char address[40];
	struct why why = {""};
	int fd, second = -7;

	(void)state;
	snprintf(address, sizeof address, "127.0.0.1:%d", free_port());
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_OK);
	assert_true(listen_is(fd));
	assert_int_equal(listen_open(address, LISTEN_MODE, &second, &why), ERR_IO);
	assert_non_null(strstr(why.text, "127.0.0.1"));
	assert_int_equal(listen_own(address, 1, 1, &why), ERR_OK); /* no file to own */
	listen_remove(address);
	close(fd);
	snprintf(address, sizeof address, "127.9.8.7:%d", free_port());
	assert_int_equal(listen_open(address, LISTEN_MODE, &fd, &why), ERR_OK);
	close(fd);
}

static void
test_is(void **state)
{
	int pair[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
	assert_false(listen_is(pair[0]));
	close(pair[0]);
	close(pair[1]);
	assert_int_equal(pipe(pair), 0);
	assert_false(listen_is(pair[0]));
	close(pair[0]);
	close(pair[1]);
	assert_false(listen_is(pair[0])); /* closed */
	assert_false(listen_is(-1));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_dir_setup, store_dir_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_refused),
	    TEST(test_unix),
	    TEST(test_not_a_socket),
	    cmocka_unit_test(test_tcp),
	    cmocka_unit_test(test_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
