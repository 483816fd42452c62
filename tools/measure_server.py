#!/usr/bin/env python3
"""Measures a running `sfumato serve` over loopback: latency, overload, slow connections.

    build/apps/sfumato serve --port 7861 --queue 8 &
    python tools/measure_server.py --port 7861 latency --images 1,4 -r 5      # generation time and end-to-end time
    python tools/measure_server.py --port 7861 overload --seconds 30          # 10 times what it can draw
    python tools/measure_server.py --port 7861 slow --connections 500 --pid PID

Prints Markdown. Figures go into docs/server.md with machine and commit.
"""
import argparse
import http.client
import json
import pathlib
import socket
import statistics
import sys
import threading
import time


def ask(port, method, path, body=None, timeout=600):
    """(status, headers, body, seconds)"""
    begin = time.perf_counter()
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    data = json.dumps(body) if body is not None else None
    connection.request(method, path, data, {"Content-Type": "application/json"} if data else {})
    answer = connection.getresponse()
    data = answer.read()
    connection.close()
    return answer.status, {k.lower(): v for k, v in answer.getheaders()}, data, time.perf_counter() - begin


def request_of(args, images=1, seed=1):
    return {"prompt": "a red apple", "n": images, "size": args.size, "steps": args.steps, "seed": seed,
            "response_format": "b64_json"}


def percentile(values, q):
    values = sorted(values)
    return values[min(len(values) - 1, int(q * len(values)))]


def drawing_seconds(port, images, args):
    """What the job says it took to draw, without HTTP."""
    width, height = args.size.split("x")
    spec = {"prompt": "a red apple", "batch_count": images, "width": int(width), "height": int(height),
            "steps": args.steps, "seed": 1}
    job = json.loads(ask(args.port, "POST", "/api/jobs", spec)[2])
    while True:
        state = json.loads(ask(port, "GET", "/api/jobs/" + job["id"])[2])
        if state["status"] not in ("queued", "running"):
            return state["seconds"]
        time.sleep(0.01)


def latency(args):
    print("| images | generation s | end to end s | images/s |\n|---|---|---|---|")
    for images in (int(n) for n in args.images.split(",")):
        drawing, whole = [], []
        for r in range(args.repeat + 1):
            inner = drawing_seconds(args.port, images, args)
            status, _, _, seconds = ask(args.port, "POST", "/v1/images/generations", request_of(args, images))
            assert status == 200, status
            if r:  # the first warms up
                drawing.append(inner)
                whole.append(seconds)
        end = statistics.median(whole)
        print(f"| {images} | {statistics.median(drawing):.3f} | {end:.3f} | {images / end:.2f} |", flush=True)


def overload(args):
    seconds = []
    for k in range(6):
        seconds.append(ask(args.port, "POST", "/v1/images/generations", request_of(args, seed=k))[3])
    capacity = 1 / statistics.median(seconds[1:])
    print(f"alone, one at a time: {capacity:.2f} images/s; offered: {10 * capacity:.1f}/s for {args.seconds} s")
    lock, served, refused, others = threading.Lock(), [], [], []

    def one(k):
        try:
            status, headers, _, took = ask(args.port, "POST", "/v1/images/generations", request_of(args, seed=k))
        except OSError as error:
            status, headers, took = str(error), {}, 0
        with lock:
            if status == 200: served.append(took)
            elif status in (429, 503) and "retry-after" in headers: refused.append(took)
            else: others.append(status)

    threads, begin = [], time.time()
    k = 0
    while time.time() - begin < args.seconds:
        k += 1
        threads.append(threading.Thread(target=one, args=(k,), daemon=True))
        threads[-1].start()
        time.sleep(max(0, begin + k / (10 * capacity) - time.time()))
    inside = len(served)
    for t in threads: t.join()
    print(f"sent {k}, served {len(served)}, refused with Retry-After {len(refused)}, others {others}")
    print(f"goodput while offered {inside / args.seconds:.2f} images/s = {inside / args.seconds / capacity:.1%} of capacity")
    if refused:
        print(f"refusals: median {statistics.median(refused) * 1e3:.1f} ms, p99 {percentile(refused, 0.99) * 1e3:.1f} ms")


def rss_mb(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1]) / 1024
    return 0.0


def health(port, count):
    return [ask(port, "GET", "/health/live")[3] for _ in range(count)]


def slow(args):
    before = health(args.port, 200)
    memory = rss_mb(args.pid) if args.pid else 0
    sockets = []
    for k in range(args.connections):
        s = socket.create_connection(("127.0.0.1", args.port))
        s.sendall(b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 100000\r\n" + (b"\r\n{" if k % 2 else b"X"))
        sockets.append(s)
    during = []
    for _ in range(10):
        for s in sockets:
            try:
                s.sendall(b"-")
            except OSError:
                pass  # the server has had enough of it, as it should
        during += health(args.port, 50)
    grown = rss_mb(args.pid) - memory if args.pid else float("nan")
    for s in sockets: s.close()
    for name, values in (("before", before), (f"with {args.connections} slow connections", during)):
        print(f"health {name}: median {statistics.median(values) * 1e3:.2f} ms, p99 {percentile(values, 0.99) * 1e3:.2f} ms")
    print(f"memory grown {grown:.1f} MB")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["latency", "overload", "slow"])
    parser.add_argument("--port", type=int, default=7860)
    parser.add_argument("--size", default="128x128")
    parser.add_argument("--steps", type=int, default=20)
    parser.add_argument("--images", default="1,4")
    parser.add_argument("-r", "--repeat", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--connections", type=int, default=500)
    parser.add_argument("--pid", type=int, help="of the server, for its memory")
    args = parser.parse_args()
    {"latency": latency, "overload": overload, "slow": slow}[args.what](args)


if __name__ == "__main__":
    sys.exit(main())
