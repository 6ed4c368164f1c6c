/* SPDX-License-Identifier: BSD-2-Clause */
#include "target/elf/eh_frame.h"

#include <errno.h>
#include <stdlib.h>

#include "base/rows/grow.h"
#include "base/rows/order.h"
#include "base/rows/search.h"
#include "target/elf/dwarf_cursor.h"

/* DW_EH_PE_*: LSB Core 5.0, table 10-4 */
#define PE_FORMAT 0x0f
#define PE_RELATION 0x70
#define PE_PCREL 0x10
#define PE_DATAREL 0x30
#define PE_SDATA4 0x0b
#define PE_INDIRECT 0x80
#define PE_OMIT 0xff

#define CHUNK 65536U
/* Most bytes of the list of calls in an exception table; libtorch 1.13's largest has 31,600. */
#define CALLS_MAX (256U << 10)

void xsp_eh_frame_clear(struct xsp_eh_frame *eh)
{
	free(eh->data);
	free(eh->loaded);
	free(eh->table);
	free(eh->index);
	memset(eh, 0, sizeof(*eh));
}

/* Makes [at, at+size) of .eh_frame readable in eh->data. */
static int ensure(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t at, uint64_t size)
{
	if (at > eh->size || size > eh->size - at)
		return -ENOENT;
	if (size == 0)
		return 0;
	for (uint64_t i = at / CHUNK; i <= (at + size - 1) / CHUNK; i++) {
		if (eh->loaded[i])
			continue;
		uint64_t start = i * CHUNK;
		size_t n = eh->size - start < CHUNK ? (size_t)(eh->size - start) : CHUNK;
		int ret = xsp_elf_read(elf, eh->offset + start, eh->data + start, n);
		if (ret < 0)
			return ret;
		eh->loaded[i] = 1;
	}
	return 0;
}

/* Bytes of a DW_EH_PE format; 0: LEB128 (8: unknown) */
static const struct {
	uint8_t size;
	bool is_signed, known;
} formats[16] = {
	[0x0] = {8, false, true}, [0x1] = {0, false, true}, [0x2] = {2, false, true},
	[0x3] = {4, false, true}, [0x4] = {8, false, true}, [0x9] = {0, true, true},
	[0xa] = {2, true, true},  [0xb] = {4, true, true},  [0xc] = {8, true, true},
};

/* The plain number of an encoded pointer. */
static uint64_t read_format(struct xsp_cursor *c, uint8_t encoding)
{
	uint8_t f = encoding & PE_FORMAT;

	if (!formats[f].known) {
		c->bad = true;
		return 0;
	}
	if (formats[f].size == 0)
		return xsp_cursor_leb(c, formats[f].is_signed);
	return formats[f].is_signed ? (uint64_t)xsp_cursor_int(c, formats[f].size)
				    : xsp_cursor_uint(c, formats[f].size);
}

/* An encoded pointer; `here` is the virtual address of c->at, `base` what datarel adds. */
static uint64_t read_pointer(struct xsp_cursor *c, uint8_t encoding, uint64_t here, uint64_t base)
{
	uint64_t value = read_format(c, encoding);
	uint8_t relation = encoding & PE_RELATION;

	if (relation == PE_PCREL)
		value += here;
	else if (relation == PE_DATAREL)
		value += base;
	else if (relation != 0)
		c->bad = true;
	if (encoding & PE_INDIRECT)
		c->bad = true;
	return value;
}

/*
 * Opens the entry (CIE or FDE) at `at`: a cursor over its body after the length field. *id_at is
 * the offset of the id field, *next that of the next entry. -ENOENT at the end, or if it is broken.
 */
static int open_entry(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t at,
		      struct xsp_cursor *c, uint64_t *id_at, uint64_t *next)
{
	uint64_t length, head = 4;
	int ret = ensure(eh, elf, at, 4);

	if (ret < 0)
		return ret;
	uint32_t short_length;
	memcpy(&short_length, eh->data + at, 4);
	length = short_length;
	if (short_length == UINT32_MAX) {
		ret = ensure(eh, elf, at, 12);
		if (ret < 0)
			return ret;
		memcpy(&length, eh->data + at + 4, 8);
		head = 12;
	}
	if (length < 4 || length > eh->size - at - head)
		return -ENOENT;
	ret = ensure(eh, elf, at + head, length);
	if (ret < 0)
		return ret;
	*id_at = at + head;
	*next = at + head + length;
	*c = (struct xsp_cursor){eh->data + at + head, eh->data + *next, false};
	return 0;
}

