/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * probe.h - providers: tables that say what to trace in a module and what to capture there.
 *
 * A provider is one file and one row of the table in provider.c. It looks at a module and
 * adds what it knows to a list; placement, attach and naming are done for it.
 */
#ifndef XSP_PROBES_PROBE_H
#define XSP_PROBES_PROBE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "catalog/relay.h"
#include "catalog/scope.h"
#include "target/glob.h"
#include "target/module.h"
#include "xsptrace/args.h"
#include "xsptrace/details.h"
#include "xsptrace/event.h"

/* How the sections ARGS and OUTPUTS of a PyTorch operator are read, and understood later. */
struct xsp_probe_arguments {
	struct xsp_args_spec spec;
	uint32_t parts; /* enum xsp_torch_parts */
	uint32_t flavor; /* enum xsp_torch_flavor */
	bool doubtful; /* the names of the arguments are not certain */
	char schema[];
};

/* What happens at a function. */
enum xsp_probe_action {
	XSP_ACTION_SPAN = 0, /* entry and every exit: a span */
	XSP_ACTION_NAMED_SPAN, /* the same, and each call brings a name of its own (range) */
	XSP_ACTION_RANGE_BEGIN, /* first instruction: a range opens, or its name is remembered */
	XSP_ACTION_RANGE_END, /* first instruction: the innermost range closes */
	XSP_ACTION_RANGE_LABEL, /* first instruction: an open range gets its name */
	XSP_ACTION_UNWIND, /* first instruction: an exception has landed in the caller */
	XSP_ACTION_LONGJMP, /* first instruction: about to jump, jmp_buf in argument 1 */
	XSP_ACTION_GPU_BATCH, /* the agent hands over records (gpu.h) */
	XSP_ACTION_GPU_WANT, /* never called: its semaphore tells the agent what to do */
	XSP_ACTION_MEMORY, /* first instruction: an allocator gives or takes (XSP_EVENT_MEMORY); its sections
			       * are those of detail.exit */
	XSP_ACTION_HEAP, /* entry, and with detail.exit every exit: malloc and its kin (XSP_EVENT_MEMORY), of
			  * which detail.word says what enum xsp_heap_word lists */
	XSP_ACTION_VALUE, /* first instruction: the program tells a number (XSP_EVENT_VALUE) */
	XSP_ACTIONS,
};

/* One function to be probed. */
struct xsp_probe {
	const char *provider; /* static */
	enum xsp_probe_action action;
	unsigned args_read; /* bit n: integer argument n is read at entry */
	bool no_exceptions; /* SPAN: no exception can pass the function, so that its exits may be
			     * seen by a return probe where that is cheaper or tells more */
	uint64_t addr, size, offset;
	enum xsp_scope scope;
	enum xsp_relay relay; /* RANGE_BEGIN */
	bool nests; /* RANGE_BEGIN: its ranges nest in each thread */
	uint64_t semaphore; /* file offset of a 16-bit reference counter; 0: none */
	uint32_t pair; /* RANGE_END, RANGE_LABEL and XSP_RANGE_SHARED: index in the list of their
			* RANGE_BEGIN; else own */
	uint32_t order; /* plan's own */
	struct xsp_range_spec
		range; /* RANGE_BEGIN, RANGE_LABEL, NAMED_SPAN, VALUE: what it takes from
				      * the target */
	struct xsp_detail_spec
		detail; /* SPAN, NAMED_SPAN, RANGE_BEGIN: sections of its events. With
					* RESULT or OUTPUTS the exits are `ret`s */
	void (*rename)(char *text, size_t size); /* for names that are addresses: makes the
						   * resolved text what outputs show; or NULL */
	struct xsp_probe_arguments *arguments; /* with ARGS or OUTPUTS; else NULL. Taken over by
						 * the list */
	/* For names that are return addresses: finds a better name than the function's in the code
	 * of the calling module (`addr`: where the call returns to). Returns NULL, or why there is
	 * none: a few static texts. NULL: not asked */
	const char *(*call_site)(struct xsp_module *m, uint64_t addr, char *text, size_t size);
	char *symbol; /* mangled; "" when there is none. Owned by the list */
	char *name; /* what outputs show. Owned by the list */
};

/* Makes spans: not a mark, not half of something else. */
bool xsp_probe_is_wanted(const struct xsp_probe *p);

struct xsp_probe_list {
	struct xsp_probe *items;
	size_t count, room;
	char note[192]; /* what a provider cannot do in this module; told once */
	struct xsp_sequence_spec sequence; /* kind XSP_TLS_NONE: the module has none; addresses of
					    * the file */
};

/* Adds a copy of `p` (strings too). Returns its index, or a negative errno. */
long xsp_probe_list_add(struct xsp_probe_list *list, const struct xsp_probe *p);
void xsp_probe_list_clear(struct xsp_probe_list *list);
void xsp_probe_clear(struct xsp_probe *p); /* frees what the list owns of it */

/* What the user asked for with -e, and of what. */
struct xsp_selection {
	const struct xsp_pattern *patterns; /* LIBRARY:GLOB and the like, in order */
	size_t pattern_count;
	uint64_t providers; /* bit n: row n of xsp_providers is on */
	const struct xsp_pattern *provider_patterns; /* PROVIDER:GLOB, with the provider's name as
						      * their library */
	size_t provider_pattern_count;
	bool whole; /* of the provider whose find() is called: all of its names, not some */
	unsigned details; /* enum xsp_detail */
	unsigned scopes; /* bit n: enum xsp_scope n is wanted; 0: all */
	unsigned cuda_apis; /* bit n: enum xsp_cuda_api n is wanted; 0: all */
	unsigned gpu; /* enum xsp_gpu_request: what the agent collects, if there is one */
	bool python; /* interpreters are looked for */
};

enum xsp_gpu_request { /* gpu.h: XSP_GPU_WANT_... */
		       XSP_WANT_ACTIVITY = 1 << 0,
		       XSP_WANT_EVENTS = 1 << 2,
		       XSP_WANT_GRAPHS = 1 << 4,
		       XSP_WANT_LATENCY = 1 << 5,
		       XSP_WANT_ALL_API = 1 << 6,
		       XSP_WANT_SHARED = 1 << 7,
};

struct xsp_provider {
	const char *name; /* as in -e NAME */
	const char *help; /* one line for --help */
	bool by_default; /* on when there is no -e */
	bool internal; /* marks that pairing needs: always on, not listed */
	bool names_known; /* shown names are known before attach: -e NAME:GLOB selects by them;
			   * its find() asks xsp_selection_includes() */
	int (*find)(const struct xsp_provider *self, struct xsp_module *m,
		    const struct xsp_selection *selection, struct xsp_probe_list *list,
		    struct xsp_error *err);
};

/* Does the user want what this provider shows as `name`? */
bool xsp_selection_includes(const struct xsp_selection *selection,
			    const struct xsp_provider *provider, const char *name);
/* Does the user want a provider with this trait (catalog/providers.h), or some of its names? */
bool xsp_selection_asks(const struct xsp_selection *selection, unsigned trait);

/* May there be probes that read names, or the agent's records? Functions by the user's patterns have none. */
bool xsp_selection_has_ranges(const struct xsp_selection *selection);

extern const struct xsp_provider *const xsp_providers[]; /* ended by NULL */
/* Row index of a provider's name, or -1. */
int xsp_provider_index(const char *name);
/* The same, of those too that the user cannot name. */
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
extern const struct xsp_provider xsp_provider_memory;
extern const struct xsp_provider xsp_provider_c10d;
extern const struct xsp_provider xsp_provider_nccl;

#endif
