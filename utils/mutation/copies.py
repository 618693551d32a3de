"""Operators on copies and memory: M1 to M3, M29, M30, M35, M36, M40 to M43, M52, M53, M55 to M60."""
import re

from mutation.barriers import rest_of, same_warp, warp_reads, warp_writes
from mutation.kernel import Proof, bump, differing, dropping, guard_of, never, operator, replacing, trapping

ALWAYS_IN = "every thread that comes here passes the guard, in every CTA: the problem has no edge at this place"
NO_UPPER_HALF = "the product fits 32 bits in every thread: the operands of this kernel are smaller than 4 GiB"
SAME_PLACE = "both coordinates are the same number whenever it executes: the only tile's first step"
NO_ACCESS = "no thread passes the guard of this access, in any CTA: it lies outside of D in this problem"
ALWAYS_WHOLE = "the number of source bytes is the full one in every thread: the problem has no edge at this place"

BEFORE_EXIT = ("only exit follows: a thread may exit when its bulk stores have read their sources (BG-4), and nobody in the "
               "kernel reads what they write")
NO_STORES = ("the wait is for nothing: no thread has committed more groups of bulk stores than it leaves, so that the buffer "
             "behind it is used for the first time, in every CTA")
COVERED = ("every copy issued so far is in a group that the wait before has covered; the groups behind it are empty, in every "
           "thread")

# --- Fences between proxies

dropping("M1", "drop fence.proxy.async", r"^fence\.proxy\.async")


@operator("M2", "fence.proxy.async before the stores")
def fence_first(kernel):
    for i in kernel.find(r"^fence\.proxy\.async"):
        stores = [j for j in kernel.find(r"^(@\S+ )?(st\.shared|stmatrix)") if j < i]
        if stores:
            statements = kernel.edit(i)
            first = min(j for j in stores if j > stores[-1] - 40)
            yield "moved up", statements[:first] + [kernel.statements[i]] + statements[first:]


replacing("M3", "fence.proxy.async in the wrong space", r"^fence\.proxy\.async",
          (r"fence\.proxy\.async(\.shared::cta)?", "fence.proxy.async.global"))

# --- TMA


@operator("M29", "TMA coordinates")
def coordinates(kernel):
    for i in kernel.find(r"cp\.async\.bulk\.tensor\.2d"):
        m = re.search(r"\{(%\w+), (%\w+)\}", kernel.statements[i])
        yield "exchanged", kernel.edit(i, kernel.statements[i].replace(m[0], f"{{{m[2]}, {m[1]}}}")), differing(
            kernel, i, m[1], m[2], SAME_PLACE)


@operator("M29b", "TMA off by a box")
def off_by_box(kernel):
    for i in kernel.find(r"cp\.async\.bulk\.tensor\.2d"):
        m = re.search(r"\{(%\w+), (%\w+)\}", kernel.statements[i])
        made = kernel.statements[i].replace(m[0], f"{{%mut_x, {m[2]}}}")
        yield "x + 64", kernel.edit(i, "    .reg .b32 %mut_x;", f"    add.u32 %mut_x, {m[1]}, 64;", made)


@operator("M30", "swizzle of the map")
def swizzle(kernel):
    for i, s in enumerate(kernel.statements):
        found = re.search(r"swizzle: (128B|64B|32B)", s) if s.startswith("//!") else None
        if found:
            map_name = re.search(r"name: (\w+)", s)[1]
            yield f"{map_name}: {found[1]} -> none", kernel.edit(i, s.replace(found[0], "swizzle: none"))


@operator("M43", "buffers overlap by 16 bytes")
def overlap(kernel):
    for i in kernel.find(r"cp\.async\.bulk\.tensor.*shared::cluster\.global"):
        made = re.sub(r"\[(%to_s\w+)\]", r"[\1+-1024]", kernel.statements[i])
        if made != kernel.statements[i]:
            yield "1024 bytes earlier (TMA writes whole atoms)", kernel.edit(i, made)
    if kernel.find(r"^cp\.async\.bulk"):
        return
    padding = re.search(r"padding: (\d+)", kernel.spec)
    padded = int(padding[1]) if padding else 0  # behind A's last line lies what nobody uses
    for i in kernel.find(r"^add\.u32\s+%to_sB, %smem_base, \d+;"):
        yield f"B begins {16 + padded} bytes earlier", kernel.edit(i, re.sub(r"(\d+);", bump(-16 - padded),
                                                                         kernel.statements[i]))


