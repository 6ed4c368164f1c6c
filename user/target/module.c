/* SPDX-License-Identifier: BSD-2-Clause */
/* module.c - an ELF file as the target maps it: identity, addresses, bytes. */
#include "target/module.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "target/module_private.h"

int xsp_module_adopt(const struct xsp_opener *o, int fd, const char *display_path,
		     struct xsp_module **out, struct xsp_error *err)
{
	return xsp_module_adopt_within(o, fd, display_path, NULL, out, err);
}

int xsp_module_adopt_within(const struct xsp_opener *o, int fd, const char *display_path,
			    struct xsp_elf_budget *budget, struct xsp_module **out,
			    struct xsp_error *err)
{
	*out = NULL;
	struct xsp_module *m = calloc(1, sizeof(*m));
	char *name = strdup(display_path);
	if (m == NULL || name == NULL) {
		free(m);
		free(name);
		close(fd);
		return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory opening %s",
				     display_path);
	}
	m->opener = o;
	m->display_path = name;
	int ret = xsp_elf_open(fd, display_path, budget, &m->elf, err);
	if (ret < 0) {
		xsp_module_free(m);
		return ret;
	}
	m->build_id_length = xsp_elf_build_id(&m->elf, m->build_id);
	m->is_static = xsp_elf_header(&m->elf, PT_INTERP) == NULL &&
		       (m->elf.type == ET_EXEC || xsp_elf_is_pie(&m->elf));
	*out = m;
	return 0;
}

static int cannot_open(int code, const char *display_path, struct xsp_error *err)
{
	if (code == -ENOEXEC)
		return xsp_error_set(err, code, XSP_STATUS_TARGET, "%s is not a regular file",
				     display_path);
	if (code == -ESTALE)
		return xsp_error_set(err, code, XSP_STATUS_FAILED,
				     "the file at %s is not the one that is mapped", display_path);
	return xsp_error_set(err, code,
			     code == -EACCES || code == -EPERM ? XSP_STATUS_PERMISSION
							       : XSP_STATUS_FAILED,
			     "cannot open %s: %s", display_path, strerror(-code));
}

int xsp_module_open(const char *path, const char *display_path, struct xsp_module **out,
		    struct xsp_error *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

	*out = NULL;
	return fd < 0 ? cannot_open(-errno, display_path, err)
		      : xsp_module_adopt(&xsp_open_directly, fd, display_path, out, err);
}

int xsp_module_open_mapped(const struct xsp_process *p, const struct xsp_mapped_file *f,
			   struct xsp_module **out, struct xsp_error *err)
{
	int fd = xsp_mapped_file_open(p, f, NULL);

	*out = NULL;
	int rc = fd < 0 ? cannot_open(fd, f->display_path, err)
			: xsp_module_adopt(xsp_process_opener(p), fd, f->display_path, out, err);
	if (rc == 0)
		xsp_module_set_process(*out, xsp_process_pid(p));
	return rc;
}

void xsp_module_set_process(struct xsp_module *m, pid_t pid)
{
	m->pid = pid;
}

void xsp_symbol_cache_clear(struct xsp_symbol_cache *c)
{
	for (size_t i = 0; i < XSP_TABLES; i++) {
		free(c->tables[i].symbols);
		free(c->tables[i].strings);
	}
	free(c->all);
	free(c->unique);
	free(c->hash);
	free(c->gnu_hash);
	free(c->versions);
	free(c->named);
	memset(c, 0, sizeof(*c));
}

void xsp_module_free(struct xsp_module *m)
{
	if (m == NULL)
		return;
	for (size_t i = 0; i < XSP_BLOCK_SLOTS; i++)
		free(m->blocks[i].data);
	xsp_symbol_cache_clear(&m->symbols);
	xsp_eh_frame_clear(&m->eh);
	free(m->inbound.found.list);
	free(m->inbound.answer.list);
	xsp_elf_close(&m->elf);
	free(m->display_path);
	free(m);
}

const char *xsp_module_display_path(const struct xsp_module *m)
{
	return m->display_path;
}

int xsp_module_descriptor(const struct xsp_module *m)
{
	int fd = fcntl(m->elf.fd, F_DUPFD_CLOEXEC, 0);

	return fd < 0 ? -errno : fd;
}

enum xsp_arch xsp_module_arch(const struct xsp_module *m)
{
	return m->elf.machine == EM_X86_64 ? XSP_ARCH_X86_64 : XSP_ARCH_AARCH64;
}

