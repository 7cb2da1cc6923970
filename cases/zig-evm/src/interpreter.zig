//! The loop: one instruction after the other, until the code stops or may not go on.
//!
//! Each instruction jumps to the next itself (`continue :next`), so that the processor can predict
//! each jump by itself. Program counter, height of the stack and gas are locals.

const std = @import("std");
const words = @import("word.zig");
const Word = words.Word;
const opcode = @import("opcode.zig");
const Op = opcode.Op;
const frames = @import("frame.zig");
const Frame = frames.Frame;
const Error = frames.Error;
const Ending = frames.Ending;
const calls = @import("calls.zig");

/// Runs a frame's code. What it gives back is in `frame.output`, what gas is left in `frame.gas`.
pub fn run(frame: *Frame) Error!Ending {
    return if (frame.machine.trace == null) loop(false, frame) else loop(true, frame);
}

fn loop(comptime traced: bool, frame: *Frame) Error!Ending {
    @setEvalBranchQuota(100_000);
    var m: Registers(traced) = .{ .code = frame.code.padded.ptr, .stack = frame.stack, .gas = frame.gas };
    const context = &frame.machine.context;
    next: switch (m.fetch(frame)) {
        inline 0x01...0x07, 0x0b, 0x10...0x14, 0x16...0x18, 0x1a...0x1d => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            const a = m.pop();
            m.top().* = binary(op, a, m.top().*);
            continue :next m.step(frame);
        },
        inline 0x08, 0x09 => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            const a = m.pop();
            const b = m.pop();
            m.top().* = (if (op == .ADDMOD) words.addMod else words.mulMod)(a, b, m.top().*);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.EXP) => {
            try m.begin(.EXP);
            const base = m.pop();
            try m.pay(50 * words.byteLength(m.top().*));
            m.top().* = words.exp(base, m.top().*);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.ISZERO) => {
            try m.begin(.ISZERO);
            m.top().* = @intFromBool(m.top().* == 0);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.NOT) => {
            try m.begin(.NOT);
            m.top().* = ~m.top().*;
            continue :next m.step(frame);
        },
        @intFromEnum(Op.KECCAK256) => {
            try m.begin(.KECCAK256);
            const at, const size = try m.range(frame, m.pop(), m.top().*);
            try m.pay(6 * wordsIn(size));
            m.top().* = frames.keccak(frame.memory.bytes[at..][0..size]);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.POP) => {
            try m.begin(.POP);
            m.height -= 1;
            continue :next m.step(frame);
        },
        @intFromEnum(Op.MLOAD) => {
            try m.begin(.MLOAD);
            const at = try m.touch(frame, m.top().*, 32);
            m.top().* = frame.memory.load(at);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.MSTORE) => {
            try m.begin(.MSTORE);
            const at = try m.touch(frame, m.pop(), 32);
            frame.memory.store(at, m.pop());
            continue :next m.step(frame);
        },
        @intFromEnum(Op.MSTORE8) => {
            try m.begin(.MSTORE8);
            const at = try m.touch(frame, m.pop(), 1);
            frame.memory.bytes[at] = @truncate(m.pop());
            continue :next m.step(frame);
        },
        @intFromEnum(Op.SLOAD) => {
            try m.begin(.SLOAD);
            m.gas, m.top().* = try frame.sload(m.gas, m.top().*);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.SSTORE) => {
            try m.begin(.SSTORE);
            const key = m.pop();
            m.gas = try frame.sstore(m.gas, key, m.pop());
            continue :next m.step(frame);
        },
        @intFromEnum(Op.TLOAD) => {
            try m.begin(.TLOAD);
            m.top().* = frame.tload(m.top().*);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.TSTORE) => {
            try m.begin(.TSTORE);
            const key = m.pop();
            try frame.tstore(key, m.pop());
            continue :next m.step(frame);
        },
        @intFromEnum(Op.JUMP) => {
            try m.begin(.JUMP);
            try m.jump(frame, m.pop());
            continue :next m.fetch(frame);
        },
        @intFromEnum(Op.JUMPI) => {
            try m.begin(.JUMPI);
            const target = m.pop();
            if (m.pop() == 0) continue :next m.step(frame);
            try m.jump(frame, target);
            continue :next m.fetch(frame);
        },
        @intFromEnum(Op.JUMPDEST) => {
            try m.begin(.JUMPDEST);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.MCOPY) => {
            try m.begin(.MCOPY);
            const to = m.pop();
            const from = m.pop();
            const size = m.pop();
            // Memory reaches as far as the further of the two.
            _, const n = try m.range(frame, @max(to, from), size);
            try m.pay(3 * wordsIn(n));
            if (n > 0) move(frame.memory.bytes, @intCast(to), @intCast(from), n);
            continue :next m.step(frame);
        },
        inline 0x5f...0x7f => |byte| {
            const n = byte - 0x5f;
            try m.begin(@enumFromInt(byte));
            m.push(if (n == 0) 0 else std.mem.readInt(std.meta.Int(.unsigned, 8 * @as(u16, n)), m.code[m.pc + 1 ..][0..n], .big));
            m.pc += n;
            continue :next m.step(frame);
        },
        inline 0x80...0x8f => |byte| {
            try m.begin(@enumFromInt(byte));
            m.push(m.stack[m.height - (byte - 0x7f)]);
            continue :next m.step(frame);
        },
        inline 0x90...0x9f => |byte| {
            try m.begin(@enumFromInt(byte));
            std.mem.swap(Word, m.top(), &m.stack[m.height - 1 - (byte - 0x8f)]);
            continue :next m.step(frame);
        },
        inline 0xa0...0xa4 => |byte| {
            try m.begin(@enumFromInt(byte));
            const n = byte - 0xa0;
            const at, const size = try m.range(frame, m.pop(), m.pop());
            try m.pay(8 * size);
            var topics: [n]Word = undefined;
            for (&topics) |*topic| topic.* = m.pop();
            try frame.log(&topics, frame.memory.bytes[at..][0..size]);
            continue :next m.step(frame);
        },
        // What surrounds the call, one word each.
        inline 0x30, 0x32...0x34, 0x36, 0x38, 0x3a, 0x3d, 0x41...0x48, 0x4a, 0x58...0x5a => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            m.push(switch (op) {
                .ADDRESS => frame.address,
                .ORIGIN => context.origin,
                .CALLER => frame.caller,
                .CALLVALUE => frame.value,
                .CALLDATASIZE => frame.input.len,
                .CODESIZE => frame.code.bytes().len,
                .GASPRICE => context.gas_price,
                .RETURNDATASIZE => frame.returned.len,
                .COINBASE => context.coinbase,
                .TIMESTAMP => context.timestamp,
                .NUMBER => context.number,
                .PREVRANDAO => context.prevrandao,
                .GASLIMIT => context.gas_limit,
                .CHAINID => context.chain_id,
                .SELFBALANCE => frame.state().account(frame.address).balance,
                .BASEFEE => context.base_fee,
                .BLOBBASEFEE => context.blob_base_fee,
                .PC => m.pc,
                .MSIZE => frame.memory.bytes.len,
                .GAS => m.gas,
                else => unreachable,
            });
            continue :next m.step(frame);
        },
        @intFromEnum(Op.CALLDATALOAD) => {
            try m.begin(.CALLDATALOAD);
            m.top().* = frame.inputWord(m.top().*);
            continue :next m.step(frame);
        },
        inline 0x37, 0x39, 0x3e => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            const to = m.pop();
            const from = m.pop();
            const at, const size = try m.range(frame, to, m.pop());
            try m.pay(3 * wordsIn(size));
            const source = switch (op) {
                .CALLDATACOPY => frame.input,
                .CODECOPY => frame.code.bytes(),
                else => frame.returned,
            };
            // Only what a call gave back has an end that may not be passed.
            if (op == .RETURNDATACOPY and (from > source.len or size > source.len - from)) {
                return error.ReturnDataOutOfBounds;
            }
            frame.memory.copyIn(at, size, source, from);
            continue :next m.step(frame);
        },
        inline 0x31, 0x3b, 0x3f => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            m.gas, const account = try frame.look(m.gas, m.top().*);
            m.top().* = switch (op) {
                .BALANCE => account.balance,
                .EXTCODESIZE => account.codeBytes().len,
                else => if (account.isEmpty()) 0 else frames.keccak(account.codeBytes()),
            };
            continue :next m.step(frame);
        },
        @intFromEnum(Op.EXTCODECOPY) => {
            try m.begin(.EXTCODECOPY);
            m.gas, const account = try frame.look(m.gas, m.pop());
            const to = m.pop();
            const from = m.pop();
            const at, const size = try m.range(frame, to, m.pop());
            try m.pay(3 * wordsIn(size));
            frame.memory.copyIn(at, size, account.codeBytes(), from);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.BLOCKHASH) => {
            try m.begin(.BLOCKHASH);
            m.top().* = frame.blockHash(m.top().*);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.BLOBHASH) => {
            try m.begin(.BLOBHASH);
            // Transactions here carry no blobs.
            m.top().* = 0;
            continue :next m.step(frame);
        },
        inline 0xf0, 0xf1, 0xf2, 0xf4, 0xf5, 0xfa => |byte| {
            const op: Op = @enumFromInt(byte);
            try m.begin(op);
            const shape = comptime opcode.shape(op).?;
            m.height -= shape.takes;
            const operands: *const [shape.takes]Word = m.stack[m.height..][0..shape.takes];
            m.gas, const result = try calls.fromCode(op, frame, m.gas, operands);
            m.push(result);
            continue :next m.step(frame);
        },
        @intFromEnum(Op.STOP) => {
            frame.gas = m.gas;
            return .stop;
        },
        inline 0xf3, 0xfd => |byte| {
            try m.begin(@enumFromInt(byte));
            const at, const size = try m.range(frame, m.pop(), m.pop());
            frame.output = frame.memory.bytes[at..][0..size];
            frame.gas = m.gas;
            return if (byte == 0xfd) .revert else .stop;
        },
        @intFromEnum(Op.SELFDESTRUCT) => {
            try m.begin(.SELFDESTRUCT);
            frame.gas = try calls.selfDestruct(frame, m.gas, @truncate(m.pop()));
            return .stop;
        },
        else => return error.InvalidOpcode,
    }
}

