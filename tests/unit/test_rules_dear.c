/* SPDX-License-Identifier: BSD-2-Clause */
/* Dear calls that what is around or inside of them tells apart: parsing, copies, sscanf; uneven shares of such a place. */

#include "analyze_check.h"

enum { IN_CODE = 1, IN_COPY, IN_END, IN_BUILD, INTO_NEW, INTO_COPY, INTO_END, INTO_BUILD };

static void open_dear(struct builder *b)
{
	open_waits(b);
	cr_assert_eq(xsp_capture_put_info(b->w, "samples", "cpu-clock 100"), 0);
	address_name(b, XSP_NAME_OF_CODE, IN_CODE, "app\nwork_on");
}

/* ---- parsing ---- */

/* All samples of a second are in a function of Python that calls these, the innermost first. */
static struct xsp_report *in_python(const char *const *texts, unsigned count)
{
	struct xsp_capture_python_frame frames[3];
	struct builder b;

	open_dear(&b);
	for (unsigned i = 0; i < count; i++) {
		frames[i].name = xsp_text_hash(texts[i], strlen(texts[i]));
		cr_assert_eq(xsp_capture_put_name(b.w, frames[i].name, texts[i]), 0);
	}
	cr_assert_eq(xsp_capture_put_python(b.w, &(struct xsp_capture_python){.id = 7,
									      .count = count,
									      .frames = frames}),
		     0);
	b.now = START - 1;
	put_sampled(&b, 100, IN_CODE,
		    (struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = 7}, 7);
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
	return report_of(&b, NULL);
}

#define OF_PYTHON "/usr/lib/python3.11/"
#define OF_YAML "/usr/lib/python3/dist-packages/yaml/"
#define IN_PROGRAM "/app/triage.py\n28\nline"

/* What is inside of a dear call is the reason, if it need not be there; who parses may be there to do so. */
Test(rules_dear, what_python_parses_and_compiles)
{
	static const struct {
		const char *doing;
		enum xsp_severity severity;
		unsigned count;
		const char *frames[3];
	} cases[] = {
		/* re.match() of a text that is not in re's cache compiles it; of a pattern that is compiled it matches */
		{"compiling",
		 XSP_SEVERITY_HIGH,
		 3,
		 {OF_PYTHON "re/_compiler.py\n740\ncompile", OF_PYTHON "re/__init__.py\n166\nmatch",
		  IN_PROGRAM}},
		{"matching",
		 XSP_SEVERITY_HIGH,
		 2,
		 {OF_PYTHON "re/__init__.py\n166\nmatch", IN_PROGRAM}},
		{"strptime",
		 XSP_SEVERITY_NOTE,
		 2,
		 {OF_PYTHON "_strptime.py\n350\n_strptime", IN_PROGRAM}},
		{"parsing files",
		 XSP_SEVERITY_NOTE,
		 2,
		 {OF_PYTHON "json/__init__.py\n293\nload", IN_PROGRAM}},
		{"YAML",
		 XSP_SEVERITY_HIGH,
		 3,
		 {OF_YAML "scanner.py\n150\nScanner.fetch_more_tokens",
		  OF_YAML "__init__.py\n81\nload", IN_PROGRAM}},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = in_python(cases[i].frames, cases[i].count);
		const char *title = expect(r, "dear-call", cases[i].severity, 1)->finding.title;
		cr_expect_not_null(strstr(title, cases[i].doing), "%s", title);
		xsp_report_free(r);
	}
}

/* Samples in what the caller calls; 0: in the code itself. */
static void put_samples(struct builder *b, unsigned count, uint64_t code, uint64_t caller)
{
	put_sampled(b, count, code, (struct xsp_section){.type = XSP_SECTION_STACK, .size = 16},
		    caller | 2ULL << XSP_FRAME_SHIFT);
}

/* ---- keys ---- */

#define IN_DERIVE 10

/* Half of a second keys are derived, and a quarter of it the thread waits. */
static struct xsp_report *deriving(enum xsp_wait_class why)
{
	struct builder b;

