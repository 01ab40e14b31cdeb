"""tls - an authority for certificates, and a relay that ends TLS in front of a plain upstream.

The chain is as providers have it: an RSA root that clients trust, an EC authority below it, an EC
certificate for the host. `openssl` makes them; nothing here is trusted by anything outside of a test.
By hand: tls.py PORT makes an authority in the present folder, with system.pem as the bundle that trusts
it, relays to 127.0.0.1:PORT, and prints its own port.
"""

import asyncio
import os
import ssl
import subprocess
import sys
import threading

EC = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1")
RSA = ("-newkey", "rsa:2048")


class Authority:
    """Its files are in `folder`; `bundle` is what a client has to trust."""

    def __init__(self, folder, name="Test root"):
        self.folder, self.serial = folder, 0
        self.bundle = os.path.join(folder, "root.pem")
        self._request("root", RSA, name, "-x509", "-days", "2", "-addext", CA_USAGE)
        self._request("middle", EC, name + ", authority")
        self._sign("middle", "root", "basicConstraints=critical,CA:true\nkeyUsage=keyCertSign\n", 2)

    def issue(self, host="127.0.0.1", days=2):
        """(certificate with its chain, key) for a host; days < 0: it ended so long ago."""
        self.serial += 1
        name = f"host{self.serial}"
        kind = "IP" if host[0].isdigit() else "DNS"
        self._request(name, EC, host)
        self._sign(name, "middle", f"subjectAltName={kind}:{host}\n", days)
        chain = self._path(name + "-chain.pem")
        with open(chain, "w") as out:
            for part in (name, "middle"):
                with open(self._path(part + ".pem")) as f:
                    out.write(f.read())
        return chain, self._path(name + ".key")

    def context(self, host="127.0.0.1", days=2):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*self.issue(host, days))
        return context

    def system_bundle(self):
        """The system's authorities and ours in one file."""
        path = self._path("system.pem")
        with open(path, "w") as out:
            for part in (SYSTEM, self.bundle):
                with open(part) as f:
                    out.write(f.read())
        return path

    def _path(self, name):
        return os.path.join(self.folder, name)

    def _request(self, name, kind, subject, *more):
        out = self._path(name + (".pem" if "-x509" in more else ".req"))
        _openssl(
            "req", *kind, "-nodes", "-keyout", self._path(name + ".key"), "-out", out, "-subj",
            "/CN=" + subject, *more,
        )  # fmt: skip

    def _sign(self, name, issuer, extensions, days):
        with open(self._path(name + ".ext"), "w") as f:
            f.write(extensions)
        _openssl(
            "x509", "-req", "-in", self._path(name + ".req"), "-out", self._path(name + ".pem"),
            "-CA", self._path(issuer + ".pem"), "-CAkey", self._path(issuer + ".key"),
            "-CAcreateserial", "-extfile", self._path(name + ".ext"), "-days", str(days),
        )  # fmt: skip


CA_USAGE = "keyUsage=critical,keyCertSign"
SYSTEM = "/etc/ssl/certs/ca-certificates.crt"


def _openssl(*args):
    done = subprocess.run(["openssl", *args], capture_output=True, text=True)
    assert done.returncode == 0, f"openssl {args}: {done.stderr}"


class Relay:
    """Ends TLS on a port of its own and passes the bytes on to 127.0.0.1:`to`."""

    def __init__(self, context, to):
        self.context, self.to = context, to
        self.connections = self.refused = 0  # handshakes done, and broken off
        self._ready, self._loop = threading.Event(), asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        self._ready.wait(10)

    @property
    def url(self):
        return f"https://127.0.0.1:{self.port}/v1"

    def stop(self):
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)

    def _run(self):
        asyncio.set_event_loop(self._loop)
        self._loop.set_exception_handler(self._note)
        server = self._loop.run_until_complete(
            asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=self.context, backlog=512)
        )
        self.port = server.sockets[0].getsockname()[1]
        self._ready.set()
        self._loop.run_forever()
        server.close()
        for task in asyncio.all_tasks(self._loop):
            task.cancel()
        self._loop.run_until_complete(asyncio.sleep(0.01))
        self._loop.close()

    def _note(self, loop, what):
        pass

    async def _serve(self, reader, writer):
        self.connections += 1
        try:
            there, out = await asyncio.open_connection("127.0.0.1", self.to)
        except OSError:
            writer.close()
            return
        await asyncio.gather(_pump(reader, out), _pump(there, writer), return_exceptions=True)


async def _pump(reader, writer):
    try:
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    except (OSError, asyncio.CancelledError):
        pass
    finally:
        writer.close()


def main():
    authority = Authority(os.getcwd())
    authority.system_bundle()
    relay = Relay(authority.context(), int(sys.argv[1]))
    print(relay.port, flush=True)
    relay._thread.join()


if __name__ == "__main__":
    main()