/// What the loop keeps in registers.
fn Registers(comptime traced: bool) type {
    return struct {
        code: [*]const u8,
        stack: *frames.Stack,
        gas: u64,
        pc: usize = 0,
        height: usize = 0,

        const Self = @This();

        inline fn fetch(m: *Self, frame: *Frame) u8 {
            const byte = m.code[m.pc];
            if (traced) frame.machine.trace.?.line(frame.depth, m.pc, byte, m.gas, m.stack[0..m.height]);
            return byte;
        }

        inline fn step(m: *Self, frame: *Frame) u8 {
            m.pc += 1;
            return m.fetch(frame);
        }

        /// What every instruction asks for before it looks at its operands.
        inline fn begin(m: *Self, comptime op: Op) Error!void {
            const shape = comptime opcode.shape(op).?;
            if (shape.takes > 0 and m.height < shape.takes) return error.StackUnderflow;
            if (shape.leaves > shape.takes and m.height == m.stack.len) return error.StackOverflow;
            try m.pay(shape.gas);
        }

        inline fn pay(m: *Self, price: u64) Error!void {
            m.gas = try frames.charge(m.gas, price);
        }

        inline fn pop(m: *Self) Word {
            m.height -= 1;
            return m.stack[m.height];
        }

        inline fn top(m: *Self) *Word {
            return &m.stack[m.height - 1];
        }

        inline fn push(m: *Self, word: Word) void {
            m.stack[m.height] = word;
            m.height += 1;
        }

        /// Makes sure of `size` bytes of memory at `offset`, and says where that is.
        inline fn touch(m: *Self, frame: *Frame, offset: Word, size: u64) Error!usize {
            if (offset > far) return error.OutOfGas;
            const at: usize = @intCast(offset);
            if (at + size > frame.memory.bytes.len) m.gas = try frame.expand(m.gas, at + size);
            return at;
        }

        /// The same for a size from the stack; none at all touches nothing, wherever it is.
        inline fn range(m: *Self, frame: *Frame, offset: Word, size: Word) Error!struct { usize, usize } {
            if (size == 0) return .{ 0, 0 };
            if (size > far) return error.OutOfGas;
            const n: usize = @intCast(size);
            return .{ try m.touch(frame, offset, n), n };
        }

        inline fn jump(m: *Self, frame: *Frame, target: Word) Error!void {
            const code = frame.code;
            const targets = code.targets orelse try code.analyse(frame.allocator());
            if (target >= code.bytes().len) return error.InvalidJump;
            const pc: usize = @intCast(target);
            if (targets[pc / 64] >> @intCast(pc % 64) & 1 == 0) return error.InvalidJump;
            m.pc = pc;
        }
    };
}