	open_dear(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_DERIVE, "libcrypto.so.3\nPKCS5_PBKDF2_HMAC");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_BUILD, "main");
	address_name(&b, XSP_NAME_OF_FILE, INTO_BUILD, "/home/me/app");
	put_wait(&b, 100, START + MS, 250 * MS, 0, why);
	b.now = START - 1;
	put_samples(&b, 50, IN_DERIVE, INTO_BUILD);
	put_samples(&b, 25, IN_CODE, INTO_BUILD);
	put_times(&b, 100, START, START + 1000 * MS, 0, why, 250 * MS);
	return report_of(&b, NULL);
}

/* Who checks passwords has to; but an event loop serves nobody else meanwhile. */
Test(rules_dear, keys_derived_in_an_event_loop)
{
	struct xsp_report *r = deriving(XSP_WAIT_POLL);

	expect(r, "dear-call", XSP_SEVERITY_HIGH, 0.5);
	xsp_report_free(r);
	r = deriving(XSP_WAIT_LOCK);
	expect_none(r, "dear-call");
	xsp_report_free(r);
}

/* ---- copies ---- */

/* Of a second 0.3 s are allocated and 0.1 s are freed below a function, and some destructor. */
static struct xsp_report *copying(const char *function, unsigned freed)
{
	struct builder b;

	open_dear(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_COPY, "libstdc++.so.6\noperator new");
	address_name(&b, XSP_NAME_OF_CODE, IN_END, "libc.so.6\n__libc_free");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_COPY, function);
	address_name(&b, XSP_NAME_OF_RETURN, INTO_END, "Curve::~Curve");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_BUILD, "main");
	for (uint64_t into = INTO_COPY; into <= INTO_BUILD; into++)
		address_name(&b, XSP_NAME_OF_FILE, into, "/home/me/app");
	b.now = START - 1;
	put_samples(&b, 30, IN_COPY, INTO_COPY);
	put_samples(&b, freed, IN_END, INTO_END);
	put_samples(&b, 70 - freed, IN_CODE, INTO_BUILD);
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
	return report_of(&b, NULL);
}

/* The share of what is found about copies, and what it names; 0: nothing. */
static double copies(struct xsp_report *r, const char **subject)
{
	const struct xsp_report_found *all;
	double share = 0;

	for (size_t i = xsp_report_findings(r, &all); i > 0; i--)
		if (strstr(all[i - 1].finding.title, "on copies") != NULL) {
			share = all[i - 1].finding.share;
			*subject = all[i - 1].finding.subject;
		}
	return share;
}

Test(rules_dear, copies_of_what_is_only_read)
{
	static const struct {
		const char *function;
		unsigned freed;
		double share;
	} cases[] = {
		{"Curve::Curve(Curve const&)", 15, 0.45},
		/* most of what ends was no copy */
		{"Curve::Curve(Curve const&)", 65, 0.3},
		{"Other::Other(Other const&)", 15, 0.3},
		{"<app::Conf as core::clone::Clone>::clone", 15, 0.3},
		/* makes it from something else */
		{"Curve::Curve", 15, 0},
		{"Curve::merge", 15, 0},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = copying(cases[i].function, cases[i].freed);
		const char *subject = "";
		expect_near(copies(r, &subject), cases[i].share, 0.001, cases[i].function);
		if (cases[i].share > 0)
			cr_expect_str_eq(subject, cases[i].function);
		xsp_report_free(r);
	}
}

/* ---- sscanf ---- */

/* Of a second 0.6 s are in sscanf, `ends` hundredths of them looking for the end of its text. */
static struct xsp_report *scanning(unsigned ends)
{
	struct builder b;

