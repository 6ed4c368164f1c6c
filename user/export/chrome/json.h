/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json.h - what the parts of the Chrome trace share: the open trace, and how its times, names,
 * arguments, arrows and row names are written.
 */
#ifndef XSP_EXPORT_CHROME_JSON_H
#define XSP_EXPORT_CHROME_JSON_H

#include "export/export_private.h"
#include "export/out.h"
#include "model/rendered.h"
#include "model/rows/thread_rows.h"
#include "model/run_stats.h"

/* xsp_export.state begins with it. */
struct xsp_chrome {
	struct xsp_renderer *names;
	struct xsp_thread_rows *rows;
	uint64_t base_ns, start_ns, end_ns; /* base: real time; start and end: CLOCK_MONOTONIC */
	/* added to CLOCK_MONOTONIC gives the time relative to the base; modulo 2^64 */
	uint64_t shift;
	uint64_t slices, wakeups;
	/* each belongs to one part */
	struct xsp_chrome_gpu *gpu;
	struct xsp_fwdbwd *fwdbwd;
	struct xsp_torch_args *arguments;
};

static inline struct xsp_chrome *xsp_chrome_of(const struct xsp_export *x)
{
	return x->state;
}

/*
 * Readers parse a time stamp as a double in µs and multiply it by 1000. From 2^42 µs on the
 * double's last bit is 1 ns, and up to 2^52 ns the product's is half a ns. There a quarter of all
 * values come out 1 ns high, and Perfetto drops slices that overlap by that 1 ns. This is the 51st
 * day of each base period. There such a value gets a fourth decimal, 0.4 ns lower, which comes out
 * right.
 */
#define XSP_FRAGILE_FROM_NS ((1ULL << 42) * 1000)
#define XSP_FRAGILE_TO_NS (1ULL << 52)

/* Writes a duration, or a point relative to the base, as µs: at most 24 bytes. These functions
 * return the end. */
static inline char *xsp_chrome_put_ns(char *p, uint64_t ns)
{
	if (ns < XSP_FRAGILE_FROM_NS || ns >= XSP_FRAGILE_TO_NS ||
	    (double)ns / 1000 * 1000 == (double)ns)
		return xsp_put_us(p, ns);
	p = xsp_put_us(p, ns - 1);
	*p++ = '6';
	return p;
}

/* Writes a point in time (CLOCK_MONOTONIC) in the trace's time. The whole file has one offset,
 * which keeps every distance exact: children never stick out of their parents. */
static inline char *xsp_chrome_put_ts(const struct xsp_export *x, char *p, uint64_t ns)
{
	uint64_t t = ns + xsp_chrome_of(x)->shift;

	return xsp_chrome_put_ns(p, t >> 63 ? 0 : t);
}
void xsp_chrome_time(struct xsp_export *x, uint64_t ns); /* the same, written */
/* Writes the length of a slice that the next slice on its row follows at once. speedscope adds `ts`
 * and `dur` as doubles and loses an end after the next beginning. So the length may come out up to
 * 1 ns short. */
char *xsp_chrome_put_until(const struct xsp_export *x, char *p, uint64_t start_ns, uint64_t end_ns);

/* ---- arguments: `,"key":value`; keys are our own and need no escape ---- */

char *xsp_chrome_put_number(char *p, const char *key, uint64_t value);
char *xsp_chrome_put_address(char *p, const char *key, uint64_t value); /* "0x..." */
char *xsp_chrome_put_triple(char *p, const char *key, const uint32_t v[3]); /* [1,2,3] */
/* flags of a span that was not seen to return */
char *xsp_chrome_put_flags(char *p, uint32_t flags);

/* ---- objects: `"key":value` after *before, which then becomes "," ---- */

void xsp_chrome_key(struct xsp_out *o, const char *key); /* `"key":` */
void xsp_chrome_text_pair(struct xsp_out *o, const char **before, const char *key,
			  const char *value); /* NULL writes nothing */
void xsp_chrome_number_pair(struct xsp_out *o, const char **before, const char *key,
			    uint64_t value);
/* Writes a top-level key with an object of numbers. */
void xsp_chrome_stats(struct xsp_out *o, const char *key, const struct xsp_run_stat *stats,
		      size_t n);

/* ---- slices and arrows ---- */

/* `,"pid":N,"tid":N,"ts":N,"dur":N,"args":{` */
char *xsp_chrome_put_place(const struct xsp_export *x, char *p, uint32_t pid, uint32_t tid,
			   uint64_t start_ns, uint64_t length_ns);

/* The row of a thread's stack, made at the first call; NULL: no memory. */
struct xsp_thread_row *xsp_chrome_row(struct xsp_export *x, uint32_t pid, uint32_t tid,
				      uint32_t number);
/* A span's name in quotes. 0 or -ENOMEM. */
int xsp_chrome_put_name(struct xsp_export *x, xsp_name_id name);
/* The number of the next slice (Ev Idx). */
uint64_t xsp_chrome_next_slice(struct xsp_export *x);
/* Writes half of an arrow, which begins in one slice and ends in another; both halves have the same
 * id. `pid` and `tid` are those shown; `ns` is the start of the slice. */
void xsp_chrome_put_flow(struct xsp_export *x, const char *kind, bool ends, uint64_t id,
			 uint32_t pid, uint32_t tid, uint64_t ns);

/* ---- events of phase M: names and order of rows ---- */

/* The caller writes the value of the one argument, and then `}},\n`. */
void xsp_chrome_open_meta(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			  const char *argument);
void xsp_chrome_put_text_meta(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			      const char *argument, const char *value);
void xsp_chrome_put_sort_index(struct xsp_export *x, const char *name, uint32_t pid, uint32_t tid,
			       uint32_t index);

#endif
