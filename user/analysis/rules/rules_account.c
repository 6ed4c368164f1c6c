/* SPDX-License-Identifier: BSD-2-Clause */
/* rules_account.c - page faults, and dear calls. */
#include "analysis/rules/account_part.h"

#include <string.h>

#include "base/path.h"
#include "base/text.h"
#include "timeline/python.h"

/* ---- memory ---- */

static bool faults(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		   const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_waits(c, f, row, XSP_WAIT_FAULT) || xsp_part_runs(c, f, row, why);
}

#define OF_ARRAYS 0.4 /* each expression of NumPy makes an array: less is its usual price */

static void find_faults(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const char *name =
		p->place != NULL ? xsp_timeline_name(c->timeline, p->place->name - 1) : "";
	const char *function;
	size_t file;

	if (!xsp_python_line_split(name, &file, &function) || xsp_part_share(p) >= OF_ARRAYS)
		xsp_part_found(c, p);
}

int xsp_rule_page_faults(const struct xsp_rule_context *c)
{
	return xsp_part_find(c, faults, XSP_ACCOUNT_FAULT, c->threshold, find_faults);
}

/* ---- dear calls ---- */

static const char *callee_of(const struct xsp_rule_context *c, const struct xsp_account_row *row)
{
	return row->callee != 0 ? xsp_timeline_name(c->timeline, row->callee - 1) : "";
}

/* Who catches what is thrown: the place that ends a catch block; NULL: it was not seen. */
static const char *catcher_of(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_account_row *most = NULL;

	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++) {
			const struct xsp_account_row *row = &f->places[i].rows[k];
			const char *callee = callee_of(c, row);
			if ((strcmp(callee, "__cxa_end_catch") == 0 ||
			     strcmp(callee, "__cxa_begin_catch") == 0) &&
			    row->place != 0 && (most == NULL || row->ns > most->ns))
				most = row;
		}
	return most != NULL ? xsp_timeline_name(c->timeline, most->place - 1) : NULL;
}

/* Who reads files and dates may be there to do so: only that they are the same ones again would be a fault, and nobody knows. */
static bool is_purpose(enum xsp_dear_call call)
{
	return call == XSP_DEAR_DATE || call == XSP_DEAR_LOAD;
}

/* A program that is still loading looks for its modules and their symbols. */
static bool is_loading(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		       enum xsp_dear_call call)
{
	const char *name =
		p->place != NULL ? xsp_timeline_name(c->timeline, p->place->name - 1) : "";

	return (call == XSP_DEAR_SYMBOL || call == XSP_DEAR_IMPORT) &&
	       xsp_ends_with(name, strlen(name), " <module>");
}

/* The part is what that call costs, also where its largest row is another's. */
static void find_call(const struct xsp_rule_context *c, const struct xsp_account_part *p,
		      enum xsp_dear_call call)
{
	struct xsp_part_finding f;

	if (p->row == NULL ||
	    (p->row->kind == XSP_ACCOUNT_CPU && p->row->samples < XSP_SAMPLES_FEW))
		return;
	/* all threads of a team stand at the same barrier */
	if ((call == XSP_DEAR_BARRIER && p->family != xsp_part_shown(c)) || is_loading(c, p, call))
		return;
	xsp_part_begin(c, p, &f);
	f.finding.note = is_purpose(call);
	f.finding.advice = xsp_dear_call_advice(call);
	xsp_finding_text(&f.finding, "call", "what is dear", xsp_dear_call_name(call));
	if (call == XSP_DEAR_PICKLE)
		xsp_finding_text(&f.finding, "asker", "for", xsp_part_asker(c, p));
	if (call == XSP_DEAR_THROW)
		xsp_finding_text(&f.finding, "catcher", "caught in", catcher_of(c, p->family));
	xsp_finding_text(&f.finding, "doing", NULL, xsp_dear_call_doing(call));
	xsp_part_finish(c, &f);
}

static void find_dear(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	if (p->row != NULL)
		find_call(c, p,
			  p->row->kind == XSP_ACCOUNT_SPAN ? xsp_part_operator(c, p->row)
							   : p->row->why - XSP_ACCOUNT_DEAR);
}

/* So few bytes a call are small; and so few where they take the most of it. */
#define SMALL_BYTES 64U
#define SMALL_RECORDS 512U

/* What the process's threads read or wrote by one system call, in the mean. */
static double bytes_a_call(const struct xsp_rule_context *c, uint32_t pid, uint64_t *all)
{
	const struct xsp_thread_times *times;
	const size_t count = xsp_timeline_times(c->timeline, &times);
	uint64_t bytes = 0, calls = 0;

	for (size_t i = 0; i < count; i++) {
		const struct xsp_thread_io *io = &times[i].io;
		if (times[i].thread->pid != pid)
			continue;
		bytes += io->read_bytes + io->written_bytes;
		calls += io->reads + io->writes;
	}
	*all = calls;
	return xsp_rule_share(bytes, calls);
}

