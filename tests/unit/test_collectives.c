/* SPDX-License-Identifier: BSD-2-Clause */
/* Which functions are collectives, by symbols of Debian's libtorch_cpu 1.13.1 and libgloo 0.5, and of nccl.h. */
#include "catalog/collectives.h"
#include "catalog/gpu/kernels.h"

#include <criterion/criterion.h>

static enum xsp_collective_role role(const char *symbol)
{
	return xsp_collective_of(symbol).role;
}

Test(collectives, functions_by_their_symbols)
{
	const struct xsp_collective_symbol c =
		xsp_collective_of("_ZN4c10d16ProcessGroupGloo9allreduceERSt6vectorIN2at6TensorESaIS"
				  "3_EERKNS_16AllreduceOptionsE");

	cr_expect_eq(c.role, XSP_COLLECTIVE_CALL);
	cr_expect_str_eq(c.what->name, "allreduce");
	cr_expect(c.what->meets);
	cr_expect_not(xsp_collective_of("_ZN4c10d16ProcessGroupNCCL9broadcastERSt").what->meets);
	cr_expect_eq(role("_ZN4c10d16ProcessGroupGloo7enqueueEN3c1013intrusive_ptrINS0_"
			  "9AsyncWorkENS1_6detail34intrusive_"
			  "target_default_null_typeIS3_EEEE"),
		     XSP_COLLECTIVE_QUEUE);
	cr_expect_eq(role("_ZN4c10d16ProcessGroupGloo9AsyncWork7executeEN3c1013intrusive_ptrIS1_"
			  "NS2_6detail34intrusive_"
			  "target_default_null_typeIS1_EEEE"),
		     XSP_COLLECTIVE_RUN);
	cr_expect_eq(role("_ZN4c10d4Work4waitENSt6chrono8durationIlSt5ratioILl1ELl1000EEEE"),
		     XSP_COLLECTIVE_WAIT);
	cr_expect_eq(role("_ZN4gloo7barrierERNS_14BarrierOptionsE"), XSP_COLLECTIVE_INSIDE);
	cr_expect_eq(role("ncclAllReduce"), XSP_COLLECTIVE_CALL);
	cr_expect_eq(role("ncclCommInitRank"), XSP_COLLECTIVE_JOIN);
}

Test(collectives, others_are_none)
{
	static const char *const others[] = {
		"",
		"_ZN",
		"_ZN4c10d",
		"_ZN4c10dE",
		"_ZN999999999999999999999c10d",
		"_ZN9c10d",
		"_ZN4c10d12ProcessGroup9allreduceERSt", /* the base class: it only throws */
		"_ZN4c10d16ProcessGroupGlooC1ERKN3c10",
		"_ZN4c10d15ProcessGroupMPI7enqueueESt10",
		"_ZNK4c10d12ProcessGroup7getSizeEv",
		"_ZN4gloo7ContextC1Eii",
		"ncclGetVersion",
		"allreduce",
		"_ZN4mine16ProcessGroupGloo9allreduceERS_",
	};

	for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
		cr_expect_eq(role(others[i]), XSP_COLLECTIVE_NONE, "%s", others[i]);
}

Test(collectives, rank_and_size_of_a_group)
{
	const uint64_t one[] = {0x7000, 1, 4ULL << 32 | 3}, two[] = {0x7000, 4ULL << 32 | 3, 0},
		       none[] = {0x7000, 1, 4ULL << 32 | 4};
	uint32_t rank, size;

	cr_expect(xsp_c10d_group(one, 3, 0, &rank, &size) && rank == 3 && size == 4);
	cr_expect(xsp_c10d_group(two, 3, 0, &rank, &size) && rank == 3 && size == 4);
	cr_expect_not(xsp_c10d_group(none, 3, 0, &rank, &size), "no rank 4 of 4");
	cr_expect_not(xsp_c10d_group(one, 3, 1U << XSP_C10D_AT_24, &rank, &size), "not read");
	cr_expect_not(xsp_c10d_group(one, 2, 0, &rank, &size));
}

Test(collectives, what_waits)
{
	cr_expect(xsp_collective_is_waiting("c10d::Work::wait"));
	cr_expect(xsp_collective_is_waiting("c10d::ProcessGroupGloo::AsyncWork::execute"));
	cr_expect(xsp_collective_is_waiting("gloo::barrier"));
	cr_expect_not(xsp_collective_is_waiting("c10d::ProcessGroupGloo::allreduce"));
	cr_expect_not(xsp_collective_is_waiting("aten::mm"));
	cr_expect_not(xsp_collective_is_waiting(""));
}

Test(collectives, kernels_by_their_names)
{
	static const char *const communicate[] = {
		"ncclKernel_AllReduce_RING_LL_Sum_half(ncclWorkElem)",
		"ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
		"nccldevkernel_allreduce_sum_f32_ring_ll",
		"ncclSymDevKernel_AllReduce_LDMC(ncclSymDevArgs)",
		"void ncclKernel<1>()",
		"rcclGenericKernel(ncclDevKernelArgsStorage<4096ul>)",
		"void vllm::cross_device_reduce_1stage<__nv_bfloat16, 8>(vllm::RankData*)",
		"_ZN4vllm26cross_device_reduce_2stageI6__halfLi4EEEvPNS_8RankDataE",
		"void sglang::cross_device_reduce_2stage_write_mode<half, 8>(sglang::RankData*)",
		"void (anonymous namespace)::two_shot_all_reduce_kernel<4, 8>(c10::BFloat16**)",
		"void c10d::(anonymous namespace)::multimem_one_shot_all_reduce_kernel<float, 16>()",
		"void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<1>()",
		"void tensorrt_llm::kernels::twoShotAllReduceKernel<half, 8, true>()",
		"void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)",
		"reduce_scatter_kernel",
	};
	static const char *const compute[] = {
		"void cutlass::Kernel2<sm80_gemm>()",
		"void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>()",
		"void cutlass::gemm<AllReduceEpilogue>(AllReduceParams)",
		"triton_poi_fused_all_gather_into_tensor_cat_3",
		"block_all_reduce_sum_f32_kernel(float*, float*, int)",
		"void warpAllReduceSoftmax<4>(float*)",
		"gemm_gathered(float*)",
		"operator>",
		"",
	};

	for (size_t i = 0; i < sizeof(communicate) / sizeof(communicate[0]); i++)
		cr_expect(xsp_kernel_communicates(communicate[i]), "%s", communicate[i]);
	for (size_t i = 0; i < sizeof(compute) / sizeof(compute[0]); i++)
		cr_expect_not(xsp_kernel_communicates(compute[i]), "%s", compute[i]);
}
