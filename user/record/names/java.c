/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/names/java.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/path.h"
#include "base/rows/tally.h"

/* How often to look whether a process has a JVM, which may be loaded late. */
#define LOOK_NS 1000000000ULL
#define LOOKS_MOST 5
#define ENGINES_MOST 256 /* each has a descriptor */
/* Code is freed, and its memory used again: so long what was read of it counts. */
#define CHECK_NS 1000000000ULL
#define CODES_MAX (1U << 16) /* of all processes */

/* Compiled code, by its address; of interpreted functions, by Method and bytecode. */
struct known {
	uint64_t checked_ns;
	struct xsp_jvm_code code; /* blob 0: there is none */
	uint64_t constant; /* ConstMethod of an interpreted function */
	uint32_t count;
	uint64_t functions[XSP_JVM_INLINED];
};

struct engine {
	pid_t pid;
	bool has; /* a JVM whose layout is known */
	bool deep; /* the kernel side copies more of its stacks */
	uint64_t looked_ns;
	unsigned looks;
	struct xsp_jvm jvm;
	XSP_TALLY(struct known) codes, interpreted;
};

struct xsp_java {
	struct xsp_broker *broker;
	struct xsp_resolver *resolver;
	XSP_TALLY(struct engine) engines; /* by process */
	size_t codes, open;
};

int xsp_java_new(struct xsp_broker *b, struct xsp_resolver *r, struct xsp_java **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->broker = b;
	(*out)->resolver = r;
	return 0;
}

static void clear(struct xsp_java *j, struct engine *e)
{
	if (e->has)
		close(e->jvm.mem);
	j->open -= e->has;
	j->codes -= e->codes.count + e->interpreted.count;
	xsp_tally_free(&e->codes);
	xsp_tally_free(&e->interpreted);
	*e = (struct engine){.pid = e->pid};
}

void xsp_java_free(struct xsp_java *j)
{
	if (j == NULL)
		return;
	for (size_t i = 0; i < j->engines.count; i++)
		clear(j, &j->engines.rows[i]);
	xsp_tally_free(&j->engines);
	free(j);
}

void xsp_java_forget(struct xsp_java *j, pid_t pid)
{
	struct engine *e = j != NULL ? xsp_tally_find(&j->engines, (uint64_t)pid) : NULL;

	if (e != NULL)
		clear(j, e);
}

/* ---- the JVM ---- */

static int find_tables(const struct xsp_java *j, pid_t pid, struct xsp_jvm_tables *t)
{
	static const struct {
		const char *symbol;
		size_t at;
	} rows[] = {
#define X(member, name) {name, offsetof(struct xsp_jvm_tables, member)},
		XSP_JVM_TABLES(X)
#undef X
	};
	uint64_t moved;
	struct xsp_module *m = xsp_resolve_module_that_has(j->resolver, pid, XSP_JVM_MARK, &moved);
	struct xsp_symbol s;

	if (m != NULL && xsp_module_arch(m) != XSP_ARCH_X86_64)
		return -ENOENT; /* nobody has looked at its frames there */
	for (size_t i = 0; m != NULL && i < sizeof(rows) / sizeof(rows[0]); i++) {
		if (xsp_module_find(m, rows[i].symbol, &s) < 0)
			return -ENOENT;
		const uint64_t address = s.addr + moved;
		memcpy((uint8_t *)t + rows[i].at, &address, sizeof(address));
	}
	return m != NULL ? 0 : -ENOENT;
}

static void look(struct xsp_java *j, struct engine *e)
{
	const uint64_t now = xsp_now_ns();
	struct xsp_jvm_tables tables;

	if (now - e->looked_ns < LOOK_NS || e->looks == LOOKS_MOST ||
	    (!e->has && j->open == ENGINES_MOST))
		return;
	e->looked_ns = now;
	e->looks++;
	if (e->has) {
		e->deep = xsp_broker_deep_stacks(j->broker, e->pid) == 0;
		return;
	}
	if (find_tables(j, e->pid, &tables) < 0)
		return;
	const struct xsp_opener *o = xsp_broker_opener(j->broker);
	e->jvm.mem = o->file(o, e->pid, "mem");
	e->has = e->jvm.mem >= 0 && xsp_jvm_open(&e->jvm, &tables) == 0;
	if (!e->has && e->jvm.mem >= 0)
		close(e->jvm.mem);
	j->open += e->has;
	/* the JVM's own functions, in which Java waits, take much of a stack */
	e->deep = e->has && xsp_broker_deep_stacks(j->broker, e->pid) == 0;
}

void xsp_java_meet(struct xsp_java *j, pid_t pid, const struct xsp_mapped_files *mapped)
{
	static const char name[] = "libjvm.so";
	struct engine *e;

	for (size_t i = 0; j != NULL && i < mapped->count; i++)
		if (strcmp(xsp_base_name(mapped->files[i].display_path), name) == 0 &&
		    (e = xsp_tally_row(&j->engines, (uint64_t)pid, &(struct engine){.pid = pid})) !=
			    NULL &&
		    !e->deep)
			look(j, e);
}

/* The process's, if the address is in its code. */
static struct engine *engine_at(struct xsp_java *j, pid_t pid, uint64_t pc)
{
	struct engine *e = xsp_tally_row(&j->engines, (uint64_t)pid, &(struct engine){.pid = pid});
	struct xsp_module *m;
	uint64_t addr;

