#!/usr/bin/env python3
"""Servers behind HAProxy under load, and while they die: deploy/haproxy's claims, measured.

    python tools/farm_test.py [--sfumato build/apps/sfumato] [--servers 3] [--clients 12] [--requests 300] [--steps 4]
                              [--part load,chaos,restarts,overload]

load      a closed loop of clients; its throughput beside that of the servers one by one
chaos     the same while a random server is killed (-9) or stopped and continued, ten times
restarts  the same while servers are restarted in turn with SIGTERM, twenty times
overload  ten times more clients than the queue holds, on one server: how fast refusals come, how many pictures a second

Prints one JSON object a part. Needs haproxy, no Python packages. The embedded model, one thread a server.
"""
import argparse
import base64
import hashlib
import http.client
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time

PORT = 17860


class Server:
    def __init__(self, args, index):
        self.args, self.index, self.process = args, index, None

    def start(self, *more):
        command = [self.args.sfumato, "serve", "--port", str(PORT + self.index), "--agent-port", str(PORT + 100 + self.index),
                   "--id-prefix", f"s{self.index}-", "-t", "1", "--quiet", *more]
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def wait_ready(self):
        for _ in range(600):
            try:
                if ask(PORT + self.index, "GET", "/health/ready", timeout=2)[0] == 200:
                    return
            except OSError:
                pass
            time.sleep(0.05)
        raise SystemExit(f"server {self.index} did not become ready")

    def stop(self, how=signal.SIGTERM):
        self.process.send_signal(how)
        self.process.wait()


def ask(port, method, path, body=None, timeout=120):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        connection.request(method, path, json.dumps(body) if body else None, {"Content-Type": "application/json"})
        response = connection.getresponse()
        return response.status, response.read(), dict(response.getheaders())
    finally:
        connection.close()


def draw(port, seed, steps):
    body = {"prompt": "a red apple", "seed": seed, "steps": steps, "response_format": "b64_json"}
    status, answer, headers = ask(port, "POST", "/v1/images/generations", body)
    picture = base64.b64decode(json.loads(answer)["data"][0]["b64_json"]) if status == 200 else b""
    return status, hashlib.sha256(picture).hexdigest(), headers


