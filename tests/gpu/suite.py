#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-2-Clause
"""The suite of tests/gpu/run: a CUDA program and a PyTorch training step, launched, pre-loaded and
injected, held against the program's own counts and PyTorch's own profiler."""
import argparse
import collections
import json
import os
import subprocess
import sys
import time
import traceback

import compare

LIMIT = 240  # seconds a program may take


class Suite:
    def __init__(self, kit, output):
        self.kit, self.output = kit, output
        self.xsptrace = os.path.join(kit, "xsptrace")
        self.agent = os.path.join(kit, "libxsptrace_agent.so")
        self.failed = []

    def path(self, name):
        return os.path.join(self.output, name)

    def run(self, command, **more):
        print("+", " ".join(command), flush=True)
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=LIMIT,
                              check=False, **more)
        if done.returncode:
            raise AssertionError(f"status {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
        return done

    def case(self, name, function, *arguments):
        start = time.time()
        try:
            said = function(*arguments)
            print(f"{name}: ok ({time.time() - start:.1f} s){': ' + said if said else ''}", flush=True)
        except Exception as error:  # each case stands for itself
            self.failed.append(name)
            print(f"{name}: FAILED ({time.time() - start:.1f} s)\n{error}", flush=True)
            if not isinstance(error, AssertionError):
                traceback.print_exc()

    # ---- a running program, three ways ----

    def attached(self, command, trace, extra, environment, ready, go):
        """Starts the command, records it from when it is ready until it ends."""
        child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)
        try:
            ready(child)
            tracer = subprocess.Popen([self.xsptrace, "--max-overhead", "off", "-p", str(child.pid), *extra, "-o", trace],
                                      stderr=open(trace + ".log", "w", encoding="utf-8"),
                                      stdout=open(trace + ".summary", "w", encoding="utf-8"))
            time.sleep(20)  # CUPTI's first start takes up to 15 s
            go()
            out = child.communicate(timeout=LIMIT)[0]
            status = tracer.wait(LIMIT)
        finally:
            child.kill()
        assert child.returncode == 0, f"the program ended with {child.returncode}"
        assert status == 0, f"xsptrace ended with {status}: {open(trace + '.log', encoding='utf-8').read()[-2000:]}"
        return out

    def traced(self, way, command, trace, ready, go):
        if way == "launched":
            return self.run([self.xsptrace, "--max-overhead", "off", "-o", trace, "--summary=none", "--", *command]).stdout
        environment = dict(os.environ)
        extra = []
        if way == "preloaded":
            environment["CUDA_INJECTION64_PATH"] = self.agent
        else:
            extra = ["--inject"]
        return self.attached(command, trace, extra, environment, ready, go)

    # ---- the CUDA program ----

    def kernels(self, way):
        program = self.path("kernels")
        if os.path.exists(os.path.join(self.kit, "kernels")):
            program = os.path.join(self.kit, "kernels")
        else:
            self.run(["nvcc", "-O2", "-cudart", "static", "-o", program, os.path.join(self.kit, "kernels.cu")])
        trace = self.path(f"kernels.{way}.json")
        command = [program, "8", "2000", "0" if way == "launched" else "30"]
        out = self.traced(way, command, trace, lambda child: time.sleep(3), lambda: None)
        truth = json.loads(out.strip().splitlines()[-1])
        events = compare.load(trace)
        seen = collections.Counter(e["name"] for e in events if e.get("cat") in compare.GPU)
        problems = compare.check_links(events) + compare.check_rows(events)
        for name in ("add_one", "twice"):
            count = sum(n for shown, n in seen.items() if name in shown)
            if count != truth[name]:
                problems.append(f"{name}: {count} kernels, the program launched {truth[name]}")
        for kind in ("HtoD", "DtoH"):
            count = sum(n for shown, n in seen.items() if kind in shown)
            if count != truth[kind]:
                problems.append(f"{kind}: {count} copies, the program made {truth[kind]}")
        assert not problems, "\n".join(problems)
        return ", ".join(f"{n} {name}" for name, n in seen.most_common(4))

    # ---- the training step ----

    def step(self, *arguments):
        return [sys.executable, os.path.join(self.kit, "step.py"), *arguments]

    def reference(self):
        self.losses = self.run(self.step()).stdout
        out = self.run(self.step("--profile", self.path("torch.json"))).stdout
        assert out == self.losses, f"the step is not deterministic here:\n{self.losses}\n{out}"
        other = self.run(self.step("--profile", self.path("torch2.json"))).stdout
        assert other == self.losses, "the step is not deterministic here"
        lines = compare.compare(compare.load(self.path("torch.json")), compare.load(self.path("torch2.json")), 5)
        return "two runs of PyTorch's profiler: " + ("; ".join(lines) if lines else "the same")

    def torch(self, way):
        trace, gate = self.path(f"step.{way}.json"), self.path(f"gate.{way}")
        for leftover in (gate, gate + ".ready"):
            if os.path.exists(leftover):
                os.unlink(leftover)

        def ready(child):
            deadline = time.time() + LIMIT
            while not os.path.exists(gate + ".ready"):
                assert child.poll() is None and time.time() < deadline, "the step never got ready"
                time.sleep(0.1)

        command = self.step() if way == "launched" else self.step("--wait", gate)
        out = self.traced(way, command, trace, ready, lambda: open(gate, "w", encoding="utf-8").close())
        if way == "launched":
            assert out == self.losses, f"other losses than untraced:\n{self.losses}\n{out}"
        lines = compare.compare(compare.load(self.path("torch.json")), compare.load(trace), 1)
        assert not lines, "\n".join(lines)
        return "the same kernels, counts, streams and launching operators as PyTorch's profiler"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kit", required=True)
    parser.add_argument("--output", required=True)
    o = parser.parse_args()
    suite = Suite(o.kit, o.output)
    ways = ("launched", "preloaded", "injected")
    for way in ways:
        suite.case(f"kernels, {way}", suite.kernels, way)
    try:
        import torch  # pylint: disable=import-outside-toplevel
        usable = torch.cuda.is_available()
    except ImportError:
        usable = False
    if usable:
        suite.case("reference", suite.reference)
        for way in ways:
            suite.case(f"training step, {way}", suite.torch, way)
    else:
        print("SKIP: no CUDA build of PyTorch here")
    print(f"{len(suite.failed)} failed" if suite.failed else "all passed")
    return 1 if suite.failed else 0


sys.exit(main())
