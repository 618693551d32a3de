"""Asks the compiler for kernels and the check for verdicts; proves equivalence."""
import json
import os
import pathlib
import re
import subprocess
import tempfile

from mutation.kernel import Kernel, text_of

SECONDS = 30       # of processor time for one mutant; longer is a miss
HANG_SECONDS = 5   # in which a hang must be explained
SCHEDULES = 6      # lazy, eager, reversed, three random ones; the first that finds an error is the last
GRIDS = (1, 2, 3, 4, 8, 16)  # multiprocessors: all grids that the few tiles of these kernels allow


def limited(command):
    """(exit code or None when the time was up, stdout, stderr, seconds of processor time: others may keep the machine busy)."""
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(["bash", "-c", f'ulimit -t {SECONDS}; exec "$@"', "limited", *command], stdout=out,
                                   stderr=errors, stdin=subprocess.DEVNULL)
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        seconds = used.ru_utime + used.ru_stime
        out.seek(0), errors.seek(0)
        late = process.returncode < 0 and seconds > SECONDS - 1
        return (None if late else process.returncode, out.read().decode(errors="replace"),
                errors.read().decode(errors="replace"), seconds)


class Judge:
    def __init__(self, gemmc, schedules=SCHEDULES, keep=None):
        self.gemmc, self.schedules, self.keep = str(gemmc), schedules, keep

    def compile(self, family, spec, arguments, checked=True):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / f"{family}.yaml"
            path.write_text(spec)
            made = subprocess.run([self.gemmc, "compile", str(path)], capture_output=True, text=True)
        if made.returncode:
            raise SystemExit(f"mutate: {family}: {made.stderr}")
        # Without the path of the spec: a mutant is known by its text from one run to the next.
        text = re.sub(r"^//! spec:.*\n", "", made.stdout, flags=re.M)
        # A mutant may have a modifier that is younger than its kernel: the verifier is not to say so.
        version = max(float(re.search(r"^\.version (.*)$", text, re.M)[1]), 8.6)
        text = re.sub(r"^\.version .*$", f".version {version}", text, flags=re.M)
        kernel = Kernel(family, spec, text, arguments)
        if not checked:
            return kernel
        _, report, message, _ = self.check(family, text, [f"--schedules={self.schedules}", *arguments])
        if not report or report["verdict"] != "clean":  # what is found in its mutants would say nothing
            raise SystemExit(f"mutate: {family} is not clean before anything is broken: "
                             f"{message or [one['message'] for one in report['findings']]}")
        return kernel

    def check(self, name, text, arguments):
        """(exit code, report or None, message, seconds)"""
        with tempfile.NamedTemporaryFile("w", suffix=".ptx", prefix=f"{name}-", dir=self.keep, delete=not self.keep) as file:
            file.write(text)
            file.flush()
            code, out, errors, seconds = limited([self.gemmc, "check", file.name, "--json", "--stop-at-error",
                                                  "--threads=1", *arguments])
        if code is None:
            return None, None, f"stopped after {SECONDS} s", seconds
        try:
            return code, json.loads(out), errors, seconds
        except ValueError:
            return code, None, errors, seconds

    def judge(self, kernel, mutant):
        """One row of the result."""
        row = {"family": mutant.family, "operator": mutant.operator, "site": mutant.site, "what": mutant.what,
               "digest": mutant.digest}
        name = mutant.name.replace(" ", "-")
        code, report, message, seconds = self.check(name, mutant.text,
                                                    [f"--schedules={self.schedules}", *kernel.arguments])
        if report and report["verdict"] == "clean" and kernel.grid_depends_on_sms():
            # What a CTA does only if its first tile lies at an edge: a CTA for each tile.
            code, report, message, more = self.check(name, mutant.text, [
                f"--schedules={self.schedules}", *self.whatever_grid(kernel), f"--sms={GRIDS[-1]}", "--ctas=0"])
            seconds += more
        row |= {"seconds": round(seconds, 2), "codes": "", "hang": ""}
        if report:
            row["verdict"] = {"error": "detected", "clean": "missed"}.get(report["verdict"], report["verdict"])
            row["codes"] = " ".join(sorted({f["code"] for f in report["findings"]}))
            row["hang"] = next((f["message"] for f in report["findings"] if f["code"] == "deadlock"), "")
        else:
            row["verdict"] = "timeout" if code is None else "refused" if code == 2 else "crashed"
            row["codes"] = message.strip().splitlines()[0][:200] if message.strip() else ""
        if row["hang"]:
            row["explained"] = explains(row["hang"]) and seconds < HANG_SECONDS
        settled = mutant.proof and mutant.proof.elsewhere and row["verdict"] == "detected"
        if mutant.proof and not settled and self.proven(kernel, mutant):
            # A proof of equivalence and a finding cannot both be right.
            row["reason"] = mutant.proof.reason
            row["verdict"] = "contradiction" if row["verdict"] == "detected" else "equivalent"
        return row

    @staticmethod
    def whatever_grid(kernel):
        return [a for a in kernel.arguments if not a.startswith("--sms")]

    def proven(self, kernel, mutant):
        """Whether the original, with a trap where the two would differ, never traps on any grid."""
        if mutant.proof.probe is None:
            return True
        text = text_of(mutant.proof.probe)
        fixed = self.whatever_grid(kernel)
        for sms in GRIDS if kernel.grid_depends_on_sms() else GRIDS[:1]:
            code, report, message, _ = self.check("probe", text, ["--schedules=1", f"--sms={sms}", "--ctas=0", *fixed])
            if not report:
                raise SystemExit(f"mutate: the probe of {mutant.name} does not run: {message}")
            if report["verdict"] == "incomplete" or any(f["code"] == "trap" for f in report["findings"]):
                return False
        return True


def explains(message):
    """A report of a deadlock says of somebody what he waits for: the phase and the counts of an mbarrier, who has come to
    a barrier of threads and who has not, the lanes or warps that are missing."""
    return bool(re.search(r"waits for the phase of parity \d of the mbarrier [^:]+: parity \d, \d+ of \d+ "
                          r"arrivals pending, -?\d+ bytes outstanding|waits at barrier \d+: \d+ of \d+ threads have arrived|"
                          r"waits at the cluster barrier: \d+ of \d+ threads|waits for lanes|waits for .*registers|"
                          r"waits? for .*warp", message))
