"""A lit test format: every spec of a folder is refused as it says itself.

A test is a `.yaml` file, or a `.py` script that prints one (for files of a megabyte). `gemmc plan` must refuse it:
exit code 2, nothing on standard output, exactly the errors that the file expects, each with `file:line:col: error:`,
within one second of processor time and 256 MiB of memory. Expectations are comments in the file (or the script):

    stages: 0          # error: `pipeline.stages` is 0      on this line
    # error@+1: ...    on the next line; @-1 the line before, @3 line 3

A file that can hold no comment has them in FILE.expect, as lines `LINE: text`."""
import os
import re
import subprocess
import sys
import tempfile
import threading

import lit.formats
import lit.Test

SECONDS, MEBIBYTES = 1.0, 256
SANITIZER_FACTOR = 8  # what AddressSanitizer costs, generously
COMMENT = re.compile(r"# error(?:@([+-]?)(\d+))?: (.*?)\r?$")
SIDECAR = re.compile(r"(\d+): (.*)$")
MESSAGE = re.compile(r":(\d+):\d+: error: (.*)$")
UNPLACED = re.compile(r"^(<unknown>:0: )?error: ", re.MULTILINE)


def text_of(data):
    """Bytes as text that keeps every byte and knows UTF-8."""
    return data.decode("utf-8", errors="surrogateescape")


def expectations(source):
    """(line, text) of every expected error of a test."""
    sidecar = source + ".expect"
    if os.path.exists(sidecar):
        with open(sidecar, encoding="utf-8") as file:
            return [(int(number), text) for number, text in map(lambda line: SIDECAR.match(line).groups(), file)]
    found = []
    with open(source, "rb") as file:
        for number, line in enumerate(text_of(file.read()).split("\n"), 1):
            if match := COMMENT.search(line):
                sign, count, text = match.groups()
                place = {"+": number + int(count or 0), "-": number - int(count or 0)}.get(sign, int(count or number))
                found.append((place, text))
    return found


def mismatches(expected, reported):
    """What of two lists of (line, text) does not pair up."""
    left = list(reported)
    for line, text in expected:
        hit = next((error for error in left if error[0] == line and text in error[1]), None)
        if hit:
            left.remove(hit)
        else:
            yield f"line {line}: expected an error with: {text}"
    for line, text in left:
        yield f"line {line}: unexpected error: {text}"


class RefusedSpecs(lit.formats.FileBasedTest):
    """What a file's own expectations say, within the limits."""

    def execute(self, test, lit_config):
        source = test.getSourcePath()
        path = source
        if source.endswith(".py"):
            path = test.getExecPath() + ".yaml"
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                subprocess.run([sys.executable, source], stdout=file, check=True)
        expected = expectations(source)
        if not expected:
            return lit.Test.FAIL, "the file expects no error"
        factor = SANITIZER_FACTOR if "sanitizer" in test.config.available_features else 1
        problems = list(self.check([test.config.gemmc, "plan", path], path, expected, test.config.environment, factor))
        return (lit.Test.FAIL, "\n".join(problems)) if problems else (lit.Test.PASS, "")

    @staticmethod
    def check(command, path, expected, environment, factor):
        code, output, errors, used = run(command, environment, 30 * SECONDS * factor)
        if code != 2:
            yield f"exit code {code} instead of 2"
        if output:
            yield f"standard output: {output[:200]!r}"
        if (seconds := used.ru_utime + used.ru_stime) > SECONDS * factor:
            yield f"{seconds:.2f} s of processor time"
        if (mebibytes := used.ru_maxrss / 1024) > MEBIBYTES * factor:
            yield f"{mebibytes:.0f} MiB of memory"
        # Every other line of the output is a piece of the file or a note.
        messages = [MESSAGE.match(line[len(path):]) for line in errors.split("\n") if line.startswith(path)]
        yield from mismatches(expected, [(int(match[1]), match[2]) for match in messages if match])
        if UNPLACED.search(errors):
            yield f"an error without a place:\n{errors[:2000]}"


def run(command, environment, seconds):
    """Exit code (negative: a signal), standard output, standard error and what was used."""
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=errors, env=environment)
        timer = threading.Timer(seconds, process.kill)
        timer.start()
        _, status, used = os.wait4(process.pid, 0)
        timer.cancel()
        process.returncode = os.waitstatus_to_exitcode(status)  # it is waited for already
        output.seek(0)
        errors.seek(0)
        return process.returncode, text_of(output.read()), text_of(errors.read()), used
