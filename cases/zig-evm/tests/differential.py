#!/usr/bin/env python3
"""Runs generated programs in evm and in geth's `evm run`: same output, gas and status.

differential.py EVM GETH [COUNT [FIRST]]. A program is made from its number alone, so that one that
differs can be made again: it is printed with both answers, and kept.
"""

import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

CONFIG = {"chainId": 1, "terminalTotalDifficulty": 0, "shanghaiTime": 0, "cancunTime": 0}
CONFIG |= {f"{name}Block": 0 for name in (
    "homestead eip150 eip155 eip158 byzantium constantinople petersburg istanbul berlin london mergeNetsplit").split()}
CONFIG["blobSchedule"] = {"cancun": {"target": 3, "max": 6, "baseFeeUpdateFraction": 3338477}}
OTHERS = [0xAA, 0xBB, 0xCC]
# What geth calls the endings, by their beginning.
STATUS = {
    "": "success", "execution reverted": "reverted", "out of gas": "out of gas",
    "gas uint64 overflow": "out of gas", "not enough gas for reentrancy": "out of gas",
    "max initcode size": "out of gas", "stack underflow": "stack underflow",
    "stack limit": "stack overflow", "invalid jump": "invalid jump",
    "invalid opcode": "invalid instruction", "write protection": "write in a static call",
    "return data": "return data out of bounds",
}
# Instructions by how many words they take, leaving one; without jumps, memory and other accounts.
TAKES = {
    0: [0x30, 0x32, 0x33, 0x34, 0x36, 0x38, 0x3A, 0x3D, 0x41, 0x42, 0x43, 0x44, 0x45, 0x46, 0x47, 0x48, 0x4A, 0x58, 0x59, 0x5A],
    1: [0x15, 0x19, 0x35, 0x40, 0x49],
    2: [*range(0x01, 0x08), 0x0A, 0x0B, *range(0x10, 0x15), 0x16, 0x17, 0x18, *range(0x1A, 0x1E)],
    3: [0x08, 0x09],
}


