# SPDX-License-Identifier: Apache-2.0
"""An HTTP server on loopback that serves bytes from memory, with Range, and misbehaves as told."""
import http.server
import threading


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        server = self.server
        name = self.path.rsplit("/", 1)[-1]
        plan = server.plans.pop(0) if server.plans else {}
        record = {"path": self.path, "range": self.headers.get("Range"), "if_range": self.headers.get("If-Range"),
                  "sent": 0}
        server.requests.append(record)
        self.close_connection = True
        if name not in server.files or "status" in plan:
            self.send_error(plan.get("status", 404))
            return
        body, tag = server.files[name], f'"{hash(server.files[name])}"'
        start = 0
        wants_range = record["range"] and not plan.get("no_range")
        if wants_range and record["if_range"] in (None, tag):
            start = int(record["range"].removeprefix("bytes=").rstrip("-"))
            if start >= len(body):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(body) - 1}/{len(body)}")
        else:
            self.send_response(200)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body) - start))
        self.end_headers()
        end = min(len(body), start + plan.get("drop_after", len(body)))
        record["sent"] = end - start  # before it is sent: a test may look as soon as its client has ended
        self.wfile.write(body[start:end])
        self.wfile.flush()
        if "hang" in plan:  # until the client has gone or the test ends
            server.hangs.set()
            server.closing.wait(plan["hang"])

    def log_message(self, *_):
        pass


class FileServer(http.server.ThreadingHTTPServer):
    """files: name -> bytes. plans: one dict per request to come: status, drop_after, no_range, hang."""
    daemon_threads = True

    def __init__(self, files):
        super().__init__(("127.0.0.1", 0), Handler)
        self.files, self.plans, self.requests = files, [], []
        self.hangs, self.closing = threading.Event(), threading.Event()
        self.url = f"http://127.0.0.1:{self.server_address[1]}"
        self.thread = threading.Thread(target=self.serve_forever, args=(0.02,))
        self.thread.start()

    def sent(self):
        return sum(request["sent"] for request in self.requests)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.closing.set()
        self.shutdown()
        self.thread.join()
        self.server_close()

    def handle_error(self, *_):
        pass  # a client that hangs up is what the tests are about
