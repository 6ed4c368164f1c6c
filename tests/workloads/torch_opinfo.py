# SPDX-License-Identifier: BSD-2-Clause
"""torch_opinfo.py OUT: runs PyTorch's own samples of arguments (torch.testing._internal: op_db) on the CPU, and writes a line a
sample: operator, type, what was run, number, and a digest of all bytes of its results, or the error that it raised.

Prints "ready" and its process id, and waits for a line; then "done", or why there are no samples.

What was run: forward, with each type that the operator takes; backward, with the gradients of its arguments; error, with arguments that
it must refuse."""
import hashlib
import os
import random
import re
import sys
import types
import unittest
import warnings

import numpy
import torch


def import_samples():
    """PyTorch's tests begin with imports that a distribution need not have."""
    sys.modules.setdefault("expecttest", types.SimpleNamespace(TestCase=unittest.TestCase, ACCEPT=False))
    try:
        import setuptools.command.build_ext  # noqa pylint: disable=unused-import,import-outside-toplevel
    except ImportError:
        for name in ("setuptools", "setuptools.command", "setuptools.command.build_ext"):
            sys.modules[name] = types.SimpleNamespace(build_ext=object, command=None, __path__=[], __spec__=None)
    from torch.testing._internal.common_methods_invocations import op_db  # pylint: disable=import-outside-toplevel
    return op_db


def parts_of(tensor):
    """Strided tensors that hold all of it."""
    if tensor.is_quantized:
        return [tensor.int_repr()]
    if tensor.layout == torch.strided:
        return [tensor]
    if tensor.layout == torch.sparse_coo:
        return [tensor._indices(), tensor._values()]
    by_row = tensor.layout in (torch.sparse_csr, getattr(torch, "sparse_bsr", None))
    return [*((tensor.crow_indices(), tensor.col_indices()) if by_row else (tensor.ccol_indices(), tensor.row_indices())), tensor.values()]


def add_bytes(value, digest):
    if isinstance(value, torch.Tensor):
        value = value.detach()
        digest.update(f"{value.dtype} {tuple(value.shape)} {value.stride() if value.layout == torch.strided else value.layout}".encode())
        for part in parts_of(value):
            if part.numel():
                digest.update(part.resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, (list, tuple)):
        for one in value:
            add_bytes(one, digest)
    else:
        digest.update(repr(value).encode())


def tensors_in(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for one in value:
            yield from tensors_in(one)
    elif isinstance(value, dict):
        yield from tensors_in(list(value.values()))


def seed(number):
    random.seed(number)
    numpy.random.seed(number)
    torch.default_generator.manual_seed(number)  # others than of the CPU take longer than most samples


def forward(op, sample):
    return op(sample.input, *sample.args, **sample.kwargs)


def backward(op, sample):
    """The result, and the gradients of all arguments that have some."""
    result = forward(op, sample)
    if sample.output_process_fn_grad:
        result = sample.output_process_fn_grad(result)
    with_gradients = [t for t in tensors_in(result) if t.requires_grad]
    torch.autograd.backward(with_gradients, [torch.ones_like(t) for t in with_gradients])
    return [result, [t.grad for t in tensors_in([sample.input, sample.args, sample.kwargs]) if t.is_leaf]]


def digest_of(run, op, sample):
    try:
        digest = hashlib.sha256()
        add_bytes(run(op, sample), digest)
        return digest.hexdigest()
    except Exception as error:  # pylint: disable=broad-except
        said = re.sub(r"0x[0-9a-f]+", "0x", f"{type(error).__name__} {error}")
        return f"{type(error).__name__} {hashlib.sha256(said.encode()).hexdigest()}"


def samples_of(op):
    """(type, what is run, function that makes the samples, function that runs one)"""
    for dtype in sorted(op.supported_dtypes("cpu"), key=str):
        yield dtype, "forward", lambda d=dtype: op.sample_inputs("cpu", d, requires_grad=False), forward
    for dtype in (torch.float32, torch.complex64):
        if op.supports_autograd and dtype in op.supported_backward_dtypes("cpu"):
            yield dtype, "backward", lambda d=dtype: op.sample_inputs("cpu", d, requires_grad=True), backward
    if op.error_inputs_func:
        yield "", "error", lambda: (e.sample_input for e in op.error_inputs("cpu")), forward


def main():
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    print("ready", os.getpid(), flush=True)
    sys.stdin.readline()
    try:
        op_db = import_samples()
    except Exception as error:  # pylint: disable=broad-except
        print("no samples:", error, flush=True)
        return
    with open(sys.argv[1], "w", encoding="utf-8") as out:
        for op in op_db:
            for dtype, what, make, run in samples_of(op):
                seed(0)
                try:
                    made = list(make())
                except Exception as error:  # pylint: disable=broad-except
                    made = []  # some need libraries that are not here
                    out.write(f"{op.formatted_name} {dtype} {what} - {type(error).__name__}\n")
                for n, sample in enumerate(made):
                    seed(n)
                    out.write(f"{op.formatted_name} {dtype} {what} {n} {digest_of(run, op, sample)}\n")
    print("done", flush=True)


if __name__ == "__main__":
    main()