void xsp_module_soname(struct xsp_module *m, char *text, size_t size)
{
	uint64_t names, at;
	long n = xsp_elf_dynamic(&m->elf, DT_STRTAB, &names) &&
				 xsp_elf_dynamic(&m->elf, DT_SONAME, &at)
			 ? xsp_module_read(m, names + at, text, size)
			 : 0;

	if (n <= 0 || memchr(text, '\0', (size_t)n) == NULL)
		text[0] = '\0';
}

bool xsp_module_is_static(const struct xsp_module *m)
{
	return m->is_static;
}

const uint8_t *xsp_module_build_id(const struct xsp_module *m, size_t *length)
{
	*length = m->build_id_length;
	return m->build_id;
}

int xsp_module_addr_to_offset(const struct xsp_module *m, uint64_t addr, uint64_t *offset)
{
	const struct xsp_segment *s = xsp_elf_segment(&m->elf, addr);

	if (s == NULL || addr - s->addr >= s->file_size)
		return -ENOENT;
	*offset = s->offset + (addr - s->addr);
	return 0;
}

int xsp_module_offset_to_addr(const struct xsp_module *m, uint64_t offset, uint64_t *addr)
{
	const struct xsp_segment *found = NULL;

	/* two segments may share a page of the file; a probe is in the executable one */
	for (size_t i = 0; i < m->elf.segment_count; i++) {
		const struct xsp_segment *s = &m->elf.segments[i];
		if (offset < s->offset || offset - s->offset >= s->file_size)
			continue;
		if (found == NULL || (s->executable && !found->executable))
			found = s;
	}
	if (found == NULL)
		return -ENOENT;
	*addr = found->addr + (offset - found->offset);
	return 0;
}

bool xsp_module_is_code(const struct xsp_module *m, uint64_t addr)
{
	const struct xsp_segment *s = xsp_elf_segment(&m->elf, addr);

	return s != NULL && s->executable;
}

uint64_t xsp_module_section_left(const struct xsp_module *m, uint64_t addr)
{
	for (size_t i = 0; i < m->elf.section_count; i++) {
		const Elf64_Shdr *s = &m->elf.sections[i];
		if ((s->sh_flags & SHF_EXECINSTR) != 0 && addr - s->sh_addr < s->sh_size)
			return s->sh_size - (addr - s->sh_addr);
	}
	return UINT64_MAX;
}

int xsp_module_load(const struct xsp_module *m, size_t index, struct xsp_load *out)
{
	if (index >= m->elf.segment_count)
		return -ENOENT;
	const struct xsp_segment *s = &m->elf.segments[index];
	*out = (struct xsp_load){s->addr, s->file_size, s->writable, s->executable};
	return 0;
}

static bool holds_constants(const struct xsp_elf *elf, const Elf64_Shdr *section)
{
	const char *name = xsp_elf_section_name(elf, section);

	return section->sh_type == SHT_PROGBITS && (section->sh_flags & SHF_ALLOC) != 0 &&
	       (section->sh_flags & (SHF_WRITE | SHF_EXECINSTR)) == 0 &&
	       strncmp(name, ".eh_frame", 9) != 0 && strcmp(name, ".gcc_except_table") != 0;
}

int xsp_module_constants(const struct xsp_module *m, size_t *cursor, struct xsp_load *out)
{
	while (*cursor < m->elf.section_count) {
		const Elf64_Shdr *s = &m->elf.sections[(*cursor)++];
		if (!holds_constants(&m->elf, s))
			continue;
		*out = (struct xsp_load){.addr = s->sh_addr, .size = s->sh_size};
		return 0;
	}
	return -ENOENT;
}

/* The block that holds file offset `offset`, read if needed; NULL on a read error. */
static struct xsp_block *get_block(struct xsp_module *m, uint64_t offset)
{
	uint64_t number = offset / XSP_BLOCK_SIZE;
	struct xsp_block *b = &m->blocks[number % XSP_BLOCK_SLOTS];

	if (b->number == number + 1)
		return b;
	if (b->data == NULL && (b->data = malloc(XSP_BLOCK_SIZE)) == NULL)
		return NULL;
	b->number = 0;
	ssize_t n = pread(m->elf.fd, b->data, XSP_BLOCK_SIZE, (off_t)(number * XSP_BLOCK_SIZE));
	if (n < 0)
		return NULL;
	b->number = number + 1;
	b->length = (uint32_t)n;
	return b;
}

