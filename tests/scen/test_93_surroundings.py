"""Bad surroundings: the program works, or says in one line what it needs."""

import os
import pwd
import resource
import signal
import socket
import stat

import pytest

from lib.answers import chat_chunks, ok, stream
from lib.around import AS_NOBODY, NOBODY, Site, mounts, root_only, without_asan
from lib.pool import K1, alive, config
from lib.upstream import wait_until

MIB = 1 << 20
STORE = ["store cannot be opened", "the store failed"]


@pytest.fixture(params=["single", "pool"])
def site(request, up):
    """site(**sections): one process on descriptor 0, or a pool of two."""
    made = []

    def make(allow=(), base_url=None, **vary):
        conf = config(base_url or up.url, **vary)
        made.append(Site(conf, request.param == "single", allow=allow))
        return made[-1]

    yield make
    for s in made:
        s.close()


def limit(which, amount):
    return lambda: resource.setrlimit(which, (amount, amount))


def serves(s, up):
    """A plain answer, a streamed one, and the state is kept."""
    up.script(K1, ok(), stream(chat_chunks("a", "b")))
    assert s.ask().status == 200, s.log_text()
    a = s.ask(stream=True)
    assert a.status == 200 and b"[DONE]" in a.body, a.out
    assert s.account()["calls"] == 2


def why_not_stored(s):
    """Why the store cannot be opened: strangers only hear that it cannot."""
    a = s.ask()
    assert a.status == 503 and "state cannot be used" in a.error["message"], a.out
    return next(e["why"] for e in s.logs() if e["msg"] == "the store failed")


# No home, no environment, odd environment


@pytest.mark.parametrize(
    "env",
    [{}, {"TZ": ":/no/such/zone\x01", "LC_ALL": "xx_YY.rubbish", "LANG": "\xff", "HOME": ""}],
    ids=["none", "rubbish"],
)
def test_environment(site, up, env):
    s = site()
    serves(s.start(env=env), up)
    assert '"time":"2' in s.log_text()


@root_only
def test_user_without_home(site, up):
    """No passwd entry, no HOME, a program directory that cannot be written."""
    s = site().own()
    os.chmod(s.path_of("bin"), 0o555)
    serves(s.start(prefix=AS_NOBODY, env={}), up)


@root_only
@without_asan
def test_configuration_beside_the_program_without_proc(site, up):
    s = site(state_dir="../state").own()
    os.rename(s.path, s.path_of("bin", "sluice.json"))
    s.path = s.path_of("bin", "sluice.json")
    argv = [a for a in s.command() if a not in ("-c", s.path)]
    serves(s.start(prefix=mounts("mount -t tmpfs none /proc") + AS_NOBODY, argv=argv), up)


# Directories


def test_current_directory_is_gone(site, up):
    s = site()
    gone = s.path_of("gone")
    os.mkdir(gone)
    serves(s.start(cwd=gone, before=lambda: os.rmdir(gone)), up)


@root_only
def test_current_directory_is_not_ours(site, up):
    s = site().own()
    os.mkdir(s.path_of("other"), 0o555)
    serves(s.start(cwd=s.path_of("other"), prefix=AS_NOBODY), up)


def test_state_dir_behind_a_link_and_a_long_path(site, up):
    s = site(state_dir="link/state")
    deep = s.path_of(*["d" * 200] * 8)
    os.makedirs(deep)
    os.symlink(deep, s.path_of("link"))
    serves(s.start(), up)
    assert os.path.exists(os.path.join(deep, "state", "live", "data.mdb"))


def test_path_too_long(site):
    s = site(state_dir="/" + "/".join(["x" * 250] * 17), allow=STORE)
    assert "cannot open state_dir: File name too long" in why_not_stored(s.start())


@root_only
def test_read_only_state_dir(site):
    s = site(allow=STORE).own()
    os.mkdir(s.path_of("state"), 0o700)
    os.chown(s.path_of("state"), NOBODY, NOBODY)
    state = s.path_of("state")
    s.start(prefix=mounts(f"mount --bind {state} {state}; mount -o remount,ro,bind {state}") + AS_NOBODY)
    assert "state_dir cannot be written: Read-only file system" in why_not_stored(s)


