/* SPDX-License-Identifier: BSD-2-Clause */
#include "trigger/expression.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/parse.h"
#include "base/text.h"
#include "catalog/wait_reasons.h"

#define ALL                                                                                        \
	"NAME>50ms, NAME/s>100, step>1.5x, step>200ms, wait:lock>1s, rss>20G, rss+100M/min, gpu-idle>2s, lost>0 or exit!=0"

static int wrong(const char *text, const char *what, struct xsp_error *err)
{
	return xsp_error_set(err, -EINVAL, XSP_STATUS_TRIGGER, "--trigger %.200s: %s", text, what);
}

static bool take_time(const char *text, double *ns)
{
	uint64_t value;
	const size_t digits = strspn(text, "0123456789.");

	/* a plain number could be anything */
	if (text[digits] == '\0' || xsp_parse_duration(text, 0, &value) < 0 || value == 0)
		return false;
	*ns = (double)value;
	return true;
}

static bool take_size(const char *text, double *bytes)
{
	size_t value;

	if (xsp_parse_size(text, &value) < 0)
		return false;
	*bytes = (double)value;
	return true;
}

static bool take_number(const char *text, const char *unit, double *value)
{
	char *end;

	*value = strtod(text, &end);
	return end != text && strcmp(end, unit) == 0 && isfinite(*value) && *value >= 0;
}

/* "100M/min" */
static int take_growth(struct xsp_trigger *t, const char *value, struct xsp_error *err)
{
	static const struct {
		const char *name;
		double ns;
	} units[] = {{"/s", 1e9}, {"/min", 60e9}, {"/h", 3600e9}};
	char size[32];
	const size_t length = strcspn(value, "/");

	t->kind = XSP_TRIGGER_GROWTH;
	snprintf(size, sizeof(size), "%.*s", (int)length, value);
	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (strcmp(value + length, units[i].name) == 0)
			t->per_ns = units[i].ns;
	return t->per_ns > 0 && length < sizeof(size) && take_size(size, &t->most)
		       ? 0
		       : wrong(t->text, "growth is a size and /s, /min or /h (rss+100M/min)", err);
}

static int take_wait(struct xsp_trigger *t, const char *class, const char *value,
		     struct xsp_error *err)
{
	char all[300] = "";

	t->kind = XSP_TRIGGER_WAIT;
	t->wait = XSP_WAIT_CLASSES;
	for (unsigned i = 0; i < XSP_WAIT_GPU; i++) {
		xsp_join(all, sizeof(all), ", ", "%s", xsp_wait_class_name(i));
		if (strcmp(class, xsp_wait_class_name(i)) == 0)
			t->wait = i;
	}
	if (t->wait == XSP_WAIT_CLASSES) {
		char what[400];
		snprintf(what, sizeof(what), "a wait is one of %s", all);
		return wrong(t->text, what, err);
	}
	return take_time(value, &t->most)
		       ? 0
		       : wrong(t->text, "a wait is longer than a time (1s, 50ms)", err);
}

static int take_step(struct xsp_trigger *t, const char *value, struct xsp_error *err)
{
	const bool factor = take_number(value, "x", &t->most);

	t->kind = factor ? XSP_TRIGGER_SLOW_STEP : XSP_TRIGGER_STEP;
	return (factor && t->most > 1) || (!factor && take_time(value, &t->most))
		       ? 0
		       : wrong(t->text,
			       "a step is longer than a time (200ms) or so many times the median, more than once (1.5x)",
			       err);
}

static int take_name(struct xsp_trigger *t, const char *name, const char *value,
		     struct xsp_error *err)
{
	const size_t length = strlen(name);
	const bool rate = xsp_ends_with(name, length, "/s");

	t->kind = rate ? XSP_TRIGGER_RATE : XSP_TRIGGER_SPAN;
	t->name = strndup(name, rate ? length - 2 : length);
	if (t->name == NULL)
		return xsp_out_of_memory(err);
	if (t->name[0] == '\0')
		return wrong(t->text, "a name is missing before it: it is one of " ALL, err);
	if (rate)
		return take_number(value, "", &t->most)
			       ? 0
			       : wrong(t->text, "calls a second are a number (NAME/s>100)", err);
	return take_time(value, &t->most)
		       ? 0
		       : wrong(t->text, "a call is longer than a time with its unit (NAME>50ms)",
			       err);
}

/* `subject` is what stands before the '>'. */
static int take_more(struct xsp_trigger *t, const char *subject, const char *value,
		     struct xsp_error *err)
{
	if (strcmp(subject, "step") == 0)
		return take_step(t, value, err);
	if (strncmp(subject, "wait:", 5) == 0)
		return take_wait(t, subject + 5, value, err);
	if (strcmp(subject, "rss") == 0) {
		t->kind = XSP_TRIGGER_RSS;
		return take_size(value, &t->most)
			       ? 0
			       : wrong(t->text, "rss is more than a size (20G)", err);
	}
	if (strcmp(subject, "gpu-idle") == 0) {
		t->kind = XSP_TRIGGER_GPU_IDLE;
		return take_time(value, &t->most)
			       ? 0
			       : wrong(t->text, "the GPU is idle for a time (2s)", err);
	}
	if (strcmp(subject, "lost") == 0) {
		t->kind = XSP_TRIGGER_LOST;
		return take_number(value, "", &t->most)
			       ? 0
			       : wrong(t->text, "lost events are a number (lost>0)", err);
	}
	return take_name(t, subject, value, err);
}

int xsp_trigger_parse(const char *text, struct xsp_trigger *out, struct xsp_error *err)
{
	/* a name may have this character, too: operator>, std::vector<int>::at */
	const char *more = strrchr(text, '>');

	*out = (struct xsp_trigger){.text = text};
	if (strcmp(text, "exit!=0") == 0) {
		out->kind = XSP_TRIGGER_EXIT;
		return 0;
	}
	if (strncmp(text, "rss+", 4) == 0)
		return take_growth(out, text + 4, err);
	if (more == NULL)
		return wrong(text, "it is one of " ALL, err);
	char *subject = strndup(text, (size_t)(more - text));
	const int rc =
		subject != NULL ? take_more(out, subject, more + 1, err) : xsp_out_of_memory(err);
	free(subject);
	return rc;
}

void xsp_trigger_clear(struct xsp_trigger *t)
{
	free(t->name);
	t->name = NULL;
}

bool xsp_trigger_any(const struct xsp_trigger *triggers, size_t count, unsigned kinds)
{
	for (size_t i = 0; i < count; i++)
		if (kinds >> triggers[i].kind & 1)
			return true;
	return false;
}

const char *xsp_trigger_word(const struct xsp_trigger *t)
{
	static const char *const words[XSP_TRIGGER_KINDS] = {
		[XSP_TRIGGER_SPAN] = "span",	 [XSP_TRIGGER_RATE] = "rate",
		[XSP_TRIGGER_STEP] = "step",	 [XSP_TRIGGER_SLOW_STEP] = "step",
		[XSP_TRIGGER_WAIT] = "wait",	 [XSP_TRIGGER_RSS] = "rss",
		[XSP_TRIGGER_GROWTH] = "growth", [XSP_TRIGGER_GPU_IDLE] = "gpu-idle",
		[XSP_TRIGGER_LOST] = "lost",	 [XSP_TRIGGER_EXIT] = "exit",
	};

	return words[t->kind];
}
