#!/usr/bin/env python3
"""crema serve against ONNX Runtime behind a Python server, for the same requests in turn.

    python3 tests/bench/serving.py venv build/tools/crema
    --nets lenet,squeezenet --clients 1,8,64 --rounds 3 --seconds 3 choose what is measured

The peer is a bare ASGI application behind uvicorn, with uvloop and httptools, that reads the same KServe bodies with
binary tensors. With batches of 8 it runs together what uvicorn has read at a time. Each client has a connection and
sends its next request after an answer; all clients are in one process, on the cores of the server. Makes the virtual
environment if it is not there. Prints a row for each net and number of clients: requests per second, with the median
and the 99th percentile of latencies in ms, medians of the rounds.
"""
import argparse
import json
import os
import pathlib
import re
import select
import signal
import socket
import statistics
import struct
import subprocess
import sys
import time

from cpu_inference import NETS, ROOT, must, prepare, set_up

PACKAGES = ["numpy", "onnx", "onnxruntime", "uvicorn", "uvloop", "httptools"]
SERVERS = {"Crema, batch 8": 8, "Crema, batch 1": 1, "ONNX Runtime, batch 8": 8, "ONNX Runtime, batch 1": 1}
PEER = """
import asyncio, json, sys
import numpy, onnxruntime, uvicorn
model, port, batch, threads = sys.argv[1], *map(int, sys.argv[2:5])
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = threads
# Threads that spin while they wait take the cores from the event loop: half as many requests per second.
options.add_session_config_entry("session.intra_op.allow_spinning", "0")
session = onnxruntime.InferenceSession(model, options, ["CPUExecutionProvider"])
source, name = session.get_inputs()[0].name, session.get_outputs()[0].name
waiting = []

def compute():
    now, waiting[:] = waiting[:batch], waiting[batch:]
    if waiting:
        asyncio.get_running_loop().call_soon(compute)
    if not now:
        return
    (result,) = session.run([name], {source: numpy.concatenate([x for x, _ in now])})
    for row, (_, future) in enumerate(now):
        future.set_result(result[row:row + 1])

async def app(scope, receive, send):
    if scope["type"] != "http":
        return
    body, more = b"", True
    while more:
        part = await receive()
        body, more = body + part.get("body", b""), part.get("more_body")
    size = int(dict(scope["headers"])[b"inference-header-content-length"])
    shape = json.loads(body[:size])["inputs"][0]["shape"]
    x = numpy.frombuffer(body, numpy.float32, offset=size).reshape(shape)
    future = asyncio.get_running_loop().create_future()
    waiting.append((x, future))
    asyncio.get_running_loop().call_soon(compute)
    result = await future
    head = json.dumps({"outputs": [{"name": name, "datatype": "FP32", "shape": result.shape,
                                    "parameters": {"binary_data_size": result.nbytes}}]}).encode()
    answer = head + result.tobytes()
    await send({"type": "http.response.start", "status": 200, "headers": [
        (b"content-length", b"%d" % len(answer)), (b"inference-header-content-length", b"%d" % len(head))]})
    await send({"type": "http.response.body", "body": answer})

uvicorn.run(app, port=port, loop="uvloop", http="httptools", log_level="warning", access_log=False)
"""


def request_of(name, shape):
    count = 1
    for extent in shape:
        count *= extent
    values = struct.pack(f"{count}f", *(i * 2654435761 % 1000 / 1000 for i in range(count)))
    head = json.dumps({"inputs": [{"name": "data", "datatype": "FP32", "shape": shape,
                                   "parameters": {"binary_data_size": len(values)}}],
                       "parameters": {"binary_data_output": True}}).encode()
    return (f"POST /v2/models/{name}/infer HTTP/1.1\r\nHost: localhost\r\nInference-Header-Content-Length: "
            f"{len(head)}\r\nContent-Length: {len(head) + len(values)}\r\n\r\n").encode() + head + values


