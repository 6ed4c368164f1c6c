/* SPDX-License-Identifier: BSD-2-Clause */
#include "record/recorder_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/rows/grow.h"
#include "base/text.h"

#define CODES_MAX (1U << 15) /* of a process */
#define STACKS_MAX (1U << 20) /* written */
#define CHECKED_NS 10000000ULL /* a code object checked so recently still exists */
#define CHECKS_A_TURN 64
#define MODULES_MAX (1U << 16) /* of a process */
#define CHILD_CHECKED_NS 1000000000ULL /* a module checked so recently still exists */
#define CHILD_CHECKS_A_TURN 2
#define UNNAMED_NS 5000000000ULL /* after which it tries those without a name again */
/*
 * So many a second: a program with many of them, or with lies about them, must not delay other reads. It counts new
 * code objects, one more for each 4 KiB of a table of lines, incomplete reads several times, and modules whose names it
 * looks up.
 */
#define CODES_A_SECOND 10000
#define FAILED_READS 16
#define CHILDREN_A_SECOND 5000
#define LINES_BYTES (64U << 20) /* of a process's tables of lines */
#define NAMES_MAX (1U << 20) /* known to be in the capture; others may come twice */
#define OUTWARD_MAX 16 /* modules around one that may have it as a child */
#define CHILD_PATH_MAX 128
#define PUBLISH_NS 100000000ULL /* at least between two: every stack comes again */

struct known_code {
	struct xsp_python_code code;
	uint64_t checked_ns;
};

/* A torch.nn.Module and one that is called inside it. */
struct known_child {
	uint64_t from, to;
	char *path; /* "layers.0"; NULL: no path */
	uint64_t checked_ns;
};

/* A rate: so many a second. */
struct allowance {
	uint64_t left, since_ns;
};

struct interpreter {
	pid_t pid;
	struct xsp_python python; /* mem -1: not readable */
	struct xsp_python_spec spec;
	bool published; /* to the kernel side */
	bool lock_put; /* in the capture: the position of its lock */
	bool stale; /* a code object is gone, and another one may take its place */
	uint64_t published_ns;
	uint32_t since; /* its first generation */
	struct known_code *codes;
	size_t count, room, next; /* next: the one to check */
	struct xsp_u64map by_address; /* → index in codes */
	size_t lines_bytes;
	struct allowance code_reads;
	/* torch.nn.Module */
	bool wrapper; /* spec.method is the wrapper around the method that works */
	struct xsp_u64map numbers; /* object and class → number */
	struct xsp_u64map classes; /* → how many */
	struct known_child *children;
	size_t child_count, child_room, child_next;
	struct xsp_u64map child_of; /* both objects → index in children */
	struct allowance reads;
	bool unnamed; /* too many modules: some names were not looked up */
};

struct xsp_pythons {
	struct xsp_recorder *r;
	struct interpreter *all;
	size_t count, room;
	uint32_t generation;
	bool any; /* some interpreter is readable */
	struct xsp_u64map names; /* hashes of the names in the capture */
	uint64_t stacks, codes, gone, torn;
};

int xsp_pythons_new(struct xsp_recorder *r, struct xsp_pythons **out)
{
	*out = calloc(1, sizeof(**out));
	if (*out == NULL)
		return -ENOMEM;
	(*out)->r = r;
	return 0;
}

static void clear(struct interpreter *i)
{
	for (size_t c = 0; c < i->count; c++)
		xsp_python_code_clear(&i->codes[c].code);
	xsp_u64map_free(&i->by_address);
	xsp_u64map_free(&i->numbers);
	xsp_u64map_free(&i->classes);
	for (size_t c = 0; c < i->child_count; c++)
		free(i->children[c].path);
	xsp_u64map_free(&i->child_of);
	free(i->children);
	free(i->codes);
	xsp_python_close(&i->python);
}

void xsp_pythons_free(struct xsp_pythons *s)
{
	if (s == NULL)
		return;
	for (size_t i = 0; i < s->count; i++)
		clear(&s->all[i]);
	free(s->all);
	xsp_u64map_free(&s->names);
	free(s);
}

/* ---- interpreters ---- */

