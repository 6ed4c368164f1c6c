/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - providers: tables that say what to trace in a module and what to capture there.
 *
 * A provider is one file and one row of the table in provider.c. It looks at a module and adds what
 * it knows to a list. Placement, attach and naming need nothing more from it.
 */
#ifndef XSP_PROBES_PROBE_H
#define XSP_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "catalog/relay.h"
#include "catalog/scope.h"
#include "target/patterns/glob.h"
#include "target/module.h"
#include "xsptrace/args.h"
#include "xsptrace/details.h"
#include "xsptrace/event.h"

/* How to read the sections ARGS and OUTPUTS of a PyTorch operator, and how to interpret them
 * later. */
struct xsp_probe_arguments {
	struct xsp_args_spec spec;
	struct xsp_args_kept kept;
	uint32_t parts; /* enum xsp_torch_parts */
	uint32_t flavor; /* enum xsp_torch_flavor */
	bool doubtful; /* the names of the arguments are uncertain */
	char schema[];
};

struct xsp_provider;
struct xsp_range_row;

/* What happens at a function. */
enum xsp_probe_action {
	XSP_ACTION_SPAN = 0, /* entry and every exit: a span */
	XSP_ACTION_NAMED_SPAN, /* the same, with a name for each call (range) */
	XSP_ACTION_RANGE_BEGIN, /* first instruction: a range opens, or its name is remembered */
	XSP_ACTION_RANGE_END, /* first instruction: the innermost range closes */
	XSP_ACTION_RANGE_LABEL, /* first instruction: an open range gets its name */
	XSP_ACTION_UNWIND, /* first instruction: an exception has landed in the caller */
	XSP_ACTION_LONGJMP, /* first instruction: about to jump, with jmp_buf in argument 1 */
	XSP_ACTION_GPU_BATCH, /* the agent passes records (gpu.h) */
	XSP_ACTION_GPU_WANT, /* never called: its semaphore says what the agent is to collect */
	/* first instruction: an allocator allocates or frees (XSP_EVENT_MEMORY), with the sections
	 * of detail.exit */
	XSP_ACTION_MEMORY,
	/* entry, and with detail.exit every exit: malloc and similar functions (XSP_EVENT_MEMORY).
	 * detail.word has what enum xsp_heap_word lists */
	XSP_ACTION_HEAP,
	XSP_ACTION_VALUE, /* first instruction: the program reports a number (XSP_EVENT_VALUE) */
	XSP_ACTIONS,
};

/* One function to be probed. */
struct xsp_probe {
	const char *provider; /* static */
	enum xsp_probe_action action;
	unsigned args_read; /* bit n: integer argument n is read at entry */
	/* SPAN: no exception can pass the function, so a return probe may see its exits where that
	 * is cheaper or reports more */
	bool no_exceptions;
	uint64_t addr, size, offset;
	enum xsp_scope scope;
	enum xsp_relay relay; /* RANGE_BEGIN */
	bool nests; /* RANGE_BEGIN: its ranges nest in each thread */
	uint64_t semaphore; /* file offset of a 16-bit reference counter; 0: none */
	/* RANGE_END, RANGE_LABEL and XSP_RANGE_SHARED: the index in the list of their RANGE_BEGIN;
	 * else its own */
	uint32_t pair;
	uint32_t order; /* used by the plan */
	/* RANGE_BEGIN, RANGE_LABEL, NAMED_SPAN, VALUE: what it reads from the target */
	struct xsp_range_spec range;
	/* SPAN, NAMED_SPAN, RANGE_BEGIN: sections of its events. With RESULT or OUTPUTS the
	 * exits are `ret`s */
	struct xsp_detail_spec detail;
	/* for names that are addresses: turns the resolved text into what outputs show; or NULL */
	void (*rename)(char *text, size_t size);
	/* with ARGS or OUTPUTS; else NULL. The list owns it */
	struct xsp_probe_arguments *arguments;
	/* For names that are return addresses: finds a better name than that of the function, in
	 * the code of the calling module (`addr`: where the call returns to). Returns NULL, or one
	 * of a few static texts that say why there is none. NULL: not used */
	const char *(*call_site)(struct xsp_module *m, uint64_t addr, char *text, size_t size);
	char *symbol; /* mangled; "" if there is none. The list owns it */
	char *name; /* what outputs show. The list owns it */
};

/* Does it make spans? Not a mark, and not half of something else. */
bool xsp_probe_is_wanted(const struct xsp_probe *p);

struct xsp_probe_list {
	struct xsp_probe *items;
	size_t count, room;
	char note[192]; /* what a provider cannot do in this module; printed once */
	/* kind XSP_TLS_NONE: the module has none; addresses are those of the file */
	struct xsp_sequence_spec sequence;
};

