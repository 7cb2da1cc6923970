//! The command `evm`: reads code, runs it, prints what came of it.

const std = @import("std");
const Allocator = std.mem.Allocator;
const builtin = @import("builtin");
const Input = @import("input").Input;
const calls = @import("calls.zig");
const code = @import("code.zig");
const frames = @import("frame.zig");
const options = @import("options.zig");
const Options = options.Options;
const prestate = @import("prestate.zig");
const State = @import("state.zig").State;
const transaction = @import("transaction.zig");
const Trace = @import("trace.zig").Trace;

var debug: std.heap.DebugAllocator(.{}) = .init;

pub fn main() u8 {
    var timer = std.time.Timer.start() catch unreachable;
    const heap = if (builtin.mode == .Debug) debug.allocator() else std.heap.smp_allocator;
    const arguments = std.process.argsAlloc(std.heap.page_allocator) catch return refuse("no memory for the command line", .{});
    var complaint: options.Complaint = undefined;
    const chosen = options.parse(arguments[1..], &complaint) catch
        return refuse("`{s}` {s}", .{ complaint.option, complaint.why });
    if (chosen.help) {
        std.io.getStdOut().writeAll(options.help) catch {};
        return 0;
    }
    // The first blocks lie on the stack: most code never needs the heap, whose first use of each size
    // is a call of the kernel.
    var first = std.heap.stackFallback(128 << 10, heap);
    const bytes = chosen.fixed_memory orelse return session(first.get(), chosen, &timer);
    // Touched all at once and now, so that the run meets no page that is not there yet.
    const block = std.posix.mmap(null, @max(bytes, 1), std.posix.PROT.READ | std.posix.PROT.WRITE, .{
        .TYPE = .PRIVATE,
        .ANONYMOUS = true,
        .POPULATE = true,
    }, -1, 0) catch return refuse("--fixed-memory: {d} bytes are not to be had", .{bytes});
    var fixed = std.heap.FixedBufferAllocator.init(block);
    return session(fixed.allocator(), chosen, &timer);
}

fn session(allocator: Allocator, chosen: Options, timer: *std.time.Timer) u8 {
    return run(allocator, chosen, timer) catch |why| switch (why) {
        error.OutOfMemory => if (chosen.fixed_memory) |bytes|
            refuse("it needs more than the {d} bytes of --fixed-memory", .{bytes})
        else
            refuse("out of memory", .{}),
        error.PrecompileMissing => refuse("the code calls a precompile that is not built in; built in are " ++
            "ecrecover (1), sha256 (2), identity (4), modexp (5) and blake2f (9)", .{}),
        error.NotHex => refuse("the code or the input is not all hex digits", .{}),
        error.HalfAByte => refuse("hex code has an odd number of digits; if it is raw bytes, say --raw", .{}),
        error.CodeTooLong => refuse("the code is longer than {d} bytes", .{code.max_bytes}),
        error.Poor => refuse("the sender has less than --value; give it a balance with --prestate", .{}),
        error.NotJson => refuse("the prestate is not JSON", .{}),
        error.NotAnObject => refuse("the prestate has no object where one is wanted", .{}),
        error.NotANumber => refuse("the prestate has a number or address that is none, or does not fit", .{}),
        else => refuse("{s}", .{@errorName(why)}),
    };
}

fn run(allocator: Allocator, chosen: Options, timer: *std.time.Timer) !u8 {
    const file = if (chosen.file) |path| try open(path) else std.io.getStdIn();
    var input = Input.init(file);
    const began = timer.read();
    var text = try code.read(allocator, input.reader());
    defer text.deinit(allocator);
    const read = timer.read();

    var state: State = .{ .allocator = allocator };
    defer state.deinit();
    var errors = std.io.bufferedWriter(std.io.getStdErr().writer());
    const writer = errors.writer();
    var trace: Trace = .{ .out = writer.any() };
    var machine: frames.Machine = .{
        .allocator = allocator,
        .state = &state,
        .context = .{ .gas_limit = chosen.transaction.gas },
        .trace = if (chosen.trace) &trace else null,
    };
    defer machine.deinit();
    var request = chosen.transaction;
    if (chosen.prestate) |path| {
        const json = try (try open(path)).readToEndAlloc(allocator, 1 << 30);
        defer allocator.free(json);
        try prestate.load(&machine, json);
        if (machine.context.gas_limit == 0) machine.context.gas_limit = request.gas;
    }
    const call_data = try allocator.dupe(u8, chosen.input_hex orelse "");
    defer allocator.free(call_data);
    request.input = try code.decode(call_data, .hex);
    const bytes = try code.decode(text.items, chosen.form);
    if (bytes.len > 0) try state.setCode(request.receiver, bytes);

    const outcome = try if (chosen.repeat) |times| repeat(&machine, request, @max(times, 1), writer) else transaction.run(&machine, request);
    defer allocator.free(outcome.output);
    const ran = timer.read();
    try errors.flush();
    try print(&state, request.gas, outcome);
    if (chosen.time) {
        try writer.print("read {d:.1} µs, run {d:.1} µs\n", .{ micros(read - began), micros(ran - read) });
    }
    try errors.flush();
    return if (outcome.succeeded()) 0 else 1;
}

