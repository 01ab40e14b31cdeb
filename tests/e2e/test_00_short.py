"""The short run: both web servers, what matters most, and five seconds of killed workers."""

import kill60
import pytest
import stage as st
import test_10_servers as long


@pytest.fixture(scope="module", params=["lighttpd-spawn", "apache-proxy"])
def stage(request):
    s = st.Stage(request.param)
    yield s
    s.stop()


test_plain = long.test_plain
test_events_come_one_by_one = long.test_events_come_one_by_one
test_healthz_is_for_anyone = long.test_healthz_is_for_anyone
test_client_leaves_a_silent_stream = long.test_client_leaves_a_silent_stream
test_killed_worker = long.test_killed_worker


@pytest.mark.parametrize("chunked", [False, True])
def test_200_kb(stage, chunked):
    long.test_large_bodies(stage, 200_000, chunked)


@pytest.mark.parametrize("headers", [{}, {"Remote-User": "admin"}], ids=["none", "forged"])
def test_no_credentials_no_upstream(stage, headers):
    long.test_no_credentials_no_upstream(stage, headers)


def test_admin_pages_are_for_the_admin(stage):
    long.test_admin_pages_are_for_the_admin(stage, "/status")


def test_killed_workers_under_load():
    kill60.run(5)