static struct interpreter *find(const struct xsp_pythons *s, pid_t pid)
{
	for (size_t i = 0; i < s->count; i++)
		if (s->all[i].pid == pid)
			return &s->all[i];
	return NULL;
}

void xsp_pythons_forget(struct xsp_pythons *s, pid_t pid)
{
	struct interpreter *i = find(s, pid);

	if (i == NULL)
		return;
	clear(i);
	*i = s->all[--s->count];
}

/* With another generation all of its stacks count as new. */
static void publish(struct xsp_pythons *s, struct interpreter *i)
{
	if (!i->published && xsp_python_frames(&i->python, &i->spec) < 0)
		return; /* it has not begun */
	i->spec.generation = ++s->generation;
	int rc = xsp_broker_python(s->r->broker, i->pid, &i->spec);
	if (rc < 0 && rc != -ESRCH && !i->published)
		xsp_recorder_note(s->r, "--python: process %d is one too many: %s", (int)i->pid,
				  strerror(-rc));
	if (!i->published)
		i->since = i->spec.generation;
	i->published = true;
	i->stale = false;
	i->published_ns = xsp_now_ns();
}

int xsp_pythons_found(struct xsp_pythons *s, pid_t pid, const struct xsp_python_runtime *runtime,
		      const struct xsp_mapped_file *file)
{
	const struct xsp_opener *o = xsp_broker_opener(s->r->broker);
	struct xsp_error why = {0};

	if (find(s, pid) != NULL)
		return 0;
	if (xsp_grow(&s->all, &s->room, s->count + 1) < 0)
		return -ENOMEM;
	struct interpreter *i = &s->all[s->count++];
	*i = (struct interpreter){.pid = pid, .python = {.mem = -1}};
	int mem = o->file(o, pid, "mem");
	int rc = mem < 0 ? xsp_error_set(&why, mem, XSP_STATUS_TARGET,
					 "its memory cannot be read: %s", strerror(-mem))
			 : xsp_python_open(mem, runtime, xsp_python_address(runtime, file),
					   &i->python, &why);
	if (rc < 0) {
		xsp_recorder_note(s->r, "--python is off for process %d: %s", (int)pid, why.text);
		if (mem >= 0)
			close(mem);
		return 0;
	}
	s->any = true;
	publish(s, i);
	return 0;
}

static bool may_read(struct allowance *a, uint64_t most)
{
	const uint64_t now = xsp_now_ns();

	if (now - a->since_ns > 1000000000ULL)
		*a = (struct allowance){most, now};
	return a->left > 0;
}

static void count_reads(struct allowance *a, uint64_t reads)
{
	a->left -= reads < a->left ? reads : a->left;
}

/* ---- code objects ---- */

/*
 * The code object is gone. Another one in its place makes frames with the same numbers others: so all stacks are new
 * some time later, or at once if we see it.
 */
static void drop(struct xsp_pythons *s, struct interpreter *i, uint32_t index)
{
	struct known_code *k = &i->codes[index], *last = &i->codes[--i->count];

	if (k->code.address == i->spec.method) {
		i->spec.method = 0;
		i->wrapper = false;
	}
	xsp_u64map_remove(&i->by_address, k->code.address);
	i->lines_bytes -= k->code.lines_size;
	xsp_python_code_clear(&k->code);
	if (k != last) {
		*k = *last;
		*xsp_u64map_get(&i->by_address, k->code.address) = index;
	}
	s->gone++;
	i->stale = true;
}

/*
 * What each torch.nn.Module goes through when it is called: from now on its `self` is read. Since PyTorch 2.1 that is
 * _wrapped_call_impl. The `self` of the _call_impl inside is, since 2.4, in a cell: a function in there uses it.
 */
static void look_for_modules(struct interpreter *i, const struct xsp_python_code *c)
{
	const size_t length = strlen(c->function);
	const bool wrapper = xsp_ends_with(c->function, length, "_wrapped_call_impl");

	if (!xsp_ends_with(c->function, length, "_call_impl") || (i->wrapper && !wrapper) ||
	    !xsp_ends_with(c->file, strlen(c->file), "torch/nn/modules/module.py"))
		return;
	i->spec.method = c->address;
	i->wrapper = wrapper;
	i->stale = true;
}

