"""Operators on mbarriers, barriers of threads and clusters: M9 to M28, M37 to M39, M44, M45, M51, M54."""
import re

from mutation.kernel import Proof, bump, dropping, never, operator, replacing, trapping

FIRST_ROUND = ("the stages that this wait is for are free from the start: it asks for the phase before the first, at most "
               "once for each stage, and passes at once")
NO_SUCCESSOR = "nothing but exit follows this barrier: it keeps CTAs from leaving and hands over no data"
FENCED_INITS = ("in front of this barrier the CTA has only made its mbarriers, which fence.mbarrier_init releases, and armed its own, "
                "where others only arrive and add bytes, in whatever order")
RENAMED = ("all threads of the CTA, or of the role, meet at this one instruction, and the kernel uses barrier 7 nowhere else: another name "
           "for the same barrier")
LAST_RELEASE = ("the CTA has one tile, and this releases the stage of its last steps: no copy follows that would wait for it, "
                "in text or by a branch back")
DEAD = "nobody reads the register behind this: it is set for a next tile, and the CTA has one"
REDUNDANT_FENCE = ("the atomic of .acq_rel.gpu and the barriers on both sides of it order the same accesses: causality order "
                   "is transitive (PTX ISA 8.9.5), the fence adds nothing")
SAME_WARP = ("between the barriers around it, each address operand is used by one warp alone: it stores where it has loaded "
             "itself, by the same registers")
WARP_READS = ("what the warp has read of the stage it has read by ldmatrix.sync.aligned, all lanes in one instruction: it is over "
              "for all of them when it is over for the lane that arrives, and each lane has fenced")
WARP_WRITES = ("the next write is stmatrix.sync.aligned and all reads are ldmatrix.sync.aligned, each by all lanes in one "
               "instruction: the reads are over for all of them when the write begins, and each lane has waited for the buffer")
COVERED = ("the thread has just released the stage in front of this one, and done nothing since but count the slot: the producer "
           "waits for the stages in their order, and has acquired what was in front of that release")
WAITED_ONLY = ("all that this arrival says is that the thread has waited for its stage, on which it has branched: it touches no memory "
               "itself, and no thread reads what threads of other CTAs write")
NEVER_WRAPS = "the slot is neither number when it is compared, in any CTA"


def rest_of(kernel, index):
    """The statements behind `index` in its entry."""
    return kernel.statements[index + 1:kernel.statements.index("}", index)]


def no_way_back(kernel, index):
    """No branch behind `index` leads back over it."""
    labels = {s.strip()[:-1] for s in kernel.statements[:index + 1] if s.strip().endswith(":")}
    targets = [m[1] for s in rest_of(kernel, index) for m in [re.search(r"bra\s+(\w+);", s)] if m]
    return not any(target in labels for target in targets)


def barriers_at(kernel, statement):
    """The name of the mbarriers that a statement is about: the comment behind the last one's init; a stage of them is an
    address in a register plus the first one's offset. None: it does not say."""
    place = re.compile(r"\[%\w+\+(\d+)\]")
    about = place.search(statement)
    for i in kernel.find(r"^mbarrier\.init") if about else []:
        init = kernel.statements[i]
        if "//" in init and place.search(init) and int(place.search(init)[1]) >= int(about[1]):
            return init.split("//")[1].strip()


def last_release(kernel, index):
    """A proof for what is done to the arrive at (or next after) `index`."""
    arrives = kernel.find(r"mbarrier\.arrive\.(?!expect)", index - 1)
    if not arrives or not no_way_back(kernel, index):
        return None
    released = barriers_at(kernel, kernel.statements[arrives[0]])
    waits = [barriers_at(kernel, s) for s in rest_of(kernel, index) if "try_wait" in s]
    return None if any(wait in (released, None) or released is None for wait in waits) else Proof(LAST_RELEASE)