@operator("M52", "ld.shared of what TMA still writes")
def load_early(kernel):
    for i in kernel.find(r"cp\.async\.bulk\.tensor.*shared::cluster\.global"):
        m = re.search(r"\[(%to_s\w+)\]", kernel.statements[i])
        if m and "multicast" not in kernel.statements[i]:
            yield m[1], kernel.insert(i + 1, "    .reg .b32 %mut_l;", f"    ld.shared.b32 %mut_l, [{m[1]}];")


# --- Bulk stores

dropping("M40", "drop cp.async.bulk.commit_group", r"cp\.async\.bulk\.commit")


def waits_for_nothing(kernel, index, wait):
    """Traps at `index` when the thread has committed more groups of bulk stores than `wait` leaves."""
    keep = re.search(r"(\d+);", kernel.statements[wait])[1]
    out = []
    for s in trapping(kernel, index, [f"setp.gt.u32 %mut_p, %mut_a, {keep};"], "%mut_p", ["    mov.u32 %mut_a, 0;"]):
        out.append(s)
        if "cp.async.bulk.commit_group" in s:
            guard = guard_of(s)
            out.append(f"    {'@' + guard + ' ' if guard else ''}add.u32 %mut_a, %mut_a, 1;")
    return Proof(NO_STORES, out)


@operator("M41", "wait_group.read dropped, or by a lane that stored nothing")
def bulk_wait(kernel):
    for i in kernel.find(r"cp\.async\.bulk\.wait_group\.read"):
        proof = waits_for_nothing(kernel, i, i)
        yield kernel.statements[i].strip(), kernel.edit(i), proof
        yield "by lane 5 alone", kernel.edit(
            i, "    .reg .b32 %mut_l;", "    .reg .pred %mut_e;", "    mov.u32 %mut_l, %tid.x;",
            "    and.b32 %mut_l, %mut_l, 31;", "    setp.eq.u32 %mut_e, %mut_l, 5;",
            f"    @%mut_e {kernel.statements[i].strip()}"), proof


@operator("M42", ".read where a full wait stands")
def read_only(kernel):
    """Only who reads the destination needs the full wait; a thread may exit when its sources are read (BG-4)."""
    quiet = re.compile(r"(//.*|barrier\.cluster\..*|\w+:|ret;|\}|)$")
    for i in kernel.find(r"cp\.async\.bulk\.wait_group\s"):
        last = all(quiet.match(s.strip()) for s in rest_of(kernel, i))
        yield kernel.statements[i].strip(), kernel.edit(i, re.sub(
            r"wait_group\s+", "wait_group.read ", kernel.statements[i])), Proof(BEFORE_EXIT) if last else None




def read_already(kernel, index):
    """Behind the last commit stands a wait for the reads of all groups, by the same thread and in the same iteration."""
    commits = [i for i in kernel.find(r"bulk\.commit_group") if i < index]
    waits = [i for i in kernel.find(r"^cp\.async\.bulk\.wait_group\.read 0") if i < index]
    if not commits or not waits or waits[-1] < commits[-1]:
        return None
    between = kernel.statements[commits[-1] + 1:waits[-1]]
    return Proof(BEFORE_EXIT) if not any(re.match(r"\s*L_|.* bra ", s) for s in between) else None


dropping("M60", "exit before the bulk store is done", r"cp\.async\.bulk\.wait_group\s", read_already)

# --- cp.async

dropping("M35", "drop cp.async.commit_group", r"^cp\.async\.commit")


def covered(kernel, index):
    """Traps when a copy was issued in one of the groups that the waits so far have left open."""
    made = trapping(kernel, index, ["setp.gt.s32 %mut_p, %mut_a, %mut_c;"], "%mut_p",
                    [f"    mov.u32 %mut_{name}, 0;" for name in "abc"])
    out = []
    for s in made:  # a: number of the last group with a copy, from 1; b: groups committed; c: groups waited for
        out.append(s)
        guard = guard_of(s)
        prefix = f"    @{guard} " if guard else "    "
        if s == "{":
            out.append("    .reg .b32 %mut_c;")
        elif re.match(r"\s*(@\S+\s+)?cp\.async\.c[ag]\.", s):
            out.append(prefix + "add.u32 %mut_a, %mut_b, 1;")
        elif "cp.async.commit_group" in s:
            out.append(prefix + "add.u32 %mut_b, %mut_b, 1;")
        elif wait := re.match(r"\s*cp\.async\.wait_group\s+(\d+);", s):
            out.append(f"    sub.s32 %mut_c, %mut_b, {wait[1]};")
    return Proof(COVERED, out)


