/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * common.c - the operators that most programs call: those of usual layers, losses and optimisers in PyTorch 1.13, 2.6
 * and 2.14.
 *
 * Their thunks come first, so that they lie on two pages: in a training step between other code, that takes a third off
 * their cost. The others are recorded just as well.
 */
#include <string.h>
#include "calls.h"

static const char common[] =
	" _batch_norm_impl_index _convolution _local_scalar_dense _log_softmax "
	"_log_softmax_backward_data _reshape_alias _safe_softmax "
	"_scaled_dot_product_attention_math _softmax _softmax_backward_data _to_copy "
	"_unsafe_view abs abs_out adaptive_avg_pool2d add_Scalar add_Tensor add__Tensor "
	"addcdiv_ addcmul_ addmm alias all_dim any arange arange_start_out argmax argmax_out "
	"as_strided as_strided_ baddbmm batch_norm bernoulli__float bitwise_and_Tensor "
	"bitwise_not bmm broadcast_tensors cat chunk clamp clamp_min clone contiguous conv2d "
	"convolution convolution_backward copy_ cos cross_entropy_loss cudnn_is_acceptable "
	"cumsum detach detach_ div_Scalar div_Tensor div__Scalar div__Tensor div_out dropout "
	"einsum embedding embedding_backward embedding_dense_backward empty_like "
	"empty_memory_format empty_strided eq_Scalar eq_Tensor exp expand expand_as "
	"exponential_ fill__Scalar flatten_using_ints full gather ge_Scalar gelu "
	"gelu_backward gt_Scalar index_Tensor index_select item layer_norm lerp__Scalar "
	"linalg_vector_norm linear log log_softmax_int lstm_input lt_Scalar "
	"masked_fill_Scalar masked_fill__Scalar matmul max max_pool2d "
	"max_pool2d_with_indices max_pool2d_with_indices_backward mean mean_dim mean_out min "
	"mkldnn_convolution mkldnn_rnn_layer mkldnn_rnn_layer_backward mm mse_loss "
	"mse_loss_backward mse_loss_backward_grad_input mul_Scalar mul_Tensor mul__Tensor "
	"multinomial narrow native_batch_norm native_batch_norm_backward native_layer_norm "
	"native_layer_norm_backward neg nll_loss nll_loss_backward nll_loss_forward "
	"nll_loss_nd nonzero normal_ ones ones_like outer permute pow_Tensor_Scalar "
	"randint_low randn random__from relu repeat reshape resize_ resolve_conj rsqrt "
	"rsub_Scalar scalar_tensor scaled_dot_product_attention select_backward select_int "
	"sigmoid sigmoid_ sigmoid_backward sign silu sin slice_Tensor slice_backward "
	"softmax_int split_Tensor sqrt squeeze_dim stack sub_Tensor sum sum_IntList_out "
	"sum_dim_IntList t tanh tanh_ tanh_backward threshold_backward to_device to_dtype "
	"to_dtype_layout topk transpose_int triu unbind_int unflatten_int unfold uniform_ "
	"unsafe_chunk unsafe_split_Tensor unsqueeze var_correction var_dim view where_self "
	"where_self_out zero_ zeros zeros_like ";

bool common_operator(const char *name, size_t length)
{
	for (const char *at = common + 1; *at; at = strchr(at, ' ') + 1)
		if (!strncmp(at, name, length) && at[length] == ' ')
			return true;
	return false;
}
