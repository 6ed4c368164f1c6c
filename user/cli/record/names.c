/* SPDX-License-Identifier: BSD-2-Clause */
/* names.c - chooses the names of a recording's files. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/outputs.h"
#include "cli/record/private.h"
#include "export/out.h"
#include "target/process.h"

/* Makes a file name from a command's name: other bytes become '_'. */
static void clean_name(const char *comm, char *name, size_t size)
{
	static const char kept[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-";
	size_t n = 0;

	for (; comm[n] != '\0' && n + 1 < size; n++)
		name[n] = strchr(kept, comm[n]) ? comm[n] : '_';
	name[n] = '\0';
	if (name[0] == '.')
		name[0] = '_';
}

static const char *capture_among(const struct xsp_options *o)
{
	for (size_t i = 0; i < o->outputs.count; i++)
		if (xsp_is_capture_name(o->outputs.words[i]))
			return o->outputs.words[i];
	return NULL;
}

const char *xsp_record_first_file(const struct xsp_options *o)
{
	for (size_t i = 0; i < o->outputs.count; i++)
		if (xsp_out_is_file(o->outputs.words[i]))
			return o->outputs.words[i];
	return NULL;
}

/* For -o - or a device alone: a folder for the capture. */
static char *find_work(void)
{
	const char *const folders[] = {getenv("TMPDIR"), "/var/tmp", "/tmp"};
	struct stat st;

	for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++)
		if (folders[i] != NULL && folders[i][0] == '/' && stat(folders[i], &st) == 0 &&
		    S_ISDIR(st.st_mode))
			return strdup(folders[i]);
	return strdup(".");
}

/* Call it before we give up our rights: without them we cannot read the time zone's file. */
int xsp_record_prepare_names(struct recording *r, struct xsp_error *err)
{
	time_t now = time(NULL);
	struct tm local;

	if (localtime_r(&now, &local) == NULL ||
	    strftime(r->time, sizeof(r->time), "%Y%m%d-%H%M%S", &local) == 0)
		snprintf(r->time, sizeof(r->time), "%lld", (long long)now);
	if (r->o.outputs.count == 0 || xsp_record_first_file(&r->o) != NULL)
		return 0;
	r->work = find_work();
	return r->work != NULL ? 0 : xsp_out_of_memory(err);
}

/* Hosts that share the folder may have equal processes at the same time. */
static int name_in_folder(struct recording *r, const char *name, pid_t pid)
{
	char host[256] = "", shown[256];

	gethostname(host, sizeof(host) - 1);
	clean_name(host, shown, sizeof(shown));
	return asprintf(&r->capture, "%sxsptrace.%s.%s.%d.%s.xspt", r->o.folder, shown, name,
			(int)pid, r->time);
}

int xsp_record_choose_names(struct recording *r, pid_t pid, struct xsp_error *err)
{
	struct xsp_process *p;
	char name[32] = "program";
	const char *asked = capture_among(&r->o), *file = xsp_record_first_file(&r->o);
	int rc = 0;

	if (xsp_process_open(xsp_broker_opener(r->broker), pid, &p, NULL) == 0) {
		clean_name(xsp_process_comm(p), name, sizeof(name));
		xsp_process_free(p);
	}
	if (r->o.flight) {
		char prefix[80];
		snprintf(prefix, sizeof(prefix), "xsptrace.%s.%d", name, (int)pid);
		return xsp_record_prepare_flight(r, prefix, err);
	}
	r->keep_capture = asked != NULL || r->o.outputs.count == 0;
	r->may_keep = r->keep_capture || file != NULL;
	if (r->o.folder != NULL)
		rc = name_in_folder(r, name, pid);
	else if (asked != NULL)
		rc = asprintf(&r->capture, "%s", asked);
	else if (file != NULL)
		rc = asprintf(&r->capture, "%s.xspt", file);
	else if (r->work != NULL)
		rc = asprintf(&r->capture, "%s/xsptrace.xspt", r->work);
	else
		rc = asprintf(&r->capture, "xsptrace.%s.%d.%s.xspt", name, (int)pid, r->time);
	if (rc >= 0 && (r->o.split_ns > 0 || r->o.split_bytes > 0)) {
		r->whole = r->capture;
		r->part = 1;
		r->capture = xsp_record_part_name(r->whole, r->part);
		rc = r->capture != NULL ? 0 : -1;
	}
	if (rc >= 0 && r->o.outputs.count == 0 && r->o.folder == NULL)
		rc = asprintf(&r->default_json, "xsptrace.%s.%d.%s.json.gz", name, (int)pid,
			      r->time);
	return rc < 0 ? xsp_out_of_memory(err) : 0;
}
