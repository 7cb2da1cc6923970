"""One program per language, with a pair of functions for each element type and size.

Both make a struct of an array, have it filled by a function that the compiler cannot see into, and
hand its address to another (with a number, lest compilers make one function of several). `constructed` lets the language's own idiom of a constructor do the
first step; `in_place` declares the value and fills it where it is. A program is called with the
number of a function and a count, and prints how often the value had another address after its
construction than during it.
"""

# What no compiler sees into. It tells whether a value was moved: by its address.
OPAQUE = """
#include <stdint.h>
static void *filled;
static uint64_t moves;
void opaque_fill(void *value) { filled = value; *(volatile char *)value = 1; }
void opaque_use(void *value, uint32_t number) { (void)number; moves += value != filled; }
uint64_t opaque_moves(void) { return moves; }
"""

CPP = {
    "file": "study.cpp",
    "types": {"UInt8": "uint8_t", "UInt32": "uint32_t", "UInt64": "uint64_t", "Float64": "double"},
    "head": """
#include <cstdint>
#include <cstdio>
#include <cstdlib>
extern "C" { void opaque_fill(void *); void opaque_use(void *, uint32_t); uint64_t opaque_moves(); }
""",
    "each": """
struct NAME {
    TYPE state[COUNT];
    CONSTRUCTOR
    void start() { opaque_fill(state); }
};
[[gnu::noinline]] static void constructed_NAME() { NAME made MAKE; opaque_use(made.state, NUMBER); }
[[gnu::noinline]] static void in_place_NAME() { NAME made IN_PLACE; opaque_use(made.state, 1000 + NUMBER); }
""",
    "entry": "    constructed_NAME, in_place_NAME,\n",
    "tail": """
static void (*const functions[])() = {
ENTRIES};
int main(int, char **arguments) {
    auto *function = functions[atoi(arguments[1])];
    for (long left = atol(arguments[2]); left > 0; left--) function();
    printf("%lu\\n", (unsigned long)opaque_moves());
}
""",
}

RUST = {
    "file": "study.rs",
    "types": {"UInt8": "u8", "UInt32": "u32", "UInt64": "u64", "Float64": "f64"},
    "head": """
use std::mem::MaybeUninit;
unsafe extern "C" {
    fn opaque_fill(value: *mut u8);
    fn opaque_use(value: *mut u8, number: u32);
    fn opaque_moves() -> u64;
}
""",
    "each": """
struct NAME { state: [TYPE; COUNT] }
impl NAME {
    fn new() -> Self {
        CONSTRUCTOR
    }
}
#[inline(never)]
fn constructed_NAME() {
    let mut made = NAME::new();
    unsafe { opaque_use(made.state.as_mut_ptr().cast(), NUMBER) }
}
#[inline(never)]
fn in_place_NAME() {
    let mut made = IN_PLACE;
    let at = std::ptr::from_mut(&mut made).cast();
    unsafe { opaque_fill(at); opaque_use(at, 1000 + NUMBER) }
}
""",
    "entry": "    constructed_NAME, in_place_NAME,\n",
    "tail": """
const FUNCTIONS: &[fn()] = &[
ENTRIES];
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let function = FUNCTIONS[arguments[1].parse::<usize>().unwrap()];
    for _ in 0..arguments[2].parse::<u64>().unwrap() { function() }
    println!("{}", unsafe { opaque_moves() });
}
""",
}

ZIG = {
    "file": "study.zig",
    "types": {"UInt8": "u8", "UInt32": "u32", "UInt64": "u64", "Float64": "f64"},
    "head": """
const std = @import("std");
extern fn opaque_fill(value: *anyopaque) void;
extern fn opaque_use(value: *anyopaque, number: u32) void;
extern fn opaque_moves() u64;
""",
    "each": """
const NAME = struct {
    state: [COUNT]TYPE,
    fn init() NAME {
        var made: NAME = undefined;
        opaque_fill(&made.state);
        return made;
    }
    fn start(self: *NAME) void {
        opaque_fill(&self.state);
    }
};
noinline fn constructed_NAME() void {
    var made = NAME.init();
    opaque_use(&made.state, NUMBER);
}
noinline fn in_place_NAME() void {
    var made: NAME = undefined;
    made.start();
    opaque_use(&made.state, 1000 + NUMBER);
}
""",
    "entry": "    &constructed_NAME, &in_place_NAME,\n",
    "tail": """
const functions = [_]*const fn () void{
ENTRIES};
pub fn main() !void {
    const arguments = try std.process.argsAlloc(std.heap.c_allocator);
    const function = functions[try std.fmt.parseInt(usize, arguments[1], 10)];
    var left = try std.fmt.parseInt(u64, arguments[2], 10);
    while (left > 0) : (left -= 1) function();
    try std.io.getStdOut().writer().print("{d}\\n", .{opaque_moves()});
}
""",
}