class Program:
    """Code that is written with an eye on the stack, and sometimes without."""

    def __init__(self, rng, depth=0):
        self.rng, self.code, self.depth = rng, bytearray(), depth
        self.height = 0

    def op(self, byte, takes=0, leaves=0):
        self.code.append(byte)
        self.height += leaves - takes

    def push(self, value):
        size = max(1, (value.bit_length() + 7) // 8)
        if value == 0 and self.rng.random() < 0.5:
            self.code.append(0x5F)
        else:
            self.code.append(0x5F + size)
            self.code += value.to_bytes(size, "big")
        self.height += 1

    def word(self):
        rng = self.rng
        kind = rng.randrange(7)
        if kind == 0:
            return rng.choice([0, 1, 2, 31, 32, 255, 256, 2**255, 2**256 - 1, 2**128, 2**64 - 1, 2**255 - 1])
        if kind == 1:
            return rng.getrandbits(256)
        if kind == 2:
            return (2**256 - rng.getrandbits(rng.randrange(1, 130))) % 2**256
        return rng.getrandbits(rng.randrange(1, 257)) if kind < 5 else rng.randrange(64)

    def offset(self):
        """Mostly near, at times far, rarely absurd."""
        chance = self.rng.random()
        if chance < 0.9:
            return self.rng.randrange(200)
        return self.rng.randrange(100_000) if chance < 0.985 else self.word()

    def need(self, n):
        while self.height < n:
            self.push(self.word())

    def compute(self):
        takes = self.rng.choices([0, 1, 2, 3], [2, 2, 12, 2])[0]
        self.need(takes)
        self.op(self.rng.choice(TAKES[takes]), takes, 1)

    def shuffle(self):
        n = self.rng.randrange(16)
        self.need(n + 2)
        self.op((0x80 if self.rng.random() < 0.5 else 0x90) + n)
        self.height += self.code[-1] < 0x90

    def memory(self):
        kind = self.rng.randrange(8)
        if kind < 3:
            self.need(1)
            self.push(self.offset())
            self.op(0x52 if kind else 0x53, 2)
        elif kind == 3:
            self.push(self.offset())
            self.op(0x51, 1, 1)
        elif kind == 4:
            self.push(self.offset())
            self.push(self.offset())
            self.op(0x20, 2, 1)
        elif kind < 7:
            for _ in range(3):
                self.push(self.offset())
            self.op(self.rng.choice([0x37, 0x39, 0x5E, 0x5E, 0x3E if self.rng.random() < 0.2 else 0x39]), 3)
        else:
            topics = self.rng.randrange(5)
            for _ in range(topics):
                self.push(self.word())
            self.push(self.offset())
            self.push(self.offset())
            self.op(0xA0 + topics, 2 + topics)

    def storage(self):
        key = self.rng.randrange(4)
        kind = self.rng.randrange(4)
        if kind < 2:
            self.push(self.rng.choice([0, 0, 1, 2, self.word()]))
            self.push(key)
            self.op(0x55 if kind else 0x5D, 2)
        else:
            self.push(key)
            self.op(0x54 if kind == 2 else 0x5C, 1, 1)

    def jump(self):
        """Over a few bytes forward; now and then to anywhere."""
        skipped = bytes(self.rng.getrandbits(8) for _ in range(self.rng.randrange(4)))
        conditional = self.rng.random() < 0.6
        if conditional:
            self.push(self.rng.choice([0, 1, self.word()]))
            skipped = b""
        target = len(self.code) + 4 + len(skipped)
        if self.rng.random() < 0.03:
            target = self.rng.randrange(300)
        self.code += bytes([0x61]) + target.to_bytes(2, "big")
        self.height += 1
        self.op(0x57 if conditional else 0x56, 2 if conditional else 1)
        self.code += skipped + b"\x5b"

    def account(self):
        target = self.rng.choice(OTHERS + [0xDD, 1, 2, 4])
        kind = self.rng.randrange(10)
        if kind < 3:
            self.push(target)
            self.op([0x31, 0x3B, 0x3F][kind], 1, 1)
        elif kind == 3:
            for _ in range(3):
                self.push(self.offset())
            self.push(target)
            self.op(0x3C, 4)
        elif kind < 8:
            op = self.rng.choice([0xF1, 0xF1, 0xF2, 0xF4, 0xFA])
            for _ in range(4):
                self.push(self.offset() if self.rng.random() < 0.5 else 0)
            if op in (0xF1, 0xF2):
                self.push(self.rng.choice([0, 0, 1, 7, 10**6]))
            self.push(target)
            if self.rng.random() < 0.5:
                self.op(0x5A, 0, 1)
            else:
                self.push(self.rng.choice([0, 2300, 10_000, 100_000]))
            takes = 7 if op in (0xF1, 0xF2) else 6
            self.op(op, takes, 1)
        elif kind == 8 and self.depth == 0:
            self.create()
        elif self.rng.random() < 0.2:
            self.push(target)
            self.op(0xFF, 1)

    def create(self):
        init = Program(self.rng, 1).generate(self.rng.randrange(1, 8))[:64]
        for i in range(0, len(init), 32):
            self.push(int.from_bytes(init[i : i + 32].ljust(32, b"\0"), "big"))
            self.push(i)
            self.op(0x52, 2)
        salted = self.rng.random() < 0.5
        if salted:
            self.push(self.rng.randrange(3))
        self.push(len(init))
        self.push(0)
        self.push(self.rng.choice([0, 0, 1, 10**6]))
        self.op(0xF5 if salted else 0xF0, 4 if salted else 3, 1)

    def generate(self, steps):
        weights = [10, 3, 5, 2, 2, 3]
        kinds = [self.compute, self.shuffle, self.memory, self.storage, self.jump, self.account]
        for _ in range(steps):
            self.rng.choices(kinds, weights)[0]()
            if self.rng.random() < 0.002:
                self.code.append(self.rng.getrandbits(8))
        ending = self.rng.random()
        if ending < 0.9:
            # The stack's words, as many as there are, then all of memory that may be of interest.
            for i in range(min(max(self.height, 0), 6)):
                self.push(32 * i)
                self.op(0x52, 2)
            self.push(self.rng.choice([192, 192, 256]))
            self.push(0)
            self.op(0xF3 if ending < 0.8 else 0xFD, 2)
        return bytes(self.code)


def generate(number):
    """Code, accounts, gas and input of the program with this number."""
    rng = random.Random(number)
    if number % 20 == 0:
        code = bytes(rng.getrandbits(8) for _ in range(rng.randrange(1, 100)))
    else:
        code = Program(rng).generate(rng.randrange(1, 60))
    alloc = {}
    for other in OTHERS:
        alloc[f"0x{other:040x}"] = {
            "balance": hex(rng.choice([0, 1, 1000])), "nonce": hex(rng.choice([0, 1])),
            "code": "0x" + Program(rng, 1).generate(rng.randrange(12)).hex(),
            "storage": {f"0x{key:064x}": f"0x{rng.choice([1, 2, 3]):064x}" for key in range(rng.randrange(3))},
        }
    alloc["0x0000000000000000000000007265636569766572"] = {"balance": hex(rng.choice([0, 100]))}
    gas = rng.choice([10_000_000, 1_000_000, 100_000, rng.randrange(1, 60_000)])
    return code, alloc, gas, bytes(rng.getrandbits(8) for _ in range(rng.randrange(80)))


def ours(evm, code, prestate, gas, data):
    done = subprocess.run([evm, "--gas", str(gas), "--prestate", prestate, "--input", data, code], capture_output=True, text=True)
    if done.returncode not in (0, 1):
        return ("refused", done.stderr.strip(), "")
    lines = {}
    for line in done.stdout.splitlines():
        key, _, value = line.partition(" ")
        lines[key] = value.strip()
    return lines["status"], lines["gas"], lines["output"]


def theirs(geth, code, prestate, gas, data):
    done = subprocess.run(
        [geth, "run", "--prestate", prestate, "--gas", str(gas), "--input", data, "--codefile", code, "--statdump"],
        capture_output=True, text=True)
    lines = done.stdout.splitlines()
    error = lines[1].strip().removeprefix("error: ") if len(lines) > 1 else ""
    status = next((s for start, s in STATUS.items() if start and error.startswith(start)), "success" if not error else error)
    used = next(line.split()[-1] for line in done.stderr.splitlines() if line.startswith("EVM gas used"))
    return status, used, lines[0] or "0x"


def compare(evm, geth, folder, number):
    code, alloc, gas, data = generate(number)
    code_file, prestate = folder / f"{number}.hex", folder / f"{number}.json"
    code_file.write_text(code.hex())
    prestate.write_text(json.dumps({"config": CONFIG, "difficulty": "0x0", "gasLimit": "0x0", "alloc": alloc}))
    arguments = code_file, prestate, gas, "0x" + data.hex()
    a, b = ours(evm, *arguments), theirs(geth, *arguments)
    if a == b:
        code_file.unlink()
        prestate.unlink()
    return number, a, b


def main():
    evm, geth = sys.argv[1:3]
    count = int(sys.argv[3]) if len(sys.argv) > 3 else 10_000
    first = int(sys.argv[4]) if len(sys.argv) > 4 else 1
    endings, differing = {}, 0
    folder = pathlib.Path(tempfile.mkdtemp(prefix="zig-evm-differential-"))
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        for number, a, b in pool.map(lambda n: compare(evm, geth, folder, n), range(first, first + count)):
            endings[b[0]] = endings.get(b[0], 0) + 1
            if a != b:
                differing += 1
                print(f"program {number} differs ({folder}/{number}.hex, .json)\n  evm:  {a}\n  geth: {b}")
    told = ", ".join(f"{n} {status}" for status, n in sorted(endings.items(), key=lambda e: -e[1]))
    print(f"{count} programs, {differing} differ; by how they ended: {told}")
    if differing:
        sys.exit(1)
    folder.rmdir()


if __name__ == "__main__":
    main()