/* -ENOENT: no code object; -EIO: not readable. */
static int code_at(struct xsp_pythons *s, struct interpreter *i, uint64_t address,
		   const struct xsp_python_code **out)
{
	const uint32_t *at = xsp_u64map_get(&i->by_address, address);
	uint64_t now = xsp_now_ns();

	if (at != NULL && now - i->codes[*at].checked_ns > CHECKED_NS) {
		int there = xsp_python_code_is_there(&i->python, &i->codes[*at].code);
		if (there < 0)
			return there;
		i->codes[*at].checked_ns = now;
		if (there == 0) {
			drop(s, i, *at);
			at = NULL;
		}
	}
	if (at != NULL) {
		*out = &i->codes[*at].code;
		return 0;
	}
	if (i->count >= CODES_MAX || !may_read(&i->code_reads, CODES_A_SECOND))
		return -EIO;
	if (xsp_grow(&i->codes, &i->room, i->count + 1) < 0)
		return -ENOMEM;
	struct known_code *k = &i->codes[i->count];
	int rc = xsp_python_code_read(&i->python, address, &k->code);
	count_reads(&i->code_reads, rc == -EIO ? FAILED_READS : 1 + k->code.lines_size / 4096);
	if (rc < 0)
		return rc;
	k->checked_ns = now;
	if (k->code.lines_size > LINES_BYTES - i->lines_bytes)
		rc = -EIO;
	else if (xsp_u64map_set(&i->by_address, address, (uint32_t)i->count) < 0)
		rc = -ENOMEM;
	if (rc < 0) {
		xsp_python_code_clear(&k->code);
		return rc;
	}
	i->lines_bytes += k->code.lines_size;
	i->count++;
	s->codes++;
	look_for_modules(i, &k->code);
	*out = &k->code;
	return 0;
}

/* ---- names ---- */

static uint64_t hash_of(const char *text)
{
	const uint64_t h = xsp_u64_mix(xsp_text_hash(text, strlen(text)));

	return h != 0 ? h : 1;
}

/* The end of a text, as much as fits into `size` bytes. */
static const char *tail(const char *text, size_t size, const char **before)
{
	size_t length = strlen(text);

	*before = "";
	if (length < size)
		return text;
	*before = "\xe2\x80\xa6";
	text += length - (size - 4);
	while (((unsigned char)*text & 0xc0) == 0x80)
		text++;
	return text;
}

/* Once. */
static int put_text(struct xsp_pythons *s, const char *text, uint64_t *hash)
{
	*hash = hash_of(text);
	if (xsp_u64map_get(&s->names, *hash) != NULL)
		return 0;
	if (s->names.count < NAMES_MAX && xsp_u64map_set(&s->names, *hash, 1) < 0)
		return -ENOMEM;
	return xsp_capture_put_name(s->r->writer, *hash, text);
}

#define FUNCTION_MAX 80U
#define FILE_MAX (XSP_NAME_MAX - FUNCTION_MAX - 14) /* two ends of lines, a number */

/* Three lines without control characters. */
static int put_name(struct xsp_pythons *s, const char *file, int32_t line, const char *function,
		    uint64_t *hash)
{
	char text[XSP_NAME_MAX + 1];
	const char *file_cut, *function_cut;
	const char *file_tail = tail(file, FILE_MAX, &file_cut),
		   *function_tail = tail(function, FUNCTION_MAX, &function_cut);

	snprintf(text, sizeof(text), "%s%s\n%" PRId32 "\n%s%s", file_cut, file_tail, line,
		 function_cut, function_tail);
	return put_text(s, text, hash);
}

/* *path: from one module to one inside it, to be freed; NULL: there is none. -EAGAIN: later. */
static int read_path(struct interpreter *i, uint64_t from, uint64_t to, char **path)
{
	char text[CHILD_PATH_MAX];
	size_t reads = 0;

	*path = NULL;
	if (!may_read(&i->reads, CHILDREN_A_SECOND))
		return -EAGAIN;
	int rc = xsp_python_module_path(&i->python, from, to, text, sizeof(text), &reads);
	count_reads(&i->reads, reads);
	if (rc == 0)
		*path = strdup(text);
	return rc == -ENOENT || *path != NULL ? 0 : -ENOMEM;
}

