//! Random traces: every kind of event, odd names, any ids that the tables have.
//!
//! They are well-formed, not realistic: a task may leave a CPU twice. Not for the properties themselves.

use deadweight_trace::ids::{Cpu, ImageId, LocationId, NameId, StackId, Tid};
use deadweight_trace::symbols::{FunctionCode, Image, Location, SourceFrame, Symbols};
use deadweight_trace::units::{FileAddr, LiveAddr, Ns};
use deadweight_trace::{Event, Exit, Kind, Meta, Off, Overhead, Trace, Usage};
use proptest::prelude::*;
use proptest::sample::select;
use proptest::test_runner::RngSeed;

/// The same cases in every run; the variable `PROPTEST_CASES` gives more of them.
pub(crate) fn seeded() -> ProptestConfig {
    ProptestConfig {
        rng_seed: RngSeed::Fixed(2026),
        failure_persistence: None,
        ..ProptestConfig::default()
    }
}

const ODD: [&str; 31] = [
    "",
    "in",
    "from",
    ":",
    "<-",
    "?",
    "a b",
    "#",
    "[kernel]",
    "@x",
    "(f)",
    "a:5",
    "x+0x10",
    "0x5",
    "\"",
    "\\",
    "\n\t\r\u{1b}[31m",
    "\u{202e}abc",
    "pipe:[7]",
    "[unknown]",
    "operator new(unsigned)",
    "2",
    "irq",
    "libstdc++.so.6",
    "/a/lib.so",
    "/b/lib.so",
    "main",
    "signal",
    "task",
    "off",
    "]",
];

/// Typical names, and unusual ones.
fn name() -> impl Strategy<Value = String> {
    prop_oneof![select(&ODD[..]).prop_map(str::to_owned), "\\PC{0,6}", any::<String>()]
}

const NAMES: u32 = 12;
const IMAGES: u32 = 4;
const LOCATIONS: u32 = 9;
const STACKS: u32 = 7;

fn name_id() -> impl Strategy<Value = NameId> {
    (0..NAMES).prop_map(NameId)
}

fn stack_id() -> impl Strategy<Value = StackId> {
    (0..STACKS).prop_map(StackId)
}

fn number() -> impl Strategy<Value = u64> {
    prop_oneof![0..5_u64, any::<u64>(), (0..4096_u64).prop_map(u64::wrapping_neg)]
}

fn image() -> impl Strategy<Value = Image> {
    let names = [name_id(), name_id(), name_id(), name_id()];
    let optimised = select(vec![None, Some(false), Some(true)]);
    (names, optimised, any::<bool>(), any::<bool>()).prop_map(
        |([path, build_id, language, producer], optimised, has_symbols, has_lines)| Image {
            path,
            build_id,
            language,
            producer,
            optimised,
            has_symbols,
            has_lines,
        },
    )
}

fn location() -> impl Strategy<Value = Location> {
    let line = prop_oneof![Just(0), any::<u32>()];
    let frame = (name_id(), name_id(), line).prop_map(|(function, file, line)| SourceFrame {
        function,
        file,
        line,
    });
    let frames = prop::collection::vec(frame, 0..3);
    ((0..IMAGES).prop_map(ImageId), number().prop_map(FileAddr), frames)
        .prop_map(|(image, addr, frames)| Location { image, addr, frames })
}

fn code() -> impl Strategy<Value = FunctionCode> {
    let bytes = prop::collection::vec(any::<u8>(), 1..80);
    let targets = prop::collection::btree_map(number().prop_map(FileAddr), name_id(), 0..3);
    ((0..IMAGES).prop_map(ImageId), number().prop_map(FileAddr), name_id(), bytes, targets)
        .prop_map(|(image, addr, name, bytes, targets)| FunctionCode {
            image,
            addr,
            name,
            bytes,
            targets: targets.into_iter().collect(),
        })
}

fn symbols() -> impl Strategy<Value = Symbols> {
    let stack = prop::collection::vec((0..LOCATIONS).prop_map(LocationId), 1..4);
    (
        prop::collection::vec(name(), NAMES as usize - 1),
        prop::collection::vec(image(), IMAGES as usize),
        prop::collection::vec(location(), LOCATIONS as usize - 1),
        prop::collection::vec(stack, STACKS as usize - 1),
        prop::collection::vec(code(), 0..3),
    )
        .prop_map(|(names, images, locations, stacks, mut code)| {
            code.sort_by_key(|code| (code.image, code.addr));
            let mut symbols = Symbols::default();
            symbols.names.extend(names);
            symbols.images = images;
            symbols.locations.extend(locations);
            symbols.stacks.extend(stacks);
            symbols.code = code;
            symbols
        })
}

fn tid() -> impl Strategy<Value = Tid> {
    prop_oneof![0..4_u32, Just(u32::MAX)].prop_map(Tid)
}

fn off() -> impl Strategy<Value = Off> {
    select(vec![Off::Blocked, Off::Preempted, Off::Yielded, Off::Stopped, Off::Dead])
}