	open_dear(&b);
	address_name(&b, XSP_NAME_OF_CODE, IN_COPY, "libc.so.6\n__isoc99_sscanf");
	address_name(&b, XSP_NAME_OF_CODE, IN_END, "libc.so.6\n__rawmemchr_avx2");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_COPY, "parse_row");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_END, "__isoc99_sscanf");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_BUILD, "main");
	address_name(&b, XSP_NAME_OF_FILE, INTO_COPY, "/home/me/app");
	address_name(&b, XSP_NAME_OF_FILE, INTO_BUILD, "/home/me/app");
	b.now = START - 1;
	put_samples(&b, 60 - ends, IN_COPY, INTO_COPY);
	put_samples(&b, ends, IN_END, INTO_END);
	put_samples(&b, 40, IN_CODE, INTO_BUILD);
	put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
	return report_of(&b, NULL);
}

static bool is_said(const struct xsp_report *r, const char *text)
{
	const struct xsp_report_found *all;

	for (size_t i = xsp_report_findings(r, &all); i > 0; i--)
		if (strstr(all[i - 1].finding.title, text) != NULL)
			return true;
	return false;
}

/* Of short texts it is not what is slow; of long ones it looks for their ends all the time. */
Test(rules_dear, sscanf_of_a_long_text)
{
	static const struct {
		unsigned ends;
		bool scan, length;
	} cases[] = {{5, false, false}, {20, true, false}, {40, false, true}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct xsp_report *r = scanning(cases[i].ends);
		cr_expect_eq(is_said(r, "60.0 % of the time in sscanf"), cases[i].scan, "%u",
			     cases[i].ends);
		cr_expect_eq(is_said(r, "of the time in strlen"), cases[i].length, "%u",
			     cases[i].ends);
		xsp_report_free(r);
	}
}

/* ---- JSON ---- */

/* Who parses what it gets has to, wherever in V8 the samples are; who writes and parses in turn copies. */
Test(rules_dear, json_that_is_only_parsed)
{
	static const char *const others[] = {"node\nv8::internal::Builtin_JsonParse",
					     "node\nv8::internal::JsonStringifier::Serialize_"};

	for (size_t i = 0; i < 2; i++) {
		struct builder b;
		open_dear(&b);
		address_name(&b, XSP_NAME_OF_CODE, IN_COPY,
			     "node\nv8::internal::JsonParser<unsigned char>::ParseJson");
		address_name(&b, XSP_NAME_OF_CODE, IN_END, others[i]);
		b.now = START - 1;
		put_samples(&b, 60, IN_COPY, INTO_COPY);
		put_samples(&b, 20, IN_END, INTO_END);
		put_samples(&b, 20, IN_CODE, INTO_BUILD);
		put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
		struct xsp_report *r = report_of(&b, NULL);
		cr_expect_eq(is_said(r, "writing and parsing JSON"), i == 1, "%s", others[i]);
		xsp_report_free(r);
	}
}

/* ---- arrays ---- */

/* Python's arithmetic for each element is dear where NumPy asks for it: most of what Python computes is what a program is for. */
Test(rules_dear, arrays_of_objects)
{
	static const struct {
		const char *caller;
		bool found;
	} cases[] = {{"_multiarray_umath.cpython-311-x86_64-linux-gnu.so+0x1f45b0", true},
		     {"_ufuncs.cpython-311-x86_64-linux-gnu.so+0x1f45b0", false}};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct builder b;
		open_dear(&b);
		address_name(&b, XSP_NAME_OF_CODE, IN_COPY, "python3.11\nPyNumber_Add");
		address_name(&b, XSP_NAME_OF_RETURN, INTO_COPY, cases[i].caller);
		b.now = START - 1;
		put_samples(&b, 25, IN_COPY, INTO_COPY);
		put_samples(&b, 75, IN_CODE, INTO_COPY);
		put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
		struct xsp_report *r = report_of(&b, NULL);
		cr_expect_eq(
			is_said(r, "25.0 % of the time computing with arrays of Python's objects"),
			cases[i].found, "%s", cases[i].caller);
		xsp_report_free(r);
	}
}

