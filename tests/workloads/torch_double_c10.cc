/* SPDX-License-Identifier: BSD-2-Clause */
/* libc10.so of torch_double.h: vtables and the undefined tensor. */
#include "torch_double.h"

namespace c10
{
intrusive_ptr_target::~intrusive_ptr_target() = default;
void intrusive_ptr_target::release_resources()
{
}
StorageImpl::~StorageImpl() = default;
TensorImpl::~TensorImpl() = default;
UndefinedTensorImpl::~UndefinedTensorImpl() = default;
UndefinedTensorImpl::UndefinedTensorImpl()
{
	ndim = 1;
	sizes_and_strides[0] = 0;
	sizes_and_strides[5] = 1;
	numel = 0;
	dtype = TORCH_DOUBLE == 1 ? 18 : TORCH_DOUBLE == 2 ? 44 : 47;
	device[TORCH_DOUBLE == 1 ? 0 : 2] = 0;
	key_set = 0;
}
UndefinedTensorImpl UndefinedTensorImpl::_singleton;
} /* namespace c10 */