static void find_small_io(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	uint64_t calls;
	const double bytes = bytes_a_call(c, p->family->pid, &calls);
	struct xsp_part_finding f;

	if (calls == 0 ||
	    bytes >= (xsp_part_share(p) >= XSP_SHARE_HIGH ? SMALL_RECORDS : SMALL_BYTES))
		return;
	xsp_part_begin(c, p, &f);
	f.finding.title =
		"{subject:400} reads or writes {bytes:3g} bytes at a time: {share} of {of}";
	f.finding.advice = xsp_dear_call_advice(XSP_DEAR_SMALL_IO);
	xsp_finding_count(&f.finding, "calls", "reads and writes", calls);
	xsp_finding_number(&f.finding, "bytes", "bytes each, mean", bytes);
	xsp_part_finish(c, &f);
}

static void find_messages(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	uint64_t calls;

	if (bytes_a_call(c, p->family->pid, &calls) < SMALL_RECORDS)
		find_dear(c, p);
}

/* What takes tracebacks besides formatting them: with that, they are its own. */
static bool is_anomaly(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) ||
	       (xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_TRACEBACK) &&
		xsp_part_of(c, f, xsp_part_runs, why).ns > 0);
}

static void find_anomaly(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	if (xsp_part_of(c, p->family, xsp_part_runs, XSP_ACCOUNT_DEAR + XSP_DEAR_ANOMALY).ns > 0)
		find_call(c, p, XSP_DEAR_ANOMALY);
}

/* What copies by value does all of it, and much of none. */
static bool is_memory(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		      const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) ||
	       xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_COPYING) ||
	       xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_CLEAR);
}

/* What ends is not all that was copied: so many times as long as the copies at most. */
#define ENDS_MOST 2

static bool is_of_memory(const struct xsp_account_row *row)
{
	return row->kind == XSP_ACCOUNT_CPU && (row->why == XSP_ACCOUNT_DEAR + XSP_DEAR_ALLOCATE ||
						row->why == XSP_ACCOUNT_DEAR + XSP_DEAR_COPYING);
}

static bool is_copied(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		      const struct xsp_account_row *row, unsigned why)
{
	(void)f;
	(void)why;
	return row->place != 0 && is_of_memory(row) &&
	       xsp_is_copy(xsp_timeline_name(c->timeline, row->place - 1));
}

/* A copy that ends frees what it had. */
static bool is_end(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		   const struct xsp_account_row *row)
{
	const char *name = row->place != 0 ? xsp_timeline_name(c->timeline, row->place - 1) : "";

	if (strstr(name, "::~") == NULL || !is_of_memory(row))
		return false;
	for (size_t i = 0; i < f->count; i++) {
		const struct xsp_account_place *p = &f->places[i];
		if (p->name != 0 && row->ns <= ENDS_MOST * p->ns &&
		    xsp_is_end_of_copy(name, xsp_timeline_name(c->timeline, p->name - 1)))
			return true;
	}
	return false;
}

static bool is_of_copies(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			 const struct xsp_account_row *row, unsigned why)
{
	return is_copied(c, f, row, why) || is_end(c, f, row);
}

static void find_memory(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_account_part copies = xsp_part_of(c, p->family, is_of_copies, 0);

	/* they are said to be copies */
	if (p->row == NULL || p->row->samples < XSP_SAMPLES_FEW ||
	    xsp_part_share(&copies) >= xsp_dear_call_least(XSP_DEAR_CLONE) ||
	    xsp_rule_has_found(c->report, c->rule->key,
			       xsp_timeline_name(c->timeline, p->place->name - 1)))
		return;
	find_call(c, p, XSP_DEAR_ALLOCATE);
}

/* Named by where most is copied, not by where that ends. */
static void find_copies(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	struct xsp_account_part copied = xsp_part_of(c, p->family, is_copied, 0);

	copied.ns = p->ns;
	copied.places = p->places;
	find_call(c, &copied, XSP_DEAR_CLONE);
}

/* Of a long text sscanf looks for the end each time: that is what makes it dear. */
#define ENDS_LEAST 0.1

static bool is_scan(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		    const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) ||
	       xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_STRLEN);
}

static void find_scan(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_account_part ends =
		xsp_part_of(c, p->family, xsp_part_runs, XSP_ACCOUNT_DEAR + XSP_DEAR_STRLEN);

	/* where most of it is the ends, they are said */
	if (xsp_part_share(&ends) >= ENDS_LEAST &&
	    xsp_part_share(&ends) < xsp_dear_call_least(XSP_DEAR_STRLEN))
		find_call(c, p, XSP_DEAR_SCANF);
}

