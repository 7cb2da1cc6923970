"""An object store that answers wrongly, one way per object.

    faults.py

Prints its port. Every object has SIZE bytes, byte `i` being `i % 251`.
`/asked` says how many requests came for what follows it.
"""

import collections
import http.server
import re
import socket
import sys
import threading
import time

SIZE = (8 << 20) + 1000
BYTES = bytes(range(251)) * (SIZE // 251 + 1)


class Store(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    asked: collections.Counter = collections.Counter()
    lock = threading.Lock()

    def log_message(self, *_):
        pass

    def answer(self, status, body, promised=None, **headers):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body) if promised is None else promised))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def hang_up(self):
        self.wfile.flush()
        self.connection.shutdown(socket.SHUT_RDWR)
        self.close_connection = True

    def do_GET(self):
        path = self.path
        if path.startswith("/asked"):
            return self.answer(200, str(self.asked[path.removeprefix("/asked")]).encode())
        with self.lock:
            self.asked[path] += 1
            count = self.asked[path]
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        body = BYTES[first : last + 1]
        whole = f"bytes {first}-{last}/{SIZE}"
        kind = path.rsplit("/", 1)[-1]
        if kind == "flaky":
            kind = "short" if count % 2 else "good"
        if kind == "good":
            return self.answer(206, body, Content_Range=whole)
        if kind == "slow":
            time.sleep(0.2)
            return self.answer(206, body, Content_Range=whole)
        if kind == "short":
            self.answer(206, body[: len(body) // 2], len(body), Content_Range=whole)
        elif kind == "less":
            self.answer(206, body[:-1], Content_Range=whole)
        elif kind == "more":
            self.answer(206, body + b"!", Content_Range=whole)
        elif kind == "grown":
            self.answer(206, body, Content_Range=f"bytes {first}-{last}/{SIZE + 1}")
        elif kind == "elsewhere":
            self.answer(206, body, Content_Range=f"bytes {first + 1}-{last + 1}/{SIZE}")
        elif kind == "unranged":
            self.answer(206, body)
        elif kind == "whole":
            self.answer(200, BYTES[:SIZE])
        elif kind == "broken":
            self.answer(500, b"<Error><Code>InternalError</Code></Error>")
        self.hang_up()


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        pass  # The clients under test hang up as well.


server = Server(("127.0.0.1", 0), Store)
print(server.server_port, flush=True)
threading.Thread(target=lambda: (sys.stdin.read(), server.shutdown())).start()
server.serve_forever()
