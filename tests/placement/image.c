/* SPDX-License-Identifier: BSD-2-Clause */
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "image.h"

struct cursor {
	const uint8_t *p, *end;
	uint64_t addr; /* of p */
	bool bad;
};

static uint64_t read_bytes(struct cursor *c, size_t n)
{
	uint64_t v = 0;

	if (n > 8 || (size_t)(c->end - c->p) < n) {
		c->bad = true;
		return 0;
	}
	memcpy(&v, c->p, n);
	c->p += n;
	c->addr += n;
	return v;
}

static uint64_t read_uleb(struct cursor *c)
{
	uint64_t v = 0;

	for (unsigned shift = 0; shift < 64; shift += 7) {
		uint8_t b = (uint8_t)read_bytes(c, 1);

		v |= (uint64_t)(b & 0x7f) << shift;
		if (!(b & 0x80))
			return v;
	}
	c->bad = true;
	return 0;
}

/* DW_EH_PE_*: absolute and pc-relative, of the widths that compilers write */
static uint64_t read_encoded(struct cursor *c, uint8_t enc)
{
	uint64_t at = c->addr, v;

	switch (enc & 0xf) {
	case 0x0:
	case 0x4:
	case 0xc:
		v = read_bytes(c, 8);
		break;
	case 0x1:
		return read_uleb(c);
	case 0x3:
		v = read_bytes(c, 4);
		break;
	case 0xb:
		v = (uint64_t)(int64_t)(int32_t)read_bytes(c, 4);
		break;
	default:
		c->bad = true;
		return 0;
	}
	return v && (enc & 0x70) == 0x10 ? v + at : v;
}

