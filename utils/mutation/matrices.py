"""Operators on wgmma and on registers: M4 to M8, M31 to M34, M46 to M48."""
import re

from mutation.kernel import bump, dropping, operator, replacing

dropping("M4", "drop wgmma.fence", r"^wgmma\.fence")
dropping("M5", "drop wgmma.commit_group", r"^wgmma\.commit")
replacing("M6", "wgmma.wait_group n+1", r"^wgmma\.wait_group", (r"(\d+);", bump(1)))
dropping("M7", "drop wgmma.wait_group", r"^wgmma\.wait_group")


@operator("M8", "accumulator read early")
def read_early(kernel):
    for i in kernel.find(r"^wgmma\.wait_group"):
        issued = [j for j in kernel.find(r"^wgmma\.mma_async") if j < i]
        if issued:
            acc = re.search(r"\{(%\w+)", kernel.statements[issued[-1]])[1]
            yield f"mov of {acc}", kernel.edit(i, f"    mov.b32 {acc}, {acc};", kernel.statements[i])


@operator("M31", "LBO and SBO swapped")
def lbo(kernel):
    for i in kernel.find(r"or\.b64\s+%desc\w*, %desc\w*, 0x"):
        m = re.search(r"0x([0-9a-f]+)", kernel.statements[i])
        value = int(m[1], 16)
        low, high = value >> 16 & 0x3fff, value >> 32 & 0x3fff
        made = (value & ~(0x3fff << 16 | 0x3fff << 32)) | high << 16 | low << 32
        if made != value:
            yield hex(made), kernel.edit(i, kernel.statements[i].replace(m[0], hex(made)))


@operator("M32", "K advance of a descriptor")
def advance(kernel):
    for i in kernel.find(r"^add\.\w+\s+%desc_[ab]_\w+, %desc_[ab]_\w+, \d+;"):
        yield "doubled", kernel.edit(i, re.sub(r"(\d+);$", lambda m: f"{2 * int(m[1])};", kernel.statements[i]))


replacing("M33", "wgmma: transposition flipped", r"^wgmma\.mma_async", (r"0, 0;$", "1, 0;"), (r"0, 0;$", "0, 1;"),
          (r"1, 0;$", "0, 0;"), (r"0, 1;$", "0, 0;"), (r"1, 1;$", "0, 1;"))
replacing("M34", "wgmma: scale-d on the first k", r"^wgmma\.mma_async", (r" 0, 1, 1", " 1, 1, 1"),
          (r"%accumulate\w*, 1, 1", "1, 1, 1"))
replacing("M46", "setmaxnreg.inc beyond the pool", r"^setmaxnreg\.inc", (r"\d+;", "256;"))


@operator("M47", "setmaxnreg: inc and dec swapped")
def swapped(kernel):
    for i in kernel.find(r"^setmaxnreg"):
        s = kernel.statements[i]
        yield s.strip(), kernel.edit(i, s.replace(".inc", ".dec") if ".inc" in s else s.replace(".dec", ".inc"))


@operator("M48", "setmaxnreg in three warps")
def three_warps(kernel):
    for i in kernel.find(r"^setmaxnreg"):
        label = f"L_mutant_{i}"
        yield "not in warp 3 of the group", kernel.edit(
            i, "    .reg .b32 %mutant;", "    .reg .pred %skips;", "    mov.u32 %mutant, %tid.x;",
            "    and.b32 %mutant, %mutant, 127;", "    setp.ge.u32 %skips, %mutant, 96;", f"    @%skips bra {label};",
            kernel.statements[i], f"{label}:")
