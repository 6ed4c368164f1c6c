# SPDX-License-Identifier: BSD-2-Clause
"""Reads captures of xsptrace (.xspt; Chrome traces too), by libxsptrace. One file, the standard library alone:

    import xsptrace
    with xsptrace.Trace("run.xspt") as trace:
        for span in trace.spans(min_duration_ns=1_000_000):
            print(span.name, span.end_ns - span.start_ns)
        print(trace.frame("waits").groupby("reason").size())     # with pandas
        print(trace.account()["tables"]["account"]["rows"])      # where the time went

Times are ns of CLOCK_MONOTONIC of the recorded machine; realtime() makes them ns since 1970. What is not known is None.
include/xsptrace/trace.h says what each figure means. XSPTRACE_LIBRARY names another libxsptrace.so.1."""
import collections
import ctypes
import json
import os
from ctypes import CFUNCTYPE, POINTER, Structure, c_bool, c_char_p, c_double, c_int, c_size_t, c_uint, c_uint32, c_uint64, c_void_p

UNKNOWN = 2**64 - 1
NO_STREAM = 2**32 - 1
FLAGS = {1: "unfinished", 2: "unwound", 4: "end not seen", 8: "no duration", 16: "cut"}
ACTIVITIES = ("kernel", "copy", "set", "sync", "other")


class Error(Exception):
    """The capture cannot be read: one line says why."""


def _structure(name, *fields):
    return type(name, (Structure,), {"_fields_": [("size", c_size_t), *fields]})


# include/xsptrace/trace.h
_Span = _structure("_Span", ("id", c_uint64), ("parent", c_uint64), ("start_ns", c_uint64), ("end_ns", c_uint64), ("self_ns", c_uint64),
                   ("cpu_ns", c_uint64), ("probe_ns", c_uint64), ("pid", c_uint32), ("tid", c_uint32), ("row", c_uint32), ("depth", c_uint32),
                   ("flags", c_uint), ("name", c_char_p), ("provider", c_char_p), ("ancestors", POINTER(c_char_p)))
_Activity = _structure("_Activity", ("kind", c_int), ("start_ns", c_uint64), ("end_ns", c_uint64), ("pid", c_uint32), ("device", c_uint32),
                       ("context", c_uint32), ("stream", c_uint32), ("correlation", c_uint32), ("operator_id", c_uint64), ("bytes", c_uint64),
                       ("name", c_char_p))
_Sample = _structure("_Sample", ("time_ns", c_uint64), ("period_ns", c_uint64), ("pid", c_uint32), ("tid", c_uint32),
                     ("stack", POINTER(c_char_p)), ("depth", c_size_t))
_Wait = _structure("_Wait", ("left_ns", c_uint64), ("woken_ns", c_uint64), ("back_ns", c_uint64), ("pid", c_uint32), ("tid", c_uint32),
                   ("owner", c_uint32), ("waker", c_uint32), ("reason", c_char_p), ("place", c_char_p))
_Counter = _structure("_Counter", ("time_ns", c_uint64), ("pid", c_uint32), ("name", c_char_p), ("value", c_double), ("tid", c_uint32))
_Part = _structure("_Part", ("from_ns", c_uint64), ("to_ns", c_uint64), ("min_duration_ns", c_uint64), ("max_depth", c_uint64))
_KINDS = {"span": _Span, "activity": _Activity, "sample": _Sample, "wait": _Wait, "counter": _Counter}
_FUNCTIONS = {kind: CFUNCTYPE(c_int, c_void_p, POINTER(structure)) for kind, structure in _KINDS.items()}
_Callbacks = _structure("_Callbacks", ("ctx", c_void_p), *_FUNCTIONS.items())


class _Process(Structure):
    _fields_ = [("pid", c_uint32), ("ns_pid", c_uint32), ("parent", c_uint32), ("comm", c_char_p), ("command", c_char_p), ("executable", c_char_p)]


