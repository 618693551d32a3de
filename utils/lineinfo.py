"""Which line of a PTX text each machine instruction of its cubin comes from: `.loc` before each PTX instruction, ptxas
-lineinfo, and the line table of the cubin read back (DWARF 2 to 4, section .debug_line). ptxas makes the same code with and
without."""
import struct

INSTRUCTION = 16  # bytes, sm_70 and newer


def located(ptx):
    """The text with a `.loc` before each instruction that names its line in `ptx`."""
    out, in_body, whole = [], False, True
    for number, line in enumerate(ptx.splitlines(), 1):
        code = line.split("//")[0].strip()
        if line == "{":
            in_body = True
        elif in_body and whole and code and not code.startswith((".", "{", "}")) and not code.endswith(":"):
            out.append(f"    .loc 1 {number} 0")
        out.append(line)
        if code.startswith(".address_size"):
            out.append('.file 1 "kernel.ptx"')
        if in_body and code and line != "{":
            whole = code.endswith((";", ":", "{", "}"))  # an instruction may go on in the next line
        if line == "}":
            in_body = False
    return "\n".join(out) + "\n"


def sections(cubin):
    """{name: (header, bytes)} of a 64-bit ELF file, and the names by index."""
    offset, = struct.unpack_from("<Q", cubin, 0x28)
    size, count, names = struct.unpack_from("<HHH", cubin, 0x3A)
    headers = [struct.unpack_from("<IIQQQQIIQQ", cubin, offset + i * size) for i in range(count)]
    text = lambda at: cubin[at:cubin.index(b"\0", at)].decode()
    order = [text(headers[names][4] + header[0]) for header in headers]
    return {name: (header, b"" if header[1] == 8 else cubin[header[4]:header[4] + header[5]])
            for name, header in zip(order, headers)}, order


def functions_at(cubin):
    """{offset in .debug_line: function} of the addresses there that the linker would fill in."""
    found, order = sections(cubin)
    symbols, names = found[".symtab"][1], found[".strtab"][1]
    relocations = {}
    for name, size in (".rel.debug_line", 16), (".rela.debug_line", 24):
        for at in range(0, len(found[name][1]) if name in found else 0, size):
            where, info = struct.unpack_from("<QQ", found[name][1], at)
            start, _, _, section = struct.unpack_from("<IBBH", symbols, 24 * (info >> 32))
            symbol = names[start:names.index(b"\0", start)].decode()
            relocations[where] = symbol or order[section].removeprefix(".text.")
    return relocations


class Bytes:
    def __init__(self, data, at):
        self.data, self.at = data, at

    def take(self, form):
        value, = struct.unpack_from("<" + form, self.data, self.at)
        self.at += struct.calcsize("<" + form)
        return value

    def leb(self, signed=False):
        value = shift = 0
        while True:
            byte = self.take("B")
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value - (1 << shift) if signed and byte & 64 else value


def table(cubin):
    """{function: [(address, line), ...]}, addresses rising: where lines begin."""
    data, functions, rows = sections(cubin)[0][".debug_line"][1], functions_at(cubin), {}
    unit = 0
    while unit < len(data):
        read = Bytes(data, unit)
        end = unit + 4 + read.take("I")
        version, header = read.take("H"), read.take("I")
        program = read.at + header
        step = read.take("B")
        if version >= 4:
            read.take("B")
        read.take("B")  # default_is_stmt
        base, span, first = read.take("b"), read.take("B"), read.take("B")
        lengths = [read.take("B") for _ in range(first - 1)]
        read.at = program
        function, address, line = None, 0, 1
        while read.at < end:
            op = read.take("B")
            if op >= first:
                address += (op - first) // span * step
                line += base + (op - first) % span
                rows.setdefault(function, []).append((address, line))
            elif op == 0:
                size = read.leb()
                after, kind = read.at + size, read.take("B")
                if kind == 2:
                    function = functions.get(read.at, function)
                    address = read.take("Q")
                elif kind == 1:
                    address, line = 0, 1
                read.at = after
            elif op == 1:
                rows.setdefault(function, []).append((address, line))
            elif op == 2:
                address += read.leb() * step
            elif op == 3:
                line += read.leb(signed=True)
            elif op == 8:
                address += (255 - first) // span * step
            elif op == 9:
                address += read.take("H")
            else:
                for _ in range(lengths[op - 1]):
                    read.leb()
        unit = end
    return rows


def lines_of(cubin, function):
    """The PTX line of each machine instruction of a function, in order; None in front of the first line."""
    size = len(sections(cubin)[0][f".text.{function}"][1])
    rows = sorted(table(cubin).get(function, []), key=lambda row: row[0])
    lines, at, line = [], 0, None
    for address in range(0, size, INSTRUCTION):
        while at < len(rows) and rows[at][0] <= address:
            line = rows[at][1]
            at += 1
        lines.append(line)
    return lines
