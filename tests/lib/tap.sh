#!/bin/sh
# Run a unit test for prove: cmocka 1.1 reports a test that was skipped as "not ok", which prove takes for a failure.
out=$(CMOCKA_MESSAGE_OUTPUT=TAP "$@")
status=$?
printf '%s\n' "$out" | sed 's/^not ok \(.*# SKIP\)/ok \1/'
exit $status