/* Reads the augmentation data as the letters of the augmentation string describe it. */
static void read_augmentation(struct xsp_cursor *c, const char *letters, struct xsp_cie *cie)
{
	for (const char *l = letters; *l != '\0' && !c->bad; l++) {
		uint8_t encoding;
		switch (*l) {
		case 'R':
			cie->encoding = (uint8_t)xsp_cursor_uint(c, 1);
			break;
		case 'L':
			cie->table_encoding = (uint8_t)xsp_cursor_uint(c, 1);
			break;
		case 'P':
			encoding = (uint8_t)xsp_cursor_uint(c, 1);
			read_format(c, encoding);
			break;
		case 'S':
			cie->signal_frame = true;
			break;
		case 'B': /* aarch64: return address signed with key B */
		case 'G': /* aarch64: memory tagging */
			break;
		default:
			return; /* the rest is unknown; its length is known */
		}
	}
}

static int parse_cie(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t at,
		     struct xsp_cie *cie)
{
	struct xsp_cursor c;
	uint64_t id_at, next;
	int ret = open_entry(eh, elf, at, &c, &id_at, &next);

	if (ret < 0)
		return ret;
	memset(cie, 0, sizeof(*cie));
	cie->at = at;
	cie->table_encoding = PE_OMIT;
	if (xsp_cursor_uint(&c, 4) != 0)
		return -ENOENT; /* an FDE, not a CIE */
	uint64_t version = xsp_cursor_uint(&c, 1);
	const char *letters = (const char *)c.at;
	const uint8_t *zero = memchr(c.at, '\0', (size_t)(c.end - c.at));
	if (zero == NULL || (version != 1 && version != 3 && version != 4))
		return -ENOENT;
	c.at = zero + 1;
	if (version == 4)
		xsp_cursor_skip(&c, 2); /* size of addresses and segment selectors */
	cie->code_align = xsp_cursor_uleb(&c);
	cie->data_align = xsp_cursor_sleb(&c);
	if (version == 1)
		xsp_cursor_skip(&c, 1); /* return address register */
	else
		xsp_cursor_uleb(&c);
	if (letters[0] == 'z') {
		uint64_t size = xsp_cursor_uleb(&c);
		if (!xsp_cursor_need(&c, size))
			return -ENOENT;
		struct xsp_cursor data = {c.at, c.at + size, false};
		read_augmentation(&data, letters + 1, cie);
		if (data.bad)
			return -ENOENT;
		cie->augmented = true;
		c.at += size;
	} else if (letters[0] != '\0') {
		return -ENOENT;
	}
	if (c.bad)
		return -ENOENT;
	cie->program = (uint64_t)(c.at - eh->data);
	cie->program_end = next;
	cie->valid = true;
	return 0;
}

/* The CIE at `at`, from the cache or parsed. The pointer is valid until the next call. */
static int get_cie(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t at,
		   const struct xsp_cie **out)
{
	struct xsp_cie *cie = &eh->cies[(at >> 3) % XSP_CIE_SLOTS];

	if (!cie->valid || cie->at != at) {
		int ret = parse_cie(eh, elf, at, cie);
		if (ret < 0) {
			cie->valid = false;
			return ret;
		}
	}
	*out = cie;
	return 0;
}

/* The address of an FDE's exception table; 0: it has none, or it is unknown. */
static uint64_t read_table(struct xsp_cursor *c, uint8_t encoding, uint64_t here)
{
	struct xsp_cursor bare = *c;
	const bool none = read_format(&bare, encoding) == 0;
	const uint64_t table = read_pointer(c, encoding, here, 0);

	return none || c->bad ? 0 : table;
}

int64_t xsp_eh_frame_landing_pads(const struct xsp_fde *fde, const uint8_t *bytes, size_t size,
				  xsp_landing_pad_fn fn, void *ctx)
{
	struct xsp_cursor c = {bytes, bytes + size, false};
	uint64_t start = fde->addr;
	uint8_t encoding = (uint8_t)xsp_cursor_uint(&c, 1);

	if (encoding != PE_OMIT)
		start = read_pointer(&c, encoding, fde->table + 1, 0);
	encoding = (uint8_t)xsp_cursor_uint(&c, 1);
	if (encoding != PE_OMIT)
		xsp_cursor_uleb(&c); /* the end of the table of types */
	encoding = (uint8_t)xsp_cursor_uint(&c, 1);
	const uint64_t length = xsp_cursor_uleb(&c);
	if (c.bad || length > CALLS_MAX)
		return -EINVAL;
	if (length > (uint64_t)(c.end - c.at))
		return (int64_t)((uint64_t)(c.at - bytes) + length);
	c.end = c.at + length;
	while (c.at < c.end && !c.bad) {
		read_format(&c, encoding); /* the first byte of the list of calls, and its length */
		read_format(&c, encoding);
		const uint64_t pad = read_format(&c, encoding);
		xsp_cursor_uleb(&c);
		if (pad != 0 && !c.bad)
			fn(ctx, start + pad);
	}
	return c.bad ? -EINVAL : (int64_t)(c.end - bytes);
}

