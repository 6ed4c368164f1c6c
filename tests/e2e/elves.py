# SPDX-License-Identifier: BSD-2-Clause
"""ELF files made to order, for x86-64: honest ones, large ones, and ones that lie.

Addresses equal file offsets, so that a program may map the file as a whole and call its functions
without a loader (tests/workloads/mapper.c).
"""
import itertools
import struct

TEXT = 0x1000
SECTIONS = ("", ".text", ".symtab", ".strtab", ".shstrtab", ".note.gnu.build-id", ".eh_frame")
FUNCTION, OBJECT = 0x12, 0x11  # global
HEADER = dict(type=3, machine=62, version=1, entry=0, phoff=64, shoff=0, flags=0, ehsize=64,
              phentsize=56, phnum=2, shentsize=64, shnum=len(SECTIONS), shstrndx=4)

# push %rbx; mov $0x55535150,%ebx; mov $0x56415741,%eax; add %ebx,%eax; pop %rbx; ret
# The constants are made of bytes that are pushes when they are read as instructions.
LIVE = bytes.fromhex("53 bb 50515355 b8 41574156 01d8 5b c3")
LIVE_RESULT = (0x55535150 + 0x56415741) & 0xffffffff
LIVE_STARTS = (0, 1, 6, 11, 13, 14)
SLOT = 64
serial = itertools.count(0x1234567890)

# push %rbp; mov %rsp,%rbp; test %edi,%edi; je +5; mov $1,%eax; pop %rbp; ret
ORDINARY = bytes.fromhex("55 4889e5 85ff 7405 b801000000 5d c3")


def pad(data, size, filler=b"\xcc"):
    return data + filler * (-len(data) % size)


def eh_frame(address, functions):
    """One CIE, and an FDE for each (address, size)."""
    cie = struct.pack("<I", 0) + b"\x01zR\0\x01\x78\x10\x01\x1b\x0c\x07\x08\x90\x01"
    out = bytearray(struct.pack("<I", len(pad(cie, 4, b"\0"))) + pad(cie, 4, b"\0"))
    for start, size in functions:
        here = len(out)
        out += struct.pack("<IIiI", 16, here + 4, start - (address + here + 8), size) + b"\0" * 4
    return bytes(out) + b"\0" * 4


class Elf:
    """symbols: [(name, address, size)]. `header` and `sections` ({name: {field: value}}) replace
    what would be true."""

    def __init__(self, text, symbols, header=None, sections=None, note=None, frame=None,
                 strings=None, size=0, frames=()):
        self.text, self.symbols, self.size = text, symbols, size
        self.header, self.sections = header or {}, sections or {}
        self.note = note if note is not None else self.build_id()
        self.frame, self.frames, self.strings = frame, frames, strings

    def build_id(self):
        return struct.pack("<III", 4, 20, 3) + b"GNU\0" + next(serial).to_bytes(20, "big")

    def symbol_table(self):
        names, at, table = bytearray(b"\0"), {}, [struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)]
        for name, address, size in self.symbols:
            if isinstance(name, int):  # a place in strings of the caller's
                offset = name
            else:
                offset = at.get(name)
                if offset is None:
                    offset = at[name] = len(names)
                    names += name + b"\0"
            table.append(struct.pack("<IBBHQQ", offset, FUNCTION, 0, 1, address, size))
        return b"".join(table), bytes(self.strings if self.strings is not None else names)

    def contents(self):
        table, names = self.symbol_table()
        place = TEXT + len(pad(self.text, 16))
        shnames = b"\0" + b"\0".join(s.encode() for s in SECTIONS[1:]) + b"\0"
        parts = [(".symtab", table), (".strtab", names), (".shstrtab", shnames),
                 (".note.gnu.build-id", self.note)]
        where, data = {".text": (TEXT, len(self.text))}, bytearray(pad(self.text, 16))
        for name, content in parts:
            where[name] = place + 0, len(content)
            data += pad(content, 16, b"\0")
            place = TEXT + len(data)
        frame = self.frame if self.frame is not None else eh_frame(place, self.frames)
        where[".eh_frame"] = place, len(frame)
        data += pad(frame, 16, b"\0")
        return where, data, shnames

    def bytes(self):
        where, data, shnames = self.contents()
        shoff = TEXT + len(data)
        kinds = {".text": (1, 6, 0, 0), ".symtab": (2, 0, 3, 24), ".strtab": (3, 0, 0, 0),
                 ".shstrtab": (3, 0, 0, 0), ".note.gnu.build-id": (7, 2, 0, 0),
                 ".eh_frame": (1, 2, 0, 0)}
        headers = bytearray(64)
        for name in SECTIONS[1:]:
            kind, flags, link, entsize = kinds[name]
            offset, size = where[name]
            f = dict(name=shnames.index(name.encode()), type=kind, flags=flags,
                     addr=offset if flags else 0, offset=offset, size=size, link=link,
                     info=1 if kind == 2 else 0, align=1, entsize=entsize)
            f.update(self.sections.get(name, {}))
            headers += struct.pack("<IIQQQQIIQQ", *(x & (1 << 64) - 1 for x in f.values()))
        h = {**HEADER, "shoff": shoff, **self.header}
        note, total = where[".note.gnu.build-id"], shoff + len(headers)
        segments = [(1, 5, 0, total), (4, 4, *note)]
        start = b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", *h.values())
        for kind, flags, offset, size in segments:
            start += struct.pack("<IIQQQQQQ", kind, flags, offset, offset, offset, size, size, 4096)
        return pad(start, TEXT, b"\0") + bytes(data) + bytes(headers)

    def write(self, path):
        with open(path, "wb") as f:
            f.write(self.bytes())
            if self.size:
                f.truncate(self.size)
        return path


def live(name=b"live", **lies):
    """One function that can be called at TEXT and returns LIVE_RESULT."""
    symbols = lies.pop("symbols", [(name, TEXT, len(LIVE))])
    return Elf(pad(LIVE, SLOT), symbols, frames=lies.pop("frames", [(TEXT, len(LIVE))]), **lies)


def large(count, name=lambda i: b"ordinary_%06d" % i, **more):
    """Many functions without calls."""
    return Elf(pad(ORDINARY, SLOT) * count,
               [(name(i), TEXT + i * SLOT, len(ORDINARY)) for i in range(count)], **more)
