#!/usr/bin/env python3
"""Sends malformed requests to `sfumato serve` and expects an answer that blames the client, every time.

    python tools/fuzz_server.py build/apps/sfumato --count 100000

Starts the server itself (`--url` takes one that runs), with the embedded model. Every request is one of the valid ones
below with a field at an extreme, of a wrong type or missing; or broken JSON, base64, pictures, multipart; or HTTP that
proxies and servers are known to read differently. Request k is made from --seed and k alone: `--only K` sends it again
and prints it. Fails (exit status 1) when the server dies or restarts a worker, when an answer has a status of 500 or
above (503 and 429 with Retry-After are a full queue, and counted), when there is no answer, or when the server's valid
picture is not the same afterwards.
"""
import argparse
import base64
import collections
import json
import random
import re
import socket
import struct
import subprocess
import sys
import threading
import time
import zlib

TIMEOUT_S = 30
EXTREMES = [0, -1, 1, 7, 63, 1 << 15, 65536, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 53) + 1, (1 << 63) - 1,
            -(1 << 63), 1 << 64, 10 ** 12, 10 ** 400, 0.5, -0.0, 1e-320, 1e308, -1e308, 64.5]
RAW_NUMBERS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999", b"0x10", b"01", b"+1", b"1.", b".5", b"1e", b"--1"]
OTHERS = [None, True, False, "", "64", "abc", [], {}, [1], [[]], {"a": 1}, ["a"], "\0", "\ud83c\udf4e", "\u202e", "x" * 5000,
          "../../etc/passwd", "http://127.0.0.1:1/x.png", "file:///etc/passwd", "data:image/png;base64,", "a,b:c\nd",
          "<lora:x:1>", "((((", "Euler a Karras", "%00%n%s"]


def png(width, height, rows=b""):
    """A PNG header that promises width x height, one bit a pixel, with `rows` for data."""
    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    text = b"parameters\0a red apple\nSteps: 1, Sampler: Euler, Seed: 1, Size: 8x8"
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"tEXt", text) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


SMALL_PNG = png(8, 8, b"\0\xaa" * 8)
HUGE_PNG = png(20000, 20000, b"\0" * (2501 * 20000))
PICTURES = [b"", b"\x89PNG", SMALL_PNG[:40], SMALL_PNG[:-5], png(0, 0), png(1 << 31, 1), png(1, 0xFFFFFFFF), png(8, 8),
            HUGE_PNG, b"\xff\xd8\xff\xe0" + b"\0" * 20, b"RIFF\x10\0\0\0WEBPVP8 " + b"\0" * 8, b"GIF89a", b"<svg/>",
            b"BM" + b"\xff" * 60]
SMALL_B64 = base64.b64encode(SMALL_PNG).decode()
BAD_BASE64 = ["====", "A", "AA=A", "%%%%", "\u00e9", "data:,x", "data:image/png;base64,!", "data:image/png;base64", "A" * 1001,
              SMALL_B64[:-1], SMALL_B64 + "=", " " + SMALL_B64, SMALL_B64 + "\n"]

# Cheap when they are drawn after all: one step, 64x64.
JOB = {"prompt": "a red apple", "negative_prompt": "x", "width": 64, "height": 64, "steps": 1, "cfg_scale": 1,
       "guidance_rescale": 0, "seed": 1, "batch_count": 1, "sampler": "Euler", "scheduler": "karras", "clip_skip": 1,
       "init_image": SMALL_B64, "mask": SMALL_B64, "strength": 1, "model": "emoji", "preview": False,
       "output_format": "png"}
OPENAI = {"prompt": "a red apple", "n": 1, "size": "64x64", "response_format": "b64_json", "output_format": "png",
          "output_compression": 90, "stream": False, "partial_images": 0, "user": "u", "seed": 1, "steps": 1,
          "negative_prompt": "x", "guidance_scale": 1, "sampler": "Euler", "scheduler": "karras", "model": "emoji",
          "background": "opaque", "quality": "auto", "style": "vivid", "moderation": "auto"}
