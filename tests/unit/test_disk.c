#include "store/disk.h"

#include "lib/store_dir.h"

static void
file_systems(void **state)
{
	static const struct {
		const char *what;
		int64_t magic;
		bool local;
		const char *name; /* "" no remark */
	} rows[] = {
	    {"ext4", 0xEF53, true, ""},
	    {"tmpfs", 0x01021994, true, ""},
	    {"overlay", 0x794c7630, true, ""},
	    {"NFS", 0x6969, false, "NFS"},
	    {"9p", 0x01021997, false, "9p"},
	    {"Ceph", 0xC36400, false, "Ceph"},
	    {"CIFS", 0xFF534D42, false, "CIFS"},
	    {"CIFS from a signed 32-bit field", -11317950, false, "CIFS"},
	    {"SMB2", 0xFE534D42, false, "SMB2"},
	    {"FUSE: doubtful, not refused", 0x65735546, true, "FUSE"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *name = "";
		bool local = disk_is_local(rows[i].magic, &name);

		if (local != rows[i].local || strcmp(name, rows[i].name) != 0)
			fail_msg("%s: got %d '%s'", rows[i].what, local, name);
	}
}

static void
directories(void **state)
{
	static const struct {
		const char *what, *name;
		mode_t mode; /* 0: not made before */
		bool create;
		enum store_rc want;
		const char *says;
	} rows[] = {
	    {"made", "a", 0, true, STORE_OK, ""},
	    {"missing", "b", 0, false, STORE_NONE, "start the gateway"},
	    {"no parent", "c/d", 0, true, STORE_NONE, "parent"},
	    {"no store in it", "d", 0700, false, STORE_NONE, "start the gateway"},
	    {"right mode", "e", 0700, true, STORE_OK, ""},
	    {"group may read", "f", 0740, true, STORE_BAD, "chmod 700"},
	    {"others may walk", "g", 0701, true, STORE_BAD, "chmod 700"},
	    {"owner may not write", "h", 0500, true, STORE_BAD, "chmod 700"},
	    {"a file", "file", 0, true, STORE_BAD, "path"},
	};
	const struct store_dir *dir = *state;

	close(open(store_dir_file(dir, "file"), O_CREAT | O_WRONLY, 0600));
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const char *path = store_dir_file(dir, rows[i].name);
		struct store_why why = {"old"};
		enum store_rc rc;
		struct stat st;

		if (rows[i].mode != 0) {
			mkdir(path, 0700);
			chmod(path, rows[i].mode);
		}
		rc = disk_dir(path, rows[i].create, &why);
		if (rc != rows[i].want || strstr(why.text, rows[i].says) == NULL ||
		    (rc == STORE_OK && why.text[0] != '\0'))
			fail_msg("%s: got %d '%s'", rows[i].what, (int)rc, why.text);
		if (rc == STORE_OK && (stat(path, &st) != 0 || (st.st_mode & 07777) != 0700))
			fail_msg("%s: wrong mode", rows[i].what);
	}
}

#define SECOND 100000

/* Bytes written over the data file of a good store. */
static void
heads(void **state)
{
	static const struct {
		const char *what;
		off_t at; /* -1: nothing, -2: cut to `value`; SECOND + n: in the second head */
		uint64_t value;
		unsigned n;
		enum store_rc want;
	} rows[] = {
	    {"whole", -1, 0, 0, STORE_OK},
	    {"empty", -2, 0, 0, STORE_NONE},
	    {"cut inside the first head", -2, 100, 0, STORE_BAD},
	    {"one head only", -2, 4096, 0, STORE_BAD},
	    {"both heads, no pages", -2, 8192, 0, STORE_BAD},
	    {"magic", 16, 0, 4, STORE_BAD},
	    {"version", 20, 2, 4, STORE_BAD},
	    {"second magic", SECOND + 16, 0, 4, STORE_BAD},
	    {"map larger than anything", 32, UINT64_MAX, 8, STORE_BAD},
	    {"page size 0", 40, 0, 4, STORE_BAD},
	    {"page size odd", 40, 4097, 4, STORE_BAD},
	    {"page size huge", 40, 1u << 30, 4, STORE_BAD},
	    {"key flags of another program", SECOND + 92, 0, 2, STORE_BAD},
	    {"root beyond the last page", SECOND + 128, 1 << 20, 8, STORE_BAD},
	    {"root in a head", SECOND + 128, 1, 8, STORE_BAD},
	    {"last page beyond the file", 136, 10000, 8, STORE_BAD},
	    {"last page overflows", 136, UINT64_MAX, 8, STORE_BAD},
	    {"not a head page", 10, 0, 2, STORE_BAD},
	};

	(void)state;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		struct disk_data data = {.map_bytes = 0};
		struct store_why why = {""};
		struct store_dir *dir;
		struct env *env;
		enum store_rc rc;
		void *p;
		off_t at;
		int fd;

		store_dir_setup(&p);
		dir = p;
		env = store_dir_open(dir);
		env_close(&env);
		fd = open(store_dir_file(dir, "live/data.mdb"), O_RDWR);
		at = rows[i].at < SECOND ? rows[i].at : rows[i].at - SECOND + sysconf(_SC_PAGESIZE);
		if (at >= 0)
			assert_int_equal(pwrite(fd, &rows[i].value, rows[i].n, at), (int)rows[i].n);
		else if (rows[i].at == -2)
			assert_int_equal(ftruncate(fd, (off_t)rows[i].value), 0);
		rc = disk_data(fd, "live", &data, &why);
		if (rc != rows[i].want || (rc == STORE_BAD) != (why.text[0] != '\0'))
			fail_msg("%s: got %d '%s'", rows[i].what, (int)rc, why.text);
		if (rc == STORE_OK) {
			assert_int_equal(data.map_bytes, 64 * MIB);
			assert_int_equal(data.page_bytes, sysconf(_SC_PAGESIZE));
		}
		close(fd);
		store_dir_teardown(&p);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(file_systems),
	    cmocka_unit_test_setup_teardown(directories, store_dir_setup, store_dir_teardown),
	    cmocka_unit_test(heads),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
