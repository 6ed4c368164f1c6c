/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * json_tree.h - small JSON, as trees of cJSON's.
 *
 * Texts of a target may hold any bytes, and whole numbers may be above 2^53, which doubles cannot hold: both are
 * written as raw JSON. All that make a value return NULL without memory.
 */
#ifndef XSP_BASE_JSON_TREE_H
#define XSP_BASE_JSON_TREE_H

#include <cjson/cJSON.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

cJSON *xsp_json_of_text(const char *text); /* NULL: null */
cJSON *xsp_json_of_number(uint64_t value);
cJSON *xsp_json_of_signed(int64_t value);
cJSON *xsp_json_of_real(double value); /* not finite: null */

/* Adds to an object, or with key NULL to an array; takes over the item. Returns it; NULL: no memory, or `to` is NULL. */
cJSON *xsp_json_add(cJSON *to, const char *key, cJSON *item);
/* The member with that path: "gpu.kernels" is one of an object that is made if need be. */
cJSON *xsp_json_add_at(cJSON *to, const char *path, cJSON *item);
/* NULL: there is none. */
cJSON *xsp_json_find_at(const cJSON *in, const char *path);

/* For those who look once, in the end: the same, of which `failed` says that memory was short. */
struct xsp_json_work {
	bool failed;
};
cJSON *xsp_json_put(struct xsp_json_work *w, cJSON *to, const char *key, cJSON *item);
cJSON *xsp_json_put_object(struct xsp_json_work *w, cJSON *to, const char *key);
cJSON *xsp_json_put_array(struct xsp_json_work *w, cJSON *to, const char *key);
void xsp_json_put_text(struct xsp_json_work *w, cJSON *to, const char *key, const char *text);

/* 0 or -ENOMEM. Whether the file could be written is ferror()'s. */
int xsp_json_print(const cJSON *tree, FILE *f);
int xsp_json_print_compact(const cJSON *tree, FILE *f);

#endif
