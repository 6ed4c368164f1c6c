/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * format.h - the bytes of a capture file; docs/capture-format.md says the same in prose.
 * Private to user/capture/. Little endian, everything aligned to 8.
 */
#ifndef XSP_CAPTURE_FORMAT_H
#define XSP_CAPTURE_FORMAT_H

#include <assert.h>
#include <stdint.h>

#include "capture/capture.h"

#define XSP_FILE_MAGIC "\211XSPT\r\n\032" /* 8 bytes; like PNG's, it shows transfers as text */
#define XSP_FILE_MAJOR 2 /* the latest that this build reads: chunks may be packed */
#define XSP_FILE_PLAIN 1 /* none is, and older builds read it */
#define XSP_FILE_MINOR 3 /* of the plain one: additions that an older reader may skip */

struct xsp_file_header {
	char magic[8];
	uint16_t major, minor;
	uint32_t header_size; /* bytes; the first chunk follows */
	uint32_t event_version; /* XSP_EVENT_VERSION */
	uint32_t part; /* 1, 2, ... of a recording in several files; 0: all of it */
	/* random, and in every chunk: bytes inside a chunk (a name that the target made up) never look like a chunk */
	uint64_t file_id;
	uint64_t realtime_ns;
	/* of the hashes of addresses, in a snapshot: that of its recording, which has several. 0: the file's id */
	uint64_t key;
	uint8_t unused[12];
	uint32_t crc; /* of the bytes before */
};
static_assert(sizeof(struct xsp_file_header) == 64, "file header");

#define XSP_CHUNK_MAGIC 0x43505358U /* "XSPC" */

enum xsp_chunk_type {
	XSP_CHUNK_DEFINITIONS = 1, /* records, see below */
	XSP_CHUNK_EVENTS = 2, /* struct xsp_event with payloads, back to back */
	XSP_CHUNK_END = 3, /* struct xsp_chunk_end; the recording ended in order */
};

enum xsp_chunk_flag {
	/* The payload is a frame of zstd, with zeros up to the length. In one of events each time and each stack pointer
	 * is less that of the event before. */
	XSP_CHUNK_PACKED = 1 << 0,
	XSP_CHUNK_AGAIN = 1 << 1, /* of no use if the part before is read, too */
	XSP_CHUNK_CLOSES = 1 << 2, /* of no use if the next part is read, too */
};

struct xsp_chunk_header {
	uint32_t magic;
	uint16_t type;
	uint16_t flags; /* enum xsp_chunk_flag */
	uint32_t length; /* of the payload as it is in the file, a multiple of 8 */
	uint32_t payload_crc;
	uint64_t sequence; /* 0, 1, 2, … in the file */
	uint64_t file_id;
	uint64_t first_ns, last_ns; /* events: lowest and highest time */
	uint32_t count; /* events or records */
	uint32_t ring;
	uint32_t unpacked; /* the payload's length, if it is packed; else 0 */
	uint32_t header_crc; /* of the bytes before */
};
static_assert(sizeof(struct xsp_chunk_header) == 64, "chunk header");

/* The payload of a chunk as written, and the most that a reader accepts. */
#define XSP_CHUNK_SIZE ((size_t)1 << 20)
#define XSP_CHUNK_MAX ((size_t)16 << 20)

/* The event at `at` of an unpacked payload; NULL at its end, and at a damaged one. */
static inline const struct xsp_event *xsp_chunk_event(const unsigned char *payload, size_t size,
						      size_t at)
{
	const struct xsp_event *e;

	if (size - at < sizeof(*e))
		return NULL;
	e = (const void *)(payload + at);
	return e->size >= sizeof(*e) && e->size % 8 == 0 && e->size <= size - at ? e : NULL;
}

struct xsp_chunk_end {
	uint64_t start_ns, end_ns, events, chunks;
};

/*
 * A record: this head, `fixed` bytes of one of the structs below (with the head), then strings {u32 length, bytes, one
 * zero byte} back to back, then zeros up to `size`. A newer minor version may enlarge `fixed` or add strings; a reader
 * ignores both.
 */
struct xsp_record {
	uint16_t type; /* enum xsp_record_type */
	uint16_t fixed; /* bytes */
	uint32_t size; /* bytes of the whole record, a multiple of 8 */
};

enum xsp_record_type {
	XSP_RECORD_INFO = 1,
	XSP_RECORD_PROCESS,
	XSP_RECORD_THREAD,
	XSP_RECORD_MODULE,
	XSP_RECORD_MAPPING,
	XSP_RECORD_PROBE,
	XSP_RECORD_CLOCK,
	XSP_RECORD_STATS,
	XSP_RECORD_LOST,
	XSP_RECORD_NAME,
	XSP_RECORD_OPERATOR,
	XSP_RECORD_WINDOW,
	XSP_RECORD_LET_GO,
	XSP_RECORD_PYTHON,
	XSP_RECORD_ENVIRONMENT,
	XSP_RECORD_STATS_BEFORE, /* struct xsp_capture_stats at the beginning of this part */
	XSP_RECORD_TYPES,
};

#define XSP_RECORD_STRINGS 3 /* at most */
#define XSP_STRING_MAX ((size_t)65536) /* the writer cuts longer ones */
#define XSP_BUILD_ID_MAX 64U
#define XSP_MAX_MODULES (1U << 20)

struct xsp_disk_info { /* key, value */
	struct xsp_record head;
};
struct xsp_disk_process { /* comm, cmdline, exe */
	struct xsp_record head;
	uint32_t pid, ns_pid, parent, reserved;
};
struct xsp_disk_thread { /* comm */
	struct xsp_record head;
	uint32_t pid, tid, ns_tid, reserved;
};
struct xsp_disk_module { /* path, build id (bytes) */
	struct xsp_record head;
	uint32_t id, reserved;
};
struct xsp_disk_probe { /* provider, symbol, name */
	struct xsp_record head;
	uint32_t id, module;
	uint64_t addr, size;
	uint32_t kind, entry_cost_ns, exit_cost_ns;
	uint32_t flags; /* bit 0: exit_complete; bits 1..3: scope; 4..5: relay; 6: nests */
};
/* Mappings, clocks, counters, losses, windows and released probes: the head, then the struct of
 * capture.h as it is, which has no pointers and no padding. */
static_assert(sizeof(struct xsp_capture_stats) == 11 * 8, "stats: raise the minor version");
struct xsp_disk_name { /* text */
	struct xsp_record head;
	uint64_t hash;
	uint32_t flags; /* of the event: XSP_EVENT_NAME_CUT */
	uint32_t reserved;
};
struct xsp_disk_operator { /* schema */
	struct xsp_record head;
	uint32_t probe, parts, flavor;
	uint32_t flags; /* bit 0: doubtful */
};
struct xsp_disk_python { /* frames (bytes): struct xsp_capture_python_frame[] */
	struct xsp_record head;
	uint64_t id;
	uint32_t flags, reserved;
};

struct xsp_disk_environment { /* lines "NAME=value"; after its process */
	struct xsp_record head;
	uint32_t pid, reserved;
};

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the file is little endian, as we are");

uint32_t xsp_capture_crc(const void *data, size_t size);

#endif