class Loop:
    """Clients that each ask for the next picture as soon as they have one."""

    def __init__(self, port, clients, requests, steps, seeds=10):
        self.port, self.requests, self.steps, self.seeds = port, requests, steps, seeds
        self.lock, self.next, self.faults, self.seen, self.latencies = threading.Lock(), 0, [], {}, []
        self.threads = [threading.Thread(target=self.client) for _ in range(clients)]

    def client(self):
        while True:
            with self.lock:
                if self.next == self.requests:
                    return
                index, self.next = self.next, self.next + 1
            begin = time.monotonic()
            try:
                status, digest, _ = draw(self.port, index % self.seeds, self.steps)
            except OSError as error:
                status, digest = repr(error), ""
            with self.lock:
                self.latencies.append(time.monotonic() - begin)
                if status != 200:
                    self.faults.append(status)
                else:
                    self.seen.setdefault(index % self.seeds, set()).add(digest)

    def run(self, meanwhile=None):
        begin = time.monotonic()
        for thread in self.threads:
            thread.start()
        while meanwhile and any(thread.is_alive() for thread in self.threads):
            if not meanwhile():
                break
        for thread in self.threads:
            thread.join()
        seconds = time.monotonic() - begin
        ordered = sorted(self.latencies)
        return {"requests": self.requests, "failed": len(self.faults), "faults": sorted(map(str, set(self.faults))),
                "pictures_per_second": round((self.requests - len(self.faults)) / seconds, 3),
                "seeds_with_differing_pictures": sum(len(digests) > 1 for digests in self.seen.values()),
                "latency_p50": round(ordered[len(ordered) // 2], 3), "latency_p99": round(ordered[int(len(ordered) * 0.99)], 3)}


def part_load(args, servers):
    """The servers at once without HAProxy share the machine as they do behind it: their sum is what can be had."""
    loops = [Loop(PORT + s.index, args.clients // len(servers), args.requests // len(servers), args.steps) for s in servers]
    results = [None] * len(loops)
    threads = [threading.Thread(target=lambda i=i: results.__setitem__(i, loops[i].run())) for i in range(len(loops))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    direct = sum(result["pictures_per_second"] for result in results)
    result = Loop(PORT, args.clients, args.requests, args.steps).run()
    return result | {"direct_pictures_per_second": round(direct, 3), "of_direct": round(result["pictures_per_second"] / direct, 3)}


def part_chaos(args, servers):
    left = [10]

    def strike():
        time.sleep(1)
        server = random.choice(servers)
        if left[0] % 2:
            server.stop(signal.SIGKILL)
            server.start()
            server.wait_ready()
        else:
            server.process.send_signal(signal.SIGSTOP)
            time.sleep(2)
            server.process.send_signal(signal.SIGCONT)
        left[0] -= 1
        return left[0] > 0

    return Loop(PORT, args.clients, args.requests, args.steps).run(strike) | {"strikes": 10 - left[0]}


def part_restarts(args, servers):
    done = [0]

    def restart():
        server = servers[done[0] % len(servers)]
        server.stop()
        server.start()
        server.wait_ready()
        time.sleep(1.5)  # the balancer looks once a second
        done[0] += 1
        return done[0] < 20

    return Loop(PORT, args.clients, args.requests, args.steps).run(restart) | {"restarts": done[0]}


def part_overload(args, servers):
    """One server, a queue of four, and clients who come back at once whatever they are told."""
    server = servers[0]
    server.stop()
    server.start("--queue", "4")
    server.wait_ready()
    capacity = Loop(PORT + 1, 2, 40, args.steps).run()["pictures_per_second"]
    refusals, done, lock = [], [0], threading.Lock()
    end = time.monotonic() + 15

    def client(seed):
        while time.monotonic() < end:
            begin = time.monotonic()
            status, _, headers = draw(PORT + 1, seed, args.steps)
            seconds = time.monotonic() - begin
            with lock:
                if status == 200:
                    done[0] += 1
                else:
                    refusals.append((seconds, status, "Retry-After" in headers))
            if status != 200:
                time.sleep(0.2)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(50)]
    begin = time.monotonic()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    seconds = time.monotonic() - begin
    times = sorted(r[0] for r in refusals)
    return {"capacity": capacity, "goodput": round(done[0] / seconds, 3), "of_capacity": round(done[0] / seconds / capacity, 3),
            "refusals": len(refusals), "refusal_statuses": sorted({r[1] for r in refusals}),
            "all_with_retry_after": all(r[2] for r in refusals), "refusal_p99_seconds": round(times[int(len(times) * 0.99)], 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sfumato", default="build/apps/sfumato")
    parser.add_argument("--servers", type=int, default=3)
    parser.add_argument("--clients", type=int, default=12)
    parser.add_argument("--requests", type=int, default=300)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--part", default="load,chaos,restarts,overload")
    args = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(subprocess.run([args.sfumato, "serve", "--print-haproxy", str(args.servers), "--port", str(PORT)],
                                    check=True, capture_output=True, text=True).stdout)
        config.flush()
        servers = [Server(args, i + 1) for i in range(args.servers)]
        for server in servers:
            server.start()
        for server in servers:
            server.wait_ready()
        balancer = subprocess.Popen(["haproxy", "-f", config.name], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(3)
        try:
            for part in args.part.split(","):
                print(json.dumps({"part": part} | globals()[f"part_{part}"](args, servers)), flush=True)
        finally:
            balancer.terminate()
            for server in servers:
                if server.process.poll() is None:
                    server.process.send_signal(signal.SIGCONT)
                    server.stop(signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
