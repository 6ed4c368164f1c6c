/* SPDX-License-Identifier: BSD-2-Clause */
/* libtls - variables of threads in each form that compilers have, and functions that return them; where
 * each one is in the calling thread, tls_where tells. */
#define KEPT __attribute__((noinline, noclone))
#define VARIABLE(name, model)                                                                      \
	static __thread long name##_before[3];                                                     \
	static __thread long name __attribute__((tls_model(model)));                               \
	KEPT long tls_##name(void)                                                                 \
	{                                                                                          \
		return name;                                                                       \
	}                                                                                          \
	KEPT long *tls_where_##name(void)                                                          \
	{                                                                                          \
		name##_before[1] = 1;                                                              \
		return &name;                                                                      \
	}

VARIABLE(global_dynamic, "global-dynamic")
VARIABLE(local_dynamic, "local-dynamic")
VARIABLE(initial_exec, "initial-exec")

volatile long tls_choice, tls_plain;

/* None of these is a straight way to a thread's variable. */
KEPT long tls_of_two(void)
{
	if (tls_choice)
		return global_dynamic;
	return local_dynamic;
}

KEPT long tls_of_none(void)
{
	return tls_plain;
}

KEPT long tls_of_a_call(void)
{
	return tls_of_none() + 1;
}
