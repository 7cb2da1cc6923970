//! Arithmetic on the machine's 256-bit words that the language does not have, or has slowly.
//!
//! Zig's `u256` adds, multiplies and shifts well. Its division goes bit by bit, so the quotients
//! here are by 64-bit limbs (Knuth's algorithm D). Not for gas or for the stack.

const std = @import("std");
const builtin = @import("builtin");

pub const Word = u256;
const Signed = i256;

/// 0 for a divisor of 0, as the machine has it.
pub fn div(a: Word, b: Word) Word {
    if (b == 0) return 0;
    return divRem(4, limbs(4, a), b).quotient;
}

pub fn mod(a: Word, b: Word) Word {
    if (b == 0) return 0;
    return divRem(4, limbs(4, a), b).remainder;
}

/// Towards zero; the least number divided by -1 is itself.
pub fn sdiv(a: Word, b: Word) Word {
    const quotient = div(magnitude(a), magnitude(b));
    return if (negative(a) != negative(b)) 0 -% quotient else quotient;
}

/// With the sign of the dividend.
pub fn smod(a: Word, b: Word) Word {
    const remainder = mod(magnitude(a), magnitude(b));
    return if (negative(a)) 0 -% remainder else remainder;
}

/// The sum is not cut to 256 bits before it is divided.
pub fn addMod(a: Word, b: Word, m: Word) Word {
    if (m == 0) return 0;
    const sum, const carry = @addWithOverflow(a, b);
    if (carry == 0) return mod(sum, m);
    return divRem(5, limbs(4, sum) ++ [1]u64{1}, m).remainder;
}

/// The product is not cut to 256 bits before it is divided.
pub fn mulMod(a: Word, b: Word, m: Word) Word {
    if (m == 0) return 0;
    const x = limbs(4, a);
    const y = limbs(4, b);
    var product = [_]u64{0} ** 8;
    for (x, 0..) |xi, i| {
        var carry: u64 = 0;
        for (y, 0..) |yj, j| {
            const sum = @as(u128, xi) * yj + product[i + j] + carry;
            product[i + j] = @truncate(sum);
            carry = @intCast(sum >> 64);
        }
        product[i + 4] = carry;
    }
    return divRem(8, product, m).remainder;
}

pub fn exp(base: Word, exponent: Word) Word {
    if (base == 2) return shl(exponent, 1);
    var result: Word = 1;
    var square = base;
    var rest = exponent;
    while (rest != 0) : (rest >>= 1) {
        if (rest & 1 == 1) result *%= square;
        square *%= square;
    }
    return result;
}

/// Takes the lowest `index + 1` bytes of `a` as a signed number.
pub fn signExtend(index: Word, a: Word) Word {
    if (index >= 31) return a;
    const shift: u8 = @intCast(248 - 8 * index);
    return @bitCast(@as(Signed, @bitCast(a << shift)) >> shift);
}

/// The byte at `index` from the most significant one.
pub fn byte(index: Word, a: Word) Word {
    if (index >= 32) return 0;
    return (a >> @intCast(248 - 8 * index)) & 0xff;
}

pub fn shl(shift: Word, a: Word) Word {
    return if (shift >= 256) 0 else a << @intCast(shift);
}

pub fn shr(shift: Word, a: Word) Word {
    return if (shift >= 256) 0 else a >> @intCast(shift);
}

pub fn sar(shift: Word, a: Word) Word {
    const by: u8 = if (shift >= 256) 255 else @intCast(shift);
    return @bitCast(@as(Signed, @bitCast(a)) >> by);
}

pub fn lessSigned(a: Word, b: Word) bool {
    return @as(Signed, @bitCast(a)) < @as(Signed, @bitCast(b));
}

/// How many bytes it takes to write `a`; 0 for 0.
pub fn byteLength(a: Word) u64 {
    return (256 - @as(u64, @clz(a)) + 7) / 8;
}

fn negative(a: Word) bool {
    return a >> 255 == 1;
}

fn magnitude(a: Word) Word {
    return if (negative(a)) 0 -% a else a;
}