# A call of C would put the value on the heap: the opaque functions are Go's own here.
GO = {
    "file": "study.go",
    "types": {"UInt8": "uint8", "UInt32": "uint32", "UInt64": "uint64", "Float64": "float64"},
    "head": """
package main

import (
	"fmt"
	"os"
	"strconv"
	"unsafe"
)

var filled uintptr
var moves uint64

//go:noinline
func opaqueFill(value unsafe.Pointer) { filled = uintptr(value); *(*byte)(value) = 1 }

//go:noinline
func opaqueUse(value unsafe.Pointer, _ uint32) { if uintptr(value) != filled { moves++ } }
""",
    "each": """
type NAME struct{ state [COUNT]TYPE }

func newNAME() NAME {
	var made NAME
	opaqueFill(unsafe.Pointer(&made.state))
	return made
}

func (made *NAME) start() { opaqueFill(unsafe.Pointer(&made.state)) }

//go:noinline
func constructed_NAME() {
	made := newNAME()
	opaqueUse(unsafe.Pointer(&made.state), NUMBER)
}

//go:noinline
func in_place_NAME() {
	var made NAME
	made.start()
	opaqueUse(unsafe.Pointer(&made.state), 1000 + NUMBER)
}
""",
    "entry": "\tconstructed_NAME, in_place_NAME,\n",
    "tail": """
var functions = []func(){
ENTRIES}

func main() {
	number, _ := strconv.Atoi(os.Args[1])
	count, _ := strconv.Atoi(os.Args[2])
	for function := functions[number]; count > 0; count-- {
		function()
	}
	fmt.Println(moves)
}
""",
}

CRYSTAL = {
    "file": "study.cr",
    "types": {name: name for name in ("UInt8", "UInt32", "UInt64", "Float64")},
    "head": """
lib Opaque
  fun fill = opaque_fill(value : Void*)
  fun use = opaque_use(value : Void*, number : UInt32)
  fun moves = opaque_moves : UInt64
end
""",
    "each": """
struct NAME
  def initialize
    @state = uninitialized TYPE[COUNT]
    Opaque.fill(self)
  end

  def start : Nil
    Opaque.fill(self)
  end

  def to_unsafe
    pointerof(@state).as(Void*)
  end
end

@[NoInline]
def constructed_NAME : Nil
  made = NAME.new
  Opaque.use(made, NUMBER)
end

@[NoInline]
def in_place_NAME : Nil
  made = uninitialized NAME
  made.start
  Opaque.use(made, 1000 + NUMBER)
end
""",
    "entry": "  ->constructed_NAME, ->in_place_NAME,\n",
    "tail": """
FUNCTIONS = [
ENTRIES]
function = FUNCTIONS[ARGV[0].to_i]
ARGV[1].to_i.times { function.call }
puts Opaque.moves
""",
}


def replaced(text, words):
    """The text with each of the words replaced."""
    for word, by in words.items():
        text = text.replace(word, by)
    return text


def idiom(program, **words):
    """The program with these parts in it."""
    return program | {"each": replaced(program["each"], words)}


GPP = "g++ -O2 -o OUT FILE opaque.o"
RUSTC = "rustc -C opt-level=3 -C link-arg=opaque.o --cap-lints allow -o OUT FILE"

# Language and idiom, the program, and what builds it (FILE to OUT, with opaque.o).
LANGUAGES = [
    ("Crystal, `new`", CRYSTAL, "crystal build --release --link-flags $PWD/opaque.o -o OUT FILE"),
    ("C++, constructor",
     idiom(CPP, MAKE="", IN_PLACE="{NAME::Empty{}}; made.start()",
           CONSTRUCTOR="struct Empty {}; NAME() { opaque_fill(state); } NAME(Empty) {}"), GPP),
    ("C++, function that returns it",
     idiom(CPP, MAKE="= NAME::make()", IN_PLACE="; made.start()",
           CONSTRUCTOR="static NAME make() { NAME made; made.start(); return made; }"), GPP),
    ("Rust, `new` of zeros",
     idiom(RUST, IN_PLACE="NAME { state: [0 as TYPE; COUNT] }",
           CONSTRUCTOR="""let mut made = Self { state: [0 as TYPE; COUNT] };
        unsafe { opaque_fill(made.state.as_mut_ptr().cast()) }
        made"""), RUSTC),
    ("Rust, `new` of `MaybeUninit`",
     idiom(RUST, IN_PLACE="MaybeUninit::<NAME>::uninit()",
           CONSTRUCTOR="""let mut made = MaybeUninit::<Self>::uninit();
        unsafe { opaque_fill(made.as_mut_ptr().cast()); made.assume_init() }"""), RUSTC),
    ("Go, `newT`", GO, "go build -o OUT FILE"),
    ("Zig, `init`", ZIG,
     "python3 -m ziglang build-exe FILE opaque.o -O ReleaseFast -lc -femit-bin=OUT"),
]


def source(program, kinds):
    """The text of a program for these kinds: pairs of element type and size in bytes."""
    each, entries = "", ""
    for number, (element, size) in enumerate(kinds):
        count = size // (8 if element.endswith("64") else 4 if element.endswith("32") else 1)
        words = {"NAME": name(element, size), "TYPE": program["types"][element], "COUNT": str(count),
                 "NUMBER": str(number)}
        each += replaced(program["each"], words)
        entries += replaced(program["entry"], words)
    return program["head"] + each + program["tail"].replace("ENTRIES", entries)


def name(element, size):
    """The name of the struct, which no other's name contains."""
    return f"Sized{element}x{size}x"