class Client:
    """One connection that always has a request under way."""

    def __init__(self, port, request):
        self.socket = socket.create_connection(("127.0.0.1", port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.request, self.received = request, b""

    def send(self):
        self.begin = time.perf_counter()
        self.socket.sendall(self.request)

    def answer(self):
        """The body of the answer, or None before it is whole."""
        self.received += self.socket.recv(1 << 16)
        end = self.received.find(b"\r\n\r\n")
        if end < 0:
            return None
        head = self.received[:end].lower()
        size = int(re.search(rb"\r\ncontent-length: (\d+)", head).group(1))
        if len(self.received) < end + 4 + size:
            return None
        if b" 200 " not in head.split(b"\r\n")[0]:
            sys.exit(self.received.decode(errors="replace"))
        body, self.received = self.received[end + 4:], b""
        return body[int(re.search(rb"inference-header-content-length: (\d+)", head).group(1)):]


def load(port, request, clients, seconds):
    """Requests per second, and the median and the 99th percentile of latencies in ms."""
    poll = select.epoll()
    all_clients = {}
    for _ in range(clients):
        client = Client(port, request)
        all_clients[client.socket.fileno()] = client
        poll.register(client.socket, select.EPOLLIN)
        client.send()
    start = time.perf_counter() + 0.5  # to warm up
    latencies, answers, now = [], 0, 0
    while now < start + seconds:
        for number, _ in poll.poll():
            client = all_clients[number]
            if client.answer() is None:
                continue
            now = time.perf_counter()
            answers += now >= start
            if client.begin >= start:
                latencies.append(now - client.begin)
            client.send()
    for client in all_clients.values():
        client.socket.close()
    cuts = statistics.quantiles(latencies, n=100)
    return answers / seconds, 1000 * cuts[49], 1000 * cuts[98]


def start_server(server, python, crema, folder, name, args):
    """The process and its port, once it takes connections."""
    env = dict(os.environ, CREMA_FLAGS="", XDG_CONFIG_HOME=os.devnull, OMP_NUM_THREADS=str(args.threads))
    batch = SERVERS[server]
    if server.startswith("Crema"):
        command = [crema, "serve", "-model", folder / f"{name}_1.prototxt", "-weights", folder / f"{name}.caffemodel",
                   "-name", name, "-batch", batch, "-port", 0]
    else:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        command = [python, "-c", PEER, folder / f"{name}_any.onnx", port, batch, args.threads]
    process = subprocess.Popen([str(word) for word in command], stderr=subprocess.PIPE, text=True, env=env)
    if server.startswith("Crema"):
        for line in process.stderr:
            if found := re.search(r"http://[\d.]+:(\d+)/", line):
                return process, int(found.group(1))
        sys.exit(f"{server} has not started")
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return process, port
        except ConnectionRefusedError:
            time.sleep(0.05)
    sys.exit(f"{server} has not started: {process.poll()}")


def measure(server, python, crema, folder, name, shape, args):
    """Rows of load() by number of clients, and an answer."""
    process, port = start_server(server, python, crema, folder, name, args)
    try:
        request = request_of(name, shape)
        one = Client(port, request)
        one.send()
        while (body := one.answer()) is None:
            pass
        one.socket.close()
        rows = {clients: load(port, request, clients, args.seconds) for clients in args.clients}
    finally:
        process.send_signal(signal.SIGINT)
        process.wait()
    return rows, struct.unpack(f"{len(body) // 4}f", body)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("venv", type=pathlib.Path)
    parser.add_argument("crema", type=pathlib.Path)
    parser.add_argument("--nets", default="lenet,squeezenet")
    parser.add_argument("--clients", default="1,8,64")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3, help="of each measurement")
    parser.add_argument("--threads", type=int, default=1, help="that compute a pass")
    parser.add_argument("--folder", type=pathlib.Path, help="for the models; kept (VENV/models)")
    args = parser.parse_args()
    args.clients = [int(number) for number in args.clients.split(",")]
    python, crema, folder = set_up(parser, args, [(args.nets, NETS)], PACKAGES)
    loads = [os.getloadavg()[0]]
    print("| net, clients |", " | ".join(SERVERS), "| best Crema / best peer |")
    print("|---|" + "---|" * (len(SERVERS) + 1), flush=True)
    for name in args.nets.split(","):
        stem, shape = prepare(python, crema, folder, name, 1, False)
        must([crema, "export", "-model", stem.with_suffix(".prototxt"), "-weights", folder / f"{name}.caffemodel",
              "-verify=false", "-output", folder / f"{name}_any.onnx"])
        results, want = {server: [] for server in SERVERS}, None
        for _ in range(args.rounds):
            for server, rows in results.items():
                row, answer = measure(server, python, crema, folder, name, [int(e) for e in shape.split("x")], args)
                rows.append(row)
                want = want or answer
                if max(abs(a - b) for a, b in zip(answer, want)) > 1e-3 or len(answer) != len(want):
                    sys.exit(f"{server} answers {answer[:5]}, but {next(iter(SERVERS))} {want[:5]}")
                loads.append(os.getloadavg()[0])
        for clients in args.clients:
            cells, best = [], {}
            for server, rows in results.items():
                rate, half, most = (statistics.median(row[clients][i] for row in rows) for i in range(3))
                cells.append(f"{rate:,.0f} ({half:.2f}, {most:.2f})")
                best.setdefault(server.split(",")[0], []).append(rate)
            ratio = max(best["Crema"]) / max(best["ONNX Runtime"])
            print(f"| {name} {clients} |", " | ".join(cells), f"| {ratio:.2f} |", flush=True)
    print(f"load average {min(loads):.1f} to {max(loads):.1f} on {os.cpu_count()} cores", file=sys.stderr)


if __name__ == "__main__":
    main()