/* -EAGAIN: the entry at `at` is a CIE. *next is set whenever its length could be read. */
static int parse_fde(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t at,
		     struct xsp_fde *out, uint64_t *next)
{
	const struct xsp_cie *cie;
	struct xsp_cursor c;
	uint64_t id_at;

	*next = 0;
	int ret = open_entry(eh, elf, at, &c, &id_at, next);
	if (ret < 0)
		return ret;
	uint64_t back = xsp_cursor_uint(&c, 4);
	if (back == 0)
		return -EAGAIN;
	if (back > id_at)
		return -ENOENT;
	ret = get_cie(eh, elf, id_at - back, &cie);
	if (ret < 0)
		return ret;
	uint64_t here = eh->addr + (uint64_t)(c.at - eh->data);
	out->addr = read_pointer(&c, cie->encoding, here, 0);
	out->size = read_format(&c, cie->encoding);
	out->table = 0;
	if (cie->augmented) {
		const uint64_t size = xsp_cursor_uleb(&c);
		struct xsp_cursor data = c;
		xsp_cursor_skip(&c, size);
		data.end = c.at;
		if (cie->table_encoding != PE_OMIT && size != 0)
			out->table = read_table(&data, cie->table_encoding,
						eh->addr + (uint64_t)(data.at - eh->data));
	}
	if (c.bad || out->size > UINT64_MAX - out->addr)
		return -ENOENT;
	out->program = (uint64_t)(c.at - eh->data);
	out->program_end = *next;
	out->cie = *cie;
	return 0;
}

/* ---- finding the tables ---- */

/* Finds .eh_frame: by its section, else from the header's pointer to the end of the segment, where
 * the terminator or a broken length ends the walk. */
static int locate(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t frame_addr)
{
	const Elf64_Shdr *s = xsp_elf_section(elf, ".eh_frame", SHT_NULL);

	if (s != NULL && (frame_addr == 0 || s->sh_addr == frame_addr)) {
		eh->addr = s->sh_addr;
		eh->offset = s->sh_offset;
		eh->size = s->sh_size;
	} else if (frame_addr != 0) {
		const struct xsp_segment *seg = xsp_elf_segment(elf, frame_addr);
		if (seg == NULL || frame_addr - seg->addr >= seg->file_size)
			return -ENOENT;
		eh->addr = frame_addr;
		eh->offset = seg->offset + (frame_addr - seg->addr);
		eh->size = seg->file_size - (frame_addr - seg->addr);
	} else {
		return -ENOENT;
	}
	if (eh->offset > elf->size || eh->size > elf->size - eh->offset || eh->size == 0 ||
	    eh->size > XSP_ELF_SECTION_MAX || !xsp_elf_may_keep(elf, eh->size))
		return -ENOENT;
	eh->data = malloc(eh->size);
	eh->loaded = calloc(eh->size / CHUNK + 1, 1);
	return eh->data == NULL || eh->loaded == NULL ? -ENOMEM : 0;
}

/* Uses the table of .eh_frame_hdr if it has the form that every linker writes (0x3b). Leaves
 * *frame_addr 0 if there is no usable header. */
static int read_header(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t *frame_addr)
{
	const Elf64_Phdr *ph = xsp_elf_header(elf, PT_GNU_EH_FRAME);
	uint64_t size = ph != NULL ? ph->p_filesz : 0;
	void *data;

	*frame_addr = 0;
	if (ph == NULL)
		return 0;
	int ret = xsp_elf_load(elf, ph->p_offset, size, &data);
	if (ret < 0)
		return ret == -ENOMEM ? ret : 0;
	struct xsp_cursor c = {data, (uint8_t *)data + size, false};
	uint64_t version = xsp_cursor_uint(&c, 1);
	uint8_t frame_encoding = (uint8_t)xsp_cursor_uint(&c, 1);
	uint8_t count_encoding = (uint8_t)xsp_cursor_uint(&c, 1);
	uint8_t table_encoding = (uint8_t)xsp_cursor_uint(&c, 1);
	if (version != 1 || frame_encoding == PE_OMIT)
		goto out;
	*frame_addr = read_pointer(&c, frame_encoding, ph->p_vaddr + 4, ph->p_vaddr);
	if (c.bad) {
		*frame_addr = 0;
		goto out;
	}
	if (count_encoding == PE_OMIT || table_encoding != (PE_DATAREL | PE_SDATA4))
		goto out;
	uint64_t count = read_format(&c, count_encoding);
	if (c.bad || count == 0 || count > (uint64_t)(c.end - c.at) / 8)
		goto out;
	eh->header_addr = ph->p_vaddr;
	eh->count = count;
	/* the table moves to the start of its own buffer, which aligns it */
	memmove(data, c.at, count * 8);
	eh->table = data;
	return 0;
out:
	free(data);
	return 0;
}