static uint64_t child_key(uint64_t from, uint64_t to)
{
	return xsp_u64_mix(from) + to;
}

/* 1: it has changed. 0, -EAGAIN, -ENOMEM */
static int check_child(struct interpreter *i, struct known_child *c)
{
	char *path;
	int rc = read_path(i, c->from, c->to, &path);

	if (rc < 0)
		return rc;
	rc = (path == NULL) != (c->path == NULL) || (path != NULL && strcmp(path, c->path) != 0);
	free(c->path);
	c->path = path;
	c->checked_ns = xsp_now_ns();
	return rc;
}

/* The path from one module to another: *path, valid until the next call. 0, -EAGAIN, -ENOMEM */
static int path_between(struct interpreter *i, uint64_t from, uint64_t to, const char **path)
{
	const uint32_t *at = xsp_u64map_get(&i->child_of, child_key(from, to));
	struct known_child *c;

	*path = NULL;
	if (at == NULL && i->child_count >= MODULES_MAX)
		return 0;
	if (at == NULL) {
		if (xsp_grow(&i->children, &i->child_room, i->child_count + 1) < 0)
			return -ENOMEM;
		c = &i->children[i->child_count];
		*c = (struct known_child){.from = from, .to = to};
		int rc = check_child(i, c);
		if (rc < 0)
			return rc;
		/* it was read while the program ran: two equal reads are true */
		if (c->path != NULL && check_child(i, c) > 0)
			i->unnamed = true;
		if (xsp_u64map_set(&i->child_of, child_key(from, to), (uint32_t)i->child_count) <
		    0) {
			free(c->path);
			return -ENOMEM;
		}
		i->child_count++;
	} else {
		c = &i->children[*at];
	}
	*path = c->path;
	return 0;
}

/*
 * The module's name as an attribute of the modules called around it: "layers.0", with a dot before it for each module
 * further out. 0: none. 1, -ENOMEM
 */
static int name_child(struct interpreter *i, const uint64_t *around, uint32_t count,
		      uint64_t object, char *text, size_t size)
{
	const char *path;

	for (uint32_t out = 0; out < count && out < OUTWARD_MAX; out++) {
		int rc = path_between(i, around[count - 1 - out], object, &path);
		if (rc == -EAGAIN)
			i->unnamed = true; /* until all stacks come again */
		if (rc < 0)
			return rc == -EAGAIN ? 0 : rc;
		if (path == NULL)
			continue;
		snprintf(text, size, "%.*s%s", (int)out, "................", path);
		return 1;
	}
	return 0;
}

/* Numbers each object among those of its class, in the order of their first calls. 0; -ENOENT: too many */
static int number_module(struct interpreter *i, const char *class, uint64_t object, uint32_t *n)
{
	const uint64_t of_class = hash_of(class), key = xsp_u64_mix(object) ^ of_class;
	const uint32_t *number = xsp_u64map_get(&i->numbers, key);
	const uint32_t *so_far = xsp_u64map_get(&i->classes, of_class);

	*n = number != NULL ? *number : so_far != NULL ? *so_far : 0;
	if (number != NULL)
		return 0;
	if (i->numbers.count >= MODULES_MAX)
		return -ENOENT;
	return xsp_u64map_set(&i->numbers, key, *n) < 0 ||
			       xsp_u64map_set(&i->classes, of_class, *n + 1) < 0
		       ? -ENOMEM
		       : 0;
}

/* Its name in the modules around it, or "Linear_0": the class, and the number of its object. */
static int name_module(struct xsp_pythons *s, struct interpreter *i, const uint64_t *around,
		       uint32_t count, uint64_t object, uint64_t *hash)
{
	char class[128], text[XSP_NAME_MAX + 1];
	uint32_t number;

	if (xsp_python_class(&i->python, object, "Module", class, sizeof(class)) < 0)
		return 0;
	int rc = number_module(i, class, object, &number);
	if (rc == 0)
		rc = name_child(i, around, count, object, text, sizeof(text));
	if (rc < 0)
		return rc == -ENOENT ? 0 : rc;
	if (rc == 0)
		snprintf(text, sizeof(text), "%s_%" PRIu32, class, number);
	return put_text(s, text, hash);
}