A1111 = {"prompt": "a red apple", "negative_prompt": "x", "width": 64, "height": 64, "steps": 1, "cfg_scale": 1, "seed": 1,
         "batch_size": 1, "n_iter": 1, "sampler_name": "Euler", "scheduler": "Karras", "sampler_index": "Euler",
         "denoising_strength": 1, "override_settings": {}, "save_images": False, "send_images": True, "styles": [],
         "enable_hr": False, "restore_faces": False, "tiling": False, "subseed": -1, "alwayson_scripts": {},
         "script_name": None, "script_args": []}
BODIES = {
    "/api/jobs": JOB,
    "/v1/images/generations": OPENAI,
    "/sdapi/v1/txt2img": A1111,
    "/sdapi/v1/img2img": dict(A1111, init_images=[SMALL_B64], mask=SMALL_B64, mask_blur=0, inpainting_fill=1,
                              inpainting_mask_invert=0, resize_mode=0, inpaint_full_res=False),
    "/sdapi/v1/png-info": {"image": SMALL_B64},
    "/sdapi/v1/options": {"sd_model_checkpoint": "emoji"},
}
GETS = ["/", "/v1/models", "/v1/models/emoji", "/api/models", "/api/options", "/api/jobs/none", "/api/jobs/none/images/0",
        "/api/jobs/none/events", "/health/live", "/health/ready", "/metrics", "/openapi.json", "/sdapi/v1/progress",
        "/sdapi/v1/options", "/sdapi/v1/samplers", "/sdapi/v1/sd-models", "/sdapi/v1/memory", "/sdapi/v1/cmd-flags"]


def http(method, path, body=b"", headers=(), content_type="application/json", close=False):
    lines = [f"{method} {path} HTTP/1.1".encode(), b"Host: 127.0.0.1"]
    lines += [h if isinstance(h, bytes) else h.encode() for h in headers]
    if content_type:
        lines.append(b"Content-Type: " + content_type.encode())
    if body or method == "POST":
        lines.append(b"Content-Length: %d" % len(body))
    if close:
        lines.append(b"Connection: close")
    return b"\r\n".join(lines) + b"\r\n\r\n" + body


def json_bytes(value):
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass")


