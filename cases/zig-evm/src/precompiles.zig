//! The contracts that the machine has built in, at the addresses 1 to 10.
//!
//! Those whose primitive Zig's standard library has, and BLAKE2's compression, which is short. The
//! others (RIPEMD-160, the curve bn254, KZG) end the run with a clear error: a wrong answer would
//! look like a right one.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Word = @import("word.zig").Word;
const words = @import("word.zig");
const frames = @import("frame.zig");
const charge = frames.charge;
const Error = frames.Error;
const Big = std.math.big.int.Managed;

pub const Precompile = enum(u8) {
    ecrecover = 1,
    sha256,
    ripemd160,
    identity,
    modexp,
    bn254_add,
    bn254_mul,
    bn254_pairing,
    blake2f,
    kzg_point,
};

pub const count = std.enums.values(Precompile).len;

pub fn at(address: u160) ?Precompile {
    if (address == 0 or address > count) return null;
    return @enumFromInt(@as(u8, @intCast(address)));
}

/// What is left of the gas, and what it gives back, which the caller owns.
pub const Result = struct { gas: u64, output: []u8 };

pub fn run(allocator: Allocator, which: Precompile, input: []const u8, gas: u64) Error!Result {
    const words_in = (@as(u64, input.len) + 31) / 32;
    switch (which) {
        .ecrecover => {
            const left = try charge(gas, 3000);
            const address = recover(padded(128, input)) orelse return .{ .gas = left, .output = &.{} };
            const output = try allocator.alloc(u8, 32);
            std.mem.writeInt(Word, output[0..32], address, .big);
            return .{ .gas = left, .output = output };
        },
        .sha256 => {
            const left = try charge(gas, 60 + 12 * words_in);
            const output = try allocator.alloc(u8, 32);
            std.crypto.hash.sha2.Sha256.hash(input, output[0..32], .{});
            return .{ .gas = left, .output = output };
        },
        .identity => {
            const left = try charge(gas, 15 + 3 * words_in);
            return .{ .gas = left, .output = try allocator.dupe(u8, input) };
        },
        .modexp => return modexp(allocator, input, gas),
        .blake2f => return blake2f(allocator, input, gas),
        .ripemd160, .bn254_add, .bn254_mul, .bn254_pairing, .kzg_point => return error.PrecompileMissing,
    }
}

/// The first `n` bytes, with zeroes behind the end.
fn padded(comptime n: usize, input: []const u8) [n]u8 {
    var bytes = [_]u8{0} ** n;
    const here = @min(n, input.len);
    @memcpy(bytes[0..here], input[0..here]);
    return bytes;
}

/// The address whose key signed: hash, recovery bit as 27 or 28, r, s.
fn recover(input: [128]u8) ?Word {
    const Curve = std.crypto.ecc.Secp256k1;
    const Scalar = Curve.scalar.Scalar;
    const v = std.mem.readInt(Word, input[32..64], .big);
    if (v != 27 and v != 28) return null;
    const r = Scalar.fromBytes(input[64..96].*, .big) catch return null;
    const s = Scalar.fromBytes(input[96..128].*, .big) catch return null;
    if (r.isZero() or s.isZero()) return null;

    var digest: [32]u8 = undefined;
    const hash = std.mem.readInt(Word, input[0..32], .big);
    std.mem.writeInt(Word, &digest, words.mod(hash, Curve.scalar.field_order), .big);
    const z = Scalar.fromBytes(digest, .big) catch return null;

    // The point that r is the abscissa of; then key = (s * point - z * base) / r.
    const x = Curve.Fe.fromBytes(input[64..96].*, .big) catch return null;
    const y = Curve.recoverY(x, v == 28) catch return null;
    const point = Curve.fromAffineCoordinates(.{ .x = x, .y = y }) catch return null;
    const inverse = r.invert();
    const by_point = s.mul(inverse).toBytes(.little);
    const by_base = z.neg().mul(inverse).toBytes(.little);
    const key = Curve.mulDoubleBasePublic(Curve.basePoint, by_base, point, by_point, .little) catch return null;
    const plain = key.toUncompressedSec1();
    return frames.keccak(plain[1..]) & std.math.maxInt(u160);
}

