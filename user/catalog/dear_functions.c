/* SPDX-License-Identifier: BSD-2-Clause */
/* dear_functions.c - by which names of functions, threads and system calls dear calls are known. */
#include "catalog/dear_calls.h"

#include <stddef.h>
#include <string.h>

#include "base/text.h"

/* PYTHON: "file.py function". CALLS: what a line of Python calls ("f.tell"), or its last part (".tell"). OF_NUMPY: what NumPy's
 * module calls, by its beginning */
enum where { BEGINS, CONTAINS, PYTHON, CALLS, OF_NUMPY };
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
	{XSP_DEAR_THROW, BEGINS, "std::panicking::rust_panic"},
	{XSP_DEAR_THROW, BEGINS, "Perl_die_unwind"},
	{XSP_DEAR_COLLECT, BEGINS, "gc.collect"}, /* a call of Python's: target/python/call.c */
	{XSP_DEAR_COLLECT, BEGINS, "gc_collect_impl"},
	{XSP_DEAR_COLLECT, BEGINS, "gc_collect."},
	{XSP_DEAR_COLLECT, BEGINS, "PyGC_Collect"},
	{XSP_DEAR_COPY, BEGINS, "copy.py:"},
	{XSP_DEAR_COPY, PYTHON, "dataclasses.py asdict"},
	{XSP_DEAR_COPY, PYTHON, "dataclasses.py astuple"},
	{XSP_DEAR_DATE, BEGINS, "_strptime.py:"},
	{XSP_DEAR_REFLECT, PYTHON, "inspect.py signature"},
	{XSP_DEAR_REFLECT, PYTHON, "typing.py get_type_hints"},
	{XSP_DEAR_REFLECT, BEGINS, "JVM_GetClassDeclared"},
	{XSP_DEAR_TRACEBACK, BEGINS, "traceback.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "inspect.py:"},
	{XSP_DEAR_TRACEBACK, BEGINS, "linecache.py:"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.debug"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.info"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.warning"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.error"},
	{XSP_DEAR_LOG, PYTHON, "__init__.py Logger.log"},
	{XSP_DEAR_LOG, BEGINS, "syslog"},
	{XSP_DEAR_LOG, BEGINS, "__vsyslog"},
	{XSP_DEAR_REPR, PYTHON, "dataclasses.py _recursive_repr.<locals>.wrapper"},
	{XSP_DEAR_REPR, BEGINS, "pprint.py:"},
	{XSP_DEAR_REPR, BEGINS, "reprlib.py:"},
	{XSP_DEAR_APPEND, PYTHON, "function_base.py append"},
	{XSP_DEAR_APPEND, PYTHON, "_function_base_impl.py append"},
	{XSP_DEAR_APPEND, PYTHON, "function_base.py insert"},
	{XSP_DEAR_APPEND, PYTHON, "_function_base_impl.py insert"},
	{XSP_DEAR_APPEND, PYTHON, "function_base.py delete"},
	{XSP_DEAR_APPEND, PYTHON, "_function_base_impl.py delete"},
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
	{XSP_DEAR_GARBAGE, BEGINS, "v8::internal::Heap::CollectGarbage"},
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
	{XSP_DEAR_DERIVE, BEGINS, "PKCS5_PBKDF2_HMAC"},
	{XSP_DEAR_DERIVE, BEGINS, "EVP_PBE_scrypt"},
	{XSP_DEAR_DERIVE, BEGINS, "argon2"},
	{XSP_DEAR_DERIVE, BEGINS, "crypt_r"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_do_handshake"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_connect"},
	{XSP_DEAR_LOGIN, BEGINS, "SSL_accept"},
	{XSP_DEAR_LOGIN, BEGINS, "PQconnect"},
	{XSP_DEAR_LOGIN, BEGINS, "mysql_real_connect"},
	{XSP_DEAR_LOGIN, PYTHON, "ssl.py SSLSocket.do_handshake"},
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
	{XSP_DEAR_ROWS, CONTAINS, " _ScalarAccessIndexer.__"},
	{XSP_DEAR_PICKLE, CONTAINS, " ForkingPickler.dumps"},
	{XSP_DEAR_LOOKUP, BEGINS, "getaddrinfo"},
	{XSP_DEAR_LOOKUP, PYTHON, "socket.py getaddrinfo"},
	{XSP_DEAR_LOOKUP, BEGINS, "gethostbyname"},
	{XSP_DEAR_LOOKUP, BEGINS, "getpwnam"},
	{XSP_DEAR_LOOKUP, BEGINS, "getpwuid"},
	{XSP_DEAR_LOOKUP, BEGINS, "getgrnam"},
	{XSP_DEAR_LOOKUP, BEGINS, "getgrgid"},
	{XSP_DEAR_LOOKUP, BEGINS, "gethostbyaddr"},
	{XSP_DEAR_LOOKUP, BEGINS, "getnameinfo"},
	{XSP_DEAR_ANOMALY, CONTAINS, "AnomalyMetadata::"},
	{XSP_DEAR_SEARCH, CALLS, XSP_DEAR_IN},
	{XSP_DEAR_SEARCH, CALLS, ".index"},
	{XSP_DEAR_SEARCH, CALLS, ".remove"},
	{XSP_DEAR_SEARCH, CALLS, ".count"},
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
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Add"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Subtract"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Multiply"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_TrueDivide"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Power"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Absolute"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyNumber_Negative"},
	{XSP_DEAR_OBJECTS, OF_NUMPY, "PyObject_RichCompare"},
	{XSP_DEAR_EXACT, BEGINS, "statistics.py:"},
	{XSP_DEAR_EXACT, BEGINS, "fractions.py:"},
	{XSP_DEAR_EXACT, BEGINS, "_pydecimal.py:"},
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
	{XSP_DEAR_CONNECT, BEGINS, "sqlite3_open"},
	{XSP_DEAR_PREPARE, BEGINS, "sqlite3_prepare"},
	{XSP_DEAR_PREPARE, BEGINS, "sqlite3LockAndPrepare"},
	{XSP_DEAR_COMPILE, BEGINS, "Py_CompileString"},
	{XSP_DEAR_COMPILE, BEGINS, "_PyAST_Compile"},
	{XSP_DEAR_COMPILE, BEGINS, "_PyParser_"},
	{XSP_DEAR_COMPILE, CALLS, "eval"},
	{XSP_DEAR_COMPILE, CALLS, "compile"},
	{XSP_DEAR_COMPILE, PYTHON, "ast.py literal_eval"},
	{XSP_DEAR_COMPILE, PYTHON, "ast.py parse"},
	{XSP_DEAR_COMPILE, PYTHON, "__init__.py namedtuple"},
	{XSP_DEAR_COMPILE, PYTHON, "environment.py Environment.compile"}, /* Jinja */
	{XSP_DEAR_COMPILE, BEGINS, "v8::internal::Compiler::GetFunctionFromEval"},
	{XSP_DEAR_COMPILE, BEGINS, "v8::internal::CreateDynamicFunction"},
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
	{XSP_DEAR_TIMEZONE, BEGINS, "__mktime_internal"},
	{XSP_DEAR_SYMBOL, BEGINS, "dlsym"},
	{XSP_DEAR_SYMBOL, BEGINS, "__dlsym"},
	{XSP_DEAR_SYMBOL, BEGINS, "dlopen"},
	{XSP_DEAR_SYMBOL, BEGINS, "_dl_open"},
	{XSP_DEAR_LOCALE, BEGINS, "iconv_open"},
	{XSP_DEAR_LOCALE, BEGINS, "iconv_close"},
	{XSP_DEAR_LOCALE, BEGINS, "setlocale"},
	{XSP_DEAR_LOCALE, BEGINS, "newlocale"},
	{XSP_DEAR_LOCALE, BEGINS, "v8::internal::JSNumberFormat::"},
	{XSP_DEAR_LOCALE, BEGINS, "v8::internal::JSDateTimeFormat::"},
	{XSP_DEAR_LOCALE, BEGINS, "v8::internal::JSCollator::"},
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
	{XSP_DEAR_SORT, CONTAINS, "core::slice::sort::"},
	{XSP_DEAR_SORT, BEGINS, "Builtins_ArrayPrototypeSort"},
	{XSP_DEAR_SORT, CALLS, "sorted"},
	{XSP_DEAR_SORT, CALLS, ".sort"},
	{XSP_DEAR_SORT, BEGINS, "Perl_pp_sort"},
	{XSP_DEAR_COMPRESS, CALLS, "zlib.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "gzip.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "bz2.compress"},
	{XSP_DEAR_COMPRESS, CALLS, "lzma.compress"},
	{XSP_DEAR_COMPRESS, PYTHON, "gzip.py compress"},
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
	return where == CONTAINS ? strstr(frame, text) != NULL
				 : strncmp(frame, text, strlen(text)) == 0;
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

bool xsp_dear_needs_caller(const char *frame)
{
	const struct function *f = function_of(frame);

	return f != NULL && (f->where == CALLS || f->where == OF_NUMPY);
}

bool xsp_dear_fits_caller(const char *frame, const char *caller, bool is_python)
{
	static const char numpy[] = "_multiarray_umath.";

	return function_of(frame)->where == CALLS ? is_python
						  : strncmp(caller, numpy, strlen(numpy)) == 0;
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
		{XSP_DEAR_STAT, "getdents64"},	{XSP_DEAR_STAT, "readlink"},
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
