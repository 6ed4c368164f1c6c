#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause
"""The tables of user/target/python/layout.c and target/python/module_path.c against CPython's own headers: Debian's, and those of whatever pyenv has
built here, and in folders that XSP_PYTHON_HEADERS names (separated by `:`; .../include/python3.15). A C program
includes both.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

PROGRAM = r"""
#define Py_BUILD_CORE 1
#include <Python.h>
#include <stddef.h>
#include "internal/pycore_runtime.h"
#include "internal/pycore_interp.h"
#if PY_VERSION_HEX >= 0x030b0000
#include "internal/pycore_frame.h"
#include "internal/pycore_code.h"
#include "internal/pycore_dict.h"
#include "internal/pycore_object.h"
#else
#include "frameobject.h"
#endif
#undef VERSION
#include "target/python/layout.c"
#define layouts dict_layouts
#define layout_of dict_layout_of
#include "target/python/module_path.c"
#undef VERSION
#define layouts task_layouts
#define layout_of task_layout_of
#define kind_of task_kind_of
#include "target/python/tasks.c"
#include "base/error.c"

int xsp_python_read(const struct xsp_python *p, uint64_t address, void *to, size_t size) { return -1; }
int xsp_python_text(const struct xsp_python *p, uint64_t object, char *text, size_t size) { return -1; }
uint64_t xsp_python_type(const struct xsp_python *p, uint64_t object) { return 0; }

static int wrong;
static void same(const char *what, size_t ours, size_t theirs)
{
	if (ours == theirs)
		return;
	printf("%s: %zu here, %zu in the headers\n", what, ours, theirs);
	wrong++;
}
#define SAME(ours, type, member) same(#type "." #member, ours, offsetof(type, member))
#define WORD(which, type, member) SAME(l->frames.read_from + 8 * (size_t)l->frames.which, type, member)

