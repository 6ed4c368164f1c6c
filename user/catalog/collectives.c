/* SPDX-License-Identifier: BSD-2-Clause */
#include "catalog/collectives.h"

#include <ctype.h>
#include <string.h>

#define NO XSP_COLLECTIVE_NO_WORD
#define RANKS_MAX (1U << 20)

/* Methods of c10d::ProcessGroupGloo, ...NCCL, ...MPI and so on, with the parameters of 1.13 to 2.x.
 * A parameter that cannot be read is an Other. */
static const struct xsp_collective methods[] = {
	{"broadcast", "Tensor[] tensors, Other options", false, NO, NO, NO, NO},
	{"allreduce", "Tensor[] tensors, Other options", true, NO, NO, NO, NO},
	{"allreduce_coalesced", "Tensor[] tensors, Other options", true, NO, NO, NO, NO},
	{"reduce", "Tensor[] tensors, Other options", false, NO, NO, NO, NO},
	{"allgather", "Other outputs, Tensor[] inputs, Other options", true, NO, NO, NO, NO},
	{"_allgather_base", "Tensor(a!) output, Tensor(b!) input, Other options", true, NO, NO, NO,
	 NO},
	{"allgather_coalesced", "Other outputs, Tensor[] inputs, Other options", true, NO, NO, NO,
	 NO},
	{"gather", "Other outputs, Tensor[] inputs, Other options", false, NO, NO, NO, NO},
	{"scatter", "Tensor[] outputs, Other inputs, Other options", false, NO, NO, NO, NO},
	{"reduce_scatter", "Tensor[] outputs, Other inputs, Other options", true, NO, NO, NO, NO},
	{"_reduce_scatter_base", "Tensor(a!) output, Tensor(b!) input, Other options", true, NO, NO,
	 NO, NO},
	{"alltoall_base",
	 "Tensor(a!) output, Tensor(b!) input, Other output_sizes, Other input_sizes, Other options",
	 true, NO, NO, NO, NO},
	{"alltoall", "Tensor[] outputs, Tensor[] inputs, Other options", true, NO, NO, NO, NO},
	{"send", "Tensor[] tensors, Other destination, Other tag", false, NO, NO, NO, NO},
	{"recv", "Tensor[] tensors, Other source, Other tag", false, NO, NO, NO, NO},
	{"recvAnysource", "Tensor[] tensors, Other tag", false, NO, NO, NO, NO},
	{"barrier", "Other options", true, NO, NO, NO, NO},
	{"monitoredBarrier", "Other options, Other all", true, NO, NO, NO, NO},
};

/* nccl.h of 2.4 to 2.28: arguments in order. */
const struct xsp_collective xsp_nccl_calls[] = {
	{"ncclAllReduce", NULL, true, 2, 3, 5, NO},	{"ncclReduce", NULL, false, 2, 3, 6, 5},
	{"ncclBroadcast", NULL, false, 2, 3, 5, 4},	{"ncclBcast", NULL, false, 1, 2, 4, 3},
	{"ncclReduceScatter", NULL, true, 2, 3, 5, NO}, {"ncclAllGather", NULL, true, 2, 3, 4, NO},
	{"ncclAlltoAll", NULL, true, 2, 3, 4, NO},	{"ncclSend", NULL, false, 1, 2, 4, 3},
	{"ncclRecv", NULL, false, 1, 2, 4, 3},		{0},
};

/* ---- symbols ---- */

#define PARTS 4
struct parts {
	struct {
		const char *text;
		size_t length;
	} at[PARTS];
	size_t count;
};

/* Splits "_ZN4c10d4Work4waitE..." into its names. No templates, at most PARTS names. */
static bool split_symbol(const char *symbol, struct parts *out)
{
	const char *p = symbol + 3;

	out->count = 0;
	if (strncmp(symbol, "_ZN", 3) != 0)
		return false;
	while (isdigit((unsigned char)*p) && out->count < PARTS) {
		size_t length = 0;
		for (; isdigit((unsigned char)*p) && length < 1000; p++)
			length = length * 10 + (size_t)(*p - '0');
		if (length == 0 || strnlen(p, length) < length)
			return false;
		out->at[out->count].text = p;
		out->at[out->count++].length = length;
		p += length;
	}
	return *p == 'E';
}

static bool is(const struct parts *p, size_t i, const char *name)
{
	return i < p->count && p->at[i].length == strlen(name) &&
	       memcmp(p->at[i].text, name, p->at[i].length) == 0;
}

static bool begins(const struct parts *p, size_t i, const char *name)
{
	return i < p->count && p->at[i].length > strlen(name) &&
	       memcmp(p->at[i].text, name, strlen(name)) == 0;
}