	if (e != NULL && !e->deep && e->looks < LOOKS_MOST &&
	    xsp_resolve_learned(j->resolver, pid, pc, &m, &addr) < 0)
		look(j, e);
	return e != NULL && e->has && xsp_jvm_is_code(&e->jvm, pc) ? e : NULL;
}

/* ---- names ---- */

/* What the JVM makes for a lambda or a proxy stands for what they call. */
static bool is_made(const char *function)
{
	return strstr(function, "$$Lambda") != NULL || strncmp(function, "$Proxy", 6) == 0;
}

/* "Shop.java:12 Shop.price", as a line of Python is shown. 0: it has no name. */
static uint64_t invent(struct xsp_java *j, const struct engine *e, const struct xsp_jvm_at *at)
{
	struct xsp_jvm_name name;
	char text[XSP_JVM_FILE + XSP_JVM_NAME + 16], line[16];

	if (xsp_jvm_name_of(&e->jvm, at, &name) < 0)
		return 0;
	snprintf(line, sizeof(line), ":%u ", name.line);
	snprintf(text, sizeof(text), "%s%s%s", name.line > 0 ? xsp_base_name(name.file) : "",
		 name.line > 0 ? line : "", name.function);
	return xsp_resolver_invent(j->resolver, e->pid, text,
				   is_made(name.function) ? "java/lang/invoke" : name.file);
}

/* The row of that key, which may be new: then nothing was checked so far. NULL: there are too many. */
#define KNOWN_AT(j, table, key)                                                                    \
	(xsp_tally_find(table, key)                                                                \
		 ?: (j)->codes < CODES_MAX && (++(j)->codes, true)                                 \
		    ? xsp_tally_row(table, key, &(struct known){.checked_ns = 0})                  \
		    : NULL)

static struct known *code_at(struct xsp_java *j, struct engine *e, uint64_t pc)
{
	const uint64_t now = xsp_now_ns();
	struct xsp_jvm_at at[XSP_JVM_INLINED];
	struct known *k = KNOWN_AT(j, &e->codes, pc);

	if (k == NULL || (k->checked_ns != 0 && now - k->checked_ns < CHECK_NS))
		return k;
	k->checked_ns = now;
	if (k->code.blob != 0 && xsp_jvm_code_is(&e->jvm, &k->code))
		return k;
	k->count = 0;
	if (xsp_jvm_code_at(&e->jvm, pc, &k->code) < 0 || k->code.kind != XSP_JVM_METHOD)
		return k;
	const size_t n = xsp_jvm_functions(&e->jvm, &k->code, pc, at);
	for (size_t i = 0; i < n; i++)
		if ((k->functions[k->count] = invent(j, e, &at[i])) != 0)
			k->count++;
	return k;
}

/* What stands for an interpreted function at that bytecode. */
static uint64_t interpreted(struct xsp_java *j, struct engine *e, uint64_t method, uint64_t bcp)
{
	const uint64_t now = xsp_now_ns();
	struct known *k = KNOWN_AT(j, &e->interpreted, xsp_u64_mix(method) ^ bcp);

	if (k == NULL || (k->checked_ns != 0 && now - k->checked_ns < CHECK_NS))
		return k != NULL ? k->functions[0] : 0;
	const uint64_t constant = xsp_jvm_const_of(&e->jvm, method);
	k->checked_ns = now;
	if (constant != 0 && constant == k->constant)
		return k->functions[0];
	const struct xsp_jvm_at at = {method, xsp_jvm_bci(&e->jvm, method, bcp)};
	k->constant = constant;
	k->functions[0] = constant != 0 ? invent(j, e, &at) : 0;
	return k->functions[0];
}

static uint64_t interpreted_in(struct xsp_java *j, struct engine *e, bool standing,
			       xsp_walk_load_fn load, const void *ctx, const struct xsp_walk *w)
{
	const uint64_t rbp = w->values[XSP_WALK_RBP];
	uint64_t method, bcp;

	if (!(w->known & 1U << XSP_WALK_RBP) || rbp < w->values[XSP_WALK_RSP] ||
	    load(ctx, rbp + (uint64_t)XSP_JVM_FRAME_METHOD, &method, sizeof(method)) < 0 ||
	    load(ctx, rbp + (uint64_t)XSP_JVM_FRAME_BCP, &bcp, sizeof(bcp)) < 0)
		return 0;
	if (standing && w->known & 1U << XSP_JVM_BCP_REGISTER)
		bcp = w->values[XSP_JVM_BCP_REGISTER];
	return interpreted(j, e, method, bcp);
}

bool xsp_java_frame(struct xsp_java *j, pid_t pid, uint64_t pc, bool standing,
		    xsp_walk_load_fn load, const void *ctx, const struct xsp_walk *w,
		    struct xsp_java_frame *out)
{
	struct engine *e = engine_at(j, pid, pc);
	const struct known *k = e != NULL ? code_at(j, e, pc) : NULL;

	if (k == NULL || k->code.blob == 0)
		return false;
	out->jvm = &e->jvm;
	out->code = k->code;
	out->count = k->count;
	memcpy(out->functions, k->functions, k->count * sizeof(k->functions[0]));
	if (k->code.kind == XSP_JVM_INTERPRETER) {
		out->functions[0] = interpreted_in(j, e, standing, load, ctx, w);
		out->count = out->functions[0] != 0;
	}
	return true;
}
