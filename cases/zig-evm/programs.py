#!/usr/bin/env python3
"""Writes the programs that the case weighs and the bench runs, as hex and as bytes: programs.py FOLDER.

Each returns one word, so that results can be compared.
"""

import pathlib
import sys

RETURN_TOP = "5f5260205ff3"  # PUSH0 MSTORE PUSH1 32 PUSH0 RETURN


def count_deep(n):
    """All ones first, then all additions: as deep as the stack allows for n = 1000."""
    return "6001" * n + "01" * (n - 1) + RETURN_TOP


def count_flat(n):
    """One after the other: as long as the code of a creation may be, for n = 16000."""
    return "6001" + "600101" * (n - 1) + RETURN_TOP


def loop(body, times, prepare="5f"):
    """Runs `body` so often; it finds the counter on top of the stack and leaves it there.

    `prepare` pushes what lies under the counter and is returned at the end.
    """
    head = prepare + f"63{times:08x}"
    start = len(head) // 2
    back = f"6001900380{0x60:02x}{start:02x}57"  # SWAP1 SUB DUP1 PUSH1 start JUMPI
    return head + "5b" + body + back + "50" + RETURN_TOP


def keccak_loop(times):
    """Hashes one word of memory over itself."""
    return loop("60205f205f52", times, prepare="5f").replace("50" + RETURN_TOP, "505f51" + RETURN_TOP)


def copy_loop(times):
    """Moves 4 KiB of memory by one word."""
    # MSTORE(0, 7) first; MCOPY(32, 0, 4096)
    return loop("6110005f60205e", times, prepare="60075f525f").replace("50" + RETURN_TOP, "5061100051" + RETURN_TOP)


def arithmetic_loop(times):
    """x = (x * c + n) mod m, for words of full size, n the counter."""
    c = "7f" + "f123456789abcdef" * 4
    m = "7f" + "e" * 63 + "1"
    # [x, n] -> DUP2 c MUL DUP2 ADD m SWAP1 MOD; into x
    return loop("81" + c + "02" + "81" + "01" + m + "9006" + "9150", times, prepare="6003")


PROGRAMS = {
    "return-one": "6001" + RETURN_TOP,
    "count-to-1000": count_deep(1000),
    "count-to-16000": count_flat(16000),
    "keccak-loop": keccak_loop(20_000),
    "copy-loop": copy_loop(20_000),
    "arithmetic-loop": arithmetic_loop(20_000),
}


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for name, code in PROGRAMS.items():
        (folder / f"{name}.hex").write_text(code + "\n")
        (folder / f"{name}.bin").write_bytes(bytes.fromhex(code))


if __name__ == "__main__":
    main()
