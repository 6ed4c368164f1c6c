/* SPDX-License-Identifier: BSD-2-Clause */
#include "base/format/json_tree.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/format/json.h"
#include "base/units.h"

cJSON *xsp_json_of_text(const char *text)
{
	if (text == NULL)
		return cJSON_CreateNull();
	const size_t length = strlen(text);
	char *raw = length < SIZE_MAX / 6 - 1 ? malloc(XSP_ESCAPED_MAX(length) + 3) : NULL;

	if (raw == NULL)
		return NULL;
	raw[0] = '"';
	char *end = xsp_json_escape(raw + 1, text, length);
	end[0] = '"';
	end[1] = '\0';
	cJSON *item = cJSON_CreateRaw(raw);
	free(raw);
	return item;
}

cJSON *xsp_json_of_number(uint64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	return cJSON_CreateRaw(text);
}

cJSON *xsp_json_of_signed(int64_t value)
{
	char text[32];

	snprintf(text, sizeof(text), "%" PRId64, value);
	return cJSON_CreateRaw(text);
}

cJSON *xsp_json_of_real(double value)
{
	char text[XSP_UNITS_SIZE];

	return isfinite(value) ? cJSON_CreateRaw(xsp_format_real(text, value)) : cJSON_CreateNull();
}

cJSON *xsp_json_add(cJSON *to, const char *key, cJSON *item)
{
	const bool added = to != NULL && item != NULL &&
			   (key != NULL ? cJSON_AddItemToObject(to, key, item)
					: cJSON_AddItemToArray(to, item));

	if (!added)
		cJSON_Delete(item);
	return added ? item : NULL;
}

/* The object that the path's last member is in. */
static cJSON *parent_of(cJSON *to, const char **path, bool make)
{
	char key[64];

	for (const char *dot; to != NULL && (dot = strchr(*path, '.')) != NULL; *path = dot + 1) {
		snprintf(key, sizeof(key), "%.*s", (int)(dot - *path), *path);
		cJSON *next = cJSON_GetObjectItemCaseSensitive(to, key);
		to = next != NULL || !make ? next : xsp_json_add(to, key, cJSON_CreateObject());
	}
	return to;
}

cJSON *xsp_json_add_at(cJSON *to, const char *path, cJSON *item)
{
	cJSON *parent = parent_of(to, &path, true);

	return xsp_json_add(parent, path, item);
}

cJSON *xsp_json_find_at(const cJSON *in, const char *path)
{
	const cJSON *parent = parent_of((cJSON *)(uintptr_t)in, &path, false);

	return parent != NULL ? cJSON_GetObjectItemCaseSensitive(parent, path) : NULL;
}

cJSON *xsp_json_put(struct xsp_json_work *w, cJSON *to, const char *key, cJSON *item)
{
	cJSON *added = xsp_json_add(to, key, item);

	w->failed = w->failed || added == NULL;
	return added;
}

cJSON *xsp_json_put_object(struct xsp_json_work *w, cJSON *to, const char *key)
{
	return xsp_json_put(w, to, key, cJSON_CreateObject());
}

cJSON *xsp_json_put_array(struct xsp_json_work *w, cJSON *to, const char *key)
{
	return xsp_json_put(w, to, key, cJSON_CreateArray());
}

void xsp_json_put_text(struct xsp_json_work *w, cJSON *to, const char *key, const char *text)
{
	xsp_json_put(w, to, key, xsp_json_of_text(text));
}

/* Two blanks a level, a member a line: cJSON's own layout has tabs, and objects behind each other's ends. */
static bool print_item(const cJSON *item, unsigned depth, FILE *f)
{
	const bool object = cJSON_IsObject(item);
	bool whole = true;

	if (!object && !cJSON_IsArray(item)) {
		char *text = cJSON_PrintUnformatted(item);
		if (text != NULL)
			fputs(text, f);
		cJSON_free(text);
		return text != NULL;
	}
	fputc(object ? '{' : '[', f);
	for (const cJSON *member = item->child; member != NULL; member = member->next) {
		fprintf(f, "%s\n%*s", member != item->child ? "," : "", (int)(2 * depth + 2), "");
		if (object)
			fprintf(f, "\"%s\": ", member->string); /* keys are ours */
		whole = print_item(member, depth + 1, f) && whole;
	}
	if (item->child != NULL)
		fprintf(f, "\n%*s", (int)(2 * depth), "");
	fputc(object ? '}' : ']', f);
	return whole;
}

int xsp_json_print(const cJSON *tree, FILE *f)
{
	return tree != NULL && print_item(tree, 0, f) ? 0 : -ENOMEM;
}

int xsp_json_print_compact(const cJSON *tree, FILE *f)
{
	char *text = tree != NULL ? cJSON_PrintUnformatted(tree) : NULL;

	if (text == NULL)
		return -ENOMEM;
	fputs(text, f);
	cJSON_free(text);
	return 0;
}