def covered_release(kernel, index):
    """Of two releases of a ring in a row, the second."""
    counting = re.compile(r"(@\S+\s+)?(add|setp|mov|shl|xor)\S*\s+%(q_slot|q_phase|wraps|empty)")
    before = index - 1
    while counting.match(kernel.statements[before].strip()):
        before -= 1
    same = re.compile(r"\[%\w+\+")
    first, second = (same.sub("[+", kernel.statements[i].strip()) for i in (before, index))
    return Proof(COVERED) if before < index - 1 and first == second else None


def waited_only(kernel, index):
    """Of a role whose threads touch no memory but by bulk copies, in a kernel whose threads read none that is not their CTA's."""
    starts = [i for i in kernel.find(r"^@%not_\w+\s+bra\s+L_\w+_end;") if i < index]
    if not starts or "shared::cluster" not in kernel.statements[index]:
        return None
    end = kernel.statements.index(re.search(r"(L_\w+_end);", kernel.statements[starts[-1]])[1] + ":")
    touches = re.compile(r"(@\S+\s+)?(st|ld|red|atom|stmatrix|ldmatrix|wgmma)\b(?!\.param)")
    reads = re.compile(r"(@\S+\s+)?(ld|red|atom)\b(?!\.param|\S*\.shared(?!::cluster))")
    role = [s.strip() for s in kernel.statements[starts[-1]:end]]
    waits = any("try_wait" in s for s in role[:index - starts[-1]])
    quiet = index < end and waits and not any(touches.match(s) for s in role)
    return Proof(WAITED_ONLY) if quiet and not any(reads.match(s.strip()) for s in kernel.statements) else None


def dead_behind(kernel, index, register):
    """`register` is not looked at behind the statements that set it there."""
    later = [s for s in rest_of(kernel, index) if not re.match(rf"\s*@%wraps\w*\s+mov\.u32\s+{register}, 0;", s)]
    return no_way_back(kernel, index) and not any(re.search(rf"{register}\b", s) for s in later)


def wait_loops(kernel):
    for i in kernel.find(r"mbarrier\.try_wait"):
        if kernel.statements[i - 1].strip().endswith(":") and " bra" in kernel.statements[i + 1]:
            yield i


def stages_of(kernel):
    return len(kernel.find(r"^mbarrier\.init")) // 2


def first_round(kernel, index):
    """Traps when the wait asks for parity 0, or is executed more often than there are stages: then it may block."""
    parity = kernel.statements[index].rsplit(",", 1)[1].strip(" ;")
    if "empty" not in kernel.statements[index]:
        return None
    lines = ["add.u32 %mut_b, %mut_b, 1;", f"setp.gt.u32 %mut_p, %mut_b, {stages_of(kernel)};",
             f"setp.ne.or.u32 %mut_p, {parity}, 1, %mut_p;"]
    return Proof(FIRST_ROUND, trapping(kernel, index - 1, lines, "%mut_p", ["    mov.u32 %mut_b, 0;"]))


# --- mbarriers

@operator("M9", "drop a wait for an mbarrier")
def drop_wait(kernel):
    for i in wait_loops(kernel):
        yield kernel.statements[i].strip(), kernel.statements[:i] + kernel.statements[i + 2:], first_round(kernel, i)


@operator("M10", "wait after the first use")
def wait_late(kernel):
    for i in wait_loops(kernel):
        uses = kernel.find(r"^wgmma\.commit|^(@\S+ )?cp\.async\.bulk\.tensor", i)
        if uses:
            at, s = uses[0] + 1, kernel.statements
            yield "moved down", s[:i - 1] + s[i + 2:at] + s[i - 1:i + 2] + s[at:], first_round(kernel, i)


@operator("M11", "parity inverted")
def parity(kernel):
    for i in kernel.find(r"^mov\.u32\s+%\w*phase\w*, 0;"):
        yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i].replace(", 0;", ", 1;"))
    for i in kernel.find(r"^xor\.b32\s+%free_phase\w*, %w_phase\w*, 1;"):
        yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i].replace(", 1;", ", 0;"))