class Maker:
    """Request k: (name, bytes, speaks_http); the last says whether the connection is still good afterwards."""

    def __init__(self, seed):
        self.seed = seed
        self.kinds = [self.extreme, self.extreme, self.raw_number, self.wrong_type, self.wrong_type, self.missing,
                      self.broken_json, self.picture, self.base64, self.multipart, self.bytes_of_picture, self.target,
                      self.smuggling, self.flipped]

    def __call__(self, k):
        self.rng = random.Random(f"{self.seed}/{k}")
        kind = self.rng.choice(self.kinds)
        data, is_http = kind()
        return kind.__name__, data, is_http

    def body(self):
        path = self.rng.choice(list(BODIES))
        return path, dict(BODIES[path])

    def post(self, path, value):
        return http("POST", path, json_bytes(value)), True

    def numeric_field(self):
        path = self.rng.choice(["/api/jobs", "/v1/images/generations", "/sdapi/v1/txt2img", "/sdapi/v1/img2img"])
        value = dict(BODIES[path])
        fields = [k for k, v in value.items() if isinstance(v, (int, float)) and not isinstance(v, bool)]
        return path, value, self.rng.choice(fields)

    def extreme(self):
        path, value, field = self.numeric_field()
        value[field] = self.rng.choice(EXTREMES)
        if field in ("width", "height") and isinstance(value[field], int) and 64 < value[field] < 1 << 15:
            value[field] = 65
        return self.post(path, value)

    def raw_number(self):
        path, value, field = self.numeric_field()
        value[field] = "@@@"
        return http("POST", path, json_bytes(value).replace(b'"@@@"', self.rng.choice(RAW_NUMBERS))), True

    def wrong_type(self):
        path, value = self.body()
        value[self.rng.choice(list(value))] = self.rng.choice(OTHERS + EXTREMES)
        return self.post(path, value)

    def missing(self):
        path, value = self.body()
        for field in self.rng.sample(list(value), self.rng.randint(1, len(value))):
            del value[field]
        if self.rng.random() < 0.5:
            value[self.rng.choice(["promt", "", "__proto__", "x" * 300, "seed\0"])] = self.rng.choice(OTHERS)
        value.setdefault("steps", 1)  # what is valid all the same stays cheap
        return self.post(path, value)

    def broken_json(self):
        path, value = self.body()
        text = json_bytes(value)
        form = self.rng.randrange(8)
        if form == 0: text = text[:self.rng.randrange(len(text))]
        if form == 1: text = b"[" * self.rng.choice([10, 1000, 100_000])
        if form == 2: text = b'{"a":' * self.rng.choice([10, 1000, 100_000]) + b"1" + b"}" * 10
        if form == 3: text = text[:-1] + b', "steps": 2, "steps": 3}'
        if form == 4: text = text.replace(b"apple", self.rng.choice([b"\xff\xfe", b"\xc0\x80", b"\xed\xa0\x80", b"\\ud800"]))
        if form == 5: text = self.rng.choice([b"", b"null", b"0", b'"x"', b"[]", b"{}}", b"\xef\xbb\xbf{}", b"\0", b"true"])
        if form == 6: text = self.rng.randbytes(self.rng.randrange(1, 2000))
        if form == 7: text = json_bytes(dict(value, prompt="a" * self.rng.choice([1_000, 100_000, 1_000_000])))
        return http("POST", path, text), True

    def picture_field(self):
        path = self.rng.choice(["/api/jobs", "/sdapi/v1/img2img", "/sdapi/v1/png-info"])
        field = self.rng.choice({"/api/jobs": ["init_image", "mask"], "/sdapi/v1/img2img": ["init_images", "mask"],
                                 "/sdapi/v1/png-info": ["image"]}[path])
        return path, field

    def put_picture(self, path, field, text):
        value = dict(BODIES[path])
        value[field] = [text] if field == "init_images" else text
        return self.post(path, value)

    def picture(self):
        path, field = self.picture_field()
        data = bytearray(self.rng.choice(PICTURES + [SMALL_PNG] * 8))
        if data and self.rng.random() < 0.5:
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
        prefix = self.rng.choice(["", "data:image/png;base64,", "data:text/html;base64,"])
        return self.put_picture(path, field, prefix + base64.b64encode(bytes(data)).decode())

    def base64(self):
        return self.put_picture(*self.picture_field(), self.rng.choice(BAD_BASE64))

    def bytes_of_picture(self):
        data = bytearray(self.rng.choice(PICTURES + [SMALL_PNG]))
        if data and self.rng.random() < 0.5:
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
        kind = self.rng.choice(["image/png", "application/octet-stream", ""])
        return http("POST", "/api/png-info", bytes(data), content_type=kind), True

    def multipart(self):
        rng = self.rng
        edge = rng.choice(["edge", "e" * 70, "e" * 5000, "", '"quoted"', "a b", "--"])
        fields = {"prompt": "a red apple", "n": "1", "size": "64x64", "steps": "1", "seed": "1", "strength": "0.5",
                  "model": "emoji", "response_format": "b64_json"}
        if rng.random() < 0.7:
            fields[rng.choice(list(fields))] = rng.choice(["", "-1", "1e999", "x" * 1000, "\0", "4294967296", "{}"])
        parts = [b'Content-Disposition: form-data; name="%s"\r\n\r\n%s' % (k.encode(), v.encode()) for k, v in fields.items()]
        picture = rng.choice(PICTURES + [SMALL_PNG] * 6)
        head = rng.choice([b'Content-Disposition: form-data; name="image"; filename="a.png"\r\nContent-Type: image/png',
                           b'Content-Disposition: form-data; name="image[]"; filename="../../x"', b"Content-Disposition: form-data",
                           b"", b'Content-Disposition: form-data; name="image', b'content-disposition:form-data;name=image',
                           b'Content-Disposition: form-data; name="mask"; filename="m"', b"X: " + b"y" * 20000])
        parts.append(head + rng.choice([b"\r\n\r\n", b"\n\n", b"\r\n"]) + picture)
        rng.shuffle(parts)
        line = b"--" + edge.strip('"').encode()
        text = b"".join(line + b"\r\n" + p + b"\r\n" for p in parts) + rng.choice([line + b"--\r\n", b"", line, b"--"])
        if rng.random() < 0.2: text = text[:rng.randrange(len(text))]
        kind = rng.choice([f"multipart/form-data; boundary={edge}"] * 6 +
                          ["multipart/form-data", "multipart/form-data; boundary=", "multipart/mixed; boundary=x", "text/plain"])
        return http("POST", "/v1/images/edits", text, content_type=kind), True

    def target(self):
        rng = self.rng
        path = rng.choice(GETS + list(BODIES))
        path = rng.choice([path, path + "/", path + "?" + "a=%zz&" * 20, path.replace("/", "//"), path + "/..%2f..%2fetc/passwd",
                           "/../../etc/passwd", "/%00", "/" + "a" * 9000, "/api/jobs/" + "f" * 32 + "/images/-1", "*",
                           "/api/jobs/%2e%2e/images/99999999999999999999", path + "#x", "/\xff\xfe".encode("latin-1").decode("latin-1")])
        method = rng.choice(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "CONNECT", "POST", "BREW", "get"])
        if path.endswith("events"): method = "DELETE"
        headers = rng.choice([[], ["Origin: http://evil.example"], ["Origin: null"], ["Authorization: Bearer " + "x" * 5000],
                              ["Authorization: Basic ="], ["X-Request-Id: a\tb"], ["Range: bytes=9-1"], ["Upgrade: websocket",
                              "Connection: Upgrade"], ["Expect: 100-continue"], ["Expect: x"], ["Accept-Encoding: br;q=0"],
                              ["Cookie: " + "c" * 20000], [f"X-{i}: {i}" for i in range(500)]])
        return http(method, path.encode("latin-1", "replace").decode("latin-1"), b"" if method != "POST" else b"{}", headers), False

    def smuggling(self):
        body = json_bytes(dict(JOB, init_image=None, mask=None))
        n = len(body)
        post = b"POST /api/jobs HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        get = b"GET /health/live HTTP/1.1\r\n"
        chunks = b"%x\r\n%s\r\n0\r\n\r\n" % (n, body)
        return self.rng.choice([
            post + b"Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n" % n + chunks,
            post + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n" + chunks,
            post + b"Content-Length: %d\r\nContent-Length: %d\r\n\r\n" % (n, n + 1) + body,
            post + b"Content-Length: %d, %d\r\n\r\n" % (n, n) + body,
            post + b"Content-Length: -1\r\n\r\n" + body,
            post + b"Content-Length: +%d\r\n\r\n" % n + body,
            post + b"Content-Length: 99999999999999999999999\r\n\r\n" + body,
            post + b"Content-Length: 0x10\r\n\r\n" + body,
            post + b"Content-Length : %d\r\n\r\n" % n + body,
            post + b"Content-Length:\r\n\r\n" + body,
            post + b"\r\n" + body,
            post + b"Transfer-Encoding: xchunked\r\n\r\n" + chunks,
            post + b"Transfer-Encoding: chunked, identity\r\n\r\n" + chunks,
            post + b"Transfer-Encoding:\x0bchunked\r\n\r\n" + chunks,
            post + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunks,
            post + b"Transfer-Encoding: chunked\r\n\r\n-1\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\n%x;%s\r\n" % (n, b"e" * 100_000) + body,
            post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n",
            post + b"Transfer-Encoding: chunked\r\n\r\n0\r\nContent-Length: 5\r\n\r\n",
            get + b"Host: 127.0.0.1\r\n X: folded\r\n\r\n", get + b"Host: 127.0.0.1\r\nX: a\r\n\tb\r\n\r\n",
            get + b"Host: 127.0.0.1\n\n", get + b"Host: 127.0.0.1\rX: y\r\n\r\n", get + b"\r\n",
            get + b"Host: 127.0.0.1\r\nHost: evil.example\r\n\r\n", get + b"Host: evil.example\r\n\r\n",
            get + b"Host: 127.0.0.1:1@evil\r\n\r\n", get + b"Host:\r\n\r\n", get + b"Host: 127.0.0.1\r\nX: \0\r\n\r\n",
            get + b"Host: 127.0.0.1\r\n: y\r\n\r\n", get + b"Host: 127.0.0.1\r\nX\r\n\r\n",
            b"GET http://evil.example/ HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"GET / HTTP/2.0\r\nHost: a\r\n\r\n",
            b"GET / HTTP/1.1 x\r\n\r\n", b"GET /\r\n\r\n", b"GET  / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\r\n" * 3 + get + b"\r\n",
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03" + b"\0" * 200,
            b"GET / HTTP/1.0\r\n\r\n", b"\0" * 100, b"A" * 100_000, self.rng.randbytes(500),
        ]), False

    def flipped(self):
        path, value = self.body()
        data = bytearray(http("POST", path, json_bytes(value), close=True))
        for _ in range(self.rng.randint(1, 8)):
            data[self.rng.randrange(len(data))] ^= 1 << self.rng.randrange(8)
        return bytes(data), False