/* Is there an embedding whose gradient has a row for each row of the table, most of them 0? */
static bool has_dense_embedding(const struct xsp_rule_context *c,
				const struct xsp_account_family *f)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++)
			if (strcmp(callee_of(c, &f->places[i].rows[k]),
				   "aten::embedding_dense_backward") == 0)
				return true;
	return false;
}

static bool is_element_wise(const char *name)
{
	static const char *const names[] = {
		"add",	"add_",	 "sub",	    "sub_",	"mul",	   "mul_",     "div",  "div_",
		"sqrt", "sqrt_", "addcmul", "addcmul_", "addcdiv", "addcdiv_", "lerp", "lerp_"};
	static const char prefix[] = "aten::";

	if (strncmp(name, prefix, strlen(prefix)) != 0)
		return false;
	name += strlen(prefix);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(name, names[i]) == 0)
			return true;
	return strncmp(name, "_foreach_", 9) == 0;
}

/* Beside such an embedding what optimizers do to each element passes over the whole table, too. */
static bool is_pass(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		    const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) ||
	       (row->kind == XSP_ACCOUNT_SPAN && is_element_wise(callee_of(c, row)) &&
		has_dense_embedding(c, f));
}

static void find_passes(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	find_call(c, p, XSP_DEAR_PASSES);
}

/* ---- arrays joined ---- */

static bool is_join(const char *callee)
{
	static const char *const names[] = {"aten::cat",	 "torch.cat",	 "np.concatenate",
					    "np.append",	 "np.vstack",	 "np.hstack",
					    "numpy.concatenate", "torch.hstack", "torch.vstack"};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (strcmp(callee, names[i]) == 0)
			return true;
	return false;
}

/* Does a line with that place join arrays? */
static bool line_joins(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       uint32_t line)
{
	for (size_t i = 0; i < f->count; i++)
		for (size_t k = 0; k < f->places[i].count; k++)
			if (f->places[i].rows[k].place == line &&
			    is_join(callee_of(c, &f->places[i].rows[k])))
				return true;
	return false;
}

/* What such a line copies, and the pages that it gets for the copy. */
static bool is_joined(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		      const struct xsp_account_row *row, unsigned why)
{
	(void)why;
	if (is_join(callee_of(c, row)))
		return row->kind == XSP_ACCOUNT_CPU || row->kind == XSP_ACCOUNT_SPAN;
	return row->place != 0 &&
	       (faults(c, f, row, XSP_ACCOUNT_FAULT) ||
		xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_COPYING)) &&
	       line_joins(c, f, row->place);
}

static void find_joined(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	find_call(c, p, XSP_DEAR_JOIN);
}

/* ---- connections, keys, pickling ---- */

/* What it takes to make a connection: its own time, and waits for the other side's part of it. */
static bool is_connecting(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			  const struct xsp_account_row *row, unsigned why)
{
	const enum xsp_dear_call callee = xsp_dear_call_of(callee_of(c, row));

	if (row->kind == XSP_ACCOUNT_WAIT)
		return (row->why == XSP_WAIT_NETWORK || row->why == XSP_WAIT_POLL) &&
		       (callee == XSP_DEAR_LOGIN || callee == XSP_DEAR_CONNECT);
	return xsp_part_runs(c, f, row, why) ||
	       xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_CERTIFICATES) ||
	       xsp_part_runs(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_CONNECT);
}

/* Is it always the same one that it connects to? Who calls many hosts needs a connection to each. */
static bool has_one_peer(const struct xsp_rule_context *c, const struct xsp_account_family *f)
{
	const struct xsp_account_part p =
		xsp_part_of(c, f, is_connecting, XSP_ACCOUNT_DEAR + XSP_DEAR_LOGIN);

	for (size_t k = 0; p.place != NULL && k < p.place->count; k++) {
		const struct xsp_account_row *row = &p.place->rows[k];
		if (row->kind == XSP_ACCOUNT_WAIT && row->peer != 0 &&
		    is_connecting(c, f, row, XSP_ACCOUNT_DEAR + XSP_DEAR_LOGIN))
			return true;
	}
	return false;
}

/* Where nearly all of it is one of its parts, that one is said. */
static void find_connections(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	static const enum xsp_dear_call parts[] = {XSP_DEAR_CERTIFICATES, XSP_DEAR_CONNECT};

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (2 * xsp_part_of(c, p->family, xsp_part_runs, XSP_ACCOUNT_DEAR + parts[i]).ns >
		    p->ns)
			return;
	if (has_one_peer(c, p->family))
		find_call(c, p, XSP_DEAR_LOGIN);
}