@operator("M12", "parity not flipped at the wrap")
def no_flip(kernel):
    for i in kernel.find(r"^@%\w+ xor\.b32\s+%\w*phase"):
        guard = re.match(r"@(%\w+)", kernel.statements[i].strip())[1]
        yield kernel.statements[i].strip(), kernel.edit(i), never(kernel, i, guard, NEVER_WRAPS)


@operator("M13", "first stage off by one")
def slot(kernel):
    for i in kernel.find(r"^mov\.u32\s+%\w*slot\w*, 0;"):
        if kernel.statements[i - 1].strip().startswith("@") or not re.match(r"\s*mov", kernel.statements[i]):
            continue
        yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i].replace(", 0;", ", 1;"))


@operator("M14", "another number of stages at one place")
def stages(kernel):
    for i in kernel.find(r"^setp\.eq\.u32\s+%wraps"):
        found = re.search(r", (%\w+), (\d+);", kernel.statements[i])
        made = kernel.statements[i].replace(found[0], f", {found[1]}, {int(found[2]) - 1};")
        lines = [f"setp.eq.u32 %mut_q, {found[1]}, {found[2]};",
                 f"setp.eq.or.u32 %mut_p, {found[1]}, {int(found[2]) - 1}, %mut_q;"]
        proof = Proof(NEVER_WRAPS, trapping(kernel, i, lines, "%mut_p"))
        yield made.strip(), kernel.edit(i, made), Proof(DEAD) if dead_behind(kernel, i, found[1]) else proof


@operator("M15", "expect_tx of other bytes")
def other_bytes(kernel):
    for i in kernel.find(r"arrive\.expect_tx"):
        bytes_ = re.search(r", (%?\w+);$", kernel.statements[i].strip())[1]
        made = kernel.statements[i].replace(f", {bytes_};", ", %mut_n;")
        for what, change in (("16 less", f"add.s32 %mut_n, {bytes_}, -16;"), ("16 more", f"add.s32 %mut_n, {bytes_}, 16;"),
                             ("twice", f"mul.lo.u32 %mut_n, {bytes_}, 2;"), ("none", "mov.u32 %mut_n, 0;")):
            yield f"{kernel.statements[i].strip()} {what}", kernel.edit(i, "    { .reg .b32 %mut_n;", f"    {change}", made, "    }")


@operator("M16", "expect_tx after the arrive")
def expect_late(kernel):
    for i in kernel.find(r"mbarrier\.arrive\.expect_tx"):
        m = re.search(r"arrive\.expect_tx(\S*)\s+_, (\[.*?\]), (%?\w+);", kernel.statements[i])
        if m:
            yield "arrive; expect_tx", kernel.edit(i, f"    mbarrier.arrive{m[1]} _, {m[2]};",
                                                   f"    mbarrier.expect_tx.relaxed.cta{m[1]} {m[2]}, {m[3]};")


replacing("M17", "init count +-1", r"^mbarrier\.init", (r"(\d+);", bump(1)), (r"([2-9]|\d\d+);", bump(-1)))
dropping("M49", "drop griddepcontrol.wait", r"^griddepcontrol\.wait")
dropping("M18", "drop fence.mbarrier_init", r"^fence\.mbarrier_init")


def start_barrier(kernel):
    """The first and the last but one statement of the rendezvous behind the inits."""
    for i in kernel.find(r"^L_barriers_ready:"):
        j = i + 1
        while re.match(r"\s*(bar\.sync|barrier\.cluster)", kernel.statements[j]):
            j += 1
        if j > i + 1:
            yield i + 1, j


@operator("M19", "drop the barrier behind the inits")
def init_barrier(kernel):
    for i, j in start_barrier(kernel):
        yield "all of it", kernel.statements[:i] + kernel.statements[j:]


dropping("M20", "drop an arrive", r"mbarrier\.arrive\.(?!expect)", last_release)