class Closed(Exception):
    pass


class Connection:
    """One at a time, kept while the server keeps it."""

    def __init__(self, host, port):
        self.address = (host, port)
        self.sock = None

    def ask(self, data, keep):
        for attempt in range(2):  # a kept connection may have ended meanwhile
            fresh = self.sock is None
            try:
                if fresh:
                    self.sock = socket.create_connection(self.address, timeout=TIMEOUT_S)
                    self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                try:
                    self.sock.sendall(data)
                    if not keep:
                        self.sock.shutdown(socket.SHUT_WR)
                except (BrokenPipeError, ConnectionResetError, OSError):
                    pass  # the answer may be there all the same
                status, headers, body = self.read_answer()
                if status == 100:
                    status, headers, body = self.read_answer(body)
                if not keep or "close" in headers.get("connection", ""):
                    self.close()
                return status, headers, body
            except (Closed, ConnectionResetError):
                self.close()
                if fresh or attempt:
                    raise Closed
        raise Closed

    def read_answer(self, data=b""):
        while b"\r\n\r\n" not in data:
            more = self.sock.recv(65536)
            if not more:
                raise Closed
            data += more
        head, body = data.split(b"\r\n\r\n", 1)
        lines = head.decode("latin-1").split("\r\n")
        status = int(lines[0].split()[1])
        headers = {k.strip().lower(): v.strip() for k, v in (line.split(":", 1) for line in lines[1:])}
        if status == 100:
            return status, headers, body
        if "content-length" in headers:
            while len(body) < int(headers["content-length"]):
                more = self.sock.recv(65536)
                if not more:
                    break
                body += more
        else:
            headers["connection"] = "close"
        return status, headers, body

    def close(self):
        if self.sock:
            self.sock.close()
        self.sock = None


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def draw(connection):
    """The bytes of one picture, by the OpenAI family."""
    status, _, body = connection.ask(http("POST", "/v1/images/generations", json_bytes(dict(
        prompt="a red apple", size="64x64", steps=2, seed=7, response_format="b64_json"))), keep=True)
    if status != 200:
        raise SystemExit(f"fuzz_server: a valid request was answered {status}: {body[:300]!r}")
    for path, value in BODIES.items():
        status, _, answer = connection.ask(http("POST", path, json_bytes(value)), keep=True)
        if status not in (200, 202):
            raise SystemExit(f"fuzz_server: {path} with a valid body was answered {status}: {answer[:300]!r}")
    return json.loads(body)["data"][0]["b64_json"]