/* 1: no name, as it is no frame of Python. */
static int name_frame(struct xsp_pythons *s, struct interpreter *i,
		      const struct xsp_python_frame *f, uint64_t *hash)
{
	const struct xsp_python_code *c;
	int rc = code_at(s, i, f->code, &c);

	if (rc == -ENOENT)
		return 1;
	if (rc == 0 && xsp_python_code_is_shim(c))
		return 1;
	if (rc == 0 && !may_read(&i->code_reads, CODES_A_SECOND))
		rc = -EIO;
	if (rc < 0)
		return rc;
	count_reads(&i->code_reads, c->lines_size / 4096);
	return put_name(s, c->file, xsp_python_code_line(c, f->instruction), c->function, hash);
}

/* ---- stacks ---- */

/* The names of a stack's frames, 0 for those without. 0, -EIO: some could not be read, or the writer's value. */
static int name_frames(struct xsp_pythons *s, struct interpreter *i,
		       const struct xsp_python_frame *f, uint32_t count,
		       uint64_t names[XSP_PYTHON_MAX])
{
	int result = 0;

	for (uint32_t n = 0; n < count; n++) {
		int rc = i != NULL ? name_frame(s, i, &f[n], &names[n]) : -EIO;
		if (rc == -EIO) {
			result = rc;
			rc = put_name(s, "", 0, "[Python frame not readable]", &names[n]);
		}
		if (rc < 0)
			return rc;
	}
	return result;
}

/* 0, -EIO: some frame could not be read, or the writer's value. */
static int name_all(struct xsp_pythons *s, struct interpreter *i, const struct xsp_event_python *e,
		    struct xsp_capture_python_frame frames[XSP_PYTHON_MAX], uint32_t *count)
{
	const struct xsp_python_frame *f = (const void *)(e + 1);
	const uint32_t all = e->count < XSP_PYTHON_MAX ? e->count : XSP_PYTHON_MAX;
	uint64_t names[XSP_PYTHON_MAX] = {0}, modules[XSP_PYTHON_MAX] = {0}, around[XSP_PYTHON_MAX];
	uint32_t depth = 0;
	int result = name_frames(s, i, f, all, names);

	if (result < 0 && result != -EIO)
		return result;
	/* the outermost module is called first */
	for (uint32_t n = i != NULL ? all : 0; n > 0; n--) {
		if (f[n - 1].self == 0)
			continue;
		if (name_module(s, i, around, depth, f[n - 1].self, &modules[n - 1]) < 0)
			return -ENOMEM;
		if (modules[n - 1] != 0)
			around[depth++] = f[n - 1].self;
	}
	*count = 0;
	for (uint32_t n = 0; n < all; n++)
		if (names[n] != 0)
			frames[(*count)++] = (struct xsp_capture_python_frame){
				.name = names[n], .module = modules[n]};
	return result;
}

int xsp_pythons_see(void *ctx, const struct xsp_event_python *e)
{
	struct xsp_recorder *r = ctx;
	struct xsp_pythons *s = r->pythons;
	struct xsp_capture_python_frame frames[XSP_PYTHON_MAX] = {0};
	struct xsp_capture_python stack = {.id = e->id, .flags = e->flags, .frames = frames};
	struct interpreter *i = find(s, (pid_t)e->head.tgid);

	if (s->stacks >= STACKS_MAX) {
		xsp_recorder_gap(r, XSP_GAP_PYTHON_CODE, 1, "beyond the first million of them");
		return 0;
	}
	/* the program before an exec is gone: nothing is readable */
	if (i != NULL && (i->python.mem < 0 || e->generation < i->since))
		i = NULL;
	int rc = name_all(s, i, e, frames, &stack.count);
	if (i != NULL && i->stale)
		publish(s, i);
	if (rc == -EIO) {
		xsp_recorder_gap(
			r, XSP_GAP_PYTHON_CODE, 1,
			"with code objects that were gone, or too many, before they were read");
		rc = 0;
	}
	if (rc < 0)
		return rc;
	s->stacks++;
	return xsp_capture_put_python(r->writer, &stack);
}

