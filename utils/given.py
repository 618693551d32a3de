"""What scripts are given: words of the command line, files that they read, and a reader of what they print."""
import argparse
import json
import math
import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
GEMMC = ROOT / "build" / "bin" / "gemmc"


def refuse(complaint):
    """Ends the script, as argparse does: it was asked for what it cannot do."""
    print(f"{pathlib.Path(sys.argv[0]).name}: {complaint}", file=sys.stderr)
    raise SystemExit(2)


# ---- types of arguments ----------------------------------------------------------------------------------------------


def whole(least, most=math.inf):
    """Numbers of a range."""
    def number(text):
        if not least <= int(text) <= most:
            raise argparse.ArgumentTypeError(f"`{text}` is {f'less than {least}' if int(text) < least else f'more than {most}'}")
        return int(text)
    return number


natural = whole(1)
schedules = whole(1, 10 ** 6)  # of `gemmc check`


def program(text):  # not to be looked for on PATH
    path = pathlib.Path(text).resolve()
    if not os.access(path, os.X_OK) or path.is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is no program")
    return path


def there(text):
    if not pathlib.Path(text).exists():
        raise argparse.ArgumentTypeError(f"`{text}` does not exist")
    return pathlib.Path(text)


def file(text):
    if there(text).is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is a folder: name a file")
    return pathlib.Path(text)


def folder(text):
    if not there(text).is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is a file: name a folder")
    return pathlib.Path(text)


def output(text):
    """A file that is to be written."""
    path = pathlib.Path(text)
    if path.is_dir() or not path.parent.is_dir():
        raise argparse.ArgumentTypeError(f"`{text}` is a folder: name a file" if path.is_dir() else
                                         f"`{text}`: there is no folder `{path.parent}`")
    return path


def folder_to_be(text):
    """A folder that is to be written to, made where it is missing."""
    path = pathlib.Path(text)
    for each in (path, *path.parents):
        if each.exists() and not each.is_dir():
            raise argparse.ArgumentTypeError(f"`{each}` is a file: name a folder")
    return path


def add_gemmc(parser):
    parser.add_argument("--gemmc", type=program, default=str(GEMMC), help="default: build/bin/gemmc")


def add_build(parser):
    parser.add_argument("--build", type=lambda text: pathlib.Path(text).resolve(), default=ROOT / "build")


def need_gemmc(parser, build):
    """Ends where a build has none."""
    try:
        program(build / "bin" / "gemmc")
    except argparse.ArgumentTypeError:
        parser.error(f"{build}/bin/gemmc is missing: build it first, carry it here, or name another build (--build)")


# ---- files -----------------------------------------------------------------------------------------------------------


def text_of(path):
    try:
        return path.read_text()
    except UnicodeDecodeError:
        refuse(f"{path} is no text: name another file")
    except OSError as error:
        refuse(f"{path}: {error.strerror}")


def positive(value):
    """A number of JSON that is one; ValueError or TypeError where it is not."""
    if not 0 < float(value) < math.inf:
        raise ValueError(value)
    return float(value)


def rows(path, read, maker):
    """What `read` makes of each line of JSON that `maker` has written. What is none, a run that was stopped, is named and
    passed over; where all is none, or a line is of something else, the script ends."""
    found, strange, text = [], [], text_of(path)
    for number, line in enumerate(text.splitlines(), 1):
        place = f"{path}:{number}"
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            strange.append(f"{place}: no result: {line[:40]}")
            continue
        try:
            found.append(read(entry))
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
            refuse(f"{place}: no result of {maker}, name a file that it has written: {line[:40]}")
    if strange and not found:
        refuse(f"{path}:1: no result of {maker}, name a file that it has written: {text.splitlines()[0][:40]}")
    print("".join(line + "\n" for line in strange), end="", file=sys.stderr)
    return found


def append(path):
    """Opens a file for more lines; one that was cut off does not run into them."""
    cut = path.exists() and path.read_bytes()[-1:] not in (b"", b"\n")
    out = open(path, "a")
    out.write("\n" if cut else "")
    return out


# ---- the run ---------------------------------------------------------------------------------------------------------


def run(main):
    """The exit code of a script. Who reads what it prints may have seen enough (`| head`)."""
    try:
        code = main()
        sys.stdout.flush()
        return code
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what is still to be flushed
        return 141  # of a program that SIGPIPE ends