class Run:
    def __init__(self, args, port):
        self.args, self.port = args, port
        self.lock = threading.Lock()
        self.next = 0
        self.statuses = collections.Counter()
        self.faults = []

    def worker(self):
        maker, connection = Maker(self.args.seed), Connection("127.0.0.1", self.port)
        while True:
            with self.lock:
                k, self.next = self.next, self.next + 1
            if k >= self.args.count or len(self.faults) > 20:
                return
            self.one(maker, connection, k)

    def one(self, maker, connection, k):
        name, data, is_http = maker(k)
        for _ in range(100):
            try:
                status, headers, body = connection.ask(data, keep=is_http)
            except Closed:
                # Dropped without an answer: what HTTP allows for what is no HTTP.
                return self.count(name, "closed", k, is_http)
            except (TimeoutError, socket.timeout):
                connection.close()
                return self.count(name, "timeout", k, True)
            if status not in (429, 503) or "retry-after" not in headers:
                break
            self.count(name, status, k, False)
            time.sleep(0.05)
        else:
            return self.count(name, "full for 5 s", k, True)
        self.count(name, status, k, status >= 500, body)
        if status == 202:  # valid after all: not worth drawing
            match = re.search(rb'"id"\s*:\s*"([0-9a-zA-Z_-]+)"', body)
            if match:
                connection.ask(http("DELETE", "/api/jobs/" + match[1].decode(), content_type=None), keep=True)

    def count(self, name, status, k, is_fault, body=b""):
        with self.lock:
            self.statuses[status] += 1
            if is_fault:
                self.faults.append((k, name, status))
                print(f"request {k} ({name}): {status} {body[:300]!r}", flush=True)
            if k % 5000 == 0:
                print(f"{k} of {self.args.count}", flush=True)