fn modexp(allocator: Allocator, input: []const u8, gas: u64) Error!Result {
    const lengths = padded(96, input);
    const base_len = try size(lengths[0..32]);
    const exponent_len = try size(lengths[32..64]);
    const modulus_len = try size(lengths[64..96]);
    const body = if (input.len > 96) input[96..] else &.{};

    const left = try charge(gas, modexpPrice(base_len, exponent_len, modulus_len, body));
    if (base_len == 0 and modulus_len == 0) return .{ .gas = left, .output = &.{} };
    var base = try number(allocator, body, 0, base_len);
    defer base.deinit();
    var exponent = try number(allocator, body, base_len, exponent_len);
    defer exponent.deinit();
    var modulus = try number(allocator, body, base_len + exponent_len, modulus_len);
    defer modulus.deinit();

    const output = try allocator.alloc(u8, modulus_len);
    errdefer allocator.free(output);
    @memset(output, 0);
    if (modulus.eqlZero()) return .{ .gas = left, .output = output };
    var result = try power(allocator, &base, &exponent, &modulus);
    defer result.deinit();
    result.toConst().writeTwosComplement(output, .big);
    return .{ .gas = left, .output = output };
}

/// A length that no gas can pay for is not even read.
fn size(bytes: *const [32]u8) Error!usize {
    const length = std.mem.readInt(Word, bytes, .big);
    return if (length > 1 << 32) error.OutOfGas else @intCast(length);
}

fn modexpPrice(base_len: u64, exponent_len: u64, modulus_len: u64, body: []const u8) u64 {
    const limbs = (@max(base_len, modulus_len) + 7) / 8;
    const head_len = @min(exponent_len, 32);
    var head_bytes = [_]u8{0} ** 32;
    const rest = if (base_len < body.len) body[base_len..] else &.{};
    const here = @min(rest.len, head_len);
    @memcpy(head_bytes[32 - head_len ..][0..here], rest[0..here]);
    const head = std.mem.readInt(Word, &head_bytes, .big);
    const head_bits: u64 = if (head == 0) 0 else 255 - @as(u64, @clz(head));
    const rounds = @max(1, head_bits + 8 * (exponent_len - head_len));
    return std.math.cast(u64, @max(200, @as(u128, limbs * limbs) * rounds / 3)) orelse std.math.maxInt(u64);
}

/// `length` bytes of `body` from `from` on as a number; what lies behind the end is zero.
fn number(allocator: Allocator, body: []const u8, from: usize, length: usize) Error!Big {
    const bytes = try allocator.alloc(u8, length);
    defer allocator.free(bytes);
    @memset(bytes, 0);
    const rest = if (from < body.len) body[from..] else &.{};
    const here = @min(rest.len, length);
    @memcpy(bytes[0..here], rest[0..here]);
    var big = try Big.initCapacity(allocator, length / 8 + 2);
    var mutable = big.toMutable();
    mutable.readTwosComplement(bytes, 8 * length, .big, .unsigned);
    big.setMetadata(mutable.positive, mutable.len);
    return big;
}

/// Square and multiply from the exponent's highest bit.
fn power(allocator: Allocator, base: *const Big, exponent: *const Big, modulus: *const Big) Error!Big {
    var quotient = try Big.init(allocator);
    defer quotient.deinit();
    var factor = try Big.init(allocator);
    defer factor.deinit();
    try quotient.divFloor(&factor, base, modulus);
    var product = try Big.init(allocator);
    defer product.deinit();
    var result = try Big.initSet(allocator, 1);
    errdefer result.deinit();
    try product.copy(result.toConst());
    try quotient.divFloor(&result, &product, modulus);
    const limbs = exponent.limbs[0..exponent.len()];
    var i = exponent.bitCountAbs();
    while (i > 0) {
        i -= 1;
        try product.sqr(&result);
        try quotient.divFloor(&result, &product, modulus);
        if (limbs[i / 64] >> @intCast(i % 64) & 1 == 1) {
            try product.mul(&result, &factor);
            try quotient.divFloor(&result, &product, modulus);
        }
    }
    return result;
}

