/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef XSP_TARGET_JVM_PRIVATE_H
#define XSP_TARGET_JVM_PRIVATE_H

#include <sys/types.h>

#include "target/jvm/jvm.h"

#define XSP_JVM_ADDRESSES (1ULL << 47)

/* How many bytes of these could be read. */
size_t xsp_jvm_read_some(const struct xsp_jvm *j, uint64_t address, void *to, size_t size);

static inline bool xsp_jvm_read(const struct xsp_jvm *j, uint64_t address, void *to, size_t size)
{
	return xsp_jvm_read_some(j, address, to, size) == size;
}

/* 0 where nothing can be read. */
#define XSP_JVM_GETTER(type, name)                                                                 \
	static inline type name(const struct xsp_jvm *j, uint64_t address)                         \
	{                                                                                          \
		type value = 0;                                                                    \
                                                                                                   \
		return xsp_jvm_read(j, address, &value, sizeof(value)) ? value : 0;                \
	}
XSP_JVM_GETTER(uint64_t, xsp_jvm_u64)
XSP_JVM_GETTER(uint32_t, xsp_jvm_u32)
XSP_JVM_GETTER(uint16_t, xsp_jvm_u16)
#undef XSP_JVM_GETTER

/* Bytes with compressed numbers (UNSIGNED5). */
struct xsp_jvm_stream {
	const uint8_t *at, *end;
	uint32_t excluded;
};
bool xsp_jvm_number(struct xsp_jvm_stream *s, uint32_t *out); /* false: it has ended */

#endif
