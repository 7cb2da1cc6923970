//! Builds each program twice: with buffered input, and (`-byte-reads`) asking for every byte.

const std = @import("std");

/// Calls nest 1024 deep, and each takes a frame of this process too; a debug build's are large.
const stack_bytes = 96 << 20;

pub fn build(b: *std.Build) void {
    const target = b.standardTargetOptions(.{});
    const optimize = b.standardOptimizeOption(.{});
    const tests = b.step("test", "Run the unit tests");
    for ([_][]const u8{ "evm", "count-bytes" }, [_][]const u8{ "main", "count_bytes" }) |name, root| {
        for ([_][]const u8{ "", "-byte-reads" }, [_][]const u8{ "buffered", "one_byte" }) |form, input| {
            const module = b.createModule(.{
                .root_source_file = b.path(b.fmt("src/{s}.zig", .{root})),
                .target = target,
                .optimize = optimize,
                // Lines are what a profiler needs; they cost nothing at run time.
                .strip = false,
            });
            module.addAnonymousImport("input", .{ .root_source_file = b.path(b.fmt("src/input/{s}.zig", .{input})) });
            const program = b.addExecutable(.{ .name = b.fmt("{s}{s}", .{ name, form }), .root_module = module });
            program.stack_size = stack_bytes;
            b.installArtifact(program);
            if (form.len > 0) continue;
            const module_tests = b.addTest(.{ .root_module = module });
            module_tests.stack_size = stack_bytes;
            tests.dependOn(&b.addRunArtifact(module_tests).step);
        }
    }
}