static int compare_imports(const void *a, const void *b)
{
	const struct import *x = a, *y = b;

	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static void add_imports(struct image *im, uint64_t rela, uint64_t size, uint64_t symtab,
			uint64_t strtab)
{
	size_t left, n = size / sizeof(Elf64_Rela);
	const Elf64_Rela *r = (const void *)image_at(im, rela, &left);
	struct import *more;

	if (!r || left < size || n == 0)
		return;
	more = realloc(im->imports, (im->import_count + n) * sizeof(*more));
	if (!more)
		abort();
	im->imports = more;
	for (size_t i = 0; i < n; i++) {
		const Elf64_Sym *sym;

		if (ELF64_R_TYPE(r[i].r_info) != R_X86_64_JUMP_SLOT &&
		    ELF64_R_TYPE(r[i].r_info) != R_X86_64_GLOB_DAT)
			continue;
		sym = (const void *)image_at(im, symtab + ELF64_R_SYM(r[i].r_info) * sizeof(*sym),
					     &left);
		if (sym)
			more[im->import_count++] = (struct import){
				r[i].r_offset,
				(const char *)image_at(im, strtab + sym->st_name, &left)};
	}
}

static void read_dynamic(struct image *im, const Elf64_Phdr *ph)
{
	const Elf64_Dyn *d = (const void *)(im->data + ph->p_offset);
	uint64_t v[64] = {0};

	for (size_t i = 0; i < ph->p_filesz / sizeof(*d) && d[i].d_tag != DT_NULL; i++) {
		if (d[i].d_tag < 64)
			v[d[i].d_tag] = d[i].d_un.d_val;
	}
	add_imports(im, v[DT_JMPREL], v[DT_PLTRELSZ], v[DT_SYMTAB], v[DT_STRTAB]);
	add_imports(im, v[DT_RELA], v[DT_RELASZ], v[DT_SYMTAB], v[DT_STRTAB]);
	qsort(im->imports, im->import_count, sizeof(*im->imports), compare_imports);
}

static uint64_t stub_slot(const struct image *im, uint64_t addr)
{
	const uint8_t *b;
	size_t left, k = 0;
	int32_t disp;

	b = image_at(im, addr, &left);
	if (!b || left < 16)
		return 0;
	if (!memcmp(b, "\xf3\x0f\x1e\xfa", 4))
		k = 4;
	k += b[k] == 0xf2;
	if (b[k] != 0xff || b[k + 1] != 0x25)
		return 0;
	memcpy(&disp, b + k + 2, 4);
	return addr + k + 6 + (uint64_t)(int64_t)disp;
}

bool image_is_stub(const struct image *im, uint64_t addr)
{
	return stub_slot(im, addr) != 0;
}

const char *image_import(const struct image *im, uint64_t addr)
{
	struct import key = {.slot = stub_slot(im, addr)}, *found;

	if (!key.slot || !im->import_count)
		return NULL;
	found = bsearch(&key, im->imports, im->import_count, sizeof(key), compare_imports);
	return found ? found->name : NULL;
}

static const uint8_t *lookup(const struct image *im, uint64_t addr, size_t *left, uint32_t flag)
{
	for (unsigned i = 0; i < im->header_count; i++) {
		const Elf64_Phdr *ph = (const Elf64_Phdr *)im->headers + i;

		if (ph->p_type != PT_LOAD || addr - ph->p_vaddr >= ph->p_filesz ||
		    (ph->p_flags & flag) != flag)
			continue;
		*left = ph->p_filesz - (addr - ph->p_vaddr);
		return im->data + ph->p_offset + (addr - ph->p_vaddr);
	}
	return NULL;
}

const uint8_t *image_at(const struct image *im, uint64_t addr, size_t *left)
{
	return lookup(im, addr, left, 0);
}

bool image_is_code(const struct image *im, uint64_t addr)
{
	size_t left;

	return lookup(im, addr, &left, PF_X) != NULL;
}

static int32_t table_word(const struct image *im, size_t k)
{
	int32_t v;

	memcpy(&v, im->table + 4 * k, 4);
	return v;
}

uint64_t image_fde_start(const struct image *im, size_t index)
{
	return im->table_addr + (uint64_t)(int64_t)table_word(im, 2 * index);
}

static bool parse_fde(const struct image *im, uint64_t at, struct fde *out)
{
	struct cursor c = {.addr = at}, k;
	uint8_t enc_pc = 0, enc_lsda = 0xff;
	uint64_t length, back, here;
	const char *augmentation;
	size_t left;

	c.p = image_at(im, at, &left);
	if (!c.p)
		return false;
	c.end = c.p + left;
	length = read_bytes(&c, 4);
	here = c.addr;
	back = read_bytes(&c, 4);
	k.addr = here - back;
	k.p = image_at(im, k.addr, &left);
	if (!k.p || c.bad || length < 12)
		return false;
	k.end = k.p + left;
	k.bad = false;
	read_bytes(&k, 8); /* length, id */
	read_bytes(&k, 1); /* version */
	augmentation = (const char *)k.p;
	read_bytes(&k, strlen(augmentation) + 1 > 8 ? 8 : strlen(augmentation) + 1);
	read_uleb(&k);
	read_uleb(&k);
	read_uleb(&k);
	if (*augmentation == 'z')
		read_uleb(&k);
	for (const char *a = augmentation; *a; a++) {
		if (*a == 'R')
			enc_pc = (uint8_t)read_bytes(&k, 1);
		if (*a == 'L')
			enc_lsda = (uint8_t)read_bytes(&k, 1);
		if (*a == 'P')
			read_encoded(&k, (uint8_t)read_bytes(&k, 1));
	}
	out->addr = read_encoded(&c, enc_pc);
	out->size = read_encoded(&c, enc_pc & 0xf);
	out->lsda = 0;
	if (*augmentation == 'z')
		read_uleb(&c);
	if (enc_lsda != 0xff)
		out->lsda = read_encoded(&c, enc_lsda);
	return !c.bad && !k.bad;
}

/* Of code that has no FDE (musl's). */
static bool find_symbol(const struct image *im, uint64_t addr, struct fde *out)
{
	size_t low = 0;

	for (size_t high = im->symbol_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (im->symbols[middle].addr <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || addr - im->symbols[low - 1].addr >= im->symbols[low - 1].size)
		return false;
	*out = im->symbols[low - 1];
	return true;
}

bool image_fde(const struct image *im, uint64_t addr, struct fde *out)
{
	size_t low = 0;

	for (size_t high = im->fde_count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (image_fde_start(im, middle) <= addr)
			low = middle + 1;
		else
			high = middle;
	}
	if (low &&
	    parse_fde(im, im->table_addr + (uint64_t)(int64_t)table_word(im, 2 * (low - 1) + 1),
		      out) &&
	    addr - out->addr < out->size)
		return true;
	return find_symbol(im, addr, out);
}

static int compare_pcs(const void *a, const void *b)
{
	int32_t x = *(const int32_t *)a, y = *(const int32_t *)b;

	return (x > y) - (x < y);
}

/* The table that .eh_frame_hdr would be: a static executable may have none. */
static void list_fdes(struct image *im, const Elf64_Shdr *section)
{
	struct cursor c = {im->data + section->sh_offset, NULL, section->sh_addr, false};

	c.end = c.p + section->sh_size;
	im->own_table = calloc(section->sh_size / 16 + 1, sizeof(*im->own_table));
	if (!im->own_table)
		abort();
	while (c.end - c.p > 8) {
		uint64_t at = c.addr, length = read_bytes(&c, 4);
		struct fde f;

		if (length < 4 || length > (uint64_t)(c.end - c.p))
			break;
		if (read_bytes(&c, 4) != 0 && parse_fde(im, at, &f)) {
			im->own_table[im->fde_count][0] = (int32_t)(f.addr - section->sh_addr);
			im->own_table[im->fde_count++][1] = (int32_t)(at - section->sh_addr);
		}
		c.p += length - 4;
		c.addr += length - 4;
	}
	qsort(im->own_table, im->fde_count, sizeof(*im->own_table), compare_pcs);
	im->table_addr = section->sh_addr;
	im->table = (const uint8_t *)im->own_table;
}

static void find_eh_frame(struct image *im, const Elf64_Ehdr *eh)
{
	const Elf64_Shdr *sections = (const void *)(im->data + eh->e_shoff), *names;

	if (!eh->e_shoff || eh->e_shoff + eh->e_shnum * sizeof(*sections) > im->size ||
	    eh->e_shstrndx >= eh->e_shnum)
		return;
	names = &sections[eh->e_shstrndx];
	for (unsigned i = 0; i < eh->e_shnum; i++)
		if (!strcmp((const char *)im->data + names->sh_offset + sections[i].sh_name,
			    ".eh_frame") &&
		    sections[i].sh_type != SHT_NOBITS)
			list_fdes(im, &sections[i]);
}

static int compare_symbols(const void *a, const void *b)
{
	const struct fde *x = a, *y = b;

	return x->addr != y->addr ? (x->addr < y->addr ? -1 : 1)
				  : (x->size > y->size) - (x->size < y->size);
}

static void read_symbols(struct image *im, const Elf64_Ehdr *eh)
{
	const Elf64_Shdr *sections = (const void *)(im->data + eh->e_shoff);

	if (!eh->e_shoff || eh->e_shoff + eh->e_shnum * sizeof(*sections) > im->size)
		return;
	for (unsigned i = 0; i < eh->e_shnum; i++) {
		const Elf64_Shdr *s = &sections[i];
		const Elf64_Sym *sym = (const void *)(im->data + s->sh_offset);
		const size_t count = s->sh_size / sizeof(*sym);
		if ((s->sh_type != SHT_SYMTAB && s->sh_type != SHT_DYNSYM) ||
		    s->sh_offset + s->sh_size > im->size)
			continue;
		im->symbols =
			realloc(im->symbols, (im->symbol_count + count + 1) * sizeof(*im->symbols));
		if (!im->symbols)
			abort();
		for (size_t k = 0; k < count; k++)
			if (ELF64_ST_TYPE(sym[k].st_info) == STT_FUNC &&
			    sym[k].st_shndx != SHN_UNDEF && sym[k].st_size)
				im->symbols[im->symbol_count++] =
					(struct fde){sym[k].st_value, sym[k].st_size, 0};
	}
	if (im->symbol_count)
		qsort(im->symbols, im->symbol_count, sizeof(*im->symbols), compare_symbols);
}

bool image_open(struct image *im, const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const Elf64_Ehdr *eh;
	struct stat st;
	void *data;

	memset(im, 0, sizeof(*im));
	if (fd < 0)
		return false;
	if (fstat(fd, &st) != 0 || st.st_size < (off_t)sizeof(*eh)) {
		close(fd);
		return false;
	}
	/* shared: into a private mapping, the kernel would put breakpoints of others that probe
	 * this file */
	data = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
	close(fd);
	if (data == MAP_FAILED)
		return false;
	im->data = data;
	im->size = (size_t)st.st_size;
	eh = data;
	if (memcmp(eh->e_ident, ELFMAG "\2\1", 6) != 0 ||
	    eh->e_phoff + eh->e_phnum * sizeof(Elf64_Phdr) > im->size) {
		munmap(data, im->size);
		return false;
	}
	im->headers = im->data + eh->e_phoff;
	im->header_count = eh->e_phnum;
	for (unsigned i = 0; i < im->header_count; i++) {
		const Elf64_Phdr *ph = (const Elf64_Phdr *)im->headers + i;
		const uint8_t *h = im->data + ph->p_offset;

		if (ph->p_type == PT_DYNAMIC)
			read_dynamic(im, ph);
		if (ph->p_type != PT_GNU_EH_FRAME || h[3] != 0x3b)
			continue;
		im->table_addr = ph->p_vaddr;
		im->fde_count = *(const uint32_t *)(h + 8);
		im->table = h + 12;
	}
	if (!im->table)
		find_eh_frame(im, eh);
	read_symbols(im, eh);
	return true;
}

void image_close(struct image *im)
{
	free(im->imports);
	free(im->own_table);
	free(im->symbols);
	munmap((void *)(uintptr_t)im->data, im->size);
}

uint64_t image_landing_pad(const struct image *im, const struct fde *fde, uint64_t pc)
{
	struct cursor c = {.addr = fde->lsda};
	uint64_t start = fde->addr, length;
	uint8_t enc;
	size_t left;

	c.p = fde->lsda ? image_at(im, fde->lsda, &left) : NULL;
	if (!c.p)
		return 0;
	c.end = c.p + left;
	enc = (uint8_t)read_bytes(&c, 1);
	if (enc != 0xff)
		start = read_encoded(&c, enc);
	enc = (uint8_t)read_bytes(&c, 1);
	if (enc != 0xff)
		read_uleb(&c);
	enc = (uint8_t)read_bytes(&c, 1);
	length = read_uleb(&c);
	for (uint64_t end = c.addr + length; c.addr < end && !c.bad;) {
		uint64_t from = read_encoded(&c, enc), size = read_encoded(&c, enc);
		uint64_t pad = read_encoded(&c, enc);

		read_uleb(&c);
		if (pc - fde->addr - from < size)
			return pad ? start + pad : 0;
	}
	return 0;
}
