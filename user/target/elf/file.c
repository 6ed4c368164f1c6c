/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/file.h"
#include "base/files/file_io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__x86_64__)
#define HOST_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define HOST_MACHINE EM_AARCH64
#else
#error "xsptrace knows x86-64 and aarch64"
#endif

/* Notes are small: nothing larger is worth reading for a build id. */
#define NOTES_MAX (1U << 20)
#define DYNAMIC_MAX (1U << 20)

/* As xsp_read_at(). */
static long read_at(const struct xsp_elf *elf, void *buf, size_t size, uint64_t offset)
{
	if (elf->memory == NULL)
		return xsp_read_at(elf->fd, buf, size, offset);
	const uint64_t left = offset < elf->size ? elf->size - offset : 0;
	if (size > left)
		size = (size_t)left;
	if (size > 0)
		memcpy(buf, elf->memory + offset, size);
	return (long)size;
}

int xsp_elf_read(const struct xsp_elf *elf, uint64_t offset, void *buf, size_t size)
{
	if (offset > INT64_MAX - size)
		return -EIO;
	const long n = read_at(elf, buf, size, offset);
	return n < 0 ? (int)n : n < (long)size ? -EIO : 0;
}

bool xsp_elf_may_keep(const struct xsp_elf *elf, uint64_t bytes)
{
	struct xsp_elf_budget *b = elf->budget;

	if (b == NULL)
		return true;
	if (bytes > b->left / 2) {
		b->refused = true;
		return false;
	}
	b->left -= bytes;
	return true;
}

int xsp_elf_load(const struct xsp_elf *elf, uint64_t offset, uint64_t size, void **out)
{
	if (offset > elf->size || size > elf->size - offset)
		return -ENOEXEC;
	if (size > XSP_ELF_SECTION_MAX || !xsp_elf_may_keep(elf, size))
		return -EFBIG;
	char *data = malloc(size + 1);
	if (data == NULL)
		return -ENOMEM;
	int ret = xsp_elf_read(elf, offset, data, size);
	if (ret < 0) {
		free(data);
		return ret;
	}
	data[size] = '\0';
	*out = data;
	return 0;
}

/* Why xsptrace cannot use the file, or NULL. */
static const char *refuse(const Elf64_Ehdr *eh)
{
	if (memcmp(eh->e_ident, ELFMAG, SELFMAG) != 0)
		return "is not an ELF file";
	if (eh->e_ident[EI_CLASS] == ELFCLASS32)
		return "is a 32-bit file; xsptrace traces 64-bit programs only";
	if (eh->e_ident[EI_CLASS] != ELFCLASS64 || eh->e_ident[EI_DATA] != ELFDATA2LSB)
		return "is not a 64-bit little-endian ELF file";
	if (eh->e_machine != HOST_MACHINE)
		return "is made for another processor architecture than this machine";
	if (eh->e_type != ET_EXEC && eh->e_type != ET_DYN)
		return "is neither a program nor a shared library";
	if (eh->e_phnum > 0 && eh->e_phentsize != sizeof(Elf64_Phdr))
		return "is corrupt (size of its program headers)";
	return NULL;
}

/* Keeps the PT_LOADs, each shortened to what the file really holds. */
static int collect_segments(struct xsp_elf *elf)
{
	elf->segments = calloc(elf->header_count + 1, sizeof(*elf->segments));
	if (elf->segments == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < elf->header_count; i++) {
		const Elf64_Phdr *ph = &elf->headers[i];
		uint64_t file_size = ph->p_filesz, end;

		if (ph->p_type != PT_LOAD || ph->p_memsz == 0 || ph->p_offset > elf->size ||
		    __builtin_add_overflow(ph->p_vaddr, ph->p_memsz, &end))
			continue;
		if (file_size > ph->p_memsz)
			file_size = ph->p_memsz;
		if (file_size > elf->size - ph->p_offset)
			file_size = elf->size - ph->p_offset;
		elf->segments[elf->segment_count++] = (struct xsp_segment){
			.addr = ph->p_vaddr,
			.memory_size = ph->p_memsz,
			.offset = ph->p_offset,
			.file_size = file_size,
			.executable = (ph->p_flags & PF_X) != 0,
			.writable = (ph->p_flags & PF_W) != 0,
		};
	}
	return 0;
}

/* Section headers help but are not needed: a file without them, or with broken ones, can still be
 * traced by offset. Only a lack of memory is an error here. */