/// BLAKE2b's compression with a chosen number of rounds, as EIP-152 lays it out.
fn blake2f(allocator: Allocator, input: []const u8, gas: u64) Error!Result {
    if (input.len != 213 or input[212] > 1) return error.PrecompileFailed;
    const rounds = std.mem.readInt(u32, input[0..4], .big);
    const left = try charge(gas, rounds);
    var h: [8]u64 = undefined;
    var m: [16]u64 = undefined;
    for (&h, 0..) |*word, i| word.* = std.mem.readInt(u64, input[4 + 8 * i ..][0..8], .little);
    for (&m, 0..) |*word, i| word.* = std.mem.readInt(u64, input[68 + 8 * i ..][0..8], .little);
    var v: [16]u64 = h ++ blake2_start;
    v[12] ^= std.mem.readInt(u64, input[196..204], .little);
    v[13] ^= std.mem.readInt(u64, input[204..212], .little);
    if (input[212] == 1) v[14] = ~v[14];
    for (0..rounds) |round| {
        const order = blake2_order[round % 10];
        inline for (blake2_lanes, 0..) |lane, i| {
            quarter(&v, lane, m[order[2 * i]], m[order[2 * i + 1]]);
        }
    }
    const output = try allocator.alloc(u8, 64);
    for (h, 0..) |word, i| std.mem.writeInt(u64, output[8 * i ..][0..8], word ^ v[i] ^ v[i + 8], .little);
    return .{ .gas = left, .output = output };
}

inline fn quarter(v: *[16]u64, comptime lane: [4]u8, x: u64, y: u64) void {
    const a, const b, const c, const d = lane;
    v[a] +%= v[b] +% x;
    v[d] = std.math.rotr(u64, v[d] ^ v[a], 32);
    v[c] +%= v[d];
    v[b] = std.math.rotr(u64, v[b] ^ v[c], 24);
    v[a] +%= v[b] +% y;
    v[d] = std.math.rotr(u64, v[d] ^ v[a], 16);
    v[c] +%= v[d];
    v[b] = std.math.rotr(u64, v[b] ^ v[c], 63);
}

const blake2_lanes = [8][4]u8{
    .{ 0, 4, 8, 12 },  .{ 1, 5, 9, 13 },  .{ 2, 6, 10, 14 }, .{ 3, 7, 11, 15 },
    .{ 0, 5, 10, 15 }, .{ 1, 6, 11, 12 }, .{ 2, 7, 8, 13 },  .{ 3, 4, 9, 14 },
};

const blake2_start = [8]u64{
    0x6a09e667f3bcc908, 0xbb67ae8584caa73b, 0x3c6ef372fe94f82b, 0xa54ff53a5f1d36f1,
    0x510e527fade682d1, 0x9b05688c2b3e6c1f, 0x1f83d9abfb41bd6b, 0x5be0cd19137e2179,
};

const blake2_order = [10][16]u8{
    .{ 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15 },
    .{ 14, 10, 4, 8, 9, 15, 13, 6, 1, 12, 0, 2, 11, 7, 5, 3 },
    .{ 11, 8, 12, 0, 5, 2, 15, 13, 10, 14, 3, 6, 7, 1, 9, 4 },
    .{ 7, 9, 3, 1, 13, 12, 11, 14, 2, 6, 5, 10, 4, 0, 15, 8 },
    .{ 9, 0, 5, 7, 2, 4, 10, 15, 14, 1, 11, 12, 6, 8, 3, 13 },
    .{ 2, 12, 6, 10, 0, 11, 8, 3, 4, 13, 7, 5, 15, 14, 1, 9 },
    .{ 12, 5, 1, 15, 14, 13, 4, 10, 0, 7, 6, 3, 9, 2, 8, 11 },
    .{ 13, 11, 7, 14, 12, 1, 3, 9, 5, 0, 15, 4, 8, 6, 2, 10 },
    .{ 6, 15, 14, 9, 11, 3, 0, 8, 12, 2, 13, 7, 1, 4, 10, 5 },
    .{ 10, 2, 8, 4, 7, 6, 1, 5, 15, 11, 9, 14, 3, 12, 13, 0 },
};

const testing = std.testing;

test "three to the power of five, modulo seven, and its least price" {
    const input = [_]u8{0} ** 31 ++ [_]u8{1} ++ [_]u8{0} ** 31 ++ [_]u8{1} ++ [_]u8{0} ** 31 ++ [_]u8{1} ++ [_]u8{ 3, 5, 7 };
    const result = try run(testing.allocator, .modexp, &input, 1000);
    defer testing.allocator.free(result.output);
    try testing.expectEqualSlices(u8, &.{5}, result.output);
    try testing.expectEqual(800, result.gas);
}

test "what is missing is said, and what is malformed fails" {
    try testing.expectError(error.PrecompileMissing, run(testing.allocator, .ripemd160, "", 10_000));
    try testing.expectError(error.PrecompileFailed, run(testing.allocator, .blake2f, "short", 10_000));
    try testing.expectError(error.OutOfGas, run(testing.allocator, .sha256, "", 59));
    const none = try run(testing.allocator, .ecrecover, "no signature", 3000);
    try testing.expectEqual(0, none.output.len);
}
