//! The command line.

const std = @import("std");
const Form = @import("code.zig").Form;
const Transaction = @import("transaction.zig").Transaction;

pub const Options = struct {
    file: ?[]const u8 = null,
    form: Form = .either,
    transaction: Transaction = .{},
    prestate: ?[]const u8 = null,
    fixed_memory: ?usize = null,
    trace: bool = false,
    time: bool = false,
    repeat: ?u32 = null,
    input_hex: ?[]const u8 = null,
    gas_given: bool = false,
    help: bool = false,
};

pub const help =
    \\Runs Ethereum bytecode by the rules of Cancun, and prints status, gas and what it gives back.
    \\
    \\  evm [OPTIONS] [FILE]
    \\
    \\The code is read from FILE or from standard input, as bytes or as hex digits.
    \\
    \\  --hex, --raw          how the code is written; otherwise that is found out
    \\  --input HEX           what the code is called with
    \\  --gas N               gas to run with (10000000000)
    \\  --value N             value sent along
    \\  --sender ADDRESS      who calls
    \\  --receiver ADDRESS    the account that the code runs as
    \\  --prestate FILE       accounts and block, JSON as in a genesis file; without code on standard
    \\                        input (`< /dev/null`), the receiver's own code runs
    \\  --fixed-memory BYTES  take all memory from one block of this size
    \\  --trace               a line for each instruction, on standard error: depth, place, name, gas
    \\                        left, stack from its top
    \\  --time                how long reading and running took, on standard error
    \\  --repeat N            run N times from the same start, print times per run on standard error
    \\
    \\Exit code: 0 if the code stopped or returned, 1 if it failed or reverted, 2 if it could not be run.
    \\
    \\  echo 600160020160005260206000f3 | evm --time
    \\
;

/// What is wrong with the command line, for people.
pub const Complaint = struct { option: []const u8, why: []const u8 };

pub fn parse(arguments: []const []const u8, complaint: *Complaint) error{Usage}!Options {
    var options: Options = .{};
    var i: usize = 0;
    while (i < arguments.len) : (i += 1) {
        const argument = arguments[i];
        complaint.* = .{ .option = argument, .why = "is not known; see --help" };
        const flag = std.meta.stringToEnum(Flag, argument) orelse {
            if (argument.len > 1 and argument[0] == '-') return error.Usage;
            if (options.file != null) {
                complaint.why = "is one file too many";
                return error.Usage;
            }
            options.file = if (std.mem.eql(u8, argument, "-")) null else argument;
            continue;
        };
        if (flag.takesValue()) {
            i += 1;
            complaint.why = "wants a value";
            if (i == arguments.len) return error.Usage;
        }
        const value = arguments[i];
        complaint.why = "has a value that is not of its kind";
        apply(&options, flag, value) catch return error.Usage;
    }
    return options;
}

const Flag = enum {
    @"--hex",
    @"--raw",
    @"--trace",
    @"--time",
    @"--help",
    @"-h",
    @"--input",
    @"--gas",
    @"--value",
    @"--sender",
    @"--receiver",
    @"--prestate",
    @"--fixed-memory",
    @"--repeat",

    fn takesValue(self: Flag) bool {
        return @intFromEnum(self) >= @intFromEnum(Flag.@"--input");
    }
};

fn apply(options: *Options, flag: Flag, value: []const u8) !void {
    const transaction = &options.transaction;
    switch (flag) {
        .@"--hex" => options.form = .hex,
        .@"--raw" => options.form = .raw,
        .@"--trace" => options.trace = true,
        .@"--time" => options.time = true,
        .@"--help", .@"-h" => options.help = true,
        .@"--input" => options.input_hex = value,
        .@"--gas" => {
            transaction.gas = try std.fmt.parseInt(u64, value, 0);
            options.gas_given = true;
        },
        .@"--value" => transaction.value = try std.fmt.parseInt(u256, value, 0),
        .@"--sender" => transaction.sender = try address(value),
        .@"--receiver" => transaction.receiver = try address(value),
        .@"--prestate" => options.prestate = value,
        .@"--fixed-memory" => options.fixed_memory = try std.fmt.parseInt(usize, value, 0),
        .@"--repeat" => options.repeat = try std.fmt.parseInt(u32, value, 0),
    }
}

fn address(text: []const u8) !u160 {
    const digits = if (std.mem.startsWith(u8, text, "0x")) text[2..] else text;
    return std.fmt.parseInt(u160, digits, 16);
}

const testing = std.testing;

test "options take values, and what is wrong is named" {
    var complaint: Complaint = undefined;
    const options = try parse(&.{ "--gas", "0x10", "--trace", "code.hex" }, &complaint);
    try testing.expectEqual(16, options.transaction.gas);
    try testing.expect(options.trace);
    try testing.expectEqualStrings("code.hex", options.file.?);
    for ([_][]const []const u8{ &.{"--gas"}, &.{ "--gas", "many" }, &.{"--fast"}, &.{ "a", "b" } }) |bad| {
        try testing.expectError(error.Usage, parse(bad, &complaint));
    }
    try testing.expectEqualStrings("b", complaint.option);
}
