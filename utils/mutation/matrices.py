"""Operators on wgmma and on registers: M4 to M8, M31 to M34, M46 to M48."""
import re

from mutation.kernel import Proof, bump, dropping, operator, replacing

FENCED = ("the fence in front of it orders the same accesses: between the two nothing but products touches the registers of those "
          "behind it, and no stage is waited for")
JOINED = ("its products join the next group, in text that nothing jumps into or out of: the first wait behind it leaves fewer "
          "groups under way than follow, so that both are done by then")


def closed(kernel, begin, end):
    """Nothing jumps into statements `begin` to `end` or out of them."""
    def targets(statements):
        return {m[1] for s in statements if (m := re.search(r"\bbra\s+(\w+);", s))}
    inside = kernel.statements[begin:end]
    labels = {m[1] for s in inside if (m := re.match(r"\s*(\w+):", s))}
    return targets(inside) <= labels and not labels & targets(kernel.statements[:begin] + kernel.statements[end:])


def fenced(kernel, index):
    fences = [i for i in kernel.find(r"^wgmma\.fence") if i < index]
    if not fences:
        return None
    between = kernel.statements[fences[-1] + 1:index]
    behind = []
    for s in kernel.statements[index + 1:]:
        if "wgmma.commit_group" in s:
            break
        behind += re.findall(r"\{(%\w+?_)\d+", s) if "wgmma.mma_async" in s else []
    others = [s for s in between if "wgmma.mma_async" not in s]
    touched = any(name in s for name in behind for s in others)
    waits = any("try_wait" in s or "wgmma.wait_group" in s for s in others)
    return Proof(FENCED) if behind and not touched and not waits and closed(kernel, fences[-1] + 1, index) else None


def joined(kernel, index):
    follow = 0
    for i, s in enumerate(kernel.statements[index + 1:], index + 1):
        if m := re.search(r"wgmma\.wait_group\S*\s+(\d+);", s):
            return Proof(JOINED) if follow > int(m[1]) and closed(kernel, index + 1, i) else None
        follow += "wgmma.commit_group" in s
    return None


dropping("M4", "drop wgmma.fence", r"^wgmma\.fence", fenced)
dropping("M5", "drop wgmma.commit_group", r"^wgmma\.commit", joined)
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




@operator("M33", "wgmma: transposition flipped")
def transposed(kernel):
    """The last two numbers; where A is four registers only the last one."""
    both = (r"0, 0;$", "1, 0;"), (r"0, 0;$", "0, 1;"), (r"1, 0;$", "0, 0;"), (r"0, 1;$", "0, 0;"), (r"1, 1;$", "0, 1;")
    last = (r"0;$", "1;"), (r"1;$", "0;")
    for i in kernel.find(r"^wgmma\.mma_async"):
        s = kernel.statements[i]
        for old, new in last if s.count("{") == 2 else both:
            made = re.sub(old, new, s)
            if made != s:
                yield made.strip()[-60:], kernel.edit(i, made)


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
