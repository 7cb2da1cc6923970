#!/usr/bin/env python3
"""Measures from which size a struct is copied after its constructor, in five languages, for four types.

Usage: threshold.py FOLDER. Builds `threshold/programs.py` there and prints the table. The running
program shows a copy: the value has another address after its construction than during it. The machine code
shows how often and how it is copied. The cost is measured: CPU time of a construction minus that of filling
the same value in place, minimum of some alternating rounds.
"""
import hashlib
import os
import re
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "threshold"))
import programs  # noqa: E402  (its folder is known only now)

ELEMENTS = ["UInt8", "UInt32", "UInt64", "Float64"]
SIZES = [8, 16, 32, 64, 128, 256, 512, 1024, 1280, 1536, 1912]
# The sizes whose time is measured.
TIMED = [64, 512, 1912]
ROUNDS = 7

# One instruction, in Intel's syntax: its address, name and operands.
INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\s+(?:rep |bnd |notrack )?(\w+)\s*(.*)$")
MEMORY = re.compile(r"^(BYTE|WORD|DWORD|QWORD|XMMWORD|YMMWORD|ZMMWORD) PTR (\S+)$")
WIDTHS = {"BYTE": 1, "WORD": 2, "DWORD": 4, "QWORD": 8, "XMMWORD": 16, "YMMWORD": 32, "ZMMWORD": 64}
COPIERS = re.compile(r"<(?:runtime\.)?(memcpy|memmove|duffcopy)\b")


def build(language, program, command, folder):
    """Builds the program of a language, and returns its path. One that was built stays: LLVM takes
    minutes for what Crystal makes of large arrays of bytes."""
    os.makedirs(folder, exist_ok=True)
    built = os.path.join(folder, "study")
    command = command.replace("FILE", program["file"]).replace("OUT", "study")
    steps = ["cc -O2 -c opaque.c -o opaque.o", command]
    texts = {"opaque.c": programs.OPAQUE, program["file"]: programs.source(program, kinds())}
    of = hashlib.sha256(repr((steps, texts)).encode()).hexdigest()
    if os.path.exists(built) and os.path.exists(os.path.join(folder, of)):
        return built
    for file, text in texts.items():
        with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
            out.write(text)
    environment = os.environ | {"CGO_ENABLED": "0"}
    for step in steps:
        if subprocess.run(step, shell=True, cwd=folder, env=environment, check=False).returncode != 0:
            sys.exit(f"{language}: `{step}` failed in {folder}; `./setup.sh cases` installs compilers")
    with open(os.path.join(folder, of), "w", encoding="utf-8"):
        return built


def kinds():
    """All pairs of element type and size, in the order of the functions."""
    return [(element, size) for element in ELEMENTS for size in SIZES]


def run(program, number, count):
    """CPU time of one run in nanoseconds, and how often the value was moved."""
    child = subprocess.Popen([program, str(number), str(count)], stdout=subprocess.PIPE)
    printed = child.stdout.read()
    _, status, usage = os.wait4(child.pid, 0)
    child.returncode = status
    if status != 0:
        sys.exit(f"{program} {number} {count} ended with {status}")
    return (usage.ru_utime + usage.ru_stime) * 1e9, int(printed)


def moved(program, kind):
    """Whether the value is elsewhere after its construction; never so if it is filled in place."""
    number, count = 2 * kinds().index(kind), 1000
    if run(program, number + 1, count)[1] > 1:
        sys.exit(f"{program}: {kind} was moved though it was filled in place")
    # A stack that grows moves everything once.
    return run(program, number, count)[1] > 1


def extra_ns(program, kind):
    """What a construction takes more than filling in place."""
    number, count = 2 * kinds().index(kind), 500_000
    least = [float("inf")] * 2
    for _ in range(ROUNDS):
        for form in (0, 1):
            least[form] = min(least[form], run(program, number + form, count)[0] / count)
    return least[0] - least[1]


def functions(program):
    """The instructions of each function that belongs to a struct of the study, by its address, and
    those addresses by name."""
    listed = subprocess.run(["nm", "-C", program], capture_output=True, text=True, check=True).stdout
    symbols = [line.split(" ", 2) for line in listed.splitlines() if "Sized" in line]
    addresses = {name: int(address, 16) for address, _, name in symbols}
    text = subprocess.run(["objdump", "-dC", "-M", "intel", "--no-show-raw-insn", program],
                          capture_output=True, text=True, check=True).stdout
    found, current = {}, None
    for line in text.splitlines():
        if line.endswith(">:"):
            at = int(line.split()[0], 16)
            current = found.setdefault(at, []) if at in addresses.values() else None
        elif current is not None and (match := INSTRUCTION.match(line)):
            current.append((int(match[1], 16), line.split("\t", 1)[1].strip(), match[2], match[3]))
    return addresses, found


