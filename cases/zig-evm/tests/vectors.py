#!/usr/bin/env python3
"""Checks evm against go-ethereum's vectors, one instruction or precompile at a time.

vectors.py EVM TESTDATA. Each vector becomes a program of its own; vectors of one instruction are
put into one program that returns all results, so that it is one process and not a thousand.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

# The file's name to the instruction's byte.
BINARY = {
    "add": 0x01, "mul": 0x02, "sub": 0x03, "div": 0x04, "sdiv": 0x05, "mod": 0x06, "smod": 0x07,
    "exp": 0x0A, "signext": 0x0B, "lt": 0x10, "gt": 0x11, "slt": 0x12, "sgt": 0x13, "eq": 0x14,
    "and": 0x16, "or": 0x17, "xor": 0x18, "byte": 0x1A, "shl": 0x1B, "shr": 0x1C, "sar": 0x1D,
}
PRECOMPILES = {
    "ecRecover": 1, "modexp_eip2565": 5, "blake2F": 9, "fail-blake2f": 9,
}


def run(evm, code, folder, *arguments):
    path = folder / "code.hex"
    path.write_text(code)
    done = subprocess.run([evm, "--gas", "100000000000", *arguments, path], capture_output=True, text=True)
    if done.returncode == 2:
        return "refused", done.stderr.strip()
    lines = dict(line.split(None, 1) for line in done.stdout.splitlines())
    return lines["status"], lines["output"][2:]


def instructions(evm, testdata, folder):
    checked = 0
    for name, byte in BINARY.items():
        vectors = json.loads((testdata / f"testcases_{name}.json").read_text())
        code = ""
        for i, vector in enumerate(vectors):
            # Y on top of X on the stack is how the vectors are meant.
            code += f"7f{vector['X']}7f{vector['Y']}{byte:02x}62{32 * i:06x}52"
        code += f"62{32 * len(vectors):06x}5ff3"
        status, output = run(evm, code, folder)
        if status != "success":
            sys.exit(f"{name}: {status} {output}")
        for i, vector in enumerate(vectors):
            got = output[64 * i : 64 * i + 64]
            if got != vector["Expected"]:
                sys.exit(f"{name}: {vector} gave {got}")
        checked += len(vectors)
    return checked


def precompiles(evm, testdata, folder):
    checked = 0
    for name, address in PRECOMPILES.items():
        for vector in json.loads((testdata / "precompiles" / f"{name}.json").read_text()):
            gas = vector.get("Gas", 1_000_000)
            # Input to memory; CALL; [worked, gas before - gas after] and all that came back.
            size = len(vector["Input"]) // 2
            code = "365f5f37" + "5a" + f"5f5f365f5f60{address:02x}63{gas:08x}f1"
            code += "5a90" + "5f52" + "90" + "03" + "602052" + "3d5f60403e" + "3d6040015ff3"
            if size >= 64 * 1024:
                continue
            status, output = run(evm, code, folder, "--input", vector["Input"] or "0x")
            if status != "success":
                sys.exit(f"{name} {vector['Name']}: {status} {output}")
            worked, returned = int(output[:64], 16), output[128:]
            if "Expected" in vector:
                good = worked == 1 and returned == vector["Expected"]
                if good and gas > 0:
                    # One gas less than the vector's must not be enough.
                    short = code.replace(f"63{gas:08x}f1", f"63{gas - 1:08x}f1")
                    less = run(evm, short, folder, "--input", vector["Input"] or "0x")[1]
                    good = int(less[:64], 16) == 0
            else:
                good = worked == 0 and returned == ""
            if not good:
                sys.exit(f"{name} {vector['Name']}: worked {worked}, gave {returned}")
            checked += 1
    return checked


def main():
    evm, testdata = sys.argv[1], pathlib.Path(sys.argv[2])
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        print(f"{instructions(evm, testdata, folder)} vectors of {len(BINARY)} instructions hold")
        print(f"{precompiles(evm, testdata, folder)} vectors of {len(PRECOMPILES) - 1} precompiles hold")


if __name__ == "__main__":
    main()