@operator("M21", "release before the wgmma is waited for")
def release_early(kernel):
    for i in kernel.find(r"^wgmma\.wait_group"):
        arrives = kernel.find(r"mbarrier\.arrive", i)
        if arrives and not any("bra" in s for s in kernel.statements[i:arrives[0]]):
            s, at = kernel.statements, arrives[0] + 1
            yield "moved behind the arrive", s[:i] + s[i + 1:at] + [s[i]] + s[at:], last_release(kernel, i)


replacing("M22", "arrive by every thread", r"^@.*mbarrier\.arrive", (r"@!?%\w+ ", ""))


@operator("M23", "remote arrive to another rank")
def wrong_rank(kernel):
    for i in kernel.find(r"mapa\.shared::cluster"):
        yield "rank 0", kernel.edit(i, re.sub(r", %\w+;", ", 0;", kernel.statements[i]))


@operator("M24", "narrower scope")
def scope(kernel):
    """A fence before (barrier, atomic) or behind (atomic, barrier) is redundant when the atomic keeps its own scope."""
    sync = r"^fence\.acq_rel\.gpu|^bar\.(sync|red)|^(@\S+ )?atom\.acq_rel\.gpu"
    order = kernel.find(sync)
    kind = ["f" if "fence." in kernel.statements[i] else "a" if "atom." in kernel.statements[i] else "b" for i in order]
    for at, i in enumerate(order):
        redundant = kind[at:at + 3] == ["f", "b", "a"] or (at > 1 and kind[at - 2:at + 1] == ["a", "b", "f"])
        if kind[at] != "b":
            yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i].replace(
                "acq_rel.gpu", "acq_rel.cta")), Proof(REDUNDANT_FENCE) if kind[at] == "f" and redundant else None


@operator("M25", "cluster barrier at the start: only the CTA's")
def start_of_cluster(kernel):
    for i, j in start_barrier(kernel):
        if "cluster" in kernel.statements[i]:
            yield "bar.sync 0", kernel.statements[:i] + ["    bar.sync 0;"] + kernel.statements[j:]


@operator("M26", "drop the cluster barrier at the end")
def end_barrier(kernel):
    found = kernel.find(r"^barrier\.cluster\.(arrive|wait)")
    if len(found) >= 4:
        yield "both", kernel.statements[:found[-2]] + kernel.statements[found[-1] + 1:]


@operator("M27", "multicast mask")
def mask(kernel):
    for i in kernel.find(r"multicast::cluster"):
        group = re.search(r"(%group\w*);", kernel.statements[i])[1]
        for what, op in ("own CTA left out", "xor"), ("another CTA added", "or"), ("own CTA only", "and"):
            lines = ["    .reg .b32 %mut_r;", "    .reg .b16 %mut_m;", "    mov.u32 %mut_r, %cluster_ctarank;"]
            if what == "another CTA added":
                lines += ["    add.u32 %mut_r, %mut_r, 1;", "    mov.u32 %mut_n, %cluster_nctarank;",
                          "    rem.u32 %mut_r, %mut_r, %mut_n;"]
                lines[0] = "    .reg .b32 %mut_r, %mut_n;"
            lines += ["    shl.b32 %mut_r, 1, %mut_r;", "    cvt.u16.u32 %mut_m, %mut_r;",
                      f"    {op}.b16 %mut_m, {group}, %mut_m;"]
            changed = kernel.statements[i].replace(group, "%mut_m")
            proof = Proof("the CTA that is added is in the mask, in every CTA", trapping(
                kernel, i, [line.strip() for line in lines if ".reg" not in line] +
                [f"setp.ne.u16 %mut_p, %mut_m, {group};"], "%mut_p"))
            proof.probe.insert(proof.probe.index("{") + 1, "    .reg .b16 %mut_m;")
            proof.probe.insert(proof.probe.index("{") + 1, "    .reg .b32 %mut_r, %mut_n;")
            yield what, kernel.edit(i, *lines, changed), proof if op == "or" else None