@operator("M36", "cp.async.wait_group n+1")
def wait_more(kernel):
    for i in kernel.find(r"^cp\.async\.wait_group"):
        yield kernel.statements[i].strip(), kernel.edit(i, re.sub(r"(\d+);", bump(1), kernel.statements[i])), covered(
            kernel, i)


dropping("M36b", "drop cp.async.wait_group", r"^cp\.async\.wait_group", covered)


@operator("M58", "K tail not filled with zeros")
def tail(kernel):
    for i in kernel.find(r"cp\.async\.c[ag]"):
        m = re.search(r"\], (\d+), (%\w+);", kernel.statements[i])
        if m:
            yield kernel.statements[i].strip(), kernel.edit(
                i, kernel.statements[i].replace(m[0], f"], {m[1]}, {m[1]};")), differing(
                    kernel, i, m[2], m[1], ALWAYS_WHOLE)


# --- Loads and stores of threads

@operator("M53", "drop the barrier between a store's reads and the next writes")
def store_barrier(kernel):
    """The one before the first write of a staging buffer: whoever read it in the tile before must be through."""
    products = kernel.find(r"mma")
    for i in kernel.find(r"^bar\.(warp\.)?sync", products[0] if products else -1):
        after = kernel.find(r"^(@\S+ )?(st\.shared|stmatrix|wmma\.store\S*\.shared|ld\.shared|ldmatrix|wmma\.load)", i)
        if after and re.search(r"st\.shared|stmatrix|wmma\.store", kernel.statements[after[0]]):
            if re.match(r"\s*bar\.sync", kernel.statements[i]):
                proof = same_warp(kernel, i)
            else:
                waits = "bulk.wait_group" in kernel.statements[i - 1]
                proof = waits_for_nothing(kernel, i, i - 1) if waits else warp_reads(kernel, i) or warp_writes(kernel, i)
            yield kernel.statements[i].strip(), kernel.edit(i), proof


@operator("M55", "guard of the edge dropped")
def guard(kernel):
    for i in kernel.find(r"^@!?%\w+ (st|ld)\.(global|shared)|^@!?%\w+ cp\.async\.c"):
        if "src_size" in kernel.statements[i]:
            continue  # it would copy no bytes: M58
        guarded = guard_of(kernel.statements[i])
        opposite = guarded[1:] if guarded.startswith("!") else "!" + guarded
        yield kernel.statements[i].strip(), kernel.edit(i, re.sub(r"@!?%\w+\s+", "", kernel.statements[i])), never(
            kernel, i, opposite, ALWAYS_IN)


@operator("M56", "offsets of 32 bits")
def narrow(kernel):
    for i in kernel.find(r"^mul\.wide\.u32")[:2]:
        m = re.search(r"mul\.wide\.u32\s+(%\w+), (%\w+), (\w+|%\w+);", kernel.statements[i])
        lines = [f"mul.hi.u32 %mut_a, {m[2]}, {m[3]};", "setp.ne.u32 %mut_p, %mut_a, 0;"]
        yield kernel.statements[i].strip(), kernel.edit(
            i, "    .reg .b32 %mut_w;", f"    mul.lo.u32 %mut_w, {m[2]}, {m[3]};", f"    cvt.u64.u32 {m[1]}, %mut_w;"
        ), Proof(NO_UPPER_HALF, trapping(kernel, i, lines, "%mut_p"))


@operator("M57", "C read although beta is 0")
def beta(kernel):
    for i in kernel.find(r"^@!%beta_is_zero\w* bra"):
        target = kernel.statements[i].split()[-1]
        yield "beta_is_zero ignored", kernel.edit(i, f"    bra {target}")


@operator("M59", "misaligned access")
def misaligned(kernel):
    for i in kernel.find(r"(ld|st)\.(global|shared)[.\w]*\.v[24]|ldmatrix|stmatrix"):
        made = re.sub(r"\[(%\w+)(\+(\d+))?\]", lambda m: f"[{m[1]}+{int(m[3] or 0) + 4}]", kernel.statements[i], count=1)
        guarded = guard_of(kernel.statements[i])
        yield made.strip(), kernel.edit(i, made), never(kernel, i, guarded, NO_ACCESS) if guarded else None