static XSP_ORDER(compare_index, struct xsp_fde_index, XSP_RISING(addr) ?: XSP_RISING(at));

/* Without a table: walks all of .eh_frame once. */
static int build_index(struct xsp_eh_frame *eh, const struct xsp_elf *elf)
{
	size_t room = 0;

	for (uint64_t at = 0, next; at < eh->size; at = next) {
		struct xsp_fde fde;
		int ret = parse_fde(eh, elf, at, &fde, &next);
		if (ret == -ENOMEM || ret == -EIO)
			return ret;
		if (next == 0)
			break;
		if (ret < 0 || fde.size == 0)
			continue;
		if (XSP_APPEND(eh->index, room, eh->count, (struct xsp_fde_index){fde.addr, at}) <
		    0)
			return -ENOMEM;
	}
	XSP_SORT(eh->index, eh->count, compare_index);
	return 0;
}

static int prepare(struct xsp_eh_frame *eh, const struct xsp_elf *elf)
{
	uint64_t frame_addr;

	if (eh->state != 0)
		return eh->state < 0 ? eh->state : 0;
	int ret = read_header(eh, elf, &frame_addr);
	if (ret == 0)
		ret = locate(eh, elf, frame_addr);
	if (ret == 0 && eh->table == NULL)
		ret = build_index(eh, elf);
	if (ret < 0)
		xsp_eh_frame_clear(eh);
	eh->state = ret < 0 ? ret : 1;
	return ret;
}

/* ---- look-ups ---- */

static struct xsp_fde_index entry(const struct xsp_eh_frame *eh, size_t i)
{
	if (eh->index != NULL)
		return eh->index[i];
	uint64_t fde = eh->header_addr + (uint64_t)(int64_t)eh->table[2 * i + 1];
	return (struct xsp_fde_index){
		.addr = eh->header_addr + (uint64_t)(int64_t)eh->table[2 * i],
		.at = fde - eh->addr, /* ensure() refuses what is out of range */
	};
}

int xsp_eh_frame_start(struct xsp_eh_frame *eh, const struct xsp_elf *elf, size_t i, uint64_t *addr)
{
	int ret = prepare(eh, elf);

	if (ret < 0 || i >= eh->count)
		return ret < 0 ? ret : -ENOENT;
	*addr = entry(eh, i).addr;
	return 0;
}

int xsp_eh_frame_find(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t addr,
		      struct xsp_fde *out)
{
	uint64_t next;
	int ret = prepare(eh, elf);

	if (ret < 0)
		return ret;
	if (eh->last_valid && addr >= eh->last.addr && addr - eh->last.addr < eh->last.size) {
		*out = eh->last;
		return 0;
	}
	size_t low = 0; /* entries below low begin at or before addr */
	XSP_LOWER_BOUND(low, eh->count, i, entry(eh, i).addr <= addr);
	if (low == 0)
		return -ENOENT;
	ret = parse_fde(eh, elf, entry(eh, low - 1).at, out, &next);
	if (ret < 0)
		return ret == -EAGAIN ? -ENOENT : ret;
	if (addr < out->addr || addr - out->addr >= out->size)
		return -ENOENT;
	eh->last = *out;
	eh->last_valid = true;
	return 0;
}

int xsp_eh_frame_cfa(struct xsp_eh_frame *eh, const struct xsp_elf *elf, uint64_t pc,
		     struct xsp_cfa *out)
{
	struct xsp_fde fde;
	int ret = xsp_eh_frame_find(eh, elf, pc, &fde);

	struct xsp_cfi_row row = {0};

	if (ret == 0)
		ret = xsp_cfi_run(&fde, eh->data, pc, &row);
	*out = row.cfa;
	return ret == 0 && row.cfa_at != NULL ? -ENOENT : ret;
}
