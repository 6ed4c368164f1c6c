# SPDX-License-Identifier: BSD-2-Clause
"""Captures made by hand, record by record, as docs/capture-format.md has them: what no program does on purpose, and truth that nothing
was measured for."""
import collections
import struct
import zlib

(ENTRY, EXIT, POINT, UNWIND, _, BEGIN, END, TASK, _, _, WAIT, GPU, TIMES, SAMPLE, MEMORY, VALUE) = range(1, 17)
SP_EXACT, TAIL, SECTIONS = 1, 2, 128
WORDS, RESULT, WRITTEN, PYTHON, PROCESS_MEMORY, FAULTS = 1, 2, 12, 13, 15, 17
NONE = 0xffffffff
ANNOTATION, MARK = 1, 2  # kinds of a probe
GAVE, TAKES = "_ZN3c1025ProfiledCPUMemoryReporter3NewEPvm", "_ZN3c1025ProfiledCPUMemoryReporter6DeleteEPv"


class Made:
    def __init__(self, number=0x123456789abcdef0):
        self.number, self.chunks, self.probes, self.modules, self.events = number, 0, 0, 0, 0
        self.definitions, self.records, self.open, self.count, self.times = b"", 0, bytearray(), 0, []
        self.gpu_records = collections.Counter()  # by process
        head = struct.pack("<8sHHIIIQQ20x", b"\x89XSPT\r\n\x1a", 1, 1, 64, 1, 0, number, 1_700_000_000_000_000_000)
        self.file = bytearray(head + struct.pack("<I", zlib.crc32(head)))

    # ---- definitions ----

    def record(self, kind, fixed, *strings):
        text = b"".join(struct.pack("<I", len(s)) + s + b"\0" for s in
                        (s if isinstance(s, bytes) else s.encode("utf-8", "surrogateescape") for s in strings))
        size = 8 + len(fixed) + len(text)
        self.definitions += struct.pack("<HHI", kind, 8 + len(fixed), size + -size % 8) + fixed + text + bytes(-size % 8)
        self.records += 1

    def info(self, key, value):
        self.record(1, b"", key, value)

    def process(self, pid, comm="program"):
        self.record(2, struct.pack("<4I", pid, pid, 0, 0), comm, comm, f"/bin/{comm}")

    def thread(self, pid, tid, comm):
        self.record(3, struct.pack("<4I", pid, tid, tid, 0), comm)

    def module(self, path):
        self.record(4, struct.pack("<2I", self.modules, 0), path, b"\1\2\3")
        self.modules += 1
        return self.modules - 1

    def probe(self, name, symbol="", provider="function", module=NONE, kind=0):
        self.record(6, struct.pack("<IIQQIIII", self.probes, module, 0x1000 + 16 * self.probes, 16, kind, 0, 0, 1), provider, symbol, name)
        self.probes += 1
        return self.probes - 1

    def clock(self, ns, ahead=0):
        self.record(7, struct.pack("<3Q", ns, 1_700_000_000_000_000_000 + ns + ahead, 100))

    def name(self, number, text):
        self.record(10, struct.pack("<QII", number, 0, 0), text)

    def let_go(self, probe, ns, rate):
        self.record(13, struct.pack("<IIQQ", probe, 0, ns, rate))

    def window(self, start, end):
        self.record(12, struct.pack("<2Q", start, end))

    def python(self, number, frames, module=0):
        self.record(14, struct.pack("<QII", number, 0, 0), b"".join(struct.pack("<2Q", f, module) for f in frames))

    # ---- events ----

    def event(self, kind, ns, thread, probe=NONE, sp=0, flags=0, body=b"", sections=()):
        for number, value, data in sections:
            body += struct.pack("<HHI", number, 8 + len(data), value) + data
            flags |= SECTIONS
        self.open += struct.pack("<QQIIIBBH", ns, sp, thread[1], thread[0], probe, kind, flags, 32 + len(body)) + body
        self.count += 1
        self.times += [ns]

    def entry(self, ns, thread, probe, sp, sections=()):
        self.event(ENTRY, ns, thread, probe, sp, SP_EXACT, bytes(8) if sections else b"", sections)

    def exit(self, ns, thread, probe, sp, flags=0):
        self.event(EXIT, ns, thread, probe, sp, SP_EXACT | flags)

    def point(self, ns, thread, probe, sp):
        self.event(POINT, ns, thread, probe, sp, SP_EXACT)

    def unwind(self, ns, thread, sp):
        self.event(UNWIND, ns, thread, 0, sp, SP_EXACT)

    def begin(self, ns, thread, probe, sp, name, sections=()):
        self.event(BEGIN, ns, thread, probe, sp, 0, struct.pack("<Q", name), sections)

    def end(self, ns, thread, probe, sp):
        self.event(END, ns, thread, probe, sp, SP_EXACT)

    def wait(self, left, woken, back, thread, why, short=0, waker=0):
        self.event(WAIT, back, thread, body=struct.pack("<QQQQiIIHBB", left, woken, 0x1234, short, 202, waker, 0, 0, why, 0))

    def sums(self, ns, thread, since, running, runnable, blocked, sections=()):
        self.event(TIMES, ns, thread, body=struct.pack("<QQQII16Q16I", since, running, runnable, 0, 0,
                                                        *(blocked.get(i, 0) for i in range(16)), *bytes(16)), sections=sections)

    def environment(self, pid, **variables):
        self.record(15, struct.pack("<II", pid, 0), "\n".join(f"{k}={v}" for k, v in variables.items()))

    def gpu(self, ns, thread, probe, records):
        """records: (type, correlation, fields without the record's head) of include/xsptrace/gpu.h, a multiple of 8 bytes each."""
        head = (1, 1, struct.pack("<IIQQQ", thread[0], len(records), self.gpu_records[thread[0]], 0, 5))
        self.gpu_records[thread[0]] += len(records)
        batch = b"".join(struct.pack("<HHI", kind, 8 + len(body), number) + body for kind, number, body in (head, *records))
        self.event(GPU, ns, thread, probe, body=struct.pack("<II", len(batch), 0) + batch)

    def allocation(self, ns, thread, probe, *words):
        self.event(MEMORY, ns, thread, probe, sections=[(WORDS, 0, struct.pack(f"<{len(words)}Q", *words))])

    # ---- the file ----

    def chunk(self, kind, payload, first, last, count):
        head = struct.pack("<IHHIIQQQQIII", 0x43505358, kind, 0, len(payload), zlib.crc32(payload), self.chunks, self.number, first,
                           last, count, 0, 0)
        self.file += head + struct.pack("<I", zlib.crc32(head)) + payload
        self.chunks += 1

    def flush(self):
        if self.definitions:
            self.chunk(1, self.definitions, 0, 0, self.records)
        if self.count:
            self.chunk(2, bytes(self.open), min(self.times), max(self.times), self.count)
        self.events += self.count
        self.definitions, self.records, self.open, self.count, self.times = b"", 0, bytearray(), 0, []

    def finish(self, path, start, end, stats=bytes(10)):
        """stats: those after the number of events, in the order of struct xsp_capture_stats."""
        self.record(8, struct.pack("<11Q", self.events + self.count, *stats))
        self.flush()
        self.chunk(3, struct.pack("<4Q", start, end, self.events, self.chunks), 0, 0, 1)
        with open(path, "wb") as f:
            f.write(self.file)
