/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * inject_unsafe MODE - one thread that sleeps where nothing may be injected; SIGUSR1 wakes it, and it
 * goes on to sleep in main. It says "ready" on standard error when it sleeps.
 */
#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static volatile sig_atomic_t woken;
static int argument_count;

static void on_usr1(int number)
{
	(void)number;
	woken = 1;
}

void inject_unsafe_sleep(void);
void inject_unsafe_sleep(void)
{
	fputs("ready\n", stderr);
	while (!woken)
		usleep(10000);
}

static void on_usr2(int number)
{
	(void)number;
	inject_unsafe_sleep();
}

static int each(struct dl_phdr_info *info, size_t size, void *data)
{
	(void)info, (void)size, (void)data;
	inject_unsafe_sleep();
	return 1;
}

static void in_handler(const char *self)
{
	(void)self;
	signal(SIGUSR2, on_usr2);
	raise(SIGUSR2);
}

static void in_constructor(const char *self)
{
	char path[4096];

	snprintf(path, sizeof(path), "%.*s/libinject_unsafe_library.so",
		 (int)(strrchr(self, '/') - self), self);
	if (dlopen(path, RTLD_NOW) == NULL)
		fprintf(stderr, "%s\n", dlerror());
}

static void in_iterate(const char *self)
{
	(void)self;
	dl_iterate_phdr(each, NULL);
}

static ssize_t write_slowly(void *cookie, const char *text, size_t size)
{
	(void)cookie, (void)text;
	if (!woken)
		inject_unsafe_sleep();
	return (ssize_t)size;
}

/* malloc_info writes while it holds the lock of an arena. */
static void in_malloc(const char *self)
{
	FILE *f = fopencookie(NULL, "w", (cookie_io_functions_t){.write = write_slowly});

	(void)self;
	setvbuf(f, NULL, _IONBF, 0);
	malloc_info(0, f);
	fclose(f);
}

static void in_exit(const char *self)
{
	(void)self;
	atexit(inject_unsafe_sleep);
	exit(argument_count > 2);
}

static const struct {
	const char *name;
	void (*run)(const char *self);
} modes[] = {{"handler", in_handler},
	     {"constructor", in_constructor},
	     {"iterate", in_iterate},
	     {"malloc", in_malloc},
	     {"exit", in_exit}};

int main(int argc, char **argv)
{
	argument_count = argc;
	signal(SIGUSR1, on_usr1);
	for (size_t i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++)
		if (strcmp(argv[1], modes[i].name) == 0)
			modes[i].run(argv[0]);
	fputs("main\n", stderr);
	for (;;)
		pause();
}
