/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * standalone.c - drives a fuzz target without libFuzzer: every given file (or every file of a
 * given folder) as it is, then random changes of them, until the time or the number is used up.
 *
 *   fuzz_NAME [-n MUTATIONS] [-t SECONDS] [-s SEED] FILE|FOLDER...
 *
 * A failing input is left in ./crash-NAME-SEED-NUMBER: it is written before each run and removed
 * behind it, so that it survives whatever ends the program.
 */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#define INPUT_MAX (4U << 20)
#define INPUTS_MAX 256U

struct input {
	uint8_t *data;
	size_t size;
};

struct corpus {
	struct input inputs[INPUTS_MAX];
	size_t count;
};

struct options {
	unsigned long mutations;
	double seconds;
	uint64_t seed;
};

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* xorshift64* */
static uint64_t next(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1dULL;
}

static int add_file(struct corpus *c, const char *path)
{
	FILE *f = fopen(path, "re");

	if (f == NULL)
		return -errno;
	if (c->count == INPUTS_MAX) {
		fclose(f);
		return 0;
	}
	uint8_t *data = malloc(INPUT_MAX);
	size_t size = data != NULL ? fread(data, 1, INPUT_MAX, f) : 0;
	fclose(f);
	if (data == NULL)
		return -ENOMEM;
	struct input *added = &c->inputs[c->count++];
	added->data = data;
	added->size = size;
	return 0;
}

static int add_path(struct corpus *c, const char *path)
{
	struct stat st;
	char name[4096];
	int ret = 0;

	if (stat(path, &st) < 0)
		return -errno;
	if (!S_ISDIR(st.st_mode))
		return add_file(c, path);
	DIR *dir = opendir(path);
	if (dir == NULL)
		return -errno;
	for (struct dirent *e; ret == 0 && (e = readdir(dir)) != NULL;) {
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		if (stat(name, &st) == 0 && S_ISREG(st.st_mode))
			ret = add_file(c, name);
	}
	closedir(dir);
	return ret;
}

/* A few small changes: bytes, words of telling values, a cut, a block copied elsewhere. */
static size_t mutate(uint8_t *data, size_t size, uint64_t *state)
{
	static const uint64_t telling[] = {0,	       1,	   0x7f,       0x80,
					   0xff,       0xffff,	   0x7fffffff, 0x80000000,
					   0xffffffff, UINT64_MAX, INT64_MAX,  1ULL << 63};

	for (uint64_t n = 1 + next(state) % 8; n > 0 && size > 16; n--) {
		/* headers decide most: half of the changes hit the first 4 KiB */
		size_t span = next(state) % 2 == 0 && size > 4096 ? 4096 : size;
		size_t at = next(state) % (span - 8), from = next(state) % (size - 8);
		size_t length = 1 + next(state) % 8;
		uint64_t value = telling[next(state) % (sizeof(telling) / sizeof(telling[0]))];
		switch (next(state) % 8) {
		case 0:
			size = 16 + next(state) % (size - 15);
			break;
		case 1:
			memmove(data + at, data + from, length);
			break;
		case 2:
		case 3:
			memcpy(data + at, &value, length);
			break;
		default:
			data[at] = (uint8_t)next(state);
			break;
		}
	}
	return size;
}

static void run_saved(const char *path, const uint8_t *data, size_t size)
{
	FILE *f = fopen(path, "we");

	if (f != NULL) {
		fwrite(data, 1, size, f);
		fclose(f);
	}
	LLVMFuzzerTestOneInput(data, size);
	unlink(path);
}

static int run(const char *program, const struct corpus *c, const struct options *o)
{
	double end = now() + o->seconds;
	uint64_t state = o->seed | 1;
	char path[512];
	unsigned long n = 0;

	for (size_t i = 0; i < c->count; i++)
		LLVMFuzzerTestOneInput(c->inputs[i].data, c->inputs[i].size);
	uint8_t *data = malloc(INPUT_MAX);
	if (data == NULL)
		return -ENOMEM;
	for (; n < o->mutations && now() < end; n++) {
		const struct input *in = &c->inputs[next(&state) % c->count];
		memcpy(data, in->data, in->size);
		size_t size = mutate(data, in->size, &state);
		const char *slash = strrchr(program, '/');
		snprintf(path, sizeof(path), "crash-%.64s-%llu-%lu",
			 slash != NULL ? slash + 1 : program, (unsigned long long)o->seed, n);
		run_saved(path, data, size);
	}
	free(data);
	printf("%zu inputs and %lu mutations, seed %llu: no crash\n", c->count, n,
	       (unsigned long long)o->seed);
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = {.mutations = 100000, .seconds = 10, .seed = 1};
	static struct corpus corpus;
	int c, ret = 0;

	while ((c = getopt(argc, argv, "n:t:s:")) != -1) {
		if (c == 'n')
			o.mutations = strtoul(optarg, NULL, 10);
		else if (c == 't')
			o.seconds = strtod(optarg, NULL);
		else if (c == 's')
			o.seed = strtoull(optarg, NULL, 10);
		else
			return 2;
	}
	for (int i = optind; i < argc && ret == 0; i++)
		ret = add_path(&corpus, argv[i]);
	if (ret == 0 && corpus.count == 0)
		ret = -ENOENT;
	if (ret == 0)
		ret = run(argv[0], &corpus, &o);
	if (ret < 0)
		fprintf(stderr, "%s: %s\n", argv[0], strerror(-ret));
	for (size_t i = 0; i < corpus.count; i++)
		free(corpus.inputs[i].data);
	return ret < 0 ? 1 : 0;
}
