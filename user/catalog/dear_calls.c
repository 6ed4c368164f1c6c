/* SPDX-License-Identifier: BSD-2-Clause */
/* dear_calls.c - what dear calls are called, and what to do instead. */
#include "catalog/dear_calls.h"

#include <stddef.h>

/* clang-format off */
static const struct {
	double least;
	const char *name, *doing, *advice;
} calls[XSP_DEAR_CALLS] = {
	[XSP_DEAR_NONE] = {1, NULL, "", ""},
	[XSP_DEAR_REGEX] =
		{0.1, "regex compiled", "compiling regular expressions",
		 "compile each regular expression once, and keep it (a static, a global, a field); Python's re keeps the last 512 only"},
	[XSP_DEAR_THROW] =
		{0.15, "exceptions thrown", "throwing exceptions",
		 "test first, or return an error where failing is usual (C++: std::from_chars, find(); Python: in, dict.get()): a throw costs a microsecond or more"},
	[XSP_DEAR_COLLECT] =
		{0.1, "gc.collect()", "in gc.collect()",
		 "call gc.collect() less often or not at all: it walks all objects each time; gc.freeze() takes those that stay out of it"},
	[XSP_DEAR_COPY] =
		{0.15, "deepcopy", "in copy.deepcopy",
		 "copy what is changed only, build the object anew, or share it: copy.deepcopy walks each object in Python"},
	[XSP_DEAR_CLONE] =
		{0.25, "copies", "on copies: allocating, copying and freeing them",
		 "pass what is only read by reference (const &, &, a shared_ptr to const), move what is not needed any more, or copy only what changes"},
	[XSP_DEAR_DATE] =
		{0.2, "strptime", "in strptime",
		 "use datetime.fromisoformat, parse once and keep the results, or whole columns at a time (pandas.to_datetime with a format)"},
	[XSP_DEAR_ANOMALY] =
		{0.1, "anomaly detection", "in autograd's anomaly detection",
		 "switch torch.autograd.set_detect_anomaly off: it formats the stack at each operator, and checks each gradient for NaN"},
	[XSP_DEAR_TRACEBACK] =
		{0.1, "stack inspected", "inspecting its stack",
		 "do not format tracebacks or inspect the stack in each call (inspect.stack() reads source files; new Error().stack formats it)"},
	[XSP_DEAR_REFLECT] =
		{0.15, "types inspected", "looking at signatures and types",
		 "do it once for each function or class, and keep what it said (inspect.signature, typing.get_type_hints)"},
	[XSP_DEAR_LOG] =
		{0.4, "logging", "in logging",
		 "log fewer lines, or at a level that is off; leave formatting to the logger (log.debug('%s', x)), and writing to a QueueHandler"},
	[XSP_DEAR_REPR] =
		{0.3, "texts of objects", "making texts of whole objects (repr)",
		 "make them only where they are used: log.debug('%r', x) instead of an f-string, which is made whether or not the line is written"},
	[XSP_DEAR_APPEND] =
		{0.1, "array grown", "growing arrays",
		 "collect the pieces in a list and join them once (np.concatenate, pd.concat), or allocate the whole array first: each append copies all of it"},
	[XSP_DEAR_JOIN] =
		{0.25, "arrays joined", "joining arrays (cat, concatenate)",
		 "write into one array that was made large enough (a ring), or collect the pieces and join them once: each time all of it is copied"},
	[XSP_DEAR_YAML] =
		{0.1, "YAML in Python", "loading YAML in Python",
		 "load it once, with yaml.CSafeLoader, or keep it as JSON: yaml's own loaders are written in Python"},
	[XSP_DEAR_THREAD] =
		{0.1, "threads started", "starting threads",
		 "keep threads (a pool, an executor) instead of starting one for each piece of work"},
	[XSP_DEAR_FORK] =
		{0.1, "processes started", "starting processes",
		 "start them less often, or from a small process: fork copies the page tables of all memory (posix_spawn and vfork do not; Python: no preexec_fn)"},
	[XSP_DEAR_POLL] =
		{0.4, "polling", "asking what is ready",
		 "let poll, select or epoll wait (a timeout above 0), and read all that is there before asking again"},
	[XSP_DEAR_SPIN] =
		{0.1, "spinning", "spinning",
		 "it polls and keeps its CPU: wait on a condition variable, an event or a blocking call instead"},
	[XSP_DEAR_STRLEN] =
		{0.3, "strlen", "in strlen",
		 "keep the length: strlen, strcat and sscanf read all of the text each time, so a loop over it is quadratic (strtol, strtod)"},
	[XSP_DEAR_BARRIER] =
		{0.4, "barrier of OpenMP", "at barriers of OpenMP",
		 "begin fewer and larger parallel regions (the outer loop), or use fewer threads: at the end of each one they wait for each other"},
	[XSP_DEAR_GARBAGE] =
		{0.25, "garbage collection", "collecting garbage",
		 "give it more memory (java -Xmx, node --max-old-space-size, GOGC), keep less alive, or make less that is thrown away"},
	[XSP_DEAR_COPYING] =
		{0.4, "memory copied", "copying memory",
		 "copy or convert once and keep that; append to a list, not to one large object; take from the end or a deque; pass views"},
	[XSP_DEAR_PASSES] =
		{0.4, "tensors passed over", "filling and adding to whole tensors",
		 "touch less of them: sparse gradients (nn.Embedding(sparse=True)), zero_grad(set_to_none=True), fused or foreach optimizers, smaller tensors"},
	[XSP_DEAR_LOGIN] =
		{0.15, "handshake", "making connections: handshakes, certificates",
		 "keep connections and sessions (a pool, keep-alive, TLS resumption; requests.Session instead of requests.get)"},
	[XSP_DEAR_DERIVE] =
		{0.3, "key derived", "deriving keys from passwords",
		 "derive a key once for each session, and leave it to other threads where others wait meanwhile (an event loop): it is slow by design"},
	[XSP_DEAR_CERTIFICATES] =
		{0.1, "certificates loaded", "loading certificates",
		 "make one TLS context (one client, one session) and keep it: each new one reads all certificates that are trusted"},
	[XSP_DEAR_ROWS] =
		{0.2, "Python for each row", "calling Python for each row or element",
		 "work on whole columns and arrays (operators, groupby, np.where) instead of apply, iterrows or np.vectorize"},
	[XSP_DEAR_PICKLE] =
		{0.2, "pickling", "pickling for others",
		 "send less: ids instead of objects, larger pieces of work, shared memory (multiprocessing.shared_memory)"},
	[XSP_DEAR_LOOKUP] =
		{0.2, "name looked up", "looking up names of hosts or users",
		 "keep the address or the connection: each look-up reads files and may ask a server"},
	[XSP_DEAR_MAP] =
		{0.15, "memory mapped", "mapping and unmapping memory",
		 "keep and reuse buffers; raise malloc's M_MMAP_THRESHOLD and M_TRIM_THRESHOLD; read small files, do not map them"},
	[XSP_DEAR_SMALL_IO] =
		{0.1, "read or write", "reading and writing",
		 "collect many records in a buffer and read or write them at once (64 KiB and more; setvbuf, BufferedWriter, no std::endl or flush after each)"},
	[XSP_DEAR_FILES] = {0.3, "open and close", "opening and closing files",
			    "keep files open: one open for many reads or writes"},
	[XSP_DEAR_MESSAGES] =
		{0.3, "small messages", "in messages to and from other processes",
		 "send more at once, or ask once and keep the answer (multiprocessing: a copy of a Manager's dict or list): each message wakes the other side, and waits for it"},
	[XSP_DEAR_WAKE] =
		{0.5, "waking threads", "waking threads and putting them to sleep",
		 "wake one thread for one piece of work (notify_one, pthread_cond_signal), hand over larger pieces, use fewer threads, or hold locks for less time"},
	[XSP_DEAR_SEARCH] =
		{0.3, "search", "searching lists",
		 "look it up in a set or a dictionary: each search compares with one element after the other, and takes longer as the list gets longer"},
	[XSP_DEAR_SHIFT] =
		{0.3, "list shifted", "shifting lists (insert, pop)",
		 "take from and add to the end, or use a collections.deque (popleft, appendleft), a heap or a ring: all that follows is moved each time"},
	[XSP_DEAR_FOLD] =
		{0.6, "list gone through", "going through whole lists (sum, min, max)",
		 "keep the sum or the least as elements come and go (a running sum, a heap) instead of going through all of them each time"},
	[XSP_DEAR_MATCH] =
		{0.9, "regex matched", "matching regular expressions",
		 "make the pattern specific: several .* or repeats within repeats are tried in all ways; test for a plain text first (in, find), or split; std::regex is slow, RE2 and PCRE2 are not"},
	[XSP_DEAR_ARRAYS] =
		{0.4, "array from lists", "making arrays from lists, element by element",
		 "keep arrays, and join them as such (np.stack, torch.stack, torch.from_numpy, np.fromiter): a list is converted one element at a time"},
	[XSP_DEAR_OBJECTS] =
		{0.2, "objects in arrays", "computing with arrays of Python's objects (NumPy)",
		 "give the array a type of numbers (dtype=float, astype; NaN for what is missing): of objects each element is computed by Python"},
	[XSP_DEAR_EXACT] =
		{0.3, "exact arithmetic", "in statistics, fractions or decimals written in Python",
		 "compute with floats (statistics.fmean, math.fsum, NumPy), or keep running sums: these take a fraction for each number"},
	[XSP_DEAR_TELL] =
		{0.15, "tell", "in tell() of text files",
		 "count what was read, or open the file in binary: of a text, tell() decodes again what was read ahead"},
	[XSP_DEAR_LOAD] =
		{0.4, "file parsed", "reading and parsing files",
		 "read what does not change once, and keep what was parsed; or keep it in a form that needs no parsing (NumPy, Arrow, a database)"},
	[XSP_DEAR_SAVE] =
		{0.15, "saving", "saving a checkpoint",
		 "save less often, or from a copy in another thread or process; do not compress what nobody transfers"},
	[XSP_DEAR_JSON] =
		{0.6, "JSON", "writing and parsing JSON",
		 "do not copy by JSON.parse(JSON.stringify()): copy what changes; parse once, and pass the object on"},
	[XSP_DEAR_PREPARE] =
		{0.3, "SQL prepared", "preparing statements of SQL",
		 "prepare each once, with ? for its values, and keep it and its connection (executemany): each text that differs is parsed and planned anew"},
	[XSP_DEAR_QUERY] =
		{0.6, "rows gone through", "going through rows of a table (SQLite)",
		 "EXPLAIN QUERY PLAN shows SCAN where no index serves: add one on what WHERE, JOIN and ORDER BY compare, with no function around the column; OFFSET reads all rows before it (WHERE id > the last one)"},
	[XSP_DEAR_CONNECT] =
		{0.15, "connecting", "making connections",
		 "keep connections (a session, a pool, keep-alive) instead of one for each request"},
	[XSP_DEAR_COMPILE] =
		{0.15, "code compiled", "compiling source code",
		 "compile it once (compile(), a function made once), or parse data by what is made for it (json, int, float) instead of eval"},
	[XSP_DEAR_RANDOM] =
		{0.2, "random numbers", "asking the system for random numbers",
		 "make one generator, seed it once (std::mt19937, random.Random), and keep it"},
	[XSP_DEAR_CLOCK] =
		{0.2, "time asked for", "asking the kernel for the time",
		 "ask less often, or a clock that needs no system call (CLOCK_MONOTONIC, time.perf_counter)"},
	[XSP_DEAR_STREAM] =
		{0.6, "streams", "in streams (iostream)",
		 "convert without them (std::to_chars, std::from_chars, std::format), or keep one: each new stream copies a locale, and each number looks up how that writes it"},
	[XSP_DEAR_TIMEZONE] =
		{0.5, "time zone", "looking up the time zone",
		 "set TZ (TZ=:/etc/localtime): without it localtime and strftime ask for that file each time; or convert once a second, and keep the text"},
	[XSP_DEAR_SYMBOL] =
		{0.2, "symbols looked up", "looking up symbols of libraries",
		 "call dlopen and dlsym once, and keep the address"},
	[XSP_DEAR_LOCALE] =
		{0.2, "locale opened", "opening locales and conversions of character sets",
		 "open it once, and keep it (iconv_open, setlocale, newlocale; Intl.NumberFormat, Intl.Collator instead of toLocaleString, localeCompare)"},
	[XSP_DEAR_STAT] =
		{0.5, "files asked about", "asking for files (stat)",
		 "ask once and keep it, for all files of a folder at once (os.scandir), or open the file and see whether that works"},
	[XSP_DEAR_IMPORT] =
		{0.2, "modules searched for", "searching for modules to import",
		 "import once, at the top of the file, and remember that an optional module is missing: a failed import searches all of sys.path again each time"},
	[XSP_DEAR_CAST] =
		{0.3, "dynamic_cast", "in dynamic_cast",
		 "use a virtual function or a tag: a cast compares with the classes' names, one after the other"},
	[XSP_DEAR_SCANF] =
		{0.3, "sscanf", "in sscanf",
		 "convert with strtol, strtod or std::from_chars: sscanf looks for the end of its whole text in each call"},
	[XSP_DEAR_CHAIN] =
		{0.75, "hash table searched", "going from key to key in buckets of hash tables",
		 "look at the hash function (do many keys share a bucket?); call reserve(), and look up once instead of several times"},
	[XSP_DEAR_SORT] =
		{0.6, "sort", "sorting",
		 "sort once and keep it sorted (bisect.insort, a heap), only what is shown (heapq, partial_sort), and with cheap keys"},
	[XSP_DEAR_COMPRESS] =
		{0.75, "compression", "compressing",
		 "take a lower level (zlib: 1; zstd, lz4), larger pieces, another thread, or do not compress what stays on this machine"},
	[XSP_DEAR_SEEK] =
		{0.4, "decompressed again", "seeking in compressed files",
		 "read them in order, keep what was read, or decompress them once: a seek back begins at the start, and decompresses all before it again"},
	[XSP_DEAR_MANAGER] =
		{0.2, "manager asked", "asking a manager process (multiprocessing)",
		 "each use of its lists and dictionaries is a round trip: take a copy (proxy.copy()), give processes at their start what does not change, or share memory"},
	[XSP_DEAR_STRCMP] =
		{0.5, "texts compared", "comparing texts",
		 "look them up by a hash (or sort once and search by halves) instead of comparing with one after the other"},
	[XSP_DEAR_CLEAR] =
		{0.4, "memory cleared", "clearing memory",
		 "clear only what is used, or keep a smaller buffer"},
	[XSP_DEAR_ALLOCATE] =
		{0.55, "allocation", "allocating and freeing memory",
		 "keep and reuse objects and buffers (reserve(), a pool, an arena) instead of making them anew in each call"},
};
/* clang-format on */

const char *xsp_dear_call_name(enum xsp_dear_call call)
{
	return calls[call].name;
}

const char *xsp_dear_call_doing(enum xsp_dear_call call)
{
	return calls[call].doing;
}

const char *xsp_dear_call_advice(enum xsp_dear_call call)
{
	return calls[call].advice;
}

double xsp_dear_call_least(enum xsp_dear_call call)
{
	return calls[call].least;
}
