//! Everything that outlives a call: accounts, storage, transient storage, logs, what is warm. All
//! changes are journalled, so that a call that fails leaves nothing behind.
//!
//! Reads of accounts that do not exist give empty ones. Not for gas.

const std = @import("std");
const Allocator = std.mem.Allocator;
const Word = @import("word.zig").Word;
const Code = @import("code.zig").Code;

pub const Address = u160;

pub const Account = struct {
    balance: Word = 0,
    nonce: u64 = 0,
    /// Owned by the state; never freed before it, as calls may still run it.
    code: ?*Code = null,
    warm: bool = false,
    /// Made in this transaction: only then does it go when it destructs itself.
    created: bool = false,
    destructed: bool = false,

    /// Without value, code and history: as good as absent.
    pub fn isEmpty(self: Account) bool {
        return self.balance == 0 and self.nonce == 0 and self.codeBytes().len == 0;
    }

    pub fn codeBytes(self: Account) []const u8 {
        return if (self.code) |code| code.bytes() else &.{};
    }
};

pub const Place = struct { address: Address, key: Word };

pub const Slot = struct {
    now: Word = 0,
    /// When the transaction began: what a write costs depends on it.
    before: Word = 0,
    warm: bool = false,
};

pub const Log = struct { address: Address, topics: []const Word, data: []const u8 };

const Change = union(enum) {
    account: struct { address: Address, was: Account },
    slot: struct { place: Place, was: Slot },
    transient: struct { place: Place, was: Word },
    refund: u64,
    log,
};

/// Where to go back to.
pub const Mark = struct { changes: usize };

pub const State = struct {
    allocator: Allocator,
    accounts: std.AutoHashMapUnmanaged(Address, Account) = .empty,
    slots: Slots = .empty,
    transient: Transients = .empty,
    logs: std.ArrayListUnmanaged(Log) = .empty,
    refund: u64 = 0,
    journal: std.ArrayListUnmanaged(Change) = .empty,
    codes: std.ArrayListUnmanaged(*Code) = .empty,

    const Slots = std.HashMapUnmanaged(Place, Slot, PlaceContext, 80);
    const Transients = std.HashMapUnmanaged(Place, Word, PlaceContext, 80);
    pub const Error = Allocator.Error;

    pub fn deinit(self: *State) void {
        const allocator = self.allocator;
        for (self.logs.items) |log| self.freeLog(log);
        for (self.codes.items) |code| {
            code.deinit(allocator);
            allocator.destroy(code);
        }
        inline for (.{ &self.accounts, &self.slots, &self.transient }) |map| map.deinit(allocator);
        inline for (.{ &self.logs, &self.journal, &self.codes }) |list| list.deinit(allocator);
    }

    pub fn account(self: *const State, address: Address) Account {
        return self.accounts.get(address) orelse .{};
    }

    pub fn setAccount(self: *State, address: Address, value: Account) Error!void {
        const entry = try self.accounts.getOrPutValue(self.allocator, address, .{});
        try self.note(.{ .account = .{ .address = address, .was = entry.value_ptr.* } });
        entry.value_ptr.* = value;
    }

    /// Whether this is the first access to it; it is warm from then on.
    pub fn warmAccount(self: *State, address: Address) Error!bool {
        var value = self.account(address);
        if (value.warm) return false;
        value.warm = true;
        try self.setAccount(address, value);
        return true;
    }

    /// Gives an account its code, which is copied.
    pub fn setCode(self: *State, address: Address, bytes: []const u8) Error!void {
        const code = try self.allocator.create(Code);
        errdefer self.allocator.destroy(code);
        code.* = try Code.init(self.allocator, bytes);
        errdefer code.deinit(self.allocator);
        try self.codes.append(self.allocator, code);
        var value = self.account(address);
        value.code = code;
        try self.setAccount(address, value);
    }

    pub fn slot(self: *const State, place: Place) Slot {
        return self.slots.get(place) orelse .{};
    }

    pub fn setSlot(self: *State, place: Place, value: Slot) Error!void {
        const entry = try self.slots.getOrPutValue(self.allocator, place, .{});
        try self.note(.{ .slot = .{ .place = place, .was = entry.value_ptr.* } });
        entry.value_ptr.* = value;
    }

    pub fn loadTransient(self: *const State, place: Place) Word {
        return self.transient.get(place) orelse 0;
    }

    pub fn storeTransient(self: *State, place: Place, value: Word) Error!void {
        const entry = try self.transient.getOrPutValue(self.allocator, place, 0);
        try self.note(.{ .transient = .{ .place = place, .was = entry.value_ptr.* } });
        entry.value_ptr.* = value;
    }

    pub fn setRefund(self: *State, value: u64) Error!void {
        try self.note(.{ .refund = self.refund });
        self.refund = value;
    }

    /// Topics and data are copied.
    pub fn append(self: *State, log: Log) Error!void {
        const topics = try self.allocator.dupe(Word, log.topics);
        errdefer self.allocator.free(topics);
        const data = try self.allocator.dupe(u8, log.data);
        errdefer self.allocator.free(data);
        try self.note(.log);
        try self.logs.append(self.allocator, .{ .address = log.address, .topics = topics, .data = data });
    }

    pub fn mark(self: *const State) Mark {
        return .{ .changes = self.journal.items.len };
    }

    /// Undoes everything since `to`.
    pub fn revert(self: *State, to: Mark) void {
        while (self.journal.items.len > to.changes) {
            switch (self.journal.pop().?) {
                .account => |change| self.accounts.getPtr(change.address).?.* = change.was,
                .slot => |change| self.slots.getPtr(change.place).?.* = change.was,
                .transient => |change| self.transient.getPtr(change.place).?.* = change.was,
                .refund => |was| self.refund = was,
                .log => self.freeLog(self.logs.pop().?),
            }
        }
    }

    /// Takes what is there now for where the transaction starts.
    pub fn begin(self: *State) void {
        self.journal.clearRetainingCapacity();
        var slots = self.slots.valueIterator();
        while (slots.next()) |value| value.* = .{ .now = value.now, .before = value.now };
    }

    fn note(self: *State, change: Change) Error!void {
        try self.journal.append(self.allocator, change);
    }

    fn freeLog(self: *State, log: Log) void {
        self.allocator.free(log.topics);
        self.allocator.free(log.data);
    }
};