fn open(path: []const u8) !std.fs.File {
    return std.fs.cwd().openFile(path, .{}) catch |why| {
        _ = refuse("{s}: {s}", .{ path, @errorName(why) });
        std.process.exit(2);
    };
}

/// Runs from the same start again and again: only the run is timed, not what undoes it.
fn repeat(machine: *frames.Machine, request: transaction.Transaction, times: u32, out: anytype) !calls.Outcome {
    const allocator = machine.allocator;
    const each = try allocator.alloc(u64, times);
    defer allocator.free(each);
    var timer = try std.time.Timer.start();
    for (each, 1..) |*ns, run_number| {
        machine.state.begin();
        const mark = machine.state.mark();
        timer.reset();
        const outcome = try transaction.run(machine, request);
        ns.* = timer.read();
        if (run_number == times) {
            std.mem.sort(u64, each, {}, std.sort.asc(u64));
            try out.print("{d} runs: median {d:.3} µs, least {d:.3} µs\n", .{ times, micros(each[times / 2]), micros(each[0]) });
            return outcome;
        }
        allocator.free(outcome.output);
        machine.state.revert(mark);
    }
    unreachable;
}

fn print(state: *const State, gas: u64, outcome: calls.Outcome) !void {
    var buffered = std.io.bufferedWriter(std.io.getStdOut().writer());
    const out = buffered.writer();
    try out.print("status  {s}\n", .{status(outcome)});
    try out.print("gas     {d}\n", .{gas - outcome.gas});
    if (state.refund > 0) try out.print("refund  {d}\n", .{state.refund});
    for (state.logs.items) |log| {
        try out.print("log     {x:0>40}", .{log.address});
        for (log.topics) |topic| try out.print(" {x:0>64}", .{topic});
        try out.print(" 0x{}\n", .{std.fmt.fmtSliceHexLower(log.data)});
    }
    try out.print("output  0x{}\n", .{std.fmt.fmtSliceHexLower(outcome.output)});
    try buffered.flush();
}

fn status(outcome: calls.Outcome) []const u8 {
    const why = outcome.failure orelse return if (outcome.ending == .stop) "success" else "reverted";
    return switch (why) {
        error.OutOfGas => "out of gas",
        error.StackUnderflow => "stack underflow",
        error.StackOverflow => "stack overflow",
        error.InvalidJump => "invalid jump",
        error.InvalidOpcode => "invalid instruction",
        error.WriteProtection => "write in a static call",
        error.ReturnDataOutOfBounds => "return data out of bounds",
        error.CodeTooLarge => "code too large",
        error.CodeForbidden => "code begins with 0xef",
        error.AddressTaken => "address taken",
        error.PrecompileFailed => "precompile failed",
        error.PrecompileMissing, error.OutOfMemory => unreachable,
    };
}

fn micros(ns: u64) f64 {
    return @as(f64, @floatFromInt(ns)) / std.time.ns_per_us;
}

fn refuse(comptime format: []const u8, values: anytype) u8 {
    std.io.getStdErr().writer().print("evm: " ++ format ++ "\n", values) catch {};
    return 2;
}

test {
    _ = @import("interpreter_test.zig");
    _ = @import("prestate.zig");
    _ = @import("options.zig");
    _ = @import("word.zig");
    _ = @import("opcode.zig");
    _ = @import("code.zig");
    _ = @import("memory.zig");
    _ = @import("state.zig");
    _ = @import("precompiles.zig");
}