static const struct xsp_collective *method(const struct parts *p, size_t i)
{
	for (size_t m = 0; m < sizeof(methods) / sizeof(methods[0]); m++)
		if (is(p, i, methods[m].name))
			return &methods[m];
	return NULL;
}

static struct xsp_collective_symbol role(enum xsp_collective_role r)
{
	return (struct xsp_collective_symbol){.role = r};
}

static struct xsp_collective_symbol of_c10d(const struct parts *p)
{
	const struct xsp_collective *m = p->count == 3 ? method(p, 2) : NULL;
	const bool last_is_wait = is(p, p->count - 1, "wait");

	if (m != NULL && begins(p, 1, "ProcessGroup"))
		return (struct xsp_collective_symbol){XSP_COLLECTIVE_CALL, m};
	if (p->count == 3 && is(p, 1, "ProcessGroupGloo") && is(p, 2, "enqueue"))
		return role(XSP_COLLECTIVE_QUEUE);
	if (p->count == 4 && is(p, 1, "ProcessGroupGloo") && is(p, 2, "AsyncWork") &&
	    is(p, 3, "execute"))
		return role(XSP_COLLECTIVE_RUN);
	if (last_is_wait && ((p->count == 3 && is(p, 1, "Work")) ||
			     (p->count == 4 && begins(p, 1, "ProcessGroup"))))
		return role(XSP_COLLECTIVE_WAIT);
	return role(XSP_COLLECTIVE_NONE);
}

static struct xsp_collective_symbol of_nccl(const char *symbol)
{
	for (const struct xsp_collective *c = xsp_nccl_calls; c->name != NULL; c++)
		if (strcmp(symbol, c->name) == 0)
			return (struct xsp_collective_symbol){XSP_COLLECTIVE_CALL, c};
	if (strcmp(symbol, "ncclCommInitRank") == 0 ||
	    strcmp(symbol, "ncclCommInitRankConfig") == 0)
		return role(XSP_COLLECTIVE_JOIN);
	if (strcmp(symbol, "ncclGroupStart") == 0 || strcmp(symbol, "ncclGroupEnd") == 0)
		return role(XSP_COLLECTIVE_INSIDE);
	return role(XSP_COLLECTIVE_NONE);
}

struct xsp_collective_symbol xsp_collective_of(const char *symbol)
{
	struct parts p;

	if (strncmp(symbol, "nccl", 4) == 0)
		return of_nccl(symbol);
	if (!split_symbol(symbol, &p) || p.count < 2)
		return role(XSP_COLLECTIVE_NONE);
	if (is(&p, 0, "c10d"))
		return of_c10d(&p);
	if (p.count == 2 && is(&p, 0, "gloo") && method(&p, 1) != NULL)
		return role(XSP_COLLECTIVE_INSIDE);
	return role(XSP_COLLECTIVE_NONE);
}

bool xsp_collective_is_of_two(const struct xsp_collective *what)
{
	return strcmp(what->name, "send") == 0 || strncmp(what->name, "recv", 4) == 0;
}

bool xsp_collective_is_waiting(const char *display_name)
{
	const char *last = strrchr(display_name, ':');

	return strncmp(display_name, "gloo::", 6) == 0 ||
	       (strncmp(display_name, "c10d::", 6) == 0 &&
		(strcmp(last, ":wait") == 0 || strcmp(last, ":execute") == 0));
}

/* ---- words ---- */

static bool is_group(uint64_t word, uint32_t *rank, uint32_t *size)
{
	*rank = (uint32_t)word;
	*size = (uint32_t)(word >> 32);
	return *size > 0 && *size <= RANKS_MAX && *rank < *size;
}

/* Where the reference counters are two words, the second one is at 16. It is small, and no
 * group. */
bool xsp_c10d_group(const uint64_t *words, size_t count, uint32_t unreadable, uint32_t *rank,
		    uint32_t *size)
{
	if (count < XSP_C10D_WORDS)
		return false;
	for (unsigned i = XSP_C10D_AT_16; i <= XSP_C10D_AT_24; i++)
		if (!(unreadable & 1U << i) && is_group(words[i], rank, size))
			return true;
	return false;
}

const char *xsp_nccl_datatype(uint64_t datatype, unsigned *bytes)
{
	static const struct {
		const char *name;
		unsigned bytes;
	} types[] = {
		{"Char", 1},   {"Byte", 1},	{"Int", 4},	      {"UInt32", 4},
		{"Long", 8},   {"UInt64", 8},	{"Half", 2},	      {"Float", 4},
		{"Double", 8}, {"BFloat16", 2}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1},
	};

	*bytes = 0;
	if (datatype >= sizeof(types) / sizeof(types[0]))
		return NULL;
	*bytes = types[datatype].bytes;
	return types[datatype].name;
}
