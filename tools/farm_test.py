#!/usr/bin/env python3
"""Servers behind HAProxy under load, and while they die: deploy/haproxy's claims, measured.

    python tools/farm_test.py [--sfumato build/apps/sfumato] [--servers 3] [--clients 12] [--requests 300] [--steps 4]
                              [--part load,chaos,restarts,overload] [--rounds 1] [--apart] [--balance leastconn] [--log FILE]

load      a closed loop of clients; its throughput beside that of the servers asked directly, in turns
chaos     the same while a random server is killed (-9) or stopped and continued, ten times
restarts  the same while servers are restarted in turn with SIGTERM, twenty times
overload  ten times more clients than the queue holds, on one server: how fast refusals come, how many pictures a second

Prints one JSON object a part. Needs haproxy, no Python packages. The embedded model, one thread a server. --apart gives the
servers half of the cores, and HAProxy and the clients the other half, as if they were machines of their own.
"""
import argparse
import base64
import collections
import hashlib
import http.client
import json
import os
import random
import re
import selectors
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

PORT = 17860
TICKS = os.sysconf("SC_CLK_TCK")
CORES = sorted(os.sched_getaffinity(0))


def cpu_seconds(roots):
    """Of these processes and their children, alive now."""
    parents, seconds = {}, {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/stat") as stat:
                fields = stat.read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(pid)], seconds[int(pid)] = int(fields[1]), (int(fields[11]) + int(fields[12])) / TICKS
    family = set(roots)
    while more := {pid for pid, parent in parents.items() if parent in family} - family:
        family |= more
    return sum(seconds.get(pid, 0) for pid in family)


