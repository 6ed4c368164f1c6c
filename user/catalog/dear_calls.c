/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/dear_calls.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

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
		{0.1, "deepcopy", "in copy.deepcopy",
		 "copy what is changed only, build the object anew, or share it: copy.deepcopy walks each object in Python"},
	[XSP_DEAR_CLONE] =
		{0.2, "copies", "on copies: allocating, copying and freeing them",
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
	[XSP_DEAR_LOG] =
		{0.3, "logging", "in logging",
		 "log fewer lines, or at a level that is off; leave formatting to the logger (log.debug('%s', x)), and writing to a QueueHandler"},
	[XSP_DEAR_APPEND] =
		{0.1, "array grown", "growing arrays",
		 "collect the pieces in a list and join them once (np.concatenate, pd.concat), or allocate the whole array first: each append copies all of it"},
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
		{0.3, "barrier of OpenMP", "at barriers of OpenMP",
		 "begin fewer and larger parallel regions (the outer loop), or use fewer threads: at the end of each one they wait for each other"},
	[XSP_DEAR_GARBAGE] =
		{0.2, "garbage collection", "collecting garbage",
		 "give it more memory (java -Xmx, node --max-old-space-size, GOGC), keep less alive, or make less that is thrown away"},
	[XSP_DEAR_COPYING] =
		{0.4, "memory copied", "copying memory",
		 "copy or convert once and keep that; append to a list, not to one large object; take from the end or a deque; pass views"},
	[XSP_DEAR_PASSES] =
		{0.4, "tensors passed over", "filling and adding to whole tensors",
		 "touch less of them: sparse gradients (nn.Embedding(sparse=True)), zero_grad(set_to_none=True), fused or foreach optimizers, smaller tensors"},
	[XSP_DEAR_LOGIN] =
		{0.15, "login", "logging in and shaking hands",
		 "keep connections and sessions (a pool, keep-alive, TLS resumption): deriving a key is slow by design"},
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
	[XSP_DEAR_FILES] = {0.25, "open and close", "opening and closing files",
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
		{0.4, "list gone through", "going through whole lists (sum, min, max)",
		 "keep the sum or the least as elements come and go (a running sum, a heap) instead of going through all of them each time"},
	[XSP_DEAR_MATCH] =
		{0.9, "regex matched", "matching regular expressions",
		 "make the pattern specific: several .* or repeats within repeats are tried in all ways; test for a plain text first (in, find), or split; std::regex is slow, RE2 and PCRE2 are not"},
	[XSP_DEAR_ARRAYS] =
		{0.3, "array from lists", "making arrays from lists, element by element",
		 "keep arrays, and join them as such (np.stack, torch.stack, torch.from_numpy, np.fromiter): a list is converted one element at a time"},
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
		{0.4, "JSON", "writing and parsing JSON",
		 "do not copy by JSON.parse(JSON.stringify()): copy what changes; parse once, and pass the object on"},
	[XSP_DEAR_QUERY] =
		{0.6, "rows gone through", "going through rows of a table (SQLite)",
		 "EXPLAIN QUERY PLAN shows SCAN where no index serves: add one on what WHERE, JOIN and ORDER BY compare, with no function or conversion around the column"},
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
		 "open it once, and keep it (iconv_open, setlocale, newlocale)"},
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
		{0.5, "hash table searched", "going from key to key in buckets of hash tables",
		 "look at the hash function (do many keys share a bucket?); call reserve(), and look up once instead of several times"},
	[XSP_DEAR_SORT] =
		{0.5, "sort", "sorting",
		 "sort once and keep it sorted (bisect.insort, a heap), only what is shown (heapq, partial_sort), and with cheap keys"},
	[XSP_DEAR_COMPRESS] =
		{0.6, "compression", "compressing",
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

/* PYTHON: "file.py function". CALLS: what a line of Python calls ("f.tell"), or its last part (".tell") */
enum where { BEGINS, CONTAINS, PYTHON, CALLS };
static const struct function {
	enum xsp_dear_call call;
	enum where where;
	const char *text;
} functions[] = {
	{XSP_DEAR_REGEX, CONTAINS, "std::__detail::_Compiler<"},
	{XSP_DEAR_REGEX, CONTAINS, "std::__detail::_Scanner<"},
	{XSP_DEAR_REGEX, CONTAINS, "::basic_regex"},
	{XSP_DEAR_REGEX, CONTAINS, "boost::re_detail_500::basic_regex_creator"},
	{XSP_DEAR_REGEX, BEGINS, "regcomp"},
	{XSP_DEAR_REGEX, BEGINS, "re_compile_internal"},
	{XSP_DEAR_REGEX, BEGINS, "pcre2_compile"},
	{XSP_DEAR_REGEX, BEGINS, "pcre_compile"},
	{XSP_DEAR_REGEX, BEGINS, "Perl_re_op_compile"},
	{XSP_DEAR_REGEX, BEGINS, "re2::RE2::Init"},
	{XSP_DEAR_REGEX, BEGINS, "re2::RE2::RE2"},
	{XSP_DEAR_REGEX, BEGINS, "regexp.compile"},
	{XSP_DEAR_REGEX, BEGINS, "regexp.Compile"},
	{XSP_DEAR_REGEX, BEGINS, "regexp/syntax."},
	{XSP_DEAR_REGEX, CONTAINS, "regex::builders::"},
	{XSP_DEAR_REGEX, CONTAINS, "regex::regex::string::Regex::new"},
	{XSP_DEAR_REGEX, CONTAINS, "v8::internal::RegExpImpl::Compile"},
	{XSP_DEAR_REGEX, BEGINS, "sre_compile.py:"},
	{XSP_DEAR_REGEX, BEGINS, "sre_parse.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "backtrace"},
	{XSP_DEAR_TRACEBACK, BEGINS, "__backtrace"},
	{XSP_DEAR_TRACEBACK, BEGINS, "_Unwind_Backtrace"},
	{XSP_DEAR_THROW, BEGINS, "__cxa_throw"},
	{XSP_DEAR_THROW, BEGINS, "__cxa_rethrow"},
	{XSP_DEAR_THROW, BEGINS, "__cxa_allocate_exception"},
	{XSP_DEAR_THROW, BEGINS, "__gxx_personality"},
	{XSP_DEAR_THROW, BEGINS, "_Unwind_"},
	{XSP_DEAR_THROW, BEGINS, "std::__throw_"},
	{XSP_DEAR_THROW, BEGINS, "PyErr_Format"},
	{XSP_DEAR_THROW, BEGINS, "_PyErr_Format"},
	{XSP_DEAR_THROW, BEGINS, "PyErr_Set"},
	{XSP_DEAR_THROW, BEGINS, "_PyErr_Set"},
	{XSP_DEAR_THROW, BEGINS, "PyTraceBack_Here"},
	{XSP_DEAR_THROW, BEGINS, "java_lang_Throwable::fill_in_stack_trace"},
	{XSP_DEAR_THROW, BEGINS, "JVM_FillInStackTrace"},
	{XSP_DEAR_THROW, BEGINS, "v8::internal::Runtime_Throw"},
	{XSP_DEAR_TRACEBACK, BEGINS, "v8::internal::Builtin_ErrorConstructor"},
	{XSP_DEAR_TRACEBACK, BEGINS, "v8::internal::ErrorUtils::"},
	{XSP_DEAR_TRACEBACK, BEGINS, "v8::internal::Isolate::CaptureAndSetErrorStack"},
	{XSP_DEAR_THROW, BEGINS, "runtime.gopanic"}, /* Go */
	{XSP_DEAR_COLLECT, BEGINS, "gc.collect"}, /* a call of Python's: target/python/call.c */
	{XSP_DEAR_COLLECT, BEGINS, "gc_collect_impl"},
	{XSP_DEAR_COLLECT, BEGINS, "gc_collect."},
	{XSP_DEAR_COLLECT, BEGINS, "PyGC_Collect"},
	{XSP_DEAR_COPY, BEGINS, "copy.py:"},
	{XSP_DEAR_DATE, BEGINS, "_strptime.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "traceback.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "inspect.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "linecache.py:"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.debug"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.info"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.warning"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.error"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.log"},
	{XSP_DEAR_APPEND, PYTHON, "function_base.py append"},
	{XSP_DEAR_APPEND, PYTHON, "_function_base_impl.py append"},
	{XSP_DEAR_APPEND, PYTHON, "concat.py concat"},
	{XSP_DEAR_YAML, CONTAINS, " Scanner.fetch_more_tokens"},
	{XSP_DEAR_YAML, CONTAINS, " Scanner.check_token"},
	{XSP_DEAR_THREAD, BEGINS, "pthread_create"},
	{XSP_DEAR_THREAD, BEGINS, "__pthread_create"},
	{XSP_DEAR_FORK, BEGINS, "_Fork"},
	{XSP_DEAR_FORK, BEGINS, "__libc_fork"},
	{XSP_DEAR_FORK, BEGINS, "__fork"},
	{XSP_DEAR_FORK, BEGINS, "vfork"},
	{XSP_DEAR_FORK, BEGINS, "__vfork"},
	{XSP_DEAR_FORK, BEGINS, "posix_spawn"},
	{XSP_DEAR_FORK, BEGINS, "__spawni"},
	{XSP_DEAR_SPIN, BEGINS, "pthread_spin_lock"},
	{XSP_DEAR_SPIN, BEGINS, "pthread_mutex_trylock"},
	{XSP_DEAR_SPIN, BEGINS, "spin_lock"},
	{XSP_DEAR_SPIN, CONTAINS, "SpinLock::lock"},
	{XSP_DEAR_SPIN, CONTAINS, "Spinlock::lock"},
	{XSP_DEAR_SPIN, CONTAINS, "SpinMutex::lock"},
	{XSP_DEAR_SPIN, CONTAINS, "spin_mutex::lock"},
	{XSP_DEAR_STRLEN, BEGINS, "__strlen_"},
	{XSP_DEAR_STRLEN, BEGINS, "__rawmemchr_"}, /* sscanf looks for the end of its text */
	{XSP_DEAR_STRLEN, BEGINS, "__strcat_"},
	{XSP_DEAR_STRLEN, BEGINS, "__strncat_"},
	/* without symbols: besides barriers it does little */
	{XSP_DEAR_BARRIER, BEGINS, "libgomp.so"},
	{XSP_DEAR_BARRIER, BEGINS, "gomp_barrier_"},
	{XSP_DEAR_BARRIER, BEGINS, "gomp_team_barrier_"},
	{XSP_DEAR_BARRIER, BEGINS, "__kmp_hyper_barrier"},
	{XSP_DEAR_BARRIER, BEGINS, "__kmp_wait_"},
	{XSP_DEAR_GARBAGE, BEGINS, "OopOopIterateDispatch<"}, /* HotSpot */
	{XSP_DEAR_GARBAGE, CONTAINS, "MarkSweep::"},
	{XSP_DEAR_GARBAGE, BEGINS, "CompactibleSpace::"},
	{XSP_DEAR_GARBAGE, BEGINS, "ContiguousSpace::prepare_for_compaction"},
	{XSP_DEAR_GARBAGE, BEGINS, "PSParallelCompact"},
	{XSP_DEAR_GARBAGE, BEGINS, "ParCompactionManager::"},
	{XSP_DEAR_GARBAGE, BEGINS, "ParMarkBitMap"},
	{XSP_DEAR_GARBAGE, BEGINS, "ParallelCompactData::"},
	{XSP_DEAR_GARBAGE, BEGINS, "UpdateOnlyClosure::"},
	{XSP_DEAR_GARBAGE, BEGINS, "MoveAndUpdateClosure::"},
	{XSP_DEAR_GARBAGE, BEGINS, "PSPromotionManager::"},
	{XSP_DEAR_GARBAGE, BEGINS, "G1ParScanThreadState::"},
	{XSP_DEAR_GARBAGE, BEGINS, "G1CMTask::"},
	{XSP_DEAR_GARBAGE, BEGINS, "v8::internal::MarkCompactCollector::"},
	{XSP_DEAR_GARBAGE, BEGINS, "v8::internal::Scavenger"},
	{XSP_DEAR_GARBAGE, BEGINS, "runtime.gcDrain"},
	{XSP_DEAR_GARBAGE, BEGINS, "runtime.scanobject"},
	{XSP_DEAR_GARBAGE, BEGINS, "rb_gc_mark"}, /* Ruby */
	{XSP_DEAR_GARBAGE, BEGINS, "gc_mark_"},
	{XSP_DEAR_COPYING, BEGINS, "__memcpy_"},
	{XSP_DEAR_COPYING, BEGINS, "__memmove_"},
	{XSP_DEAR_COPYING, BEGINS, "memcpy"},
	{XSP_DEAR_COPYING, BEGINS, "memmove"},
	{XSP_DEAR_COPYING, BEGINS, "runtime.memmove"}, /* Go */
	{XSP_DEAR_COPYING, BEGINS, "v8::internal::String::SlowFlatten"},
	{XSP_DEAR_COPYING, BEGINS, "Builtins_CloneObjectIC"}, /* {...all, [key]: value} */
	{XSP_DEAR_COPYING, BEGINS, "aten::copy_"},
	{XSP_DEAR_COPYING, BEGINS, "aten::cat"},
	{XSP_DEAR_PASSES, BEGINS, "aten::fill_"},
	{XSP_DEAR_PASSES, BEGINS, "aten::zero_"},
	{XSP_DEAR_PASSES, BEGINS, "aten::add_"},
	{XSP_DEAR_LOGIN, BEGINS, "PKCS5_PBKDF2_HMAC"},
	{XSP_DEAR_LOGIN, BEGINS, "EVP_PBE_scrypt"},
	{XSP_DEAR_LOGIN, BEGINS, "argon2"},
	{XSP_DEAR_LOGIN, BEGINS, "crypt_r"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_do_handshake"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_connect"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_accept"},
	{XSP_DEAR_CERTIFICATES, PYTHON, "ssl.py create_default_context"},
	{XSP_DEAR_CERTIFICATES, BEGINS, "SSL_CTX_load_verify"},
	{XSP_DEAR_CERTIFICATES, BEGINS, "SSL_CTX_set_default_verify_paths"},
	{XSP_DEAR_CERTIFICATES, BEGINS, "X509_load_cert_crl_file"},
	{XSP_DEAR_ROWS, CONTAINS, " iterrows"},
	{XSP_DEAR_ROWS, CONTAINS, " DataFrame.iterrows"},
	{XSP_DEAR_ROWS, CONTAINS, " apply_standard"},
	{XSP_DEAR_ROWS, CONTAINS, "Apply.apply_standard"},
	{XSP_DEAR_ROWS, CONTAINS, " apply_along_axis"},
	{XSP_DEAR_ROWS, CONTAINS, " vectorize.__call__"},
	{XSP_DEAR_PICKLE, CONTAINS, " ForkingPickler.dumps"},
	{XSP_DEAR_LOOKUP, BEGINS, "getaddrinfo"},
	{XSP_DEAR_LOOKUP, PYTHON, "socket.py getaddrinfo"},
	{XSP_DEAR_LOOKUP, BEGINS, "gethostbyname"},
	{XSP_DEAR_LOOKUP, BEGINS, "getpwnam"},
	{XSP_DEAR_LOOKUP, BEGINS, "getpwuid"},
	{XSP_DEAR_ANOMALY, CONTAINS, "AnomalyMetadata::"},
	{XSP_DEAR_SEARCH, CALLS, XSP_DEAR_IN},
	{XSP_DEAR_SEARCH, CALLS, ".index"},
	{XSP_DEAR_SEARCH, CALLS, ".remove"},
	{XSP_DEAR_SEARCH, BEGINS, "Builtins_ArrayIncludes"},
	{XSP_DEAR_SEARCH, BEGINS, "Builtins_ArrayIndexOf"},
	{XSP_DEAR_PLAIN, BEGINS, "PyUnicode_Contains"},
	{XSP_DEAR_SHIFT, CALLS, ".insert"},
	{XSP_DEAR_SHIFT, CALLS, ".pop"},
	{XSP_DEAR_SHIFT, BEGINS, "v8::internal::Builtin_ArrayShift"},
	{XSP_DEAR_SHIFT, BEGINS, "v8::internal::Builtin_ArrayUnshift"},
	{XSP_DEAR_FOLD, CALLS, "sum"},
	{XSP_DEAR_FOLD, CALLS, "min"},
	{XSP_DEAR_FOLD, CALLS, "max"},
	{XSP_DEAR_MATCH, CALLS, ".match"},
	{XSP_DEAR_MATCH, CALLS, ".fullmatch"},
	{XSP_DEAR_MATCH, CALLS, ".findall"},
	{XSP_DEAR_MATCH, CALLS, ".finditer"},
	{XSP_DEAR_MATCH, CALLS, ".search"},
	{XSP_DEAR_MATCH, CALLS, ".sub"},
	{XSP_DEAR_MATCH, CALLS, ".subn"},
	{XSP_DEAR_MATCH, PYTHON, "__init__.py match"},
	{XSP_DEAR_MATCH, PYTHON, "__init__.py fullmatch"},
	{XSP_DEAR_MATCH, PYTHON, "__init__.py findall"},
	{XSP_DEAR_MATCH, PYTHON, "__init__.py search"},
	{XSP_DEAR_MATCH, PYTHON, "__init__.py sub"},
	{XSP_DEAR_MATCH, BEGINS, "std::__detail::_Executor<"},
	{XSP_DEAR_MATCH, BEGINS, "pcre2_match"},
	{XSP_DEAR_MATCH, BEGINS, "pcre_exec"},
	{XSP_DEAR_MATCH, BEGINS, "Perl_regexec_flags"},
	{XSP_DEAR_MATCH, BEGINS, "re_search_internal"},
	{XSP_DEAR_MATCH, CONTAINS, "regex_automata::"},
	{XSP_DEAR_MATCH, BEGINS, "regexp.(*Regexp)"}, /* Go */
	{XSP_DEAR_MATCH, BEGINS, "Builtins_RegExp"},
	{XSP_DEAR_ARRAYS, BEGINS, "torch::utils::tensor_ctor"},
	{XSP_DEAR_ARRAYS, CALLS, "torch.tensor"},
	{XSP_DEAR_ARRAYS, CALLS, "torch.as_tensor"},
	{XSP_DEAR_ARRAYS, CALLS, "torch.FloatTensor"},
	{XSP_DEAR_ARRAYS, CALLS, "torch.LongTensor"},
	{XSP_DEAR_ARRAYS, CALLS, "np.array"},
	{XSP_DEAR_ARRAYS, CALLS, "np.asarray"},
	{XSP_DEAR_ARRAYS, CALLS, "numpy.array"},
	{XSP_DEAR_TELL, CALLS, ".tell"},
	{XSP_DEAR_LOAD, PYTHON, "__init__.py load"}, /* json, yaml */
	{XSP_DEAR_LOAD, PYTHON, "_parser.py load"}, /* tomllib */
	{XSP_DEAR_LOAD, PYTHON, "configparser.py RawConfigParser.read"},
	{XSP_DEAR_LOAD, PYTHON, "serialization.py load"},
	{XSP_DEAR_LOAD, PYTHON, "npyio.py load"},
	{XSP_DEAR_LOAD, PYTHON, "npyio.py loadtxt"},
	{XSP_DEAR_LOAD, PYTHON, "readers.py read_csv"},
	{XSP_DEAR_SAVE, PYTHON, "serialization.py save"},
	{XSP_DEAR_JSON, BEGINS, "v8::internal::JsonParser"},
	{XSP_DEAR_JSON, BEGINS, "v8::internal::JsonStringif"},
	{XSP_DEAR_JSON, BEGINS, "v8::internal::ValueSerializer"},
	{XSP_DEAR_JSON, BEGINS, "v8::internal::ValueDeserializer"},
	{XSP_DEAR_QUERY, BEGINS, "sqlite3VdbeExec"},
	{XSP_DEAR_PLAIN, BEGINS, "sqlite3BtreeTableMoveto"}, /* by an index or a row's number */
	{XSP_DEAR_PLAIN, BEGINS, "sqlite3BtreeIndexMoveto"},
	{XSP_DEAR_PLAIN, BEGINS, "sqlite3VdbeFinishMoveto"},
	{XSP_DEAR_PLAIN, BEGINS, "sqlite3BtreeInsert"},
	{XSP_DEAR_CONNECT, PYTHON, "socket.py create_connection"},
	{XSP_DEAR_COMPILE, BEGINS, "Py_CompileString"},
	{XSP_DEAR_COMPILE, BEGINS, "_PyAST_Compile"},
	{XSP_DEAR_COMPILE, BEGINS, "_PyParser_"},
	{XSP_DEAR_COMPILE, CALLS, "eval"},
	{XSP_DEAR_COMPILE, CALLS, "compile"},
	{XSP_DEAR_COMPILE, PYTHON, "ast.py literal_eval"},
	{XSP_DEAR_COMPILE, PYTHON, "ast.py parse"},
	{XSP_DEAR_RANDOM, BEGINS, "std::random_device::"},
	{XSP_DEAR_STREAM, CONTAINS, "::basic_stringstream"},
	{XSP_DEAR_STREAM, CONTAINS, "::basic_ostringstream"},
	{XSP_DEAR_STREAM, CONTAINS, "::basic_istringstream"},
	{XSP_DEAR_STREAM, CONTAINS, "::basic_stringbuf"},
	{XSP_DEAR_STREAM, BEGINS, "std::locale::"},
	{XSP_DEAR_STREAM, BEGINS, "std::ios_base::"},
	{XSP_DEAR_STREAM, BEGINS, "std::basic_ios<"},
	{XSP_DEAR_STREAM, BEGINS, "std::ostream::"},
	{XSP_DEAR_STREAM, BEGINS, "std::istream::"},
	{XSP_DEAR_STREAM, BEGINS, "std::basic_ostream<"},
	{XSP_DEAR_STREAM, BEGINS, "std::basic_istream<"},
	{XSP_DEAR_TIMEZONE, BEGINS, "__tz_convert"},
	{XSP_DEAR_TIMEZONE, BEGINS, "tzset_internal"},
	{XSP_DEAR_TIMEZONE, BEGINS, "__tzset"},
	{XSP_DEAR_TIMEZONE, BEGINS, "tzset"},
	{XSP_DEAR_SYMBOL, BEGINS, "dlsym"},
	{XSP_DEAR_SYMBOL, BEGINS, "__dlsym"},
	{XSP_DEAR_SYMBOL, BEGINS, "dlopen"},
	{XSP_DEAR_SYMBOL, BEGINS, "_dl_open"},
	{XSP_DEAR_LOCALE, BEGINS, "iconv_open"},
	{XSP_DEAR_LOCALE, BEGINS, "iconv_close"},
	{XSP_DEAR_LOCALE, BEGINS, "setlocale"},
	{XSP_DEAR_LOCALE, BEGINS, "newlocale"},
	{XSP_DEAR_IMPORT, CONTAINS, " _find_spec"},
	{XSP_DEAR_CAST, BEGINS, "__dynamic_cast"},
	{XSP_DEAR_SCANF, BEGINS, "sscanf"},
	{XSP_DEAR_SCANF, BEGINS, "__isoc99_sscanf"},
	{XSP_DEAR_SCANF, BEGINS, "__isoc23_sscanf"},
	{XSP_DEAR_CHAIN, CONTAINS, "::_M_find_before_node"}, /* libstdc++'s std::unordered_map */
	{XSP_DEAR_CHAIN, CONTAINS, "::_M_find_node"},
	{XSP_DEAR_SORT, BEGINS, "qsort"},
	{XSP_DEAR_SORT, BEGINS, "msort_with_tmp"},
	{XSP_DEAR_SORT, CONTAINS, "std::__introsort_loop<"},
	{XSP_DEAR_SORT, CONTAINS, "std::__merge_sort_loop<"},
	{XSP_DEAR_SORT, CALLS, "sorted"},
	{XSP_DEAR_SORT, CALLS, ".sort"},
	{XSP_DEAR_SORT, BEGINS, "Perl_pp_sort"},
	{XSP_DEAR_COMPRESS, CALLS, "zlib.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "gzip.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "bz2.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "lzma.compress"},
	{XSP_DEAR_COMPRESS, BEGINS, "deflate"},
	{XSP_DEAR_COMPRESS, BEGINS, "BZ2_bzCompress"},
	{XSP_DEAR_COMPRESS, BEGINS, "lzma_code"},
	{XSP_DEAR_SEEK, PYTHON, "_compression.py DecompressReader.seek"},
	{XSP_DEAR_SEEK, PYTHON, "_streams.py DecompressReader.seek"}, /* from 3.14 on */
	{XSP_DEAR_MANAGER, PYTHON, "managers.py BaseProxy._callmethod"},
	{XSP_DEAR_STRCMP, BEGINS, "__strcmp_"},
	{XSP_DEAR_STRCMP, BEGINS, "__strncmp_"},
	{XSP_DEAR_STRCMP, BEGINS, "__strcasecmp_"},
	{XSP_DEAR_CLEAR, BEGINS, "__memset_"},
	{XSP_DEAR_ALLOCATE, BEGINS, "__libc_malloc"},
	{XSP_DEAR_ALLOCATE, BEGINS, "_int_malloc"},
	{XSP_DEAR_ALLOCATE, BEGINS, "__libc_calloc"},
	{XSP_DEAR_ALLOCATE, BEGINS, "__libc_realloc"},
	{XSP_DEAR_ALLOCATE, BEGINS, "__libc_free"},
	{XSP_DEAR_ALLOCATE, BEGINS, "_int_free"},
	{XSP_DEAR_ALLOCATE, BEGINS, "cfree"},
	{XSP_DEAR_ALLOCATE, BEGINS, "malloc_consolidate"},
	{XSP_DEAR_ALLOCATE, BEGINS, "operator new"},
	{XSP_DEAR_ALLOCATE, BEGINS, "operator delete"},
};

/* re/_compiler.py and re/_parser.py of Python 3.11 and later: other packages have files of these names. */
static bool is_python_regex(const char *frame)
{
	static const char *const parsers[] = {" _parse", " SubPattern.",   " Tokenizer.",
					      " State.", " _class_escape", " _escape"};
	const char *function = strchr(frame, ' ');

	if (strncmp(frame, "_compiler.py:", 13) == 0)
		return true;
	return strncmp(frame, "_parser.py:", 11) == 0 && function != NULL &&
	       XSP_BEGINS_WITH_ANY(function, parsers);
}

bool xsp_is_python_function(const char *frame, const char *text)
{
	const char *function = strchr(text, ' ');
	const size_t file = (size_t)(function - text);

	return strncmp(frame, text, file) == 0 && frame[file] == ':' &&
	       strcmp(frame + file + 1 + strspn(frame + file + 1, "0123456789"), function) == 0;
}

/* A frame of Python has a blank, and one of C++ has colons. */
static bool is_call(const char *frame, const char *text)
{
	return (text[0] == '.' ? xsp_ends_with(frame, strlen(frame), text)
			       : strcmp(frame, text) == 0) &&
	       frame[strcspn(frame, " :(")] == '\0';
}

static bool matches(const char *frame, enum where where, const char *text)
{
	if (where == PYTHON)
		return xsp_is_python_function(frame, text);
	if (where == CALLS)
		return is_call(frame, text);
	return where == BEGINS ? strncmp(frame, text, strlen(text)) == 0
			       : strstr(frame, text) != NULL;
}

static const struct function *function_of(const char *frame)
{
	for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
		if (matches(frame, functions[i].where, functions[i].text))
			return &functions[i];
	return NULL;
}

enum xsp_dear_call xsp_dear_call_of(const char *frame)
{
	const struct function *f = function_of(frame);

	if (f != NULL)
		return f->call;
	return is_python_regex(frame) ? XSP_DEAR_REGEX : XSP_DEAR_NONE;
}

bool xsp_dear_needs_python(const char *frame)
{
	const struct function *f = function_of(frame);

	return f != NULL && f->where == CALLS;
}

/* "clone" of "<app::Conf as core::clone::Clone>::clone" and of "model.py:12 Market.clone" */
static const char *last_part(const char *name)
{
	const char *part = name;

	for (const char *p = name; *p != '\0'; p++)
		part = strchr(" .:", *p) != NULL ? p + 1 : part;
	return part;
}

bool xsp_is_copy(const char *name)
{
	static const char constructor[] = " const&)"; /* xsp_code_name() */
	static const char *const words[] = {"clone", "deepcopy", "deep_copy"};
	const char *part = last_part(name);

	if (strcmp(part, "copy") == 0 || xsp_ends_with(name, strlen(name), constructor))
		return true;
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcasestr(part, words[i]) != NULL)
			return true;
	return false;
}

bool xsp_is_end_of_copy(const char *name, const char *copy)
{
	const char *end = strstr(name, "::~");
	const size_t length = end != NULL ? (size_t)(end - name) : 0;

	return end != NULL && strncmp(name, copy, length) == 0 &&
	       strncmp(copy + length, "::", 2) == 0 && strchr(copy + length + 2, '(') != NULL &&
	       strncmp(strchr(copy + length + 2, '(') + 1, name, length) == 0;
}

enum xsp_dear_call xsp_dear_thread(const char *comm)
{
	static const char *const collectors[] = {"GC Thread#", "G1 Conc",    "G1 Main",
						 "ZWorker",    "Shenandoah", ".NET Server GC"};

	return XSP_BEGINS_WITH_ANY(comm, collectors) ? XSP_DEAR_GARBAGE : XSP_DEAR_NONE;
}

enum xsp_dear_call xsp_dear_syscall(const char *name)
{
	static const struct {
		enum xsp_dear_call call;
		const char *name;
	} syscalls[] = {
		{XSP_DEAR_SMALL_IO, "read"},	{XSP_DEAR_SMALL_IO, "write"},
		{XSP_DEAR_SMALL_IO, "pread64"}, {XSP_DEAR_SMALL_IO, "pwrite64"},
		{XSP_DEAR_SMALL_IO, "readv"},	{XSP_DEAR_SMALL_IO, "writev"},
		{XSP_DEAR_MAP, "mmap"},		{XSP_DEAR_MAP, "munmap"},
		{XSP_DEAR_MAP, "mremap"},	{XSP_DEAR_MAP, "brk"},
		{XSP_DEAR_THREAD, "clone"},	{XSP_DEAR_THREAD, "clone3"},
		{XSP_DEAR_FILES, "open"},	{XSP_DEAR_FILES, "openat"},
		{XSP_DEAR_FILES, "close"},	{XSP_DEAR_POLL, "poll"},
		{XSP_DEAR_POLL, "ppoll"},	{XSP_DEAR_POLL, "select"},
		{XSP_DEAR_POLL, "pselect6"},	{XSP_DEAR_POLL, "epoll_wait"},
		{XSP_DEAR_POLL, "epoll_pwait"}, {XSP_DEAR_SPIN, "sched_yield"},
		{XSP_DEAR_STAT, "newfstatat"},	{XSP_DEAR_STAT, "stat"},
		{XSP_DEAR_STAT, "access"},	{XSP_DEAR_STAT, "statx"},
		{XSP_DEAR_WAKE, "futex"},	{XSP_DEAR_CONNECT, "connect"},
		{XSP_DEAR_RANDOM, "getrandom"}, {XSP_DEAR_CLOCK, "clock_gettime"},
		{XSP_DEAR_CLOCK, "getrusage"},	{XSP_DEAR_CLOCK, "times"},
		{XSP_DEAR_MAP, "madvise"},	{XSP_DEAR_MAP, "mprotect"},
		{XSP_DEAR_MESSAGES, "sendto"},	{XSP_DEAR_MESSAGES, "recvfrom"},
		{XSP_DEAR_MESSAGES, "sendmsg"}, {XSP_DEAR_MESSAGES, "recvmsg"},
	};

	for (size_t i = 0; i < sizeof(syscalls) / sizeof(syscalls[0]); i++)
		if (strcmp(name, syscalls[i].name) == 0)
			return syscalls[i].call;
	return XSP_DEAR_NONE;
}

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
