/* SPDX-License-Identifier: BSD-2-Clause */
/* A constructor that sleeps while the loader's lock is held. */
void inject_unsafe_sleep(void);

__attribute__((constructor)) static void construct(void)
{
	inject_unsafe_sleep();
}