@root_only
@pytest.mark.parametrize("size", ["0", "24k", "40k", "64k", "100k", "200k"])
def test_state_dir_on_a_full_disk(site, size):
    s = site(allow=[*STORE, "saving failed", "could not be settled", "not kept", "disk"])
    state = s.path_of("state")
    os.mkdir(state, 0o700)
    fill = f"mount -t tmpfs -o mode=700,size=1m t {state}; "
    fill += f"head -c {1024 if size == '0' else 1024 - int(size[:-1])}k /dev/zero > {state}/ballast || :"
    s.start(prefix=mounts(fill))
    if size in ("100k", "200k"):
        for _ in range(5):
            assert s.ask().status in (200, 503)
    else:
        why = why_not_stored(s)
        assert "free disk space" in why or "the disk is full" in why
    s.stop()  # saves to `book`
    assert s.master.returncode == 0


@root_only
def test_log_that_cannot_be_written(site):
    s = site(log={"target": "/no/such/dir/log"}).own()
    status, said = s.complaint(prefix=AS_NOBODY)
    assert (status, said.count("\n")) == (1, 1)
    assert "log.target '/no/such/dir/log': No such file" in said


# What is missing


@root_only
def test_root_opens_the_log_as_who_serves(site, up):
    """With root's rights whoever writes the configuration could have any file opened, and a restart could not."""
    uid = pwd.getpwnam("nobody").pw_uid
    s = site(server={"user": "nobody"}, log={"target": "own.log"}).own(uid)
    serves(s.start(), up)
    assert os.stat(s.path_of("own.log")).st_uid == uid
    s.stop()
    os.unlink(s.path_of("own.log"))
    os.mkdir(s.path_of("own.log"), 0o700)
    s.write({**s.conf, "log": {"target": "own.log/inside"}})
    os.chown(s.path, uid, uid)
    status, said = s.complaint()
    assert status == 1 and "cannot open log.target" in said, said


@root_only
def test_no_dev_shm(site, up):
    s = site()
    serves(s.start(prefix=mounts("mount -t tmpfs -o ro,mode=555 none /dev/shm")), up)


@root_only
@pytest.mark.parametrize("what", ["hidepid=2", pytest.param("none", marks=without_asan)])
def test_proc_is_hidden(site, up, what):
    mount = "mount -t tmpfs none /proc" if what == "none" else f"mount -t proc -o {what} p /proc"
    s = site().own()
    serves(s.start(prefix=mounts(mount) + AS_NOBODY), up)


@root_only
@without_asan
def test_bare_root_directory(site, up):
    """Only the program, its libraries and resolv.conf: no /dev, /proc, /etc/passwd."""
    s = site()
    cage = s.cage()
    s.own()
    cage[1:1] = [f"--userspec={NOBODY}:{NOBODY}"]
    s.start(prefix=cage, argv=s.inside(), closed=(1, 2))
    # sluicectl, which sees /proc, shares the store with it
    serves(s, up)
    with open(s.path_of("state", "epoch")) as f:
        assert "boot -\n" in f.read()
    if not s.single:
        old = set(s.worker_pids())
        s.signal(signal.SIGRTMIN)
        wait_until(lambda: not old & set(s.worker_pids()), 5, "a restart without /dev")
        assert s.ask().status == 200


@root_only
@without_asan
def test_bare_root_directory_without_certificates(site):
    s = site(base_url="https://127.0.0.1:1/v1")
    status, said = s.complaint(prefix=s.cage(), argv=s.inside())
    said = [line for line in said.splitlines() if "as root" not in line]
    assert status == 1 and len(said) == 1, said
    assert "no certificates for https" in said[0] and "upstream.ca_file" in said[0]


@pytest.mark.parametrize("closed", [(1, 2), (0, 1, 2)], ids=str)
def test_closed_descriptors(site, up, closed):
    """The store's files must not become standard error."""
    s = site(log={"target": "stderr"})
    if s.single:
        closed = (1, 2)
    s.start(closed=closed)
    pid = s.master.pid if s.single else s.worker_pids()[0]
    try:
        links = [os.readlink(f"/proc/{pid}/fd/{fd}") for fd in closed]
        assert links == ["/dev/null"] * len(closed)
    except PermissionError:
        pass  # only root sees the descriptors of a worker
    serves(s, up)
    done = os.spawnlp(os.P_WAIT, "sh", "sh", "-c", f"{s.path_of('bin', 'sluicectl')} -c {s.path} status 0>&- 1>&- 2>&-")
    assert done == 0
    assert s.ask().status == 200


# Limits


@without_asan
@pytest.mark.parametrize("kb", [512000, 100000])
def test_address_space(site, up, kb):
    s = site(allow=["addresses are short"])
    s.start(before=limit(resource.RLIMIT_AS, kb * 1024))
    serves(s, up)
    if kb == 512000:
        assert "addresses are short" not in s.log_text()
        assert s.ask(extra="x" * (4 * MIB)).status == 200