/// Memory that nobody can pay for.
const far = 1 << 40;

inline fn wordsIn(size: u64) u64 {
    return (size + 31) / 32;
}

inline fn binary(comptime op: Op, a: Word, b: Word) Word {
    return switch (op) {
        .ADD => a +% b,
        .MUL => a *% b,
        .SUB => a -% b,
        .DIV => words.div(a, b),
        .SDIV => words.sdiv(a, b),
        .MOD => words.mod(a, b),
        .SMOD => words.smod(a, b),
        .SIGNEXTEND => words.signExtend(a, b),
        .LT => @intFromBool(a < b),
        .GT => @intFromBool(a > b),
        .SLT => @intFromBool(words.lessSigned(a, b)),
        .SGT => @intFromBool(words.lessSigned(b, a)),
        .EQ => @intFromBool(a == b),
        .AND => a & b,
        .OR => a | b,
        .XOR => a ^ b,
        .BYTE => words.byte(a, b),
        .SHL => words.shl(a, b),
        .SHR => words.shr(a, b),
        .SAR => words.sar(a, b),
        else => unreachable,
    };
}

/// The two may overlap.
fn move(bytes: []u8, to: usize, from: usize, n: usize) void {
    const target = bytes[to..][0..n];
    const source = bytes[from..][0..n];
    if (to + n <= from or from + n <= to) {
        @memcpy(target, source);
    } else if (to < from) {
        std.mem.copyForwards(u8, target, source);
    } else {
        std.mem.copyBackwards(u8, target, source);
    }
}