def wait_ready(port, server):
    for _ in range(600):
        if server and server.poll() is not None:
            raise SystemExit(f"fuzz_server: the server ended with status {server.returncode}")
        try:
            if Connection("127.0.0.1", port).ask(http("GET", "/health/ready", content_type=None), keep=False)[0] == 200:
                return
        except (OSError, Closed):
            pass
        time.sleep(0.1)
    raise SystemExit("fuzz_server: the server is not ready after 60 s")


def worker_losses(log):
    with open(log, "rb") as f:
        return sum(b"worker lost" in line for line in f)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", nargs="?", help="the program; started as `BINARY serve`")
    parser.add_argument("--port", type=int, help="of a server that runs already, on 127.0.0.1")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=4, help="connections at a time")
    parser.add_argument("--only", type=int, help="send this request alone and print it")
    parser.add_argument("--log", default="fuzz_server.log", help="what the server prints")
    parser.add_argument("server_words", nargs="*", help="after --: more words for `serve`")
    args = parser.parse_args()
    if not args.binary and not args.port:
        parser.error("expected a program or --port")
    server, port = None, args.port
    if not port:
        port = free_port()
        log = open(args.log, "wb")
        server = subprocess.Popen([args.binary, "serve", "--port", str(port), *args.server_words], stdout=log, stderr=log)
    try:
        wait_ready(port, server)
        if args.only is not None:
            name, data, is_http = Maker(args.seed)(args.only)
            print(name, data[:4000])
            print(Connection("127.0.0.1", port).ask(data, keep=is_http))
            return
        before = draw(Connection("127.0.0.1", port))
        run, begin = Run(args, port), time.time()
        threads = [threading.Thread(target=run.worker) for _ in range(args.threads)]
        for t in threads: t.start()
        for t in threads: t.join()
        after = draw(Connection("127.0.0.1", port))
        alive = server is None or server.poll() is None
        losses = worker_losses(args.log) if server else 0
        print(f"{args.count} requests in {time.time() - begin:.0f} s; answers: {dict(sorted(run.statuses.items(), key=str))}")
        print(f"faults {len(run.faults)}, server alive {alive}, workers lost {losses}, same picture {before == after}")
        if run.faults or not alive or losses or before != after:
            sys.exit(1)
    finally:
        if server:
            server.terminate()
            try:
                code = server.wait(timeout=60)
            except subprocess.TimeoutExpired:
                server.kill()
                code = "killed"
            print(f"the server ended with status {code}")


if __name__ == "__main__":
    main()