static int read_sections(struct xsp_elf *elf, const Elf64_Ehdr *eh)
{
	uint64_t count = eh->e_shnum, names = eh->e_shstrndx;
	void *data;

	if (eh->e_shoff == 0 || eh->e_shentsize != sizeof(Elf64_Shdr))
		return 0;
	if (count == 0 || names == SHN_XINDEX) {
		/* more than 65279 sections: section 0 has the real numbers */
		Elf64_Shdr zero;
		if (xsp_elf_read(elf, eh->e_shoff, &zero, sizeof(zero)) < 0)
			return 0;
		count = count == 0 ? zero.sh_size : count;
		names = names == SHN_XINDEX ? zero.sh_link : names;
	}
	if (count > elf->size / sizeof(Elf64_Shdr))
		return 0;
	int ret = xsp_elf_load(elf, eh->e_shoff, count * sizeof(Elf64_Shdr), &data);
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	elf->sections = data;
	elf->section_count = count;
	if (names >= count || elf->sections[names].sh_type != SHT_STRTAB)
		return 0;
	ret = xsp_elf_load(elf, elf->sections[names].sh_offset, elf->sections[names].sh_size,
			   &data);
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	elf->names = data;
	elf->names_size = elf->sections[names].sh_size;
	return 0;
}

static int read_headers(struct xsp_elf *elf, const char *display_path, struct xsp_error *err)
{
	Elf64_Ehdr eh;
	void *data = NULL;

	memset(&eh, 0, sizeof(eh));
	/* short files: the magic is enough to say what they are */
	const long n = read_at(elf, &eh, sizeof(eh), 0);
	if (n < 0)
		return xsp_error_set(err, (int)n, XSP_STATUS_FAILED, "cannot read %s: %s",
				     display_path, strerror((int)-n));
	const char *why = refuse(&eh);
	if (why == NULL && (size_t)n < sizeof(eh))
		why = "is corrupt (truncated in its first header)";
	if (why != NULL)
		return xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET, "%s %s", display_path, why);
	elf->type = eh.e_type;
	elf->machine = eh.e_machine;

	int ret = xsp_elf_load(elf, eh.e_phoff, (uint64_t)eh.e_phnum * sizeof(Elf64_Phdr), &data);
	if (ret == -ENOMEM)
		goto no_memory;
	if (ret < 0)
		return xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET,
				     "%s is corrupt (program headers outside the file)",
				     display_path);
	elf->headers = data;
	elf->header_count = eh.e_phnum;
	if (collect_segments(elf) < 0 || read_sections(elf, &eh) < 0)
		goto no_memory;
	return 0;

no_memory:
	return xsp_error_set(err, -ENOMEM, XSP_STATUS_FAILED, "out of memory reading %s",
			     display_path);
}

int xsp_elf_open(int fd, const char *display_path, struct xsp_elf_budget *budget,
		 struct xsp_elf *elf, struct xsp_error *err)
{
	struct stat st;
	int ret = 0;

	*elf = (struct xsp_elf){.fd = fd, .budget = budget};
	if (fstat(fd, &st) != 0)
		ret = xsp_error_set(err, -errno, XSP_STATUS_FAILED, "cannot open %s: %s",
				    display_path, strerror(errno));
	else if (!S_ISREG(st.st_mode))
		ret = xsp_error_set(err, -ENOEXEC, XSP_STATUS_TARGET, "%s is not a regular file",
				    display_path);
	else
		elf->size = (uint64_t)st.st_size;
	if (ret == 0)
		ret = read_headers(elf, display_path, err);
	if (ret < 0)
		xsp_elf_close(elf);
	return ret;
}

int xsp_elf_open_memory(uint8_t *data, size_t size, const char *display_path,
			struct xsp_elf_budget *budget, struct xsp_elf *elf, struct xsp_error *err)
{
	*elf = (struct xsp_elf){.fd = -1, .memory = data, .size = size, .budget = budget};
	const int ret = read_headers(elf, display_path, err);
	if (ret < 0)
		xsp_elf_close(elf);
	return ret;
}

void xsp_elf_close(struct xsp_elf *elf)
{
	free(elf->memory);
	xsp_close(elf->fd);
	free(elf->segments);
	free(elf->headers);
	free(elf->sections);
	free(elf->names);
	memset(elf, 0, sizeof(*elf));
	elf->fd = -1;
}

const char *xsp_elf_section_name(const struct xsp_elf *elf, const Elf64_Shdr *section)
{
	return section->sh_name < elf->names_size ? elf->names + section->sh_name : "";
}