@operator("M28", "TMA issued by all lanes")
def all_lanes(kernel):
    for i in kernel.find(r"@!%elected\w* bra"):
        yield "elected or not", kernel.edit(i)
    for i in kernel.find(r"@%elected\w* cp\.async\.bulk\.tensor"):
        yield "store by all lanes", kernel.edit(i, re.sub(r"@%elected\w* ", "", kernel.statements[i]))


@operator("M44", "mbarriers inside a tile")
def barriers_in_tile(kernel):
    inits = [m for i in kernel.find(r"^mbarrier\.init") for m in [re.search(r"\+(\d+)\]", kernel.statements[i])] if m]
    if inits:
        offsets = sorted({int(m[1]) for m in inits})
        moved = {str(o): str(o - offsets[0] + 1024) for o in offsets}

        def shift(s):
            if "mbarrier" not in s and "cp.async.bulk" not in s:
                return s
            return re.sub(r"\+(\d+)\]", lambda m: f"+{moved.get(m[1], m[1])}]", s)
        yield "at offset 1024", [s if s.startswith("//!") else shift(s) for s in kernel.statements]


@operator("M45", "init twice")
def init_twice(kernel):
    for i in kernel.find(r"^mbarrier\.init"):
        yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i], kernel.statements[i])


@operator("M54", "try_wait without its loop")
def no_loop(kernel):
    for i in wait_loops(kernel):
        yield kernel.statements[i].strip(), kernel.edit(i + 1), first_round(kernel, i)



# --- Barriers of threads

def warp_reads(kernel, index):
    """Between the lanes' fence and the arrival of one of them, where all that they have read they read by ldmatrix."""
    fenced = "fence.proxy.async" in kernel.statements[index - 1]
    arrives = kernel.find(r"mbarrier\.arrive", index)
    if not fenced or not arrives or kernel.find(r"^(@\S+ )?ld\.shared"):
        return None
    between = [s for s in kernel.statements[index + 1:arrives[0]] if not re.match(r"\s*(setp|and|add|shl|@\S+ mapa)", s)]
    return Proof(WARP_READS) if not between else None


def warp_writes(kernel, index):
    """Up to the next stmatrix nothing is written, and no lane alone has waited for bulk stores since the last barrier."""
    writes = kernel.find(r"^(@\S+ )?(st\.shared|stmatrix|st\.async|cp\.async)", index)
    barriers = [i for i in kernel.find(r"^bar\.(warp\.)?sync") if i < index]
    if not writes or not re.match(r"\s*stmatrix\.sync\.aligned", kernel.statements[writes[0]]):
        return None
    if kernel.find(r"^(@\S+ )?ld\.shared"):
        return None  # lanes read by themselves
    alone = any("bulk.wait_group" in s for s in kernel.statements[barriers[-1] if barriers else 0:index])
    return None if alone else Proof(WARP_WRITES)


def same_warp(kernel, index):
    """Only wmma.load.c before and wmma.store.d behind it, at the same operands, up to the next barriers. Two warps do not
    share an operand's bytes: their stores would race behind the barrier as well, and the original is clean."""
    shared = r"(ld|st)\.shared|ldmatrix|stmatrix|\.shared\.|cp\.async"
    barriers = kernel.find(r"^bar\.sync")
    at = barriers.index(index)
    if not 0 < at < len(barriers) - 1:
        return None
    used = [{}, {}]
    for side, (first, last) in enumerate([(barriers[at - 1], index), (index, barriers[at + 1])]):
        for s in kernel.statements[first + 1:last]:
            if s.strip().endswith(":") or " bra" in s:
                return None
            if re.search(shared, s):
                wanted = ("wmma.load.c", "wmma.store.d")[side]
                if wanted not in s:
                    return None
                used[side][re.search(r"\[.*?\]", s)[0]] = True
    return Proof(SAME_WARP) if used[0] and used[0] == used[1] else None


dropping("M37", "drop bar.sync", r"^bar\.sync", same_warp)
dropping("M37b", "drop bar.warp.sync", r"^bar\.warp\.sync", lambda kernel, i: warp_reads(kernel, i))