@without_asan
def test_large_store_in_a_small_address_space(site, up):
    """Another process has let the map grow beyond what this one may have."""
    s = site()
    serves(s.start(), up)
    s.stop()
    with open(s.path_of("state", "live", "data.mdb"), "r+b") as f:
        page = os.sysconf("SC_PAGESIZE")
        for at in (0, page):  # the map's size in both heads
            f.seek(at + 16 + 16)
            f.write((1 << 30).to_bytes(8, "little"))
    s.start(before=limit(resource.RLIMIT_AS, 512000 * 1024))
    assert s.ask().status == 200
    assert s.account()["calls"] == 3


def test_few_descriptors(site, up):
    s = site()
    serves(s.start(before=limit(resource.RLIMIT_NOFILE, 64)), up)


def test_small_files(site):
    s = site(allow=STORE)
    s.start(before=limit(resource.RLIMIT_FSIZE, 16384))
    assert "ulimit -f" in why_not_stored(s)


def test_files_of_some_size(site, up):
    serves(site().start(before=limit(resource.RLIMIT_FSIZE, 4 * MIB)), up)


def test_no_core_file(site, up):
    s = site()
    serves(s.start(before=lambda: resource.setrlimit(resource.RLIMIT_CORE, (MIB, MIB))), up)
    with open(f"/proc/{s.master.pid}/limits") as f:
        core = next(line for line in f if line.startswith("Max core"))
    assert core.split()[4] == "0"


@root_only
@without_asan
def test_no_thread_for_a_name(site, up, tmp_path):
    """All processes of the user are in use, and libcurl looks names up in a thread."""
    hosts = tmp_path / "hosts"
    hosts.write_text("127.0.0.1 provider.test\n")
    s = site(base_url=up.url.replace("127.0.0.1", "provider.test")).own()
    prefix = mounts(f"mount --bind {hosts} /etc/hosts") + ["prlimit", "--nproc=1:1"]
    # the limit counts what runs at an execve or fork: the pool needs its workers
    if not s.single:
        prefix[-1] = "--nproc=3:3"
    serves(s.start(prefix=prefix + AS_NOBODY), up)
    a = s.account()
    assert (a["errors"], a["fails"]) == (0, 0)


@root_only
@without_asan
def test_no_thread_and_no_such_name(site, up):
    s = site(base_url="http://nobody.invalid/v1").own()
    n = 1 if s.single else 3
    s.start(prefix=["prlimit", f"--nproc={n}:{n}"] + AS_NOBODY)
    a = s.ask()
    assert a.status == 502 and "resolve" in a.error["message"], a.out


# Parents without manners


def test_umask(site, up):
    s = site()
    serves(s.start(before=lambda: os.umask(0)), up)
    for folder, names, files in os.walk(s.path_of("state")):
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700, folder
        for name in files:
            assert stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode) & 0o77 == 0, name
    if not s.single:
        assert stat.S_IMODE(os.stat(s.address[5:]).st_mode) == 0o660


SIGNALS = [signal.SIGCHLD, signal.SIGPIPE, signal.SIGHUP, signal.SIGTERM, signal.SIGUSR1]


def ignore_all():
    for number in SIGNALS:
        signal.signal(number, signal.SIG_IGN)


def block_all():
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())


@pytest.mark.parametrize("how", [ignore_all, block_all])
def test_signals(site, up, how):
    s = site(allow=["worker"])
    serves(s.start(before=how), up)
    if not s.single:
        old = s.worker_pids()
        os.kill(old[0], signal.SIGKILL)
        wait_until(lambda: len(set(s.worker_pids()) - set(old)) == 1, 3, "the worker was replaced")
        assert not alive(old[0])
        assert not os.path.exists(f"/proc/{old[0]}"), "the dead worker was not reaped"
    assert s.stop() < 3
    assert s.master.returncode == 0


def test_client_that_closes_early_with_sigpipe_default(site, up):
    """SIGPIPE at its default must not end the process."""
    up.script(K1, stream(chat_chunks(*["x"] * 50), gap=0.02))
    s = site()
    s.start(before=lambda: signal.signal(signal.SIGPIPE, signal.SIG_DFL))
    a = s.open()
    a.until(b"x")
    a.wire.sock.shutdown(socket.SHUT_RDWR)
    a.close()
    assert s.ask().status == 200
    assert s.master.poll() is None
