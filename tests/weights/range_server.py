#!/usr/bin/env python3
"""A server of files for tests/weights/get_weights.sh and tests/data_scripts/data_scripts.sh: answers ranges, and can fail as real ones do.

    range_server.py FOLDER        prints its port

/cut/FILE: answers end after half of what they announced, or a fifth of the file. /whole/FILE: knows no ranges, and cuts the first answer. /wrong/FILE:
the file with its last byte changed. /absent/FILE: 404. /FILE: the file. Requests are logged to FOLDER/requests: path and first byte.
"""
import http.server
import os
import sys

folder = sys.argv[1]
cut = set()


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        kind, _, name = self.path[1:].rpartition("/")
        first = int(self.headers.get("Range", "bytes=0-").split("=")[1].split("-")[0])
        with open(os.path.join(folder, "requests"), "a") as log:
            log.write(f"{self.path} {first}\n")
        path = os.path.join(folder, name)
        if kind == "absent" or not os.path.isfile(path):
            return self.send_error(404)
        data = open(path, "rb").read()
        if kind == "wrong":
            data = data[:-1] + bytes([data[-1] ^ 1])
        if kind == "whole":
            first = 0
        if first >= len(data):
            return self.send_error(416)
        self.send_response(206 if first else 200)
        if first:
            self.send_header("Content-Range", f"bytes {first}-{len(data) - 1}/{len(data)}")
        self.send_header("Content-Length", str(len(data) - first))
        self.end_headers()
        end = len(data)
        if kind == "cut" or (kind == "whole" and name not in cut):
            end = first + max(len(data) // 5, (len(data) - first) // 2)
            cut.add(name)
        self.wfile.write(data[first:end])

    def log_message(self, *arguments):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
print(server.server_address[1], flush=True)
server.serve_forever()