class _Thread(Structure):
    _fields_ = [("pid", c_uint32), ("tid", c_uint32), ("ns_tid", c_uint32), ("comm", c_char_p)]


Span = collections.namedtuple("Span", "id parent start_ns end_ns self_ns cpu_ns probe_ns pid tid row depth flags name provider ancestors")
Activity = collections.namedtuple("Activity", "kind start_ns end_ns pid device context stream correlation operator_id bytes name")
Sample = collections.namedtuple("Sample", "time_ns period_ns pid tid stack")
Wait = collections.namedtuple("Wait", "left_ns woken_ns back_ns pid tid owner waker reason place")
Counter = collections.namedtuple("Counter", "time_ns pid name value tid")
Process = collections.namedtuple("Process", "pid ns_pid parent comm command executable")
Thread = collections.namedtuple("Thread", "pid tid ns_tid comm")
_ROWS = {"span": Span, "activity": Activity, "sample": Sample, "wait": Wait, "counter": Counter}


def _text(raw):
    return None if raw is None else raw.decode("utf-8", "replace")


def _texts(array, count):
    return tuple(_text(array[i]) for i in range(count))


def _row(kind, s):
    """A record as Python's own values: what is behind it is valid during the callback only."""
    values = {name: getattr(s, name) for name, _ in s._fields_[1:]}
    if kind == "span":
        values.update(parent=s.parent or None, cpu_ns=None if s.cpu_ns == UNKNOWN else s.cpu_ns, ancestors=_texts(s.ancestors, s.depth),
                      flags=frozenset(word for bit, word in FLAGS.items() if s.flags & bit))
    elif kind == "activity":
        values.update(kind=ACTIVITIES[s.kind], stream=None if s.stream == NO_STREAM else s.stream, correlation=s.correlation or None,
                      operator_id=s.operator_id or None)
    elif kind == "sample":
        values.update(stack=_texts(s.stack, s.depth))
        del values["depth"]
    elif kind == "wait":
        values.update(owner=s.owner or None, waker=s.waker or None)
    elif kind == "counter":
        values.update(tid=s.tid or None)
    return _ROWS[kind](**{k: _text(v) if isinstance(v, bytes) else v for k, v in values.items()})


def _load():
    library = ctypes.CDLL(os.environ.get("XSPTRACE_LIBRARY", "libxsptrace.so.1"))
    for name, result, *arguments in (
            ("open", c_int, c_char_p, POINTER(c_void_p), c_char_p, c_size_t), ("close", None, c_void_p),
            ("window", None, c_void_p, POINTER(c_uint64), POINTER(c_uint64), POINTER(c_uint64)), ("realtime", c_uint64, c_void_p, c_uint64),
            ("is_complete", c_bool, c_void_p), ("events_lost", c_uint64, c_void_p), ("info", c_char_p, c_void_p, c_char_p),
            ("process", c_bool, c_void_p, c_size_t, POINTER(_Process)), ("thread", c_bool, c_void_p, c_size_t, POINTER(_Thread)),
            ("run", c_int, c_void_p, POINTER(_Callbacks), POINTER(_Part), c_char_p, c_size_t),
            ("analyze", c_int, c_void_p, POINTER(_Part), c_int, c_void_p, c_char_p, c_size_t)):
        function = getattr(library, f"xsp_trace_{name}")
        function.restype, function.argtypes = result, arguments
    return library


