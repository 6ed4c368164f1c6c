#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The flight recorder on PyTorch: what goes wrong after a minute of healthy steps (XSP_LATE: after so many seconds) is in the snapshot
that its trigger wrote, with what was before it, and its first screen names it; of healthy programs there is none."""
import glob
import os
import re
import subprocess

from harness import ROOT, WORKLOADS, Recording, Trace, case, check, equal, json_report, main, need_torch, start, xsptrace

SECONDS = float(os.environ.get("XSP_LATE", 60))
AGENT = os.path.join(os.path.dirname(WORKLOADS), "libxsptrace_agent.so")


class Late:
    """A recording of a target in which something goes wrong, until the target ends."""

    def __init__(self, folder, fault, *triggers, seconds=SECONDS, **environment):
        need_torch()
        truth = f"{folder}/truth"
        target = start(["/usr/bin/python3", f"{ROOT}/tests/workloads/torch_planted.py", fault, seconds, truth], stdout=subprocess.PIPE, text=True,
                       env={**os.environ, **environment})
        equal(target.stdout.readline(), "ready\n", "the first steps")
        with Recording(folder, "-F", "-p", target.pid, *(x for t in triggers for x in ("--trigger", t))) as r:
            target.wait(timeout=seconds * 4 + 120)
            self.said = r.wait()
        self.found, self.median, self.longest = sorted(glob.glob(f"{folder}/xsptrace.*.xspt")), 0, 0
        if os.path.exists(truth):  # it did not crash
            with open(truth, encoding="utf-8") as f:
                self.median, self.longest = (float(x) for x in f.read().split()[1:])

    def snapshot(self, reason, because, *names):
        """The one with that reason, which has the 30 s before it. Its first screen has all of these expressions."""
        said = {p: xsptrace("info", p).stdout for p in self.found if f".{reason}" in p}
        path = next((p for p, text in said.items() if re.search(rf"^snapshot .*{because}", text, re.M)), None)
        check(path, f"a snapshot of {reason}: {because}", self.found, *said.values(), self.said)
        screen = xsptrace("analyze", path).stdout
        print(screen)
        seconds = json_report("analyze", path)["sections"]["recording"]["values"]["duration_ns"] * 1e-9
        check(seconds > 29, "what was before it", seconds)
        for name in names:
            check(re.search(name, screen, re.M), f"the first screen says {name!r}", screen)
        return path


@case(long="a minute of PyTorch")
def a_slow_step(folder):
    Late(folder, "slow", "step>800ms").snapshot("step", "step>800ms: ", "^in that time: .*torch_planted.py:[0-9]+ cleanup", r"^the slowest step, [\d.]+ s: ")


@case(long="a minute of PyTorch")
def a_leak(folder):
    """How much it grows in a minute is known after one."""
    late = Late(folder, "leak", "rss+60M/min", seconds=max(SECONDS, 60))
    late.snapshot("growth", "memory has grown by", "^snapshot: growth: .*memory has grown by")


@case(long="a minute of PyTorch")
def a_lock(folder):
    Late(folder, "lock", "wait:lock>1s").snapshot("wait", "has waited for", r"\(lock\)", "^in that time: .*wait_for_save +waits: lock")


@case(long="a minute of PyTorch")
def an_idle_gpu(folder):
    late = Late(folder, "gpu", "gpu-idle>2s", CUDA_INJECTION64_PATH=AGENT, LD_LIBRARY_PATH=f"{WORKLOADS}/cuda13", XSP_DOUBLE_KERNEL_NS="5000000")
    late.snapshot("gpu-idle", "the GPU has been idle for", "the GPU has been idle for", "^in that time: .*load_batch")


@case(long="a minute of PyTorch")
def a_crash(folder):
    """In a function that was never called before: its own name may not be readable any more, that of its caller is."""
    late = Late(folder, "crash", "lost>1000000")
    path = late.snapshot("sigsegv", "in __strlen", "^snapshot: sigsegv: in __strlen", r"^at the end in: (.|\n)*torch_planted.py:[0-9]+\s+(crash|step)$")
    xsptrace("export", "-q", path, "-o", f"{folder}/crash.json")
    last = [e["args"]["stack"] for e in Trace(f"{folder}/crash.json").json["traceEvents"]
            if e.get("cat") == "sample" and e["args"]["weight (ns)"] == 0]
    check(any("torch_planted.py" in s for s in last), "the last stack", last)


# ---- healthy -------------------------------------------------------------------------


def serve(folder):
    """An HTTP server of Python's own, and four clients that never stop asking."""
    server = start(["/usr/bin/python3", "-u", "-c", HTTP_SERVER], stdout=subprocess.PIPE, text=True, cwd=folder)
    port = int(server.stdout.readline())
    start(["/usr/bin/python3", "-c", HTTP_CLIENTS, port])
    return server


HTTP_SERVER = """
import http.server, json, os
class Answer(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = json.dumps([i * i for i in range(2000)]).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
print(server.server_address[1])
server.serve_forever()
"""
HTTP_CLIENTS = """
import sys, threading, time, urllib.request
def ask():
    while True:
        urllib.request.urlopen(f"http://127.0.0.1:{sys.argv[1]}/").read()
        time.sleep(0.01)
for _ in range(4): threading.Thread(target=ask).start()
"""


@case(long="a minute of healthy programs")
def healthy(folder):
    """None is written of PyTorch and of a server under load, unless the target itself has had such a step."""
    os.mkdir(f"{folder}/http")
    server = serve(f"{folder}/http")
    with Recording(f"{folder}/http", "-F", "-p", server.pid, "--profile", "--trigger", "wait:lock>2s", "--trigger", "rss+100M/min", "--trigger", "exit!=0") as http:
        late = Late(folder, "none", "step>20x", "rss+100M/min", "exit!=0", "wait:lock>2s")
        http.stop()
        http.wait()
    by_triggers = [p for p in late.found if ".end." not in p]
    if late.longest < 15 * late.median:
        equal(by_triggers, [], f"snapshots of a healthy loop: {late.said}")
    else:
        print(f"  the machine gave no CPU: a step of {late.longest:.2f} s, median {late.median:.3f}; {len(by_triggers)} snapshots")
        check(all(".step." in p for p in by_triggers), "others than of that step", by_triggers)
    equal([p for p in glob.glob(f"{folder}/http/*.xspt") if ".sigint." not in p], [], f"snapshots of a healthy server: {http.output()}")


if __name__ == "__main__":
    main(declined=[])