/// Keys are often small numbers: their limbs are mixed by multiplication.
const PlaceContext = struct {
    pub fn hash(_: PlaceContext, place: Place) u64 {
        var mixed: u64 = 0x9e37_79b9_7f4a_7c15;
        inline for (0..4) |i| mixed = mix(mixed, @truncate(place.key >> (64 * i)));
        inline for (0..3) |i| mixed = mix(mixed, @truncate(place.address >> (64 * i)));
        return mixed;
    }

    fn mix(mixed: u64, limb: u64) u64 {
        const product = @as(u128, mixed ^ limb) *% 0xd6e8_feb8_6659_fd93;
        return @as(u64, @truncate(product)) ^ @as(u64, @truncate(product >> 64));
    }

    pub fn eql(_: PlaceContext, a: Place, b: Place) bool {
        return a.key == b.key and a.address == b.address;
    }
};

const testing = std.testing;

test "a revert undoes accounts, slots, logs and refunds, in any mix" {
    var state: State = .{ .allocator = testing.allocator };
    defer state.deinit();
    const place: Place = .{ .address = 1, .key = 2 };
    try state.setSlot(place, .{ .now = 3 });
    const mark = state.mark();
    try state.setSlot(place, .{ .now = 4 });
    try state.setSlot(place, .{ .now = 5 });
    try state.storeTransient(place, 6);
    try state.setRefund(7);
    try state.setCode(1, "\x00");
    try testing.expect(try state.warmAccount(9));
    try testing.expect(!try state.warmAccount(9));
    try state.append(.{ .address = 1, .topics = &.{8}, .data = "data" });
    state.revert(mark);
    try testing.expectEqual(3, state.slot(place).now);
    try testing.expectEqual(0, state.loadTransient(place));
    try testing.expectEqual(0, state.refund);
    try testing.expectEqual(0, state.logs.items.len);
    try testing.expect(state.account(1).isEmpty());
    try testing.expect(try state.warmAccount(9));
}