/* Who joins arrays now and then copies little; who does it for each element copies all of them again. */
Test(rules_dear, arrays_joined_again_and_again)
{
	static const char line[] = IN_PROGRAM;

	for (unsigned joined = 20; joined <= 30; joined += 10) {
		struct xsp_capture_python_frame frame = {.name = 'l'};
		struct builder b;
		open_dear(&b);
		cr_assert_eq(xsp_capture_put_name(b.w, frame.name, line), 0);
		cr_assert_eq(xsp_capture_put_python(b.w,
						    &(struct xsp_capture_python){
							    .id = 7, .count = 1, .frames = &frame}),
			     0);
		address_name(&b, XSP_NAME_OF_CODE, IN_COPY, "torch\ntorch.cat");
		b.now = START - 1;
		put_sampled(
			&b, joined, IN_COPY,
			(struct xsp_section){.type = XSP_SECTION_PYTHON, .size = 16, .value = 7},
			7);
		put_samples(&b, 100 - joined, IN_CODE, INTO_BUILD);
		put_times(&b, 100, START, START + 1000 * MS, 0, XSP_WAIT_LOCK, 0);
		struct xsp_report *r = report_of(&b, NULL);
		cr_expect_eq(is_said(r, "30.0 % of the time joining arrays"), joined == 30, "%u",
			     joined);
		xsp_report_free(r);
	}
}

/* A program looks for modules when it starts, and for one that is missing again and again in a function. */
Test(rules_dear, modules_searched_for)
{
	static const char *const functions[] = {"/app/a.py\n3\n<module>", "/app/a.py\n3\ndecode"};

	for (size_t i = 0; i < 2; i++) {
		const char *const frames[] = {"<frozen importlib._bootstrap>\n945\n_find_spec",
					      functions[i]};
		struct xsp_report *r = in_python(frames, 2);
		cr_expect_eq(is_said(r, "searching for modules"), i == 1, "%s", functions[i]);
		xsp_report_free(r);
	}
}

/* ---- uneven shares ---- */

/* Of a second a thread computes so many hundredths in what one function calls, half of them in each of two. */
static void put_worker(struct builder *b, uint32_t tid, unsigned hundredths)
{
	struct xsp_event_times times = {.head = {.kind = XSP_EVENT_TIMES, .probe = UINT32_MAX},
					.since_ns = START,
					.running_ns = hundredths * 10 * MS};

	b->tid = tid;
	b->now = START - 1;
	put_samples(b, hundredths / 2, IN_COPY, INTO_COPY);
	put_samples(b, hundredths / 2, IN_END, INTO_COPY);
	times.blocked_ns[XSP_WAIT_LOCK] = 1000 * MS - times.running_ns;
	b->now = START + 1000 * MS;
	builder_put(b, &times, sizeof(times));
	b->tid = 100;
}

/* What a function calls is its work, too: 0.96 s of one thread and 0.16 s of three others are 0.36 s of each. */
Test(rules_dear, uneven_shares_of_what_several_functions_do)
{
	char name[] = "w0";
	struct builder b;

	open_dear(&b);
	cr_assert_eq(xsp_capture_put_info(b.w, "waits", "10"), 0);
	address_name(&b, XSP_NAME_OF_CODE, IN_COPY, "libm.so.6\nlog");
	address_name(&b, XSP_NAME_OF_CODE, IN_END, "libm.so.6\nexp");
	address_name(&b, XSP_NAME_OF_RETURN, INTO_COPY, "score");
	address_name(&b, XSP_NAME_OF_FILE, INTO_COPY, "/home/me/app");
	for (uint32_t i = 0; i < 4; i++) {
		name[1] = (char)('0' + i);
		put_thread(&b, 110 + i, name);
		put_worker(&b, 110 + i, i == 0 ? 96 : 16);
	}
	struct xsp_report *r = report_of(&b, NULL);
	const struct xsp_report_found *f = expect(r, "uneven", XSP_SEVERITY_HIGH, 0.6);
	cr_expect_str_eq(f->finding.subject, "score");
	xsp_report_free(r);
}
