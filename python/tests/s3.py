"""A real S3 server on loopback: moto, in a process of its own."""

import socket
import subprocess
import sys
import time

# Of moto's services only S3: looking for the right one takes as long as the answer.
SERVE = """
import sys
from moto.server import create_backend_app
from werkzeug.serving import run_simple
run_simple("127.0.0.1", int(sys.argv[1]), create_backend_app("s3"), threaded=True)
"""


class Server:
    """The server, until the end of a `with`."""

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        words = [sys.executable, "-c", SERVE, str(self.port)]
        quiet = subprocess.DEVNULL
        self.process = subprocess.Popen(words, stdout=quiet, stderr=quiet)
        for _ in range(300):
            try:
                socket.create_connection(("127.0.0.1", self.port)).close()
                return self
            except OSError:
                time.sleep(0.1)
        raise OSError("the S3 server does not start")

    @property
    def options(self):
        """What `pyarrow.fs.S3FileSystem` needs."""
        return {
            "endpoint_override": f"127.0.0.1:{self.port}",
            "scheme": "http",
            "region": "us-east-1",
            "access_key": "test",
            "secret_key": "test",
            "allow_bucket_creation": True,
            # A small file is one request, not three.
            "allow_delayed_open": True,
        }

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def upload(folder, fs, bucket):
    """Copy a folder into a new bucket."""
    fs.create_dir(bucket)
    for path in sorted(folder.rglob("*.dwt")):
        with fs.open_output_stream(f"{bucket}/{path.relative_to(folder)}") as to:
            to.write(path.read_bytes())
