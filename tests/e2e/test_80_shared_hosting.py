"""The README's way into a web space, as shared-hosting.sh goes it."""

import os
import subprocess

import stage


def test_readme_alone():
    script = os.path.join(stage.ROOT, "tests", "e2e", "shared-hosting.sh")
    env = {**os.environ, "SLUICE_BUILD": stage.BUILD}
    env.pop("MAKEFLAGS", None)
    done = subprocess.run(
        ["sh", script], env=env, capture_output=True, text=True, timeout=300, check=False
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