/* It is slow by design, and who checks a password has to do it: but not in an event loop, where all else waits meanwhile. */
static void find_derived(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	if (xsp_part_of(c, p->family, xsp_part_waits, XSP_WAIT_POLL).ns > 0)
		find_dear(c, p);
}

/* All that pickling takes, pages for its copies too. */
static bool is_pickling(const struct xsp_rule_context *c, const struct xsp_account_family *f,
			const struct xsp_account_row *row, unsigned why)
{
	const char *place = row->place != 0 ? xsp_timeline_name(c->timeline, row->place - 1) : "";

	return xsp_part_runs(c, f, row, why) ||
	       (xsp_dear_call_of(place) == XSP_DEAR_PICKLE &&
		(row->kind == XSP_ACCOUNT_CPU || xsp_part_waits(c, f, row, XSP_WAIT_FAULT)));
}

static void find_pickling(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	find_call(c, p, XSP_DEAR_PICKLE);
}

/* ---- JSON, queries ---- */

#define BOTH_LEAST 0.1

/* Is the row's place, or what it calls, named by one of the words? */
static bool is_named(const struct xsp_rule_context *c, const struct xsp_account_row *row,
		     const char *word, const char *other)
{
	const char *place = row->place != 0 ? xsp_timeline_name(c->timeline, row->place - 1) : "",
		   *callee = callee_of(c, row);

	return strstr(place, word) != NULL || strstr(callee, word) != NULL ||
	       strstr(place, other) != NULL || strstr(callee, other) != NULL;
}

static bool is_parsing(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) && is_named(c, row, "Pars", "Deserializ");
}

static bool is_writing(const struct xsp_rule_context *c, const struct xsp_account_family *f,
		       const struct xsp_account_row *row, unsigned why)
{
	return xsp_part_runs(c, f, row, why) && is_named(c, row, "Stringif", "ValueSerializ");
}

/* Who only parses, or only writes, may have to. */
static void find_json(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const unsigned json = XSP_ACCOUNT_DEAR + XSP_DEAR_JSON;
	const struct xsp_account_part parsed = xsp_part_of(c, p->family, is_parsing, json),
				      written = xsp_part_of(c, p->family, is_writing, json);

	if (xsp_part_share(&parsed) >= BOTH_LEAST && xsp_part_share(&written) >= BOTH_LEAST)
		find_dear(c, p);
}

/* A database's own shell goes through rows by its purpose. */
static void find_query(const struct xsp_rule_context *c, const struct xsp_account_part *p)
{
	const struct xsp_capture_process *process =
		xsp_capture_process_of(c->reader, p->family->pid);

	if (process == NULL || process->exe == NULL ||
	    strncmp(xsp_base_name(process->exe), "sqlite", 6) != 0)
		find_dear(c, p);
}

int xsp_rule_dear_call(const struct xsp_rule_context *c)
{
	static void (*const finds[XSP_DEAR_CALLS])(const struct xsp_rule_context *,
						   const struct xsp_account_part *) = {
		[XSP_DEAR_SMALL_IO] = find_small_io, [XSP_DEAR_MESSAGES] = find_messages,
		[XSP_DEAR_ANOMALY] = find_anomaly,   [XSP_DEAR_JSON] = find_json,
		[XSP_DEAR_QUERY] = find_query,	     [XSP_DEAR_ALLOCATE] = find_memory,
		[XSP_DEAR_CLONE] = find_copies,	     [XSP_DEAR_SCANF] = find_scan,
		[XSP_DEAR_PASSES] = find_passes,     [XSP_DEAR_JOIN] = find_joined,
		[XSP_DEAR_LOGIN] = find_connections, [XSP_DEAR_DERIVE] = find_derived,
		[XSP_DEAR_PICKLE] = find_pickling,
	};
	static xsp_part_fits *const fits[XSP_DEAR_CALLS] = {
		[XSP_DEAR_ANOMALY] = is_anomaly,  [XSP_DEAR_ALLOCATE] = is_memory,
		[XSP_DEAR_CLONE] = is_of_copies,  [XSP_DEAR_SCANF] = is_scan,
		[XSP_DEAR_PASSES] = is_pass,	  [XSP_DEAR_JOIN] = is_joined,
		[XSP_DEAR_LOGIN] = is_connecting, [XSP_DEAR_PICKLE] = is_pickling,
	};
	int rc = 0;

	for (unsigned call = XSP_DEAR_NONE + 1; call < XSP_DEAR_CALLS && rc == 0; call++) {
		const double least = xsp_dear_call_least(call);
		rc = xsp_part_find(c, fits[call] != NULL ? fits[call] : xsp_part_runs,
				   XSP_ACCOUNT_DEAR + call,
				   least > c->threshold ? least : c->threshold,
				   finds[call] != NULL ? finds[call] : find_dear);
	}
	return rc;
}
