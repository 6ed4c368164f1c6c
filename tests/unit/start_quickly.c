/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * start_quickly.c - Criterion starts each test in a process of its own, in which libgit2, which it has for differences of
 * texts that we do not ask it for, reads all of the system's certificates: a third of what the tests took.
 */
int git_libgit2_init(void);
int git_libgit2_shutdown(void);

int git_libgit2_init(void)
{
	return 1;
}

int git_libgit2_shutdown(void)
{
	return 0;
}
