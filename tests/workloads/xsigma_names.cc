/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * xsigma_names - RecordFunction named in every way that could mislead one who reads the code. Prints
 * for each call of the constructor where it returns to and the names that before() got there:
 * `HEX-OFFSET-IN-THE-FILE'S-ADDRESSES <tab> name <tab> name...`.
 */
#include "workload.h"
#include "xsigma_double.h"

#include <cstdio>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>

#include <link.h>

using namespace xsigma;

void note(const void *object, void *return_address);
void name_it(const void *object, std::string_view name);

static const std::vector<IValue> inputs;
#define APART WL_APART
volatile int sink;
volatile bool yes = true;
APART int leaf(int x)
{
	sink = sink + x;
	if (x == 100)
		throw 1;
	return sink;
}
APART void two_swapped(int x)
{
	RecordFunction a(RecordScope::FUNCTION), b(RecordScope::FUNCTION);
	if (b.isActive())
		b.before("b1");
	if (a.isActive())
		a.before("a1");
	leaf(x);
}
APART void only_first(int x)
{
	RecordFunction a(RecordScope::FUNCTION), b(RecordScope::FUNCTION);
	if (a.isActive())
		a.before("only a");
	leaf(x);
}
APART void only_second(int x)
{
	RecordFunction a(RecordScope::FUNCTION), b(RecordScope::FUNCTION);
	if (b.isActive())
		b.before("only b");
	leaf(x);
}
APART void by_pointer(int x)
{
	RecordFunction a(RecordScope::FUNCTION), b(RecordScope::FUNCTION);
	RecordFunction *p = x % 2 ? &a : &b;
	if (p->isActive())
		p->before("by pointer");
	leaf(x);
}
APART void cond(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	if (a.isActive()) {
		if (x % 2)
			a.before("odd one");
		else
			a.before("even one");
	}
	leaf(x);
}
APART void tern(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	if (a.isActive())
		a.before(x % 2 ? "t odd" : "t even");
	leaf(x);
}
APART void loop(int x)
{
	for (int i = 0; i < x; i++) {
		RECORD_FUNCTION("in loop", inputs);
		leaf(i);
	}
}
APART void loop2(int x)
{
	for (int i = 0; i < x; i++) {
		if (i % 3 == 0) {
			RECORD_FUNCTION("l0", inputs);
			leaf(i);
		} else if (i % 3 == 1) {
			RECORD_FUNCTION("l1 longer", inputs);
			leaf(i);
		} else {
			RECORD_USER_SCOPE("l2");
			leaf(i);
		}
	}
}
APART void table(int x)
{
	static const char *names[] = {"n0", "n1", "n2"};
	RECORD_FUNCTION(names[x % 3], inputs);
	leaf(x);
}
APART void sw(int x)
{
	switch (x % 6) {
	case 0: {
		RECORD_FUNCTION("s0", inputs);
		leaf(x);
		break;
	}
	case 1: {
		RECORD_FUNCTION("s1", inputs);
		leaf(x);
		break;
	}
	case 2: {
		RECORD_FUNCTION("s2", inputs);
		leaf(x);
	}
		[[fallthrough]];
	case 3: {
		RECORD_FUNCTION("s3", inputs);
		leaf(x);
		break;
	}
	case 4: {
		RECORD_FUNCTION("s4", inputs);
		leaf(x * 2);
		break;
	}
	default: {
		RECORD_FUNCTION("s5", inputs);
		leaf(x + 7);
	}
	}
}
APART void heap(int x)
{
	auto p = std::make_unique<RecordFunction>(RecordScope::FUNCTION);
	auto q = std::make_unique<RecordFunction>(RecordScope::FUNCTION);
	if (p->isActive())
		p->before("heap p");
	if (q->isActive())
		q->before("heap q");
	if (x % 2)
		std::swap(p, q);
	leaf(x);
}
APART void heap_swapped(int x)
{
	auto p = std::make_unique<RecordFunction>(RecordScope::FUNCTION);
	auto q = std::make_unique<RecordFunction>(RecordScope::FUNCTION);
	if (x % 2)
		std::swap(p, q);
	if (p->isActive())
		p->before("hs p");
	leaf(x);
}
APART void late(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	leaf(x);
	{
		RecordFunction b(RecordScope::FUNCTION);
		if (b.isActive())
			b.before("late b");
		leaf(x);
	}
	for (int i = 0; i < x; i++)
		leaf(i);
	if (a.isActive() && x > 2)
		a.before("late a");
	leaf(x);
}
APART void same_slot(int x)
{
	{
		RecordFunction a(RecordScope::FUNCTION);
		leaf(x);
	}
	{
		RECORD_FUNCTION("slot two", inputs);
		leaf(x);
	}
}
APART void ended(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	if (x % 2)
		a.end();
	leaf(x);
	RecordFunction b(RecordScope::FUNCTION);
	if (b.isActive())
		b.before("after ended");
	leaf(x);
}
APART void array(int x)
{
	RecordFunction a[2] = {RecordFunction(RecordScope::FUNCTION),
			       RecordFunction(RecordScope::FUNCTION)};
	if (a[x % 2].isActive())
		a[x % 2].before("array any");
	leaf(x);
}
APART void array2(int x)
{
	RecordFunction a[2] = {RecordFunction(RecordScope::FUNCTION),
			       RecordFunction(RecordScope::FUNCTION)};
	for (int i = 0; i < 2; i++)
		if (a[i].isActive())
			a[i].before(i ? "array 1" : "array 0");
	leaf(x);
}
APART void tr(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	try {
		leaf(x == 3 ? 100 : x);
		if (a.isActive())
			a.before("try ok");
	} catch (int) {
		leaf(0);
	}
	leaf(x);
}
APART void part(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	if (a.isActive())
		a.before(std::string_view("partial name", 7));
	leaf(x);
}
APART void var(int x)
{
	RecordFunction a(RecordScope::FUNCTION);
	if (a.isActive())
		a.before(std::string_view("variable", (size_t)(x % 2 ? 8 : 3)));
	leaf(x);
}
struct Base {
	RecordFunction g;
	Base(const char *n) : g(RecordScope::FUNCTION)
	{
		if (g.isActive())
			g.before(n);
	}
};
APART void base1(int x)
{
	Base b("base one");
	leaf(x);
}
APART void base2(int x)
{
	Base b("base two!");
	leaf(x);
}
static inline void named(RecordFunction &g, const char *n)
{
	if (g.isActive())
		g.before(n);
}
APART void helper1(int x)
{
	RecordFunction g(RecordScope::FUNCTION);
	named(g, "helper one");
	leaf(x);
}
APART void helper2(int x)
{
	RecordFunction g(RecordScope::USER_SCOPE), h(RecordScope::FUNCTION);
	named(g, "helper g");
	named(h, "helper h");
	leaf(x);
}
APART void gotos(int x)
{
	int n = 0;
again : {
	RecordFunction g(RecordScope::FUNCTION);
	if (n == 0) {
		if (g.isActive())
			g.before("goto 0");
	} else {
		if (g.isActive())
			g.before("goto n");
	}
	leaf(x);
}
	if (n++ < 2)
		goto again;
}
APART void overwritten(int x)
{
	std::string_view s("first view");
	if (x % 2)
		s = std::string_view("other view!");
	RECORD_FUNCTION(s, inputs);
	leaf(x);
}
/* What programs do: scopes in loops, in both arms, behind tables of jumps, inside each other. */
APART int arms(int x)
{
	if (x % 2) {
		RECORD_FUNCTION("first arm", inputs);
		leaf(x);
	} else {
		RECORD_USER_SCOPE("second arm");
		leaf(x + 1);
	}
	if (x % 3 == 0)
		return x;
	RECORD_FUNCTION("after the arms", inputs, 5);
	leaf(x);
	return sink;
}
APART void nested(int x)
{
	RECORD_FUNCTION("outermost", inputs);
	for (int i = 0; i < x; i++) {
		RECORD_USER_SCOPE("each turn");
		leaf(i);
		for (int j = 0; j < 2; j++) {
			RECORD_FUNCTION("innermost of all", inputs, i);
			leaf(j);
		}
	}
	{
		RECORD_FUNCTION("after the loop", inputs);
		leaf(x);
	}
}
APART void stages(int x)
{
	for (int i = 0; i < x; i++) {
		switch (i % 7) {
		case 0: {
			RECORD_USER_SCOPE("stage: load");
			leaf(i);
			break;
		}
		case 1: {
			RECORD_FUNCTION("stage: decode", inputs);
			leaf(i + 1);
			break;
		}
		case 2: {
			RECORD_FUNCTION("stage: transform", inputs, i);
			leaf(i + 3);
			if (i > 5)
				return;
			break;
		}
		case 3:
			leaf(8);
			break;
		case 4: {
			RECORD_USER_SCOPE("stage: reduce");
			leaf(i + 2);
			break;
		}
		default: {
			RECORD_FUNCTION("stage: other", inputs);
			leaf(i + 9);
		}
		}
	}
}
APART void catches(int x)
{
	RECORD_FUNCTION("around the try", inputs);
	try {
		RECORD_USER_SCOPE("inside the try");
		leaf(x == 5 ? 100 : x);
	} catch (int) {
		RECORD_USER_SCOPE("in the handler");
		leaf(1);
	}
}
/* The name changes on its way to before(), for some calls only. */
__attribute__((noinline)) void change(std::string_view *s)
{
	if (sink != 0 || yes)
		*s = "changed in between";
}
APART void changed(int x)
{
	RecordFunction g(RecordScope::FUNCTION);
	std::string_view name = "not changed";
	if (x % 2)
		change(&name);
	if (g.isActive())
		g.before(name);
	leaf(x);
}
struct context {
	int64_t other;
	RecordFunction::FunctionDescriptor name;
};
__attribute__((noinline)) void change(context *c)
{
	if (yes)
		c->name = std::string_view("changed inside");
}
APART void changed_inside(int x)
{
	RecordFunction g(RecordScope::FUNCTION);
	context c = {x, std::string_view("as it was")};
	if (g.isActive()) {
		if (x % 2)
			change(&c);
		g.before(c.name, x);
	}
	leaf(x);
}
struct named_scope {
	RecordFunction g;
	std::string_view name;
};
__attribute__((noinline)) void change(named_scope *s)
{
	if (yes)
		s->name = "changed beside the guard";
}
APART void changed_beside(int x)
{
	named_scope s = {RecordFunction(RecordScope::FUNCTION), "beside the guard"};
	if (s.g.isActive()) {
		if (x % 2)
			change(&s);
		s.g.before(s.name);
	}
	leaf(x);
}
context *kept;
__attribute__((noinline)) void change_kept()
{
	if (yes)
		kept->name = std::string_view("changed from afar");
}
APART void changed_from_afar(int x)
{
	context c = {};
	kept = &c;
	RecordFunction g(RecordScope::FUNCTION);
	c.name = std::string_view("seen from afar");
	if (g.isActive()) {
		if (x % 2)
			change_kept();
		g.before(c.name, x);
	}
	leaf(x);
}
std::map<void *, std::set<std::string>> seen;
std::map<const void *, void *> where;
void note(const void *o, void *ra)
{
	where[o] = ra;
	seen[ra];
}
void name_it(const void *o, std::string_view n)
{
	seen[where[o]].insert(std::string(n));
}
int main()
{
	arm(true);
	for (int x = 0; x < 12; x++) {
		two_swapped(x);
		only_first(x);
		only_second(x);
		by_pointer(x);
		cond(x);
		tern(x);
		loop(x);
		loop2(x);
		table(x);
		sw(x);
		heap(x);
		heap_swapped(x);
		late(x);
		same_slot(x);
		ended(x);
		array(x);
		array2(x);
		tr(x);
		part(x);
		var(x);
		base1(x);
		base2(x);
		helper1(x);
		helper2(x);
		gotos(x);
		overwritten(x);
		arms(x);
		nested(x);
		stages(x);
		catches(x);
		changed(x);
		changed_inside(x);
		changed_beside(x);
		changed_from_afar(x);
	}
	unsigned long base = 0;
	dl_iterate_phdr(
		[](struct dl_phdr_info *i, size_t, void *to) {
			*(unsigned long *)to = i->dlpi_addr;
			return 1;
		},
		&base);
	for (auto &m : seen) {
		printf("%lx", (unsigned long)m.first - base);
		for (auto &n : m.second)
			printf("\t%s", n.c_str());
		printf("\n");
	}
}

/* ---- the double, which tells what it is called with ---- */

namespace xsigma
{
static bool on;
void arm(bool x)
{
	on = x;
}
WL_APART RecordFunction::RecordFunction(RecordScope s) : active_(on), scope_(s)
{
	note(this, __builtin_return_address(0));
}
WL_APART void RecordFunction::before(FunctionDescriptor d, int64_t)
{
	name_it(this, std::get<0>(d));
}
WL_APART void RecordFunction::end()
{
	asm volatile("");
}
WL_APART RecordFunction::~RecordFunction()
{
	asm volatile("");
}
} /* namespace xsigma */
