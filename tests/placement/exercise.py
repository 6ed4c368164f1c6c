# SPDX-License-Identifier: BSD-2-Clause
# Runs a broad sample of CPython and libc inside short windows for `dynamic` to step.
import os


def mark(value):
    try:
        os.getpriority(os.PRIO_PROCESS, value)
    except OSError:
        pass


def window(function):
    function()  # once outside: imports and first-time set-up are stepped only if asked for
    mark(0x58535001)
    function()
    mark(0x58535002)


def strings():
    s = "Grüße, " + "x" * 50
    s.encode("utf-8").decode("utf-8").upper().title().split("X")
    "%d %5.2f %s %r" % (1, 2.5, "a", "b\n")
    f"{3.14159:10.3f}{255:#x}{'é':>5}{10**30}"
    s.translate({120: "y"}).replace("y", "zz").strip("z").find("ü")
    "a,b;c".partition(","), " ".join(str(i) for i in range(20))
    b"\x00\xff".hex(), bytes.fromhex("00ff"), bytearray(b"abc").replace(b"b", b"zz")
    try:
        b"\xff".decode("ascii")
    except UnicodeDecodeError:
        pass


def numbers():
    (3**200 // 7**50) % 1000007, pow(3, 1000, 10**9 + 7), -(2**70) >> 3, int("123456789" * 5)
    1.5 / 3.7, complex(1, 2) ** 0.5, round(2.675, 2), float("1e-300") * 1e10, divmod(-7, 3)
    import math, cmath, random, decimal, fractions, statistics
    [f(0.5) for f in (math.sin, math.cos, math.exp, math.log, math.sqrt, math.gamma, math.erf)]
    math.factorial(30), math.comb(20, 7), cmath.exp(1j), math.fsum([0.1] * 10)
    r = random.Random(1)
    r.random(), r.randint(1, 100), r.sample(range(100), 5), r.gauss(0, 1), r.shuffle([1, 2, 3])
    decimal.Decimal("1.1") ** 20 / decimal.Decimal(3)
    fractions.Fraction(1, 3) + fractions.Fraction(2, 7)
    statistics.stdev([1, 2, 3, 4.5])


def containers():
    d = {i: str(i) for i in range(100)}
    d.update({"a": 1}); d.pop(5); list(d.items())[:3]; d.setdefault("q", []).append(1)
    l = sorted([3, 1, 2] * 20, key=lambda x: -x); l.reverse(); l.insert(3, 9); l[2:5] = [1]; l.index(1)
    s = {1, 2, 3} | {4} & {4, 5} ^ {7}; frozenset(s) - {1}; s.discard(3)
    t = tuple(range(10)); t[::-1], t + t, t * 2, hash(t), t.count(3)
    import collections, heapq, bisect, array, itertools, functools, operator
    c = collections.Counter("abracadabra"); c.most_common(2)
    q = collections.deque(range(10), maxlen=5); q.rotate(2); q.appendleft(1)
    o = collections.OrderedDict(a=1); o.move_to_end("a"); collections.namedtuple("P", "x y")(1, 2)
    collections.defaultdict(list)[1].append(2); collections.ChainMap({}, {1: 2})[1]
    h = [5, 3, 8]; heapq.heapify(h); heapq.heappush(h, 1); heapq.heappop(h)
    bisect.insort(l, 4); a = array.array("d", [1.0, 2.0]); a.tobytes(); a.byteswap()
    list(itertools.islice(itertools.permutations("abc"), 4)); list(itertools.product("ab", repeat=2))
    functools.reduce(operator.add, itertools.accumulate(range(10))); functools.lru_cache(lambda x: x)(3)
    memoryview(b"abcdef")[1:4].tolist()


def text():
    import re, json, csv, io, string, textwrap, struct, base64, binascii, difflib, html, shlex, pprint
    re.compile(r"(\w+)@(?P<host>[a-z.]+)\b(?!x)").search("mail me@example.com now").groupdict()
    re.sub(r"(a|b)*?c{2,3}", lambda m: m.group(0).upper(), "abccabccc" * 3)
    json.loads(json.dumps({"a": [1, 2.5, None, True, "\u00e9\n"], "b": {"c": 1}}, indent=1))
    w = io.StringIO(); csv.writer(w).writerows([[1, "a,b", 'q"'], [2, "c", ""]])
    list(csv.reader(io.StringIO(w.getvalue())))
    string.Template("$a ${b}").substitute(a=1, b=2); textwrap.fill("word " * 30, 40)
    struct.unpack("<hIqd3s", struct.pack("<hIqd3s", 1, 2, 3, 4.0, b"abc"))
    base64.b64decode(base64.b64encode(b"hello" * 5)); binascii.crc32(b"abc"); base64.b85encode(b"xyz")
    list(difflib.unified_diff(["a", "b"], ["a", "c"])); html.escape("<&>"); shlex.split("a 'b c'")
    pprint.pformat({"k": list(range(30))})


def files():
    import tempfile, os, io, glob, shutil, stat, pathlib, configparser, fnmatch
    with tempfile.TemporaryDirectory() as d:
        p = os.path.join(d, "f.txt")
        with open(p, "w", encoding="utf-8") as f:
            f.write("line é\n" * 100)
        with open(p, encoding="utf-8") as f:
            f.readline(); f.seek(0); f.read(10); list(f)
        with open(p, "rb+", buffering=64) as f:
            f.seek(5); f.write(b"zz"); f.truncate(50); f.readinto(bytearray(8))
        os.stat(p); os.rename(p, p + "2"); glob.glob(d + "/*"); list(os.scandir(d)); os.walk(d)
        shutil.copy(p + "2", p); pathlib.Path(p).resolve().with_suffix(".x"); os.access(p, os.R_OK)
        os.chmod(p, 0o600); os.symlink(p, p + "3"); os.readlink(p + "3"); os.utime(p)
    c = configparser.ConfigParser(); c.read_string("[a]\nb = 1\n")


def data():
    import hashlib, zlib, pickle, copy, marshal, bz2, uuid, secrets, hmac, codecs, gzip, io
    zlib.decompress(zlib.compress(b"abc" * 9)); bz2.decompress(bz2.compress(b"abc"))
    for n in ("md5", "sha1", "sha256", "blake2b", "sha3_256"):
        hashlib.new(n, b"abc" * 50).hexdigest()
    pickle.loads(pickle.dumps({"a": [1, (2, 3)], "b": {4}, "c": 1.5, "d": b"x", "e": 2**100}))
    copy.deepcopy([{"a": [1, 2]}]); marshal.loads(marshal.dumps((1, "a", 2.0)))
    uuid.UUID(int=5); hmac.new(b"k", b"m", "sha256").digest(); codecs.encode("abc", "rot13")
    gzip.decompress(gzip.compress(b"x" * 100))


def objects():
    import abc, dataclasses, enum, weakref, contextlib, types, inspect, gc, typing

    class A:
        __slots__ = ("x", "__weakref__")

        def __init__(self): self.x = 1
        def __getattr__(self, n): raise AttributeError(n)
        def __lt__(self, o): return self.x < o.x
        def __len__(self): return 3
        def __getitem__(self, i): return i

    class B(abc.ABC):
        @property
        def p(self): return super().__hash__()

        @classmethod
        def c(cls): return cls()

        @staticmethod
        def s(): return 1

    a = A(); a < A(); hasattr(a, "zz"); len(a); a[3]; B.c().p; B.s(); weakref.ref(a)(); isinstance(a, B)
    E = enum.Enum("E", "X Y"); E["X"].value; list(E)
    D = dataclasses.make_dataclass("D", ["x", "y"]); D(1, 2) == D(1, 2); repr(D(3, 4))

    def gen(n):
        try:
            for i in range(n):
                got = yield i
        finally:
            pass
    g = gen(5); next(g); g.send(2); g.close()
    try:
        g.throw(ValueError("x"))
    except ValueError as e:
        str(e), e.__traceback__

    @contextlib.contextmanager
    def cm():
        yield 1
    with cm():
        pass
    try:
        with contextlib.suppress(KeyError), cm():
            {}["x"]
        1 / 0
    except ZeroDivisionError:
        pass

    async def co(): return 1
    try:
        co().send(None)
    except StopIteration:
        pass
    type("T", (), {"a": 1})().a; inspect.signature(gen); gc.collect(0); eval("1 + 2 * len('abc')")
    exec(compile("def f(x):\n  match x:\n    case [1, *r]: return r\n    case {'a': v}: return v\n", "x", "exec"), ns := {})
    ns["f"]([1, 2]); ns["f"]({"a": 3})


def system():
    import time, datetime, os, sys, locale, socket, select, threading, signal, subprocess, queue, calendar, errno, selectors
    time.time(); time.strftime("%Y-%m-%d", time.gmtime(0)); time.monotonic_ns(); time.strptime("2020", "%Y")
    datetime.datetime(2020, 1, 2).isoformat(); datetime.timedelta(days=1) * 3; datetime.date.fromisoformat("2020-02-02")
    os.getpid(); os.environ.get("PATH"); os.getcwd(); sys.getsizeof([]); os.cpu_count(); os.urandom(4); os.uname()
    a, b = socket.socketpair(); a.send(b"x"); select.select([b], [], [], 0); b.recv(1); a.close(); b.close()
    r, w = os.pipe(); os.write(w, b"1"); os.read(r, 1); os.close(r); os.close(w)
    threading.Lock().acquire(); q = queue.Queue(); q.put(1); q.get(); calendar.month(2020, 1)
    socket.inet_aton("1.2.3.4"); locale.localeconv(); signal.getsignal(signal.SIGINT); os.strerror(errno.ENOENT)
    s = selectors.DefaultSelector(); s.close(); socket.gethostname()
    try:
        os.open("/nonexistent/x", os.O_RDONLY)
    except FileNotFoundError:
        pass


def parsers():
    import ast, tokenize, io, xml.etree.ElementTree as E, sqlite3, ctypes, argparse, logging, unicodedata
    ast.dump(ast.parse("class A(B):\n  x: int = [i for i in y if z]\n  def f(self, *a, **k): return lambda: (yield)\n"))
    list(tokenize.generate_tokens(io.StringIO("a = 1 + 'b'\n").readline))
    E.tostring(E.fromstring("<a b='1'><c>t&amp;</c></a>"))
    c = sqlite3.connect(":memory:"); c.execute("create table t(a, b text)")
    c.executemany("insert into t values(?, ?)", [(i, str(i)) for i in range(5)])
    c.execute("select b, sum(a) from t group by b order by 2 desc").fetchall(); c.close()
    ctypes.sizeof(ctypes.c_int); ctypes.c_int(5).value; ctypes.string_at(b"abc")
    p = argparse.ArgumentParser(); p.add_argument("-x", type=int); p.parse_args(["-x", "3"])
    logging.getLogger("q").debug("x"); unicodedata.normalize("NFD", "é"); unicodedata.name("é")


for f in (strings, numbers, containers, text, files, data, objects, system, parsers):
    window(f)
