#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""Functions of Java as places of the account, without an option for the JVM: against the program's own clocks."""
import glob
import json
import os
import shutil
import subprocess

from harness import Recording, Skip, case, check, equal, json_report, main, run, start

# Each function by its own clock: CPU time of what computes, wall time of what waits.
PROGRAM = """package shop;
import java.lang.management.ManagementFactory;
import java.util.concurrent.LinkedBlockingQueue;

public class Parts {
    interface Part { void run() throws Exception; }
    static final LinkedBlockingQueue<Integer> asked = new LinkedBlockingQueue<>(), answered = new LinkedBlockingQueue<>();
    static final Object lock = new Object();
    static volatile long sum;

    static void computes() {
        long s = 0;
        for (long i = 0; i < rounds; i++) s += i * i ^ (s >> 3);
        sum += s;
    }
    static void sleeps() throws Exception { Thread.sleep(4); }
    static void takes() throws Exception { asked.put(1); sum += answered.take(); }
    static void locks() { synchronized (lock) { sum++; } }
    static void answers() throws Exception {
        while (asked.take() > 0) {
            Thread.sleep(5);
            synchronized (lock) { answered.put(1); Thread.sleep(8); }
        }
    }
    static long rounds = 1000;
    static long cpu() { return ManagementFactory.getThreadMXBean().getCurrentThreadCpuTime(); }
    static long timed(boolean computes, Part part) throws Exception {
        long begun = computes ? cpu() : System.nanoTime();
        part.run();
        return (computes ? cpu() : System.nanoTime()) - begun;
    }
    static long[] all(long until) throws Exception {
        long[] spent = new long[5];
        for (; System.nanoTime() < until; spent[4]++) {
            spent[0] += timed(true, Parts::computes);
            spent[1] += timed(false, Parts::sleeps);
            spent[2] += timed(false, Parts::takes);
            spent[3] += timed(false, Parts::locks);
        }
        return spent;
    }
    public static void main(String[] arguments) throws Exception {
        Thread other = new Thread(() -> { try { answers(); } catch (Exception e) { throw new RuntimeException(e); } });
        other.setDaemon(true);
        other.start();
        while (timed(true, Parts::computes) < 8_000_000) rounds += rounds / 4; /* so many are 8 ms, as it is compiled */
        all(System.nanoTime() + 1_000_000_000L);
        System.out.println("ready");
        System.in.read();
        long[] s = all(System.nanoTime() + 2_500_000_000L);
        System.out.printf("{\\"computes\\": %d, \\"sleeps\\": %d, \\"takes\\": %d, \\"locks\\": %d, \\"rounds\\": %d}%n",
                          s[0], s[1], s[2], s[3], s[4]);
        System.in.read();
        System.in.read();
    }
}
"""
WAITS = {"sleeps": 0.004, "takes": 0.005, "locks": 0.006}


def compiled(folder):
    if shutil.which("javac") is None:
        raise Skip("no javac here")
    os.makedirs(f"{folder}/shop", exist_ok=True)
    with open(f"{folder}/shop/Parts.java", "w", encoding="ascii") as f:
        f.write(PROGRAM)
    run(["javac", "-d", folder, f"{folder}/shop/Parts.java"], timeout=100)


def of_function(rows, function, *kinds):
    return 1e-9 * sum(r["ns"] for r in rows if (r["place"] or "").endswith(f" Parts.{function}") and r["kind"] in kinds)


def check_parts(folder, *java):
    compiled(folder)
    child = start([*java, "-cp", folder, "shop.Parts"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    equal(child.stdout.readline(), b"ready\n", "what it says first")
    with Recording(folder, "-p", child.pid, "--waits", "--sample=499", "-o", f"{folder}/p.xspt") as r:
        child.stdin.write(b"\n")
        child.stdin.flush()
        spent = json.loads(child.stdout.readline())
        r.stop()
        r.wait()
        child.communicate(b"\n\n", timeout=60)
    section = json_report("analyze", f"{folder}/p.xspt")["sections"]["account"]
    rows, places, values = section["tables"]["rows"]["rows"], section["tables"]["places"]["rows"], section["values"]
    equal(sum(r["ns"] for r in rows), values["ns"], "the rows add up")
    error = next(((p["error_share"] or 0) * 1e-9 * values["ns"] for p in places if " Parts.computes" in p["what"]), 0)
    got, own = of_function(rows, "computes", "on CPU"), 1e-9 * spent["computes"]
    allowed = 2 * error + 0.1 * own + 0.03
    check(abs(got - own) < allowed, f"computes: {got:.3f} s on CPU, {own:.3f} by its own clock, +- {allowed:.3f}", places)
    # behind the last safepoint of compiled code nothing tells the line
    lines = {r["place"] for r in rows if (r["place"] or "").endswith("Parts.computes")} - {"Parts.computes"}
    check(lines and lines <= {f"Parts.java:{n} Parts.computes" for n in (12, 13, 14, 15)}, "its lines", lines)
    for function, least in WAITS.items():
        got, own = of_function(rows, function, "waiting"), 1e-9 * spent[function]
        # it also stands in line for a CPU, and runs, within its own clock. (In two runs of some thirty a function waited for 39 ms more than its own clock's 331; the cause is not known)
        check(0.9 * least * spent["rounds"] < got <= 1.1 * own + 0.03, f"{function}: waits {got:.3f} s of {own:.3f}", places)
    check(any(r["place"] == "Parts.java:16 Parts.sleeps" for r in rows), "the line that sleeps", places)
    others = [p["what"] for p in places if "java.util" in p["what"] or "LockSupport" in p["what"] or "Thread." in p["what"]]
    equal(others, [], "places in Java's own packages")


@case(quiet="CPU time of a function")
def compiled_functions(folder):
    check_parts(folder, "java")


@case(quiet="CPU time of a function")
def interpreted_functions(folder):
    check_parts(folder, "java", "-Xint")


@case(quiet="CPU time of a function")
def of_other_versions(folder):
    """What HotSpot says of itself differs by version, and so do its frames."""
    usual = os.path.realpath(shutil.which("java") or "/")
    others = {os.path.realpath(p) for p in glob.glob("/usr/lib/jvm/*/bin/java")} - {usual}
    if not others:
        raise Skip("one Java at most is here")
    for java in sorted(others):
        check_parts(folder, java)
        check_parts(folder, java, "-Xint")


main()
