# SPDX-License-Identifier: BSD-2-Clause
"""user/catalog/gpu/cuda_table.c against NVIDIA's headers, where they are installed: each entry point's
arguments stand where its prototype has them; offsets and error codes are the compiler's."""
import os
import re
import subprocess
import tempfile

from harness import ROOT, Skip, case, check, equal, main

INCLUDE = "/usr/local/cuda/include"
STRUCTS = {"cuLaunchKernelEx": "CUlaunchConfig", "cudaLaunchKernelExC": "cudaLaunchConfig_t",
           "cuMemcpy2D": "CUDA_MEMCPY2D", "cuMemcpy3DPeer": "CUDA_MEMCPY3D_PEER",
           "cuMemcpy3D": "CUDA_MEMCPY3D", "cudaMemcpy3D": "struct cudaMemcpy3DParms"}
# which member the words at an offset are, by field
MEMBERS = {"WIDTH": "WidthInBytes", "HEIGHT": "Height", "DEPTH": "Depth", "DIRECTION": "kind",
           "STREAM": ("hStream", "stream"), "SHARED": ("sharedMemBytes", "dynamicSmemBytes"),
           "GRID_XY": ("gridDimX", "gridDim"), "GRID_Z_BLOCK_X": ("gridDimZ", "gridDim.z"),
           "BLOCK_YZ": ("blockDimY", "blockDim.y")}
# what the parameter of a field may be: a pattern of "type name"
WANTED = {
    "STREAM": r"(CUstream|cudaStream_t) \w+", "FUNCTION": r"(CUfunction|CUkernel|cudaKernel_t) \w+|const void \*func",
    "GRID_X": r".*gridDimX", "GRID_Y": r".*gridDimY", "GRID_Z": r".*gridDimZ|dim3 gridDim",
    "BLOCK_X": r".*blockDimX", "BLOCK_Y": r".*blockDimY", "BLOCK_Z": r".*blockDimZ|dim3 blockDim",
    "GRID_XY": r"dim3 gridDim", "BLOCK_XY": r"dim3 blockDim",
    "SHARED": r"(unsigned int|size_t) sharedMem\w*",
    "BYTES": r"size_t (ByteCount|count|bytesize|size|bytes|N)", "WIDTH": r"size_t (Width|width)\w*",
    "HEIGHT": r"size_t (Height|height)", "DIRECTION": r"enum cudaMemcpyKind kind",
    "DESTINATION": r".*(dst|dstDevice|dstHost|devPtr)", "SOURCE": r".*(src|srcDevice|srcHost)",
    "ADDRESS": r".*(dptr|ptr|p|devPtr|handle|hptr)", "OUT": r".*\*\w+",
    "EVENT": r"(CUevent|cudaEvent_t) \w+", "GRAPH": r"(CUgraph|cudaGraph_t) \w+",
    "GRAPH_EXEC": r"(CUgraphExec|cudaGraphExec_t) \w+",
    "MODULE": r"(CUmodule|CUlibrary|cudaLibrary_t) \w+", "DEVICE": r"(CUdevice \w+|int device)",
    "NAME": r"const char \*name", "STUB": r"const void \*(entryFuncAddr|symbolPtr)",
}


def rows():
    with open(os.path.join(ROOT, "user/catalog/gpu/cuda_table.c"), encoding="utf-8") as f:
        for line in f:
            m = re.match(r'\t\{([DR])\((\w+), "(\w+)"\)(.*)', line)
            if m:
                args = [(a, int(s), int(o) if o else None) for a, s, o in re.findall(
                    r"\{F_(\w+), (\d+)(?:, true, (\d+))?\}", m.group(4))]
                yield m.group(1), m.group(2), m.group(3), args, m.group(4)