/* Does the module have this function, in its code and not as a resolver of it? */
bool xsp_probe_function(struct xsp_module *m, const char *symbol, struct xsp_symbol *out);
/* A probe on a function with what every probe needs. `name`: what outputs show; NULL: the
 * symbol. */
struct xsp_probe xsp_probe_on(const struct xsp_provider *self, enum xsp_probe_action action,
			      const struct xsp_symbol *function, const char *name);
/* Adds a copy of `p` with its strings. Returns its index, or a negative errno. */
long xsp_probe_list_add(struct xsp_probe_list *list, const struct xsp_probe *p);
void xsp_probe_list_clear(struct xsp_probe_list *list);
void xsp_probe_clear(struct xsp_probe *p); /* frees what the list owns of it */

/* What the user asked for with -e, and with which details. */
struct xsp_selection {
	const struct xsp_pattern *patterns; /* LIBRARY:GLOB and so on, in order */
	size_t pattern_count;
	uint64_t providers; /* bit n: row n of xsp_providers is on */
	/* PROVIDER:GLOB, with the name of the provider as library */
	const struct xsp_pattern *provider_patterns;
	size_t provider_pattern_count;
	bool whole; /* for the provider whose find() is called: all of its names, not some */
	unsigned details; /* enum xsp_detail */
	unsigned scopes; /* bit n: enum xsp_scope n is wanted; 0: all */
	unsigned cuda_apis; /* bit n: enum xsp_cuda_api n is wanted; 0: all */
	unsigned gpu; /* enum xsp_gpu_request: what the agent collects, if there is one */
	bool python; /* look for interpreters */
};

enum xsp_gpu_request { /* gpu.h: XSP_GPU_WANT_... */
		       XSP_WANT_ACTIVITY = 1 << 0,
		       XSP_WANT_EVENTS = 1 << 2,
		       XSP_WANT_GRAPHS = 1 << 4,
		       XSP_WANT_LATENCY = 1 << 5,
		       XSP_WANT_ALL_API = 1 << 6,
		       XSP_WANT_SHARED = 1 << 7,
		       XSP_WANT_OPERATORS = 1 << 8,
		       XSP_WANT_REGIONS = 1 << 9,
		       XSP_WANT_CALLBACKS = 1 << 10,
};

struct xsp_provider {
	const char *name; /* as in -e NAME */
	const char *help; /* one line for --help */
	bool by_default; /* on if there is no -e */
	/* always on, not listed: marks that pairing needs, and what other options turn on */
	bool internal;
	/* shown names are known before attach: -e NAME:GLOB selects by them, and its find() asks
	 * xsp_selection_includes() */
	bool names_known;
	/* Adds probes to the list. A negative errno without *err is a lack of memory. NULL: adds
	 * the rows of `ranges` (probes/ranges.h) */
	int (*find)(const struct xsp_provider *self, struct xsp_module *m,
		    const struct xsp_selection *selection, struct xsp_probe_list *list,
		    struct xsp_error *err);
	const struct xsp_range_row *ranges;
	size_t range_count;
};

/* Does the user want what this provider shows as `name`? */
bool xsp_selection_includes(const struct xsp_selection *selection,
			    const struct xsp_provider *provider, const char *name);
/* Does the user want a provider with this trait (catalog/providers.h), or some of its names? */
bool xsp_selection_asks(const struct xsp_selection *selection, unsigned trait);

/* May some probes read names or the agent's records? Those of the user's patterns do not. */
bool xsp_selection_has_ranges(const struct xsp_selection *selection);

extern const struct xsp_provider *const xsp_providers[]; /* ended by NULL */
/* The row of the provider with this name, or -1. */
int xsp_provider_index(const char *name);
/* The same, with those that the user cannot name. */
int xsp_provider_row(const char *name);
const struct xsp_provider *xsp_provider_at(int row); /* NULL: no such row */

/* All that the selection finds in a module. */
int xsp_find_probes(struct xsp_module *m, const struct xsp_selection *selection,
		    struct xsp_probe_list *list, struct xsp_error *err);

extern const struct xsp_provider xsp_provider_function;
extern const struct xsp_provider xsp_provider_record_function;
extern const struct xsp_provider xsp_provider_torch;
extern const struct xsp_provider xsp_provider_unwind;
extern const struct xsp_provider xsp_provider_xsigma;
extern const struct xsp_provider xsp_provider_nvtx;
extern const struct xsp_provider xsp_provider_itt;
extern const struct xsp_provider xsp_provider_cuda;
extern const struct xsp_provider xsp_provider_gpu;
/* Is it the agent's file? By its name. A copy that --inject made in memory is mapped as "/memfd:NAME". */
bool xsp_is_agent(const char *display_path);
extern const struct xsp_provider xsp_provider_memory;
extern const struct xsp_provider xsp_provider_c10d;
extern const struct xsp_provider xsp_provider_nccl;

#endif