long xsp_module_read(struct xsp_module *m, uint64_t addr, void *buf, size_t size)
{
	const struct xsp_segment *s = xsp_elf_segment(&m->elf, addr);
	uint8_t *to = buf;
	size_t done = 0;

	if (s == NULL || addr - s->addr >= s->file_size)
		return -ENOENT;
	uint64_t offset = s->offset + (addr - s->addr);
	uint64_t left = s->file_size - (addr - s->addr);
	if (size > left)
		size = left;
	if (size > LONG_MAX)
		size = LONG_MAX;
	/* reads larger than the cache go past it */
	if (size >= XSP_BLOCK_SIZE * XSP_BLOCK_SLOTS) {
		ssize_t n = pread(m->elf.fd, buf, size, (off_t)offset);
		return n < 0 ? -EIO : (long)n;
	}
	while (done < size) {
		const struct xsp_block *b = get_block(m, offset);
		if (b == NULL)
			return done > 0 ? (long)done : -EIO;
		size_t at = offset % XSP_BLOCK_SIZE;
		if (at >= b->length)
			break; /* the file has shrunk since it was opened */
		size_t n = b->length - at < size - done ? b->length - at : size - done;
		memcpy(to + done, b->data + at, n);
		done += n;
		offset += n;
	}
	return (long)done;
}

int xsp_module_code_range(struct xsp_module *m, uint64_t addr, struct xsp_code_range *out)
{
	struct xsp_fde fde;
	int ret = xsp_eh_frame_find(&m->eh, &m->elf, addr, &fde);

	if (ret < 0)
		return ret;
	out->addr = fde.addr;
	out->size = fde.size;
	return 0;
}

/* GNU_PROPERTY_X86_FEATURE_1_AND in .note.gnu.property: x86-64 psABI, "Program Property". */
bool xsp_module_shadow_stacks(const struct xsp_module *m)
{
	enum { FEATURES = 0xc0000002, SHADOW_STACK = 2, HEAD = 16, NOTE_MAX = 4096 };
	const Elf64_Phdr *ph = xsp_elf_header(&m->elf, 0x6474e553 /* PT_GNU_PROPERTY */);
	uint32_t word[3];
	bool found = false;
	void *data;

	if (ph == NULL || ph->p_filesz > NOTE_MAX ||
	    xsp_elf_load(&m->elf, ph->p_offset, ph->p_filesz, &data) < 0)
		return false;
	for (uint64_t at = HEAD; !found && at + sizeof(word) <= ph->p_filesz;) {
		memcpy(word, (const uint8_t *)data + at, sizeof(word)); /* type, bytes, value */
		found = word[0] == (uint32_t)FEATURES && (word[2] & SHADOW_STACK);
		at += 8 + (((uint64_t)word[1] + 7) & ~7ULL);
	}
	free(data);
	return found;
}

int xsp_module_landing_pads(struct xsp_module *m, uint64_t addr, xsp_landing_pad_fn fn, void *ctx)
{
	uint8_t few[1024], *all;
	struct xsp_fde fde;

	if (xsp_eh_frame_find(&m->eh, &m->elf, addr, &fde) < 0 || fde.table == 0)
		return 0;
	long got = xsp_module_read(m, fde.table, few, sizeof(few));
	if (got <= 0)
		return 0;
	int64_t need = xsp_eh_frame_landing_pads(&fde, few, (size_t)got, fn, ctx);
	if (need <= got)
		return 0;
	all = malloc((size_t)need);
	if (all == NULL)
		return -ENOMEM;
	if (xsp_module_read(m, fde.table, all, (size_t)need) == need)
		xsp_eh_frame_landing_pads(&fde, all, (size_t)need, fn, ctx);
	free(all);
	return 0;
}

int xsp_module_fde(struct xsp_module *m, uint64_t addr, struct xsp_fde *out, const uint8_t **data)
{
	int ret = xsp_eh_frame_find(&m->eh, &m->elf, addr, out);

	*data = m->eh.data;
	return ret;
}

int xsp_module_entry_sp_rule(struct xsp_module *m, uint64_t pc, bool *frame_pointer, int64_t *delta)
{
	/* DWARF register numbers (x86-64 psABI 3.6.2, AADWARF64 4.1) */
	const bool x86 = m->elf.machine == EM_X86_64;
	const uint64_t stack = x86 ? 7 : 31, frame = x86 ? 6 : 29;
	struct xsp_cfa cfa;
	int ret = xsp_eh_frame_cfa(&m->eh, &m->elf, pc, &cfa);

	if (ret < 0)
		return ret;
	if (cfa.reg != stack && cfa.reg != frame)
		return -ENOENT;
	*frame_pointer = cfa.reg == frame;
	*delta = cfa.offset - (x86 ? 8 : 0); /* the return address that the call pushed */
	return 0;
}