const Elf64_Shdr *xsp_elf_section(const struct xsp_elf *elf, const char *name, uint32_t type)
{
	for (size_t i = 0; i < elf->section_count; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		if (type == SHT_NULL ? s->sh_type == SHT_NOBITS : s->sh_type != type)
			continue;
		if (name == NULL || strcmp(xsp_elf_section_name(elf, s), name) == 0)
			return s;
	}
	return NULL;
}

const Elf64_Phdr *xsp_elf_header(const struct xsp_elf *elf, uint32_t type)
{
	for (size_t i = 0; i < elf->header_count; i++) {
		if (elf->headers[i].p_type == type)
			return &elf->headers[i];
	}
	return NULL;
}

const struct xsp_segment *xsp_elf_segment(const struct xsp_elf *elf, uint64_t addr)
{
	for (size_t i = 0; i < elf->segment_count; i++) {
		const struct xsp_segment *s = &elf->segments[i];
		if (addr >= s->addr && addr - s->addr < s->memory_size)
			return s;
	}
	return NULL;
}

/* Walks one block of notes. Layout: Elf64_Nhdr, then name and descriptor, each padded to 4. Every
 * linker aligns the build id so, also in note segments aligned to 8. */
static size_t build_id_in_notes(const uint8_t *notes, size_t size, uint8_t *id)
{
	size_t at = 0;

	while (size - at >= sizeof(Elf64_Nhdr)) {
		Elf64_Nhdr nh;
		memcpy(&nh, notes + at, sizeof(nh));
		at += sizeof(nh);
		uint64_t name = ((uint64_t)nh.n_namesz + 3) & ~3ULL;
		uint64_t desc = ((uint64_t)nh.n_descsz + 3) & ~3ULL;
		if (name > size - at || nh.n_descsz > size - at - name)
			return 0;
		if (nh.n_type == NT_GNU_BUILD_ID && nh.n_namesz == 4 &&
		    memcmp(notes + at, "GNU", 4) == 0 && nh.n_descsz > 0 &&
		    nh.n_descsz <= XSP_BUILD_ID_MAX) {
			memcpy(id, notes + at + name, nh.n_descsz);
			return nh.n_descsz;
		}
		if (desc > size - at - name)
			return 0;
		at += name + desc;
	}
	return 0;
}

static size_t build_id_at(const struct xsp_elf *elf, uint64_t offset, uint64_t size, uint64_t *left,
			  uint8_t *id)
{
	void *notes;
	size_t length = 0;

	if (size == 0 || size > *left)
		return 0;
	*left -= size;
	if (xsp_elf_load(elf, offset, size, &notes) == 0) {
		length = build_id_in_notes(notes, size, id);
		free(notes);
	}
	return length;
}

size_t xsp_elf_build_id(const struct xsp_elf *elf, uint8_t id[static XSP_BUILD_ID_MAX])
{
	size_t length = 0;
	uint64_t left = NOTES_MAX;

	/* sections first: in a separate debug file the segments describe bytes that are not
	 * there */
	for (size_t i = 0; i < elf->section_count && length == 0; i++) {
		const Elf64_Shdr *s = &elf->sections[i];
		if (s->sh_type == SHT_NOTE)
			length = build_id_at(elf, s->sh_offset, s->sh_size, &left, id);
	}
	for (size_t i = 0; i < elf->header_count && length == 0; i++) {
		const Elf64_Phdr *ph = &elf->headers[i];
		if (ph->p_type == PT_NOTE)
			length = build_id_at(elf, ph->p_offset, ph->p_filesz, &left, id);
	}
	return length;
}

bool xsp_elf_dynamic(const struct xsp_elf *elf, int64_t tag, uint64_t *value)
{
	const Elf64_Phdr *ph = xsp_elf_header(elf, PT_DYNAMIC);
	void *data;
	bool found = false;

	if (ph == NULL || ph->p_filesz > DYNAMIC_MAX ||
	    xsp_elf_load(elf, ph->p_offset, ph->p_filesz, &data) < 0)
		return false;
	const Elf64_Dyn *dyn = data;
	for (size_t i = 0; !found && i < ph->p_filesz / sizeof(*dyn) && dyn[i].d_tag != DT_NULL;
	     i++) {
		found = dyn[i].d_tag == tag;
		if (found)
			*value = dyn[i].d_un.d_val;
	}
	free(data);
	return found;
}

bool xsp_elf_is_pie(const struct xsp_elf *elf)
{
	uint64_t flags;

	return elf->type == ET_DYN && xsp_elf_dynamic(elf, DT_FLAGS_1, &flags) &&
	       (flags & DF_1_PIE) != 0;
}