int main(void)
{
#if PY_VERSION_HEX < 0x030d0000 /* those after it tell by themselves */
	const struct xsp_python_layout *l = xsp_python_layout_of(PY_VERSION_HEX >> 16);
	if (l == NULL)
		return 2;
#if PY_VERSION_HEX >= 0x030c0000
	SAME(l->key, _PyRuntimeState, autoTSSkey);
#else
	SAME(l->key, _PyRuntimeState, gilstate.autoTSSkey);
#endif
	SAME(l->finalizing, _PyRuntimeState, _finalizing);
	SAME(l->interpreters_head, _PyRuntimeState, interpreters.head);
	SAME(l->interpreters_head + 8, _PyRuntimeState, interpreters.main);
	SAME(l->interpreter_next, PyInterpreterState, next);
#if PY_VERSION_HEX >= 0x030b0000
	SAME(l->threads_head, PyInterpreterState, threads.head);
#else
	SAME(l->threads_head, PyInterpreterState, tstate_head);
#endif
	SAME(l->thread_next, PyThreadState, next);
	same("PyInterpreterState.next", 0, offsetof(PyInterpreterState, next));
#if PY_VERSION_HEX >= 0x030c0000
	SAME(l->modules, PyInterpreterState, imports.modules);
#else
	SAME(l->modules, PyInterpreterState, modules);
#endif
#if PY_VERSION_HEX >= 0x030a0000 && PY_VERSION_HEX < 0x030c0000
	SAME(l->on_stack, PyThreadState, cframe);
#else
	same("on_stack", l->on_stack, 0);
#endif
#if PY_VERSION_HEX >= 0x030c0000
	SAME(l->gil, PyInterpreterState, ceval.gil);
#else
	SAME(l->gil, _PyRuntimeState, ceval.gil);
#endif
	SAME(8, struct _gil_runtime_state, last_holder);
	SAME(16, struct _gil_runtime_state, locked);
	SAME(32, struct _gil_runtime_state, cond);
	same("PyCOND_T", XSP_PYTHON_CONDITION, sizeof(PyCOND_T));
	SAME(l->frames.thread_id, PyThreadState, thread_id);
#if PY_VERSION_HEX >= 0x030b0000
	SAME(l->frames.thread_frame, PyThreadState, cframe);
	SAME(l->frames.cframe_frame, _PyCFrame, current_frame);
	WORD(code, _PyInterpreterFrame, f_code);
	WORD(previous, _PyInterpreterFrame, previous);
	WORD(instruction, _PyInterpreterFrame, prev_instr);
	SAME(l->frames.first_local, _PyInterpreterFrame, localsplus);
	SAME(l->code_lines, PyCodeObject, co_linetable);
	SAME(l->code_qualname, PyCodeObject, co_qualname);
	SAME(l->code_first, PyCodeObject, co_code_adaptive);
#else
	SAME(l->frames.thread_frame, PyThreadState, frame);
	WORD(code, PyFrameObject, f_code);
	WORD(previous, PyFrameObject, f_back);
	WORD(instruction, PyFrameObject, f_lasti);
	SAME(l->frames.first_local, PyFrameObject, f_localsplus);
#if PY_VERSION_HEX >= 0x030a0000
	SAME(l->code_lines, PyCodeObject, co_linetable);
#else
	SAME(l->code_lines, PyCodeObject, co_lnotab);
#endif
#endif
#if PY_VERSION_HEX >= 0x030c0000
	SAME(l->frames.read_from + l->frames.owner, _PyInterpreterFrame, owner);
	same("owners", l->frames.owners, FRAME_OWNED_BY_CSTACK);
#endif
	SAME(l->code_file, PyCodeObject, co_filename);
	SAME(l->code_name, PyCodeObject, co_name);
	SAME(l->code_first_line, PyCodeObject, co_firstlineno);
	SAME(l->text_length, PyASCIIObject, length);
	SAME(l->text_state, PyASCIIObject, state);
	same("PyASCIIObject", l->text_ascii, sizeof(PyASCIIObject));
	same("PyCompactUnicodeObject", l->text_data, sizeof(PyCompactUnicodeObject));
	SAME(l->bytes_size, PyVarObject, ob_size);
	SAME(l->bytes_data, PyBytesObject, ob_sval);
	SAME(l->object_type, PyObject, ob_type);
	SAME(l->type_name, PyTypeObject, tp_name);
#endif
	const struct dict_layout *d = dict_layout_of(PY_VERSION_HEX >> 16);
	if (d == NULL)
		return 2;
	SAME(TYPE_BASIC_SIZE, PyTypeObject, tp_basicsize);
	SAME(TYPE_FLAGS, PyTypeObject, tp_flags);
	SAME(TYPE_DICT_OFFSET, PyTypeObject, tp_dictoffset);
	SAME(TYPE_DICT, PyTypeObject, tp_dict);
	SAME(d->function_code, PyFunctionObject, func_code);
	SAME(d->cached_keys, PyHeapTypeObject, ht_cached_keys);
	SAME(DICT_KEYS, PyDictObject, ma_keys);
	SAME(DICT_KEYS + 8, PyDictObject, ma_values);
	same("a dictionary's flag", DICT_SUBCLASS, Py_TPFLAGS_DICT_SUBCLASS);
	same("old keys", d->old_keys, PY_VERSION_HEX < 0x030b0000);
#if PY_VERSION_HEX >= 0x030b0000
	SAME(9, struct _dictkeysobject, dk_log2_index_bytes);
	SAME(10, struct _dictkeysobject, dk_kind);
	SAME(24, struct _dictkeysobject, dk_nentries);
	SAME(32, struct _dictkeysobject, dk_indices);
	SAME(d->values_first, struct _dictvalues, values);
	same("the managed dictionary's flag", HAS_MANAGED_DICT, Py_TPFLAGS_MANAGED_DICT);
#ifdef MANAGED_DICT_OFFSET
	same("the managed dictionary", (size_t)MANAGED_DICT, (size_t)MANAGED_DICT_OFFSET);
#endif
#endif
#if PY_VERSION_HEX >= 0x030d0000
	SAME(3, struct _dictvalues, valid);
	same("inline values' flag", INLINE_VALUES, Py_TPFLAGS_INLINE_VALUES);
#endif
#if PY_VERSION_HEX >= 0x030b0000 && PY_VERSION_HEX < 0x030e0000
	const struct generator_layout *g = task_layout_of(PY_VERSION_HEX >> 16);
	if (g == NULL)
		return 2;
	SAME(g->frame, PyGenObject, gi_iframe);
	SAME(g->state, PyGenObject, gi_frame_state);
#if PY_VERSION_HEX >= 0x030d0000
	same("suspended", 0x100 + g->suspended[1], 0x100 + FRAME_SUSPENDED_YIELD_FROM);
#endif
	same("suspended", 0x100 + g->suspended[0], 0x100 + FRAME_SUSPENDED);
	SAME(SET_MASK, PySetObject, mask);
	SAME(SET_MASK + 8, PySetObject, table);
	SAME(WEAK_OBJECT, PyWeakReference, wr_object);
	SAME(FRAME_STACK_TOP, _PyInterpreterFrame, stacktop);
#endif
	return wrong != 0;
}
"""


def main():
    folders = [f for f in glob.glob("/usr/include/python3.*") + glob.glob(
        os.path.expanduser("~/.pyenv/versions/*/include/python3.*")) + os.environ.get("XSP_PYTHON_HEADERS", "").split(":")
               if os.path.exists(f"{f}/internal/pycore_runtime.h") and
               9 <= int(os.path.basename(f)[len("python3."):].rstrip("m")) <= 15]
    if not folders or not shutil.which("gcc"):
        print("SKIP: no headers of CPython from 3.9 on (Debian: libpython3-dev)")
        return 77
    status = 0
    with tempfile.TemporaryDirectory() as folder:
        with open(f"{folder}/check.c", "w", encoding="ascii") as f:
            f.write(PROGRAM)
        for headers in sorted(folders):
            subprocess.run(["gcc", "-w", "-O1", "-D_GNU_SOURCE", f"-I{headers}", f"-I{headers}/internal",
                            f"-I{os.path.dirname(headers)}",
                            f"-I{ROOT}/user", f"-I{ROOT}/include", f"{folder}/check.c", "-o",
                            f"{folder}/check"], check=True)
            done = subprocess.run([f"{folder}/check"], stdout=subprocess.PIPE, text=True, check=False)
            print(f"{headers}: {done.stdout.strip() or 'the same'}")
            status |= done.returncode
    return status


if __name__ == "__main__":
    sys.exit(main())
