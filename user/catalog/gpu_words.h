/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * gpu_words.h - the words of Kineto's traces for numbers of CUPTI's, and their keys of a device. The Chrome trace is
 * written with them, and read.
 */
#ifndef XSP_CATALOG_GPU_WORDS_H
#define XSP_CATALOG_GPU_WORDS_H

#include <stddef.h>
#include <stdint.h>

/* The last one of a list is the word for all other numbers. */
struct xsp_gpu_word {
	uint32_t number;
	const char *word;
};
extern const struct xsp_gpu_word xsp_gpu_copy_words[]; /* "HtoD" */
extern const struct xsp_gpu_word xsp_gpu_memory_words[]; /* "Pinned" */
extern const struct xsp_gpu_word xsp_gpu_sync_words[]; /* "Event Sync" */
extern const struct xsp_gpu_word xsp_gpu_overhead_words[]; /* "Buffer Flush" */
extern const struct xsp_gpu_word xsp_gpu_channel_words[]; /* "COMPUTE" */

const char *xsp_gpu_word(const struct xsp_gpu_word *list, uint32_t number);
/* 0: it is none of the list's. */
uint32_t xsp_gpu_word_number(const struct xsp_gpu_word *list, const char *word, size_t length);

/* A number of a struct, and what it is called outside. */
struct xsp_number_at {
	const char *key;
	uint16_t at; /* in the struct */
	uint16_t size; /* 4 or 8 bytes */
};
/* Of struct xsp_gpu_device, in the order of the trace; a key of NULL ends. The first one is its id. */
extern const struct xsp_number_at xsp_gpu_device_keys[];

#endif