def pinned(args, command, servers):
    """On its half of the cores, with --apart."""
    half = CORES[:len(CORES) // 2] if servers else CORES[len(CORES) // 2:]
    return ["taskset", "-c", ",".join(map(str, half)), *command] if args.apart else command


class Server:
    def __init__(self, args, index):
        self.args, self.index, self.process = args, index, None

    def start(self, *more):
        command = [self.args.sfumato, "serve", "--port", str(PORT + self.index), "--agent-port", str(PORT + 100 + self.index),
                   "--id-prefix", f"s{self.index}-", "-t", "1", "--quiet", *more]
        self.process = subprocess.Popen(pinned(self.args, command, servers=True), stderr=subprocess.DEVNULL)

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


class Connection:
    """One client of a closed loop: keeps its connection, has one request under way."""

    def __init__(self, loop, port):
        self.loop, self.port, self.socket, self.buffer = loop, port, None, b""

    def ask(self, index):
        self.index, self.begin, self.is_again = index, time.monotonic(), False
        self.send()

    def send(self):
        self.buffer, self.whole = b"", None
        if not self.socket:
            self.socket = socket.create_connection(("127.0.0.1", self.port))
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.loop.selector.register(self.socket, selectors.EVENT_READ, self)
        self.socket.sendall(self.loop.requests[self.index % len(self.loop.requests)])

    def close(self):
        if self.socket:
            self.loop.selector.unregister(self.socket)
            self.socket.close()
        self.socket = None

    def read(self):
        """(status, digest of the picture) once the answer is there; None before."""
        try:
            data = self.socket.recv(1 << 20)
        except OSError as error:
            self.close()
            return repr(error), ""
        if not data:
            self.close()
            return "closed without an answer", ""
        self.buffer += data
        if self.whole is None and (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            self.whole = end + 4 + int(re.search(rb"(?i)content-length: *(\d+)", self.buffer[:end])[1])
        if self.whole is None or len(self.buffer) < self.whole:
            return None
        answer = self.buffer
        if re.search(rb"(?i)connection: *close", answer[:answer.find(b"\r\n\r\n")]):
            self.close()
        status = int(answer[9:12])
        begin = answer.find(b'"b64_json":"') + 12
        return status, hashlib.sha256(answer[begin:answer.find(b'"', begin)]).digest() if status == 200 else answer[-300:]


class Loop:
    """Clients that each ask for the next picture as soon as they have one. All in one thread, so that they cost little of
    the cores that the servers draw with. `ports`: (port, clients) pairs; each port has an equal part of the requests."""

    def __init__(self, ports, requests, steps, seeds=10):
        self.selector, self.total = selectors.DefaultSelector(), requests
        self.left = {port: requests // len(ports) for port, _ in ports}
        self.connections = [Connection(self, port) for port, clients in ports for _ in range(clients)]
        self.faults, self.seen, self.latencies, self.idle, self.asked = collections.Counter(), {}, [], [], 0
        self.requests = []
        for seed in range(seeds):
            body = json.dumps({"prompt": "a red apple", "seed": seed, "steps": steps, "response_format": "b64_json"})
            self.requests.append((f"POST /v1/images/generations HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                                  f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n{body}").encode())

    def next(self, connection):
        if not self.left[connection.port]:
            return False
        self.left[connection.port] -= 1
        self.asked += 1
        connection.ask(self.asked)
        return True

    def is_answered(self, connection):
        answer = connection.read()
        if answer is None:
            return False
        status, digest = answer
        self.latencies.append(time.monotonic() - connection.begin)
        if status == 200:
            self.seen.setdefault(connection.index % len(self.requests), set()).add(digest)
        else:
            self.faults[f"{status} {digest[-120:]}" if digest else status] += 1
        return True

    def run(self, meanwhile=None):
        """`meanwhile` is called in a thread of its own as long as it returns True; the clients go on until it does not."""
        striker = threading.Thread(target=self.strike, args=(meanwhile,)) if meanwhile else None
        begin, cpu = time.monotonic(), time.process_time()
        if striker:
            striker.start()
        busy = sum(self.next(connection) for connection in self.connections)
        while busy:
            for key, _ in self.selector.select():
                if self.is_answered(key.data):
                    if striker and striker.is_alive() and not self.left[key.data.port]:
                        self.left[key.data.port], self.total = 1, self.total + 1
                    busy -= not self.next(key.data)
        seconds = time.monotonic() - begin
        if striker:
            striker.join()
        failed, ordered = sum(self.faults.values()), sorted(self.latencies)
        return {"requests": self.total, "failed": failed, "faults": dict(self.faults), "seconds": round(seconds, 2),
                "pictures_per_second": round((self.total - failed) / seconds, 3),
                "seeds_with_differing_pictures": sum(len(digests) > 1 for digests in self.seen.values()),
                "latency_p50": round(ordered[len(ordered) // 2], 3), "latency_p99": round(ordered[int(len(ordered) * 0.99)], 3),
                "client_cpu": round(time.process_time() - cpu, 2)}

    @staticmethod
    def strike(meanwhile):
        while meanwhile():
            pass


def measured(args, servers, ports):
    """A closed loop with the CPU seconds of everybody in it."""
    roots = [server.process.pid for server in servers]
    before = cpu_seconds(roots), cpu_seconds([args.balancer.pid])
    result = Loop(ports, args.requests, args.steps).run()
    result["server_cpu"] = round(cpu_seconds(roots) - before[0], 2)
    result["haproxy_cpu"] = round(cpu_seconds([args.balancer.pid]) - before[1], 2)
    return result


def part_load(args, servers):
    """The servers at once without HAProxy share the machine as they do behind it: their sum is what can be had. In turns,
    since other programs may run: the medians of all rounds. `of_direct_by_cpu` compares pictures per CPU second of the
    servers, so what HAProxy and the clients take of the servers' cores does not count."""
    farm, direct = [], []
    for _ in range(args.rounds):
        direct.append(measured(args, servers, [(PORT + s.index, args.clients // len(servers)) for s in servers]))
        farm.append(measured(args, servers, [(PORT, args.clients)]))
    speed = lambda r: r["pictures_per_second"]
    by_cpu = lambda r: (r["requests"] - r["failed"]) / r["server_cpu"]
    ratio = lambda value: [round(value(f) / value(d), 3) for f, d in zip(farm, direct)]
    result = {"failed": sum(r["failed"] for r in farm + direct), "of_direct": statistics.median(ratio(speed)),
              "of_direct_by_cpu": statistics.median(ratio(by_cpu)), "ratios": ratio(speed), "ratios_by_cpu": ratio(by_cpu)}
    for name, results in (("farm", farm), ("direct", direct)):
        result[name] = {key: statistics.median(r[key] for r in results) for key in
                        ("pictures_per_second", "latency_p50", "latency_p99", "seconds", "server_cpu", "haproxy_cpu", "client_cpu",
                         "seeds_with_differing_pictures")}
    return result


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

    return Loop([(PORT, args.clients)], args.requests, args.steps).run(strike) | {"strikes": 10 - left[0]}


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

    return Loop([(PORT, args.clients)], args.requests, args.steps).run(restart) | {"restarts": done[0]}


def part_overload(args, servers):
    """One server, a queue of four, and clients who come back at once whatever they are told."""
    server = servers[0]
    server.stop()
    server.start("--queue", "4")
    server.wait_ready()
    capacity = Loop([(PORT + 1, 2)], 40, args.steps).run()["pictures_per_second"]
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
    parser.add_argument("--rounds", type=int, default=1, help="of the part load")
    parser.add_argument("--apart", action="store_true", help="servers on half of the cores, all else on the other half")
    parser.add_argument("--balance", default="leastconn", choices=["leastconn", "random"])
    parser.add_argument("--log", default=os.devnull, help="HAProxy's log")
    args = parser.parse_args()
    os.environ["OMP_WAIT_POLICY"] = "passive"
    with tempfile.NamedTemporaryFile("w", suffix=".cfg") as config:
        config.write(subprocess.run([args.sfumato, "serve", "--print-haproxy", str(args.servers), "--port", str(PORT),
                                     "--balance", args.balance],
                                    check=True, capture_output=True, text=True).stdout)
        config.flush()
        servers = [Server(args, i + 1) for i in range(args.servers)]
        for server in servers:
            server.start()
        for server in servers:
            server.wait_ready()
        with open(args.log, "w") as log:
            args.balancer = subprocess.Popen(pinned(args, ["haproxy", "-f", config.name], servers=False), stdout=log, stderr=log)
        if args.apart:
            os.sched_setaffinity(0, CORES[len(CORES) // 2:])
        time.sleep(3)
        try:
            for part in args.part.split(","):
                print(json.dumps({"part": part} | globals()[f"part_{part}"](args, servers)), flush=True)
        finally:
            args.balancer.terminate()
            for server in servers:
                if server.process.poll() is None:
                    server.process.send_signal(signal.SIGCONT)
                    server.stop(signal.SIGKILL)


if __name__ == "__main__":
    sys.exit(main())