fn kind() -> impl Strategy<Value = Kind> {
    let nr = prop_oneof![0..450_u16, any::<u16>()];
    prop_oneof![
        (tid(), tid()).prop_map(|(child, process)| Kind::Fork { child, process }),
        (tid(), name_id()).prop_map(|(former, path)| Kind::Exec { former, path }),
        name_id().prop_map(Kind::Comm),
        Just(Kind::Exit),
        Just(Kind::On),
        (off(), stack_id()).prop_map(|(why, stack)| Kind::Off { why, stack }),
        (tid(), any::<bool>(), stack_id(), any::<bool>())
            .prop_map(|(waker, irq, stack, inferred)| Kind::Wake { waker, irq, stack, inferred }),
        (nr, [number(), number(), number(), number()])
            .prop_map(|(nr, args)| Kind::Syscall { nr, args }),
        number().prop_map(|ret| Kind::Back { ret: ret.cast_signed() }),
        (0..450_u16, [number(), number()], number(), any::<u32>(), number(), number()).prop_map(
            |(nr, [a, b], ret, count, inside, over)| Kind::Calls {
                nr,
                args: [a, b, 0, 0],
                ret: ret.cast_signed(),
                count,
                inside: Ns(inside),
                over: Ns(over),
            }
        ),
        (number(), 0..LOCATIONS, any::<bool>()).prop_map(|(addr, by, kernel)| Kind::Fault {
            addr: LiveAddr(addr),
            by: LocationId(by),
            kernel
        }),
        any::<bool>().prop_map(|major| Kind::FaultEnd { major }),
        Just(Kind::Timer),
        Just(Kind::TimerEnd),
        (any::<bool>(), stack_id(), stack_id()).prop_map(|(kernel, stack, kernel_stack)| {
            Kind::Sample { kernel: kernel || kernel_stack != StackId(0), stack, kernel_stack }
        }),
        stack_id().prop_map(Kind::Site),
        (0..36_u8, [number(), number(), number(), number()])
            .prop_map(|(first, values)| Kind::Registers { first, values }),
        (number(), number(), 0..IMAGES).prop_map(|(start, len, image)| Kind::Map {
            start: LiveAddr(start),
            len,
            image: ImageId(image)
        }),
        (any::<i32>(), name_id()).prop_map(|(fd, what)| Kind::Fd { fd, what }),
        (number(), any::<bool>())
            .prop_map(|(addr, zero)| Kind::Page { addr: LiveAddr(addr), zero }),
        Just(Kind::Main),
        (name_id(), [number(), number()], stack_id())
            .prop_map(|(probe, args, stack)| Kind::Probe { probe, args, stack }),
        any::<u64>().prop_map(|count| Kind::Lost { count }),
    ]
}

/// Events in order of time, of some tasks on some CPUs.
pub(crate) fn events() -> impl Strategy<Value = Vec<Event>> {
    let step = prop_oneof![Just(0), 0..300_u64, 0..1_u64 << 40];
    prop::collection::vec((step, 0..3_u16, tid(), kind()), 1..60).prop_map(|steps| {
        let mut at = 0;
        let event = |(step, cpu, task, kind)| {
            at += step;
            Event { at: Ns(at), cpu: Cpu(cpu), task, kind }
        };
        steps.into_iter().map(event).collect()
    })
}

fn meta() -> impl Strategy<Value = Meta> {
    let words = || prop::collection::vec(name(), 0..3);
    let exit = prop::option::of((any::<i32>(), prop::option::of(any::<i32>())));
    let rusage = prop::option::of([number(), number(), number()]);
    let facts = (name(), words(), words(), tid(), exit, rusage);
    let amounts = [number(), number(), number(), number(), number(), number()];
    (facts, amounts, prop::collection::vec(tid(), 0..3)).prop_map(|(facts, amounts, recorders)| {
        let (recorder, command, warnings, root, exit, rusage) = facts;
        let [zero, start, end, syscall_user, fault_kernel, steal] = amounts;
        Meta {
            recorder,
            command,
            warnings,
            root,
            zero,
            start: Ns(start),
            end: Ns(end),
            exit: exit.map(|(code, signal)| Exit { code, signal }),
            rusage: rusage.map(|[user, system, max_rss]| Usage {
                user: Ns(user),
                system: Ns(system),
                max_rss,
            }),
            cpus: 3,
            overhead: Overhead { syscall_user, fault_kernel, ..Overhead::default() },
            steal: Ns(steal),
            throttled: Ns(steal / 2),
            recorders,
            // A recording that broke off would get a warning when read, and its last event's time as its end.
            complete: true,
            ..Meta::default()
        }
    })
}

/// Whole traces.
pub(crate) fn trace() -> impl Strategy<Value = Trace> {
    (meta(), symbols(), events())
        .prop_map(|(meta, symbols, events)| Trace::new(meta, symbols, events))
}
