/* SPDX-License-Identifier: BSD-2-Clause */
/* What is said of code in memory compared with its file: here a file that this process maps itself,
 * and whose private copy it changes. */
#include <criterion/criterion.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "broker/links/verify.h"

#if defined(__x86_64__)

#define PAGE 4096U
#define PAGES 3U
#define NOP5 0x100U /* where the file has one */

/* The file, mapped in front of a page that belongs to something else and was written. */
struct mapped {
	struct xsp_verified_file file;
	uint8_t *code;
};

static void map(struct mapped *m)
{
	static uint8_t bytes[PAGES * PAGE];
	struct stat st;

	memset(bytes, 0x90, sizeof(bytes));
	memcpy(bytes + NOP5, "\x0f\x1f\x44\x00\x00", 5);
	m->file.fd = memfd_create("code", MFD_CLOEXEC);
	cr_assert(m->file.fd >= 0);
	cr_assert_eq(write(m->file.fd, bytes, sizeof(bytes)), (ssize_t)sizeof(bytes));
	cr_assert_eq(fstat(m->file.fd, &st), 0);
	m->file.dev = st.st_dev;
	m->file.inode = st.st_ino;
	cr_assert_eq(xsp_verified_file_note(&m->file), 0);
	m->code = mmap(NULL, (PAGES + 1) * PAGE, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert_neq(m->code, MAP_FAILED);
	m->code[PAGES * PAGE] = 1;
	cr_assert_eq(mmap(m->code, PAGES * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED,
			  m->file.fd, 0),
		     m->code);
}

static void unmap(struct mapped *m)
{
	munmap(m->code, (PAGES + 1) * PAGE);
	close(m->file.fd);
}

static void change(struct mapped *m, size_t at, const char *bytes, size_t size)
{
	cr_assert_eq(mprotect(m->code, PAGES * PAGE, PROT_READ | PROT_WRITE), 0);
	memcpy(m->code + at, bytes, size);
	cr_assert_eq(mprotect(m->code, PAGES * PAGE, PROT_READ | PROT_EXEC), 0);
}

static int answer(const struct mapped *m, uint64_t offset, uint32_t length,
		  enum xsp_verify question)
{
	const struct xsp_attach_site site = {.offset = offset, .length = length};
	uint8_t yes = 2;

	cr_assert_eq(xsp_verify_sites(getpid(), &m->file, &site, 1, question, &yes), 0);
	return yes;
}

Test(verify, what_is_other_code_and_where_no_breakpoint_is)
{
	static const struct {
		const char *what;
		uint32_t at; /* what is written; the site */
		const char *bytes;
		uint8_t size, length;
		bool code, linked, unprobed;
	} rows[] = {
		{"nothing", 0x200, "", 0, 4, false, false, true},
		{"a breakpoint", 0x200, "\xcc", 1, 4, false, false, false},
		{"a breakpoint, and one further on", 0x200, "\xcc\x90\xcc", 3, 4, false, false,
		 false},
		{"an instruction", 0x200, "\x31\xc0", 2, 4, true, true, true},
		{"an instruction behind a breakpoint", 0x200, "\xcc\x31\xc0", 3, 4, true, true,
		 false},
		{"an instruction behind the site", 0x200, "\x90\x90\x31\xc0", 4, 2, false, false,
		 true},
		/* the kernel's optimized breakpoint: its trampoline may be younger than what is known of the process */
		{"a call for a nop", NOP5, "\xe8\x00\x10\x00\x00", 5, 5, true, false, false},
		{"a call for another instruction", 0x200, "\xe8\x00\x10\x00\x00", 5, 5, true, true,
		 true},
		{"an instruction on the next page", PAGE - 1, "\x90\x31", 2, 2, true, true, true},
	};

	for (size_t k = 0; k < sizeof(rows) / sizeof(rows[0]); k++) {
		struct mapped m;

		map(&m);
		if (rows[k].size > 0)
			change(&m, rows[k].at, rows[k].bytes, rows[k].size);
		cr_expect_eq(answer(&m, rows[k].at, rows[k].length, XSP_VERIFY_CODE), rows[k].code,
			     "%s: code", rows[k].what);
		cr_expect_eq(answer(&m, rows[k].at, rows[k].length, XSP_VERIFY_LINKED),
			     rows[k].linked, "%s: linked", rows[k].what);
		cr_expect_eq(answer(&m, rows[k].at, rows[k].length, XSP_VERIFY_UNPROBED),
			     rows[k].unprobed, "%s: unprobed", rows[k].what);
		unmap(&m);
	}
}

/* A function is no longer than its mapping, whatever its symbol says: what follows is not asked
 * about, which would take minutes for a length of gigabytes. */
Test(verify, lengths_that_lie)
{
	struct mapped m;

	map(&m);
	cr_expect_eq(answer(&m, 0, PAGES * PAGE, XSP_VERIFY_CODE), 0);
	cr_expect_eq(answer(&m, 0, (PAGES + 1) * PAGE, XSP_VERIFY_CODE), 0);
	cr_expect_eq(answer(&m, 2 * PAGE, UINT32_MAX, XSP_VERIFY_CODE), 0);
	change(&m, 2 * PAGE + 7, "\x31", 1);
	cr_expect_eq(answer(&m, 0, UINT32_MAX, XSP_VERIFY_CODE), 1);
	cr_expect_eq(answer(&m, PAGES * PAGE, 4, XSP_VERIFY_CODE), 0); /* not of the file */
	unmap(&m);
}

/* A program has put other code in the place of a part of the file's. */
Test(verify, code_that_has_moved)
{
	struct mapped m;

	map(&m);
	uint8_t *place = m.code + PAGE;
	cr_assert_eq(mmap(place, PAGE, PROT_READ | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0),
		     place);
	for (int question = 0; question < XSP_VERIFY_QUESTIONS; question++) {
		cr_expect_eq(answer(&m, PAGE + 8, 4, (enum xsp_verify)question), 1);
		cr_expect_eq(answer(&m, 8, 4, (enum xsp_verify)question),
			     question == XSP_VERIFY_UNPROBED);
	}
	/* what is nobody's code any more has only been unmapped */
	cr_assert_eq(munmap(place, PAGE), 0);
	cr_expect_eq(answer(&m, PAGE + 8, 4, XSP_VERIFY_CODE), 0);
	unmap(&m);
}

Test(verify, files_that_were_written)
{
	const struct xsp_attach_site site = {.length = 1};
	uint8_t yes;
	struct mapped m;

	map(&m);
	cr_assert_eq(ftruncate(m.file.fd, (PAGES + 1) * PAGE), 0);
	cr_expect_eq(xsp_verify_sites(getpid(), &m.file, &site, 1, XSP_VERIFY_CODE, &yes), -ESTALE);
	unmap(&m);
}

#endif
