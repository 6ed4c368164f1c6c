/* SPDX-License-Identifier: BSD-2-Clause */
/* The names by which captures are understood later are those of the providers. */
#include "catalog/providers.h"
#include "catalog/scope.h"
#include "probes/probe.h"

#include <criterion/criterion.h>

Test(providers, traits_go_by_the_providers_own_names)
{
	unsigned all = 0;

	cr_expect_eq(xsp_provider_traits(xsp_provider_cuda.name), XSP_PROVIDER_CUDA_CALLS);
	cr_expect_eq(xsp_provider_traits(xsp_provider_gpu.name), XSP_PROVIDER_GPU_RECORDS);
	cr_expect_eq(xsp_provider_traits(xsp_provider_torch.name), XSP_PROVIDER_OPERATORS);
	cr_expect_eq(xsp_provider_traits(xsp_provider_function.name), 0);
	cr_expect_eq(xsp_provider_traits(""), 0);
	for (int i = 0; xsp_providers[i] != NULL; i++) {
		unsigned traits = xsp_provider_traits(xsp_providers[i]->name);
		cr_expect_eq(all & traits & ~XSP_PROVIDER_REGIONS, 0,
			     "%s has a trait that another one has", xsp_providers[i]->name);
		all |= traits;
	}
}

/* `-e cuda`, `-e cuda:cuLaunch*`, `-e '!cuda:*'` */
Test(providers, asked_as_a_whole_or_by_some_of_their_names)
{
	const uint64_t row = 1ULL << xsp_provider_index("cuda");
	struct xsp_pattern some = {.library = (char *)"cuda", .glob = (char *)"cuLaunch*"};
	const struct xsp_selection none = {0}, whole = {.providers = row};
	struct xsp_selection by_name = {.provider_patterns = &some, .provider_pattern_count = 1};

	cr_expect_not(xsp_selection_asks(&none, XSP_PROVIDER_CUDA_CALLS));
	cr_expect(xsp_selection_asks(&whole, XSP_PROVIDER_CUDA_CALLS));
	cr_expect_not(xsp_selection_asks(&whole, XSP_PROVIDER_OPERATORS));
	cr_expect(xsp_selection_asks(&by_name, XSP_PROVIDER_CUDA_CALLS));
	some.exclude = true;
	cr_expect_not(xsp_selection_asks(&by_name, XSP_PROVIDER_CUDA_CALLS));
}

Test(providers, scopes_have_the_numbers_of_captures)
{
	cr_expect_str_eq(xsp_scope_name(XSP_SCOPE_USER), "user");
	cr_expect_null(xsp_scope_name(XSP_SCOPE_OWN));
	cr_expect_str_eq(xsp_record_scope_name(XSP_RECORD_SCOPE_BACKWARD), "backward");
	cr_expect_str_eq(xsp_record_scope_name(XSP_RECORD_SCOPE_USER), "user");
	cr_expect_null(xsp_record_scope_name(XSP_RECORD_SCOPES));
}