fn limbs(comptime n: usize, a: std.meta.Int(.unsigned, n * 64)) [n]u64 {
    var result: [n]u64 = undefined;
    inline for (&result, 0..) |*limb, i| limb.* = @truncate(a >> (64 * i));
    return result;
}

fn fromLimbs(l: [4]u64) Word {
    return @as(Word, l[0]) | @as(Word, l[1]) << 64 | @as(Word, l[2]) << 128 | @as(Word, l[3]) << 192;
}

/// Quotient (its lowest 256 bits) and remainder. `divisor` is not 0.
const Division = struct { quotient: Word, remainder: Word };

fn divRem(comptime n: usize, dividend: [n]u64, divisor: Word) Division {
    const d = limbs(4, divisor);
    const d_len = length(&d);
    const u_len = length(&dividend);
    if (u_len < d_len) return .{ .quotient = 0, .remainder = fromLimbs(dividend[0..4].*) };
    if (d_len == 1) return divByLimb(n, dividend, u_len, d[0]);

    // Both are shifted until the divisor's highest bit is set: then each estimated digit of the
    // quotient is at most 2 too large.
    const shift: u6 = @intCast(@clz(d[d_len - 1]));
    var v = limbs(4, divisor << shift);
    var u = [_]u64{0} ** (n + 1);
    shiftLeft(&u, &dividend, shift);

    var quotient = [_]u64{0} ** (n + 1);
    var j = u_len - d_len + 1;
    while (j > 0) {
        j -= 1;
        quotient[j] = digit(u[j..][0 .. d_len + 1], v[0..d_len]);
    }
    var remainder = u[0..4].*;
    for (remainder[d_len..]) |*limb| limb.* = 0;
    return .{
        .quotient = fromLimbs(quotient[0..4].*),
        .remainder = fromLimbs(remainder) >> shift,
    };
}

fn divByLimb(comptime n: usize, dividend: [n]u64, u_len: usize, d: u64) Division {
    var quotient = [_]u64{0} ** n;
    var rest: u64 = 0;
    var i = u_len;
    while (i > 0) {
        i -= 1;
        quotient[i], rest = divWide(rest, dividend[i], d);
    }
    return .{ .quotient = fromLimbs(quotient[0..4].*), .remainder = rest };
}

/// One digit of the quotient of `u` by `v`; `u` becomes the rest. `u` has one limb more than `v`.
fn digit(u: []u64, v: []const u64) u64 {
    const n = v.len;
    var estimate: u64 = std.math.maxInt(u64);
    if (u[n] < v[n - 1]) {
        estimate, var rest = divWide(u[n], u[n - 1], v[n - 1]);
        while (@as(u128, estimate) * v[n - 2] > (@as(u128, rest) << 64 | u[n - 2])) {
            estimate -= 1;
            rest, const carried = @addWithOverflow(rest, v[n - 1]);
            if (carried == 1) break;
        }
    }
    var borrow: u64 = 0;
    var carry: u64 = 0;
    for (v, u[0..n]) |vi, *ui| {
        const product = @as(u128, estimate) * vi + carry;
        carry = @intCast(product >> 64);
        const first, const under = @subWithOverflow(ui.*, @as(u64, @truncate(product)));
        ui.*, const again = @subWithOverflow(first, borrow);
        borrow = @as(u64, under) + again;
    }
    const first, const under = @subWithOverflow(u[n], carry);
    u[n], const again = @subWithOverflow(first, borrow);
    if (under == 1 or again == 1) {
        // The estimate was too large: the divisor is added back until it is not.
        while (true) {
            estimate -= 1;
            if (addBack(u, v)) break;
        }
    }
    return estimate;
}

/// Adds `v` to `u`; whether that went past the top.
fn addBack(u: []u64, v: []const u64) bool {
    var carry: u64 = 0;
    for (v, u[0..v.len]) |vi, *ui| {
        const sum = @as(u128, ui.*) + vi + carry;
        ui.* = @truncate(sum);
        carry = @intCast(sum >> 64);
    }
    u[v.len], const over = @addWithOverflow(u[v.len], carry);
    return over == 1;
}