def copies(code, kind):
    """How many copies the machine code of caller and constructor makes, and with what."""
    addresses, functions_at = code
    wanted = [at for name, at in addresses.items()
              if programs.name(*kind) in name and "constructed" in name and at in functions_at]
    if len(set(wanted)) != 1:
        sys.exit(f"{kind}: the machine code has {len(wanted)} functions for it")
    count, ways, seen = 0, set(), set()
    while wanted:
        at = wanted.pop()
        if at in seen:
            continue
        seen.add(at)
        wanted.extend(target for _, _, op, operands in functions_at[at]
                      if op in ("call", "jmp") and (target := address_in(operands)) in functions_at)
        more, by = copies_of(functions_at[at], kind[1])
        count += more
        ways.update(by)
    return count, "+".join(sorted(ways))


def address_in(operands):
    """Where a jump or a call goes, if its operand says so."""
    match = re.match(r"([0-9a-f]+) <", operands)
    return int(match[1], 16) if match else -1


def copies_of(code, size):
    """The copies in one function: as calls, string instructions, loops or runs of moves."""
    count, ways = 0, []
    for _, text, op, operands in code:
        if op.startswith("movs") and "rep" in text:
            count, ways = count + 1, ways + ["rep movs"]
        elif op in ("call", "jmp") and (call := COPIERS.search(operands)):
            count, ways = count + 1, ways + [call[1]]
    pairs = moves(code)
    # Where a jump goes back over moves, these are a loop that copies the whole.
    for address, _, op, operands in code:
        target = address_in(operands)
        # Go jumps back to a function's start for a larger stack.
        if op.startswith("j") and code[0][0] < target < address:
            inside = [p for p in pairs if target <= p[0] <= address]
            if inside:
                pairs = [p for p in pairs if p not in inside]
                count, ways = count + 1, ways + ["loop"]
    whole = round(sum(width for _, width in pairs) / size)
    if whole:
        widest = max(width for _, width in pairs)
        ways.append({16: "xmm", 32: "ymm", 64: "zmm"}.get(widest, "words"))
    return count + whole, ways


def moves(code):
    """Where a register that was loaded from memory is stored in memory, and how many bytes."""
    loaded, pairs = {}, []
    for address, _, op, operands in code:
        to, _, origin = operands.partition(",")
        into, source = MEMORY.match(to), MEMORY.match(origin)
        # What goes back to where it came from was not copied.
        if "mov" in op and into and loaded.get(register(origin), into[2]) != into[2]:
            pairs.append((address, WIDTHS[into[1]]))
        elif "mov" in op and source and not re.search(r"rip|fs:", source[2]):
            loaded[register(to)] = source[2]
        else:
            loaded.pop(register(to), None)
    return pairs


def register(operand):
    """The name of the whole register: `eax` and `al` are parts of `rax`."""
    name = re.sub(r"^[yz]mm", "xmm", operand.strip())
    if match := re.match(r"^[re]?([abcd])[xlh]$", name):
        return match[1]
    return re.sub(r"^[re]?([sd]i|bp)l?$|^(r\d+)[dwb]$", lambda m: m[1] or m[2], name)


def row(program, all_functions, element):
    """The cells of an element type: when it is copied, how often and how, and what that takes."""
    is_moved = {size: moved(program, (element, size)) for size in SIZES}
    first = next((f"{size} B" for size in SIZES if is_moved[size]), "never")
    if not all(is_moved[size] for size in SIZES if first != "never" and size >= int(first[:-2])):
        first += ", not all above"
    cells = []
    for size in SIZES:
        count, ways = copies(all_functions, (element, size))
        cell = f"{count} by {ways}" if count else "–"
        if is_moved[size] != (count > 0):
            cell += " (by its address: " + ("moved)" if is_moved[size] else "not moved)")
        cells.append(cell)
    times = [f"{extra_ns(program, (element, size)):.1f}" for size in TIMED]
    return [first] + cells, times


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    heads = ["constructor", "elements", "copied from"] + [f"{size} B" for size in SIZES]
    heads += [f"ns, {size} B" for size in TIMED]
    print("| " + " | ".join(heads) + " |")
    print("|" + "---|" * len(heads), flush=True)
    for at, (language, program, command) in enumerate(programs.LANGUAGES):
        built = build(language, program, command, os.path.join(sys.argv[1], str(at)))
        code = functions(built)
        # Rows that differ in nothing but their times are one.
        rows = {}
        for element in ELEMENTS:
            cells, times = row(built, code, element)
            rows.setdefault(tuple(cells), []).append((element, times))
        for cells, members in rows.items():
            names = "all" if len(members) == len(ELEMENTS) else ", ".join(e for e, _ in members)
            spans = [span(column) for column in zip(*(times for _, times in members))]
            print("| " + " | ".join([language, names, *cells, *spans]) + " |", flush=True)


def span(times):
    """The least and the largest of these."""
    least, most = min(times, key=float), max(times, key=float)
    return least if least == most else f"{least} to {most}"


if __name__ == "__main__":
    main()