def prototypes():
    """name → list of "type name", with the symbols that cuda.h's macros make of the names."""
    if not os.path.exists(f"{INCLUDE}/cuda.h"):
        raise Skip(f"no CUDA headers in {INCLUDE}")
    found = {}
    for header, macro in (("cuda.h", "CUDAAPI"), ("cuda_runtime_api.h", r"CUDARTAPI(?:_CDECL)?")):
        with open(f"{INCLUDE}/{header}", encoding="utf-8", errors="replace") as f:
            text = f.read()
        names = dict(re.findall(r"#define\s+(cu\w+)\s+__CUDA_API_PT[DS][SZ]\((cu\w+)\)", text))
        names.update(re.findall(r"#define\s+(cu\w+)\s+(cu\w+_v\d)\n", text))
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
        for m in re.finditer(rf"\b(?:CUresult|cudaError_t)\s+{macro}\s+(\w+)\s*\(([^;{{]*?)\)\s*;",
                             text, re.S):
            parameters = re.sub(r"__dv\([^)]*\)|__dparm\([^)]*\)", "", m.group(2))
            parameters = [re.sub(r"\s*=.*", "", re.sub(r"\s*\* *", " *", re.sub(r"\s+", " ", p)))
                          .replace("* *", "**").strip() for p in parameters.split(",")]
            # a name for a newer form: its own symbol is the older one, not in this table
            found.setdefault(names.get(m.group(1), m.group(1)), parameters)
    return found


def slots(parameters):
    """One entry a 64-bit word: a dim3 takes two; larger structs go to the stack, not followed."""
    out = []
    for p in parameters:
        if p.startswith(("struct cudaExtent ", "struct cudaPitchedPtr ")) and "*" not in p:
            break
        out += [p, p] if p.startswith("dim3 ") else [p]
    return out


@case
def arguments(_):
    known, compared, wrong = prototypes(), 0, []
    for _, _, name, args, _ in rows():
        if name not in known:
            continue
        compared += 1
        words = slots(known[name])
        for field, slot, offset in args:
            if offset is not None:
                continue
            word = words[slot] if slot < len(words) else "nothing"
            if not re.fullmatch(WANTED[field], word):
                wrong.append(f"{name}: {field} at {slot} is '{word}'")
    equal(wrong, [], "arguments that are something else")
    check(compared > 200, "entry points compared", compared)


@case
def offsets_and_errors(_):
    known = prototypes()
    lines = []
    for _, _, name, args, _ in rows():
        struct = next((s for n, s in STRUCTS.items() if name.startswith(n)), None)
        for field, _, offset in args:
            if offset is None:
                continue
            check(struct, f"{name}: a struct unknown to this test")
            member = MEMBERS[field]
            if isinstance(member, tuple):
                member = member[1 if struct.startswith("cudaLaunch") else 0]
            lines.append(f'_Static_assert(offsetof({struct}, {member}) == {offset}, "{name} {field}");')
    check(len(lines) > 20, "offsets", len(lines))
    with open(os.path.join(ROOT, "user/catalog/gpu/cuda_errors.c"), encoding="utf-8") as f:
        table = re.findall(r'\t\{(\d+), (?:"(\w+)"|NULL), (?:"(\w+)"|NULL)\}', f.read())
    for code, driver, runtime in table:
        for word in (driver, runtime):
            if word:
                lines.append(f'_Static_assert({word} == {code}, "{word}");')
    check(len(table) > 120, "error codes", len(table))
    with open(f"{INCLUDE}/cuda.h", encoding="utf-8", errors="replace") as f:
        equal(set(re.findall(r"^    (CUDA_ERROR_\w+)\s*=", f.read(), re.M)) -
              {d for _, d, _ in table}, set(), "errors that the table lacks")
    with tempfile.NamedTemporaryFile("w", suffix=".c") as c:
        c.write("#include <stddef.h>\n#include <cuda.h>\n#include <cuda_runtime_api.h>\n" +
                "\n".join(lines) + "\n")
        c.flush()
        done = subprocess.run(["gcc", "-fsyntax-only", f"-I{INCLUDE}", c.name], text=True,
                              capture_output=True, check=False)
    equal(done.returncode, 0, f"the compiler disagrees:\n{done.stderr[:3000]}")
    check(known, "prototypes")


main(traces=False)