@operator("M38", "barrier of threads: another one, or another count")
def other_barrier(kernel):
    for i in kernel.find(r"^(@\S+ )?bar\.(sync|arrive)"):
        s = kernel.statements[i]
        m = re.search(r"bar\.(?:sync|arrive)\s+(\S+?)(?:, (\d+))?;", s)
        whole = m[2] is None and not s.strip().startswith("@")
        alone = not any(re.search(r"\s7[,;]", kernel.statements[j]) for j in kernel.find(r"bar\.(sync|arrive|red)"))
        # The consumers, when they have cleared what no copy brings; the only warpgroup that turns D's lines.
        meets_once = m[1] in ("15", "5")
        renamed = Proof(RENAMED) if (whole or meets_once) and alone and m[1].isdigit() else None
        yield s.strip() + " -> 7", kernel.edit(i, s.replace(m[0], m[0].replace(m[1], "7", 1))), renamed
        count = int(m[2] or kernel.threads())
        for other in (count - 32, count + 32) if m[2] else (count - 32,):
            if other:
                yield f"{s.strip()} -> {other} threads", kernel.edit(i, s.replace(m[0], re.sub(
                    r"(\s\S+?)(, \d+)?;", rf"\1, {other};", m[0], count=1)))


@operator("M39", "bar.sync by one elected lane")
def elected_barrier(kernel):
    for i in kernel.find(r"^bar\.(warp\.)?sync"):
        yield kernel.statements[i].strip(), kernel.edit(
            i, "    .reg .pred %mut_e;", "    .reg .b32 %mut_l;", "    mov.u32 %mut_l, %tid.x;",
            "    and.b32 %mut_l, %mut_l, 31;", "    setp.eq.u32 %mut_e, %mut_l, 0;",
            f"    @%mut_e {kernel.statements[i].strip()}")


# --- Relaxed instead of release

def last_barrier(kernel, index):
    """Nothing that touches memory stands behind it."""
    rest = [s.strip() for s in rest_of(kernel, index)]
    quiet = re.compile(r"(//.*|barrier\.cluster\.wait.*|ret;|\}|)$")
    return Proof(NO_SUCCESSOR) if all(quiet.match(s) for s in rest) else None


def first_barrier(kernel, index):
    """All that touches memory in front of it makes mbarriers, or arms them, and the inits are fenced last."""
    front = [s.strip() for s in kernel.statements[kernel.statements.index("{") + 1:index]]
    touching = [s for s in front if re.match(r"(@\S+ )?(st|ld|red|atom|cp|stmatrix|ldmatrix|wgmma|mbarrier|fence|bar|barrier)\b", s)
                and not s.startswith("ld.param")]
    makes = re.compile(r"mbarrier\.(init|arrive\.expect_tx)\.shared::cta")
    good = touching and touching[-1].startswith("fence.mbarrier_init") and all(makes.match(s) for s in touching[:-1])
    return Proof(FENCED_INITS) if good else None


@operator("M51", "arrive.relaxed")
def relaxed(kernel):
    for i in kernel.find(r"^barrier\.cluster\.arrive"):
        yield kernel.statements[i].strip(), kernel.edit(
            i, kernel.statements[i].replace("arrive.release", "arrive.relaxed")), last_barrier(kernel, i) or first_barrier(kernel, i)
    for i in kernel.find(r"mbarrier\.arrive\.shared"):
        made = kernel.edit(i, re.sub(r"arrive\.shared", "arrive.relaxed.cluster.shared", kernel.statements[i]))
        newer = [re.sub(r"^\.version 8\.[0-5]$", ".version 8.6", one) for one in made]  # or ptxas does not know it
        proof = last_release(kernel, i) or covered_release(kernel, i) or waited_only(kernel, i)
        yield kernel.statements[i].strip(), newer, proof
    for i in kernel.find(r"^(@\S+ )?atom\.acq_rel"):
        yield kernel.statements[i].strip(), kernel.edit(i, kernel.statements[i].replace("acq_rel", "relaxed"))