fn shiftLeft(to: []u64, from: []const u64, shift: u6) void {
    var carry: u64 = 0;
    for (from, 0..) |limb, i| {
        to[i] = limb << shift | carry;
        carry = if (shift == 0) 0 else limb >> @intCast(64 - @as(u7, shift));
    }
    to[from.len] = carry;
}

fn length(l: []const u64) usize {
    var n = l.len;
    while (n > 0 and l[n - 1] == 0) n -= 1;
    return n;
}

/// `high:low` by `d`, which is larger than `high`: quotient and remainder fit.
inline fn divWide(high: u64, low: u64, d: u64) struct { u64, u64 } {
    if (builtin.cpu.arch == .x86_64) {
        var quotient: u64 = undefined;
        var remainder: u64 = undefined;
        asm ("divq %[d]"
            : [q] "={rax}" (quotient),
              [r] "={rdx}" (remainder),
            : [low] "{rax}" (low),
              [high] "{rdx}" (high),
              [d] "r" (d),
            : "cc"
        );
        return .{ quotient, remainder };
    }
    const whole = @as(u128, high) << 64 | low;
    return .{ @truncate(whole / d), @truncate(whole % d) };
}

const testing = std.testing;
const least: Word = 1 << 255;
const all: Word = std.math.maxInt(Word);

test "division by zero is zero" {
    inline for (.{ div, mod, sdiv, smod }) |f| try testing.expectEqual(0, f(7, 0));
    try testing.expectEqual(0, addMod(all, all, 0));
    try testing.expectEqual(0, mulMod(all, all, 0));
}

test "signs follow the dividend, and the least number has no opposite" {
    try testing.expectEqual(least, sdiv(least, all));
    try testing.expectEqual(0 -% @as(Word, 3), sdiv(0 -% @as(Word, 7), 2));
    try testing.expectEqual(0 -% @as(Word, 1), smod(0 -% @as(Word, 7), 2));
    try testing.expectEqual(1, smod(7, 0 -% @as(Word, 2)));
}

test "sums and products keep their high bits until they are divided" {
    try testing.expectEqual(all - 2, addMod(all - 1, all - 1, all));
    try testing.expectEqual(0, mulMod(all, all, all));
    try testing.expectEqual(1, mulMod(all - 1, all - 1, all));
    try testing.expectEqual(9, mulMod(all, all, 12));
}

test "quotient and remainder of random words agree with the language's own division" {
    var prng = std.Random.DefaultPrng.init(1);
    const random = prng.random();
    for (0..20_000) |_| {
        const a = sized(random);
        const b = sized(random) | 1;
        try testing.expectEqual(a / b, div(a, b));
        try testing.expectEqual(a % b, mod(a, b));
        const c = sized(random);
        const product = @as(u512, a) * c;
        try testing.expectEqual(@as(Word, @intCast(product % b)), mulMod(a, c, b));
        const sum = @as(u512, a) + c;
        try testing.expectEqual(@as(Word, @intCast(sum % b)), addMod(a, c, b));
    }
}

/// A word of a random size, often with long runs of ones: where estimated digits go wrong.
fn sized(random: std.Random) Word {
    const word = random.int(Word) >> random.int(u8);
    return switch (random.int(u2)) {
        0 => word | (all << random.int(u8)),
        1 => word & ~(@as(Word, std.math.maxInt(u64)) << random.int(u8)),
        else => word,
    };
}

test "bytes, shifts and sign extension" {
    try testing.expectEqual(0xff, byte(31, 0x12ff));
    try testing.expectEqual(0, byte(32, all));
    try testing.expectEqual(all, signExtend(0, 0xff));
    try testing.expectEqual(0x7f, signExtend(0, 0xff7f));
    try testing.expectEqual(all, sar(300, least));
    try testing.expectEqual(0, shl(256, 1));
    try testing.expectEqual(1024, exp(2, 10));
    try testing.expectEqual(3486784401, exp(3, 20));
    try testing.expectEqual(2, byteLength(256));
}