class Trace:
    """A capture that is open. from_ns, to_ns, min_duration_ns, max_depth choose a part, in each method that takes **part."""

    def __init__(self, path):
        self._library, self._trace = _load(), c_void_p()
        why = ctypes.create_string_buffer(512)
        if self._library.xsp_trace_open(os.fsencode(path), ctypes.byref(self._trace), why, len(why)) < 0:
            raise Error(_text(why.value))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._library.xsp_trace_close(self._trace)
        self._trace = c_void_p()

    def window(self):
        """(begin, end, for how long of it all was recorded), in ns."""
        ns = [c_uint64() for _ in range(3)]
        self._library.xsp_trace_window(self._trace, *(ctypes.byref(n) for n in ns))
        return tuple(n.value for n in ns)

    def realtime(self, ns):
        return self._library.xsp_trace_realtime(self._trace, ns)

    def is_complete(self):
        return self._library.xsp_trace_is_complete(self._trace)

    def events_lost(self):
        return self._library.xsp_trace_events_lost(self._trace)

    def info(self, key):
        return _text(self._library.xsp_trace_info(self._trace, os.fsencode(key)))

    def _listed(self, function, structure, row):
        found, s = [], structure()
        while function(self._trace, len(found), ctypes.byref(s)):
            values = {name: getattr(s, name) for name, _ in s._fields_}
            found.append(row(**{k: _text(v) if isinstance(v, bytes) else v for k, v in values.items()}))
        return found

    def processes(self):
        return self._listed(self._library.xsp_trace_process, _Process, Process)

    def threads(self):
        return self._listed(self._library.xsp_trace_thread, _Thread, Thread)

    def run(self, span=None, activity=None, sample=None, wait=None, counter=None, **part):
        """One pass: each function gets each row of its kind. Memory does not grow with the capture. An exception ends the run."""
        raised = []

        def caller(kind, function):
            def call(_, record):
                try:
                    function(_row(kind, record.contents))
                except BaseException as e:  # it goes on in run(): C knows no exceptions
                    raised.append(e)
                    return 1
                return 0
            return _FUNCTIONS[kind](call)

        wanted = {"span": span, "activity": activity, "sample": sample, "wait": wait, "counter": counter}
        callbacks = _Callbacks(size=ctypes.sizeof(_Callbacks), **{kind: caller(kind, f) for kind, f in wanted.items() if f is not None})
        why = ctypes.create_string_buffer(512)
        status = self._library.xsp_trace_run(self._trace, ctypes.byref(callbacks), self._part(part), why, len(why))
        if raised:
            raise raised[0]
        if status != 0:
            raise Error(_text(why.value))

    @staticmethod
    def _part(part):
        return ctypes.byref(_Part(size=ctypes.sizeof(_Part), **part)) if part else None

    def _rows(self, kind, part):
        rows = []
        self.run(**{kind: rows.append}, **part)
        return rows

    def spans(self, **part):
        return self._rows("span", part)

    def activities(self, **part):
        return self._rows("activity", part)

    def samples(self, **part):
        return self._rows("sample", part)

    def waits(self, **part):
        return self._rows("wait", part)

    def counters(self, **part):
        return self._rows("counter", part)

    def frame(self, what, **part):
        """A frame of pandas: of spans, activities, samples, waits, counters, processes or threads."""
        import pandas

        rows = getattr(self, what)(**part)
        row = {"processes": Process, "threads": Thread, "activities": Activity}.get(what) or _ROWS[what[:-1]]
        return pandas.DataFrame(rows, columns=row._fields)

    def analyze(self, **part):
        """What `xsptrace analyze --format json` writes, as Python's own values."""
        libc = ctypes.CDLL(None)
        libc.fdopen.restype, libc.fdopen.argtypes = c_void_p, (c_int, c_char_p)
        libc.fclose.argtypes = (c_void_p,)
        why, memory = ctypes.create_string_buffer(512), os.memfd_create("report")
        with open(memory, "rb") as report:
            file = libc.fdopen(os.dup(memory), b"w")
            status = self._library.xsp_trace_analyze(self._trace, self._part(part), 1, file, why, len(why))
            libc.fclose(file)
            if status != 0:
                raise Error(_text(why.value))
            report.seek(0)
            return json.load(report)

    def account(self, **part):
        """Where the time went: section `account` of analyze()."""
        return self.analyze(**part)["sections"]["account"]