/* ---- turns ---- */

static void drop_child(struct interpreter *i, uint32_t index)
{
	struct known_child *c = &i->children[index], *last = &i->children[--i->child_count];

	xsp_u64map_remove(&i->child_of, child_key(c->from, c->to));
	free(c->path);
	if (c == last)
		return;
	*c = *last;
	*xsp_u64map_get(&i->child_of, child_key(c->from, c->to)) = index;
}

/* A changed name is worth sending all stacks again; a module that is gone is not. */
static void check_children(struct interpreter *i)
{
	const uint64_t now = xsp_now_ns();

	for (size_t n = 0; n < CHILD_CHECKS_A_TURN && n < i->child_count; n++) {
		const uint32_t at = (uint32_t)(i->child_next++ % i->child_count);
		struct known_child *c = &i->children[at];
		if (now - c->checked_ns < CHILD_CHECKED_NS)
			continue;
		const bool changed = c->path != NULL && check_child(i, c) > 0;
		if (c->path == NULL)
			drop_child(i, at);
		else if (changed)
			i->stale = true;
	}
	if (i->unnamed && now - i->published_ns > UNNAMED_NS) {
		i->unnamed = false;
		i->stale = true;
	}
}

static void check_some(struct xsp_pythons *s, struct interpreter *i)
{
	uint64_t now = xsp_now_ns();

	check_children(i);

	for (size_t n = 0; n < CHECKS_A_TURN && n < i->count; n++) {
		const uint32_t at = (uint32_t)(i->next++ % i->count);
		if (now - i->codes[at].checked_ns < CHECKED_NS)
			continue;
		i->codes[at].checked_ns = now;
		/* a process that has just ended is not readable */
		if (xsp_python_code_is_there(&i->python, &i->codes[at].code) == 0)
			drop(s, i, at);
	}
	if (i->stale && now - i->published_ns > PUBLISH_NS)
		publish(s, i);
}

/* Its position identifies waits for it. 0, or the writer's value */
static int put_lock(struct xsp_pythons *s, struct interpreter *i)
{
	struct xsp_python_gil gil;
	char key[40], text[64];

	if (i->lock_put || !i->published || xsp_python_gil(&i->python, &gil) < 0)
		return 0;
	i->lock_put = true;
	snprintf(key, sizeof(key), "python lock %d", (int)i->pid);
	snprintf(text, sizeof(text), "0x%" PRIx64 " %d %d", gil.condition, XSP_PYTHON_CONDITION,
		 XSP_PYTHON_LOCK);
	return xsp_capture_put_info(s->r->writer, key, text);
}

int xsp_pythons_turn(struct xsp_pythons *s)
{
	int rc = 0;

	for (size_t n = 0; n < s->count && rc == 0; n++) {
		struct interpreter *i = &s->all[n];
		if (i->python.mem < 0)
			continue;
		if (!i->published)
			publish(s, i);
		else
			check_some(s, i);
		rc = put_lock(s, i);
	}
	return rc;
}

void xsp_pythons_count_torn(struct xsp_pythons *s, uint64_t torn)
{
	if (torn <= s->torn)
		return;
	xsp_recorder_gap(s->r, XSP_GAP_PYTHON, torn - s->torn,
			 "as the thread's state or its frames could not be read to their end");
	s->torn = torn;
}

int xsp_pythons_put_info(struct xsp_pythons *s)
{
	char text[160];

	if (!s->any && (s->r->options.selection.details & XSP_DETAIL_PYTHON))
		xsp_recorder_note(s->r,
				  "--python: no interpreter of CPython that can be read was found");
	snprintf(text, sizeof(text),
		 "%" PRIu64 " stacks of %" PRIu64 " code objects, of which %" PRIu64
		 " went meanwhile",
		 s->stacks, s->codes, s->gone);
	return xsp_capture_put_info(s->r->writer, "python", text);
}
