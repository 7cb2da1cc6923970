//! What to do about tiny writes: by language, by what is written to, and, in C and C++, by what the stack says
//! empties the buffer. Where the stack does not say it, the candidates are named.

use crate::facts::Facts;
use crate::facts::call_site::{CallSite, heaviest, is_own};
use crate::facts::processes::ProcessId;
use crate::inspect::syscalls::small_calls::{SmallCalls, Stream};
use deadweight_trace::symbols::SourceFrame;

/// What to do about the small writes of a process.
pub(super) fn of(facts: &Facts<'_>, process: ProcessId, calls: &SmallCalls) -> &'static str {
    let language = facts.processes.get(process).language.as_str();
    match (language, calls.stream()) {
        (_, Stream::Socket) => of_reply(language),
        _ if facts.path.subject.service.is_some() => OF_SERVER,
        ("C" | "C++", stream) => {
            of_stdio(language, stream, Emptied::by(facts, heaviest(&calls.places)))
        }
        _ if is_flushed(facts, heaviest(&calls.places)) => {
            "Don't flush after each piece: the buffer is there, and once at the end is enough."
        }
        (_, stream) => general(language, stream),
    }
}

/// Whether the program itself empties a buffered writer of Rust's, Go's or Crystal's library.
fn is_flushed(facts: &Facts<'_>, site: CallSite) -> bool {
    let symbols = facts.symbols();
    let mut frames = site.frames(symbols);
    let flushes = |frame: &SourceFrame| {
        let name = symbols.name(frame.function);
        name == "bufio.(*Writer).Flush"
            || name.contains("BufWriter") && name.ends_with("::flush")
            || name == "flush" && symbols.name(frame.file).ends_with("/io/buffered.cr")
    };
    let found = frames.by_ref().any(|(_, frame)| flushes(frame));
    found && frames.next().is_some_and(|(location, frame)| is_own(symbols, location, frame))
}

/// What a server writes beside its answers is a log, which nobody waits for, and which has no end.
const OF_SERVER: &str = "A server writes its log so: give the log a buffer that is written when it is full and every few seconds \
    (access logs often have a setting for it), or log less. Lines in the buffer are lost in a crash.";

/// Why a buffer of C's or C++'s library was written.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Emptied {
    /// A read from `std::cin` empties the stream that it is tied to.
    TiedRead,
    /// `std::endl` writes a newline and empties the buffer.
    Endl,
    /// The program asked for it.
    Flush,
    /// C++ empties it after each output.
    UnitBuffer,
    /// The library writes at once, or the buffer is full.
    Library,
    /// The program calls `write` itself.
    Direct,
    /// The stack is not known.
    Unknown,
}

impl Emptied {
    fn by(facts: &Facts<'_>, site: CallSite) -> Self {
        let symbols = facts.symbols();
        let names: Vec<&str> =
            site.frames(symbols).map(|(_, frame)| symbols.name(frame.function)).collect();
        let any = |of: &dyn Fn(&str) -> bool| names.iter().any(|name| of(name));
        let ends = |name: &str, with: &str| {
            name.strip_suffix(with).is_some_and(|rest| rest.is_empty() || rest.ends_with(':'))
        };
        let of_cpp = any(&|name| name.contains("std::") && name.contains("ostream"));
        if names.is_empty() {
            Self::Unknown
        } else if any(&|name| name.contains("istream") && name.contains("sentry")) {
            Self::TiedRead
        } else if any(&|name| name.starts_with("std::endl")) {
            Self::Endl
        } else if any(&|name| name.starts_with("std::flush") || ends(name, "ostream::flush")) {
            Self::Flush
        } else if any(&|name| matches!(name, "fflush" | "fflush_unlocked" | "_IO_fflush")) {
            if of_cpp { Self::UnitBuffer } else { Self::Flush }
        } else if of_cpp || any(&|name| name.starts_with("_IO_") || name.contains("filebuf")) {
            Self::Library
        } else {
            Self::Direct
        }
    }
}

fn of_stdio(language: &str, stream: Stream, emptied: Emptied) -> &'static str {
    match (emptied, language, stream) {
        (Emptied::TiedRead, ..) => {
            "std::cin.tie(nullptr), once at the beginning: std::cin is tied to std::cout, so each read from it \
             empties the buffer of std::cout."
        }
        (Emptied::Endl, ..) => {
            "Write '\\n' instead of std::endl, which empties the buffer each time."
        }
        (Emptied::Flush, "C++", _) => {
            "Don't flush after each piece (std::flush, flush(), fflush): once at the end is enough."
        }
        (Emptied::Flush, ..) => "Don't call fflush after each piece: once at the end is enough.",
        (Emptied::UnitBuffer, ..) => {
            "Switch std::unitbuf off (out << std::nounitbuf): it empties the buffer after each output. \
             std::cerr has it on: use std::clog where nobody waits for the line."
        }
        (Emptied::Library, "C++", Stream::Error) => {
            "Standard error has no buffer: std::cerr writes each piece at once. Put a line together as one \
             string and write that; or std::ios::sync_with_stdio(false) and std::clog, which is flushed at the \
             end."
        }
        (Emptied::Library, _, Stream::Error) => {
            "Standard error has no buffer: put a line together (snprintf) and write it at once, or \
             setvbuf(stderr, NULL, _IOFBF, 65536) before the first output and fflush before the end."
        }
        (Emptied::Library, _, Stream::Standard) => {
            "The stream has no buffer, or one per line: setvbuf(stdout, NULL, _IOFBF, 65536) before the \
             first output."
        }
        (Emptied::Library, ..) => {
            "The stream has no buffer, or a small one: give it one of 64 KiB (setvbuf, or pubsetbuf in C++)."
        }
        (Emptied::Direct, "C++", _) => {
            "Collect what the program passes to write, or write through a std::ofstream."
        }
        (Emptied::Direct, ..) => {
            "Collect what the program passes to write, or write through stdio (fwrite)."
        }
        (Emptied::Unknown, "C++", _) => {
            "Write '\\n' instead of std::endl and don't flush per piece; if std::cin is read between, \
             std::cin.tie(nullptr). Or collect what the program passes to write."
        }
        (Emptied::Unknown, ..) => {
            "Give the stream a buffer (setvbuf with _IOFBF and 65536), don't fflush per piece, and collect \
             what the program passes to write."
        }
    }
}

fn general(language: &str, stream: Stream) -> &'static str {
    match (language, stream) {
        ("Rust", Stream::Standard) => {
            "let mut out = std::io::BufWriter::new(std::io::stdout().lock()); then writeln!(out, \
             ...): println! flushes every line."
        }
        ("Rust", Stream::Error) => {
            "let mut log = std::io::BufWriter::new(std::io::stderr().lock()); then writeln!(log, ...): \
             eprintln! writes each piece at once."
        }
        ("Go", Stream::Error) => "log := bufio.NewWriterSize(os.Stderr, 64<<10); defer log.Flush()",
        ("Crystal", Stream::Error) => "STDERR.sync = false; flush at the end.",
        ("Rust", Stream::Opened) => {
            "Wrap it: let mut out = std::io::BufWriter::with_capacity(64 << 10, out); flush at the end."
        }
        ("Go", Stream::Standard) => {
            "out := bufio.NewWriterSize(os.Stdout, 64<<10); defer out.Flush()"
        }
        ("Go", Stream::Opened) => {
            "Wrap it: out := bufio.NewWriterSize(file, 64<<10); flush before file.Close."
        }
        ("Zig", _) => {
            "Wrap the output: var out = std.io.bufferedWriter(file.writer()); and out.flush() at \
             the end."
        }
        ("Crystal", Stream::Standard) => {
            "STDOUT.sync = false and STDOUT.flush_on_newline = false; flush at the end."
        }
        ("Crystal", Stream::Opened) => {
            "Leave IO buffering on (file.sync = false); flush at the end."
        }
        ("Python", Stream::Standard | Stream::Error) => {
            "Write through a buffer and without flush=True; run without -u."
        }
        ("Python", Stream::Opened) => {
            "Open with a buffer (buffering=65536), and don't call flush or os.write for each piece."
        }
        ("JavaScript", _) => {
            "Collect the pieces (parts.push, then parts.join) and write them at once: fs.writeSync \
             and process.stdout.write make a call for each piece."
        }
        ("Java", _) => {
            "Wrap it: new PrintStream(new BufferedOutputStream(out, 65536), false); System.out \
             writes every line at once."
        }
        ("Ruby", _) => {
            "Leave buffering on (io.sync = false), and write with print or <<, not syswrite."
        }
        ("PHP", _) => "Collect the output (ob_start(), or a string) and write it in one piece.",
        ("Perl", _) => "Leave $| at 0, and write with print, not syswrite.",
        ("Haskell", _) => "hSetBuffering handle (BlockBuffering (Just 65536)); no hFlush per line.",
        ("shell", _) => {
            "Each echo or printf is a call of its own: let one program (awk, sed) write all lines."
        }
        _ => "Collect output in a buffer of 64 KiB and flush it at the end.",
    }
}

/// A peer waits for a reply: its parts can be joined, replies cannot.
fn of_reply(language: &str) -> &'static str {
    match language {
        "Go" => {
            "Write a message through a bufio.Writer around the connection, and flush it at its end."
        }
        "Rust" => "Write a message through a BufWriter around the stream, and flush it at its end.",
        "Python" => {
            "Join the parts of a message and send them at once: sock.sendall(b''.join(parts))."
        }
        "JavaScript" => {
            "Join the parts of a message before socket.write, or socket.cork() before the first part \
             and socket.uncork() after the last."
        }
        "Java" => {
            "Write a message through a BufferedOutputStream around the socket's, and flush it at its end."
        }
        _ => "Join the parts of a message in one buffer, or give them to one writev or sendmsg.",
    }
}

#[cfg(test)]
mod tests {
    use crate::cost::tests::{repeat, weighed};

    /// The remedy for 1 000 writes of 8 bytes to this descriptor with this stack.
    fn remedy_of(descriptor: u32, stack: &str) -> String {
        let write =
            |at| format!("{at} syscall write {descriptor} 8 from {stack}\n{} back 8\n", at + 300);
        let writes = repeat(1000, 100, 400, write);
        let text = format!(
            "image app path /bin/app language C++\nimage libc.so.6 path /lib/libc.so.6\n\
             image libstdc++.so.6 path /lib/libstdc++.so.6\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
             {writes}500000 exit\n500000 off dead"
        );
        weighed(&text).findings.first().map_or(String::new(), |finding| finding.remedy.clone())
    }

    #[test]
    fn what_a_server_writes_beside_its_answers_is_its_log() {
        let write = |at| {
            format!("{at} syscall write 7 90 from log (a.c:9) <- main\n{} back 90\n", at + 300)
        };
        let writes = repeat(1000, 100, 400, write);
        let text = format!("attached\ntask 1 app\n0 on\n{writes}500000 off blocked");
        let remedy =
            |text: &str| weighed(text).findings.first().map_or(String::new(), |f| f.remedy.clone());
        assert!(remedy(&text).contains("log"), "{}", remedy(&text));
        let alone = text.replace("attached\n", "");
        assert!(
            !remedy(&alone).is_empty() && !remedy(&alone).contains("log"),
            "{}",
            remedy(&alone)
        );
    }

    #[test]
    fn standard_error_has_no_buffer_that_setvbuf_of_stdout_would_change() {
        let insert = "write @libc.so.6 <- _IO_file_write @libc.so.6 <- fwrite @libc.so.6 <- \"std::__ostream_insert<char, std::char_traits<char> >\" @libstdc++.so.6 <- log (a.cpp:9) <- main";
        let remedy = remedy_of(2, insert);
        assert!(remedy.contains("std::cerr") && !remedy.contains("stdout"), "{remedy}");
        let print = "write @libc.so.6 <- _IO_file_write @libc.so.6 <- vfprintf @libc.so.6 <- main (a.cpp:9)";
        assert!(!remedy_of(2, print).contains("stdout"), "{}", remedy_of(2, print));
        assert!(remedy_of(1, print).contains("setvbuf(stdout"), "{}", remedy_of(1, print));
    }

    #[test]
    fn a_buffer_that_the_program_empties_is_not_advised_again() {
        let written = "syscall.write <- os.(*File).Write";
        let remedy = |stack: &str| {
            let write = |at| format!("{at} syscall write 7 8 from {stack}\n{} back 8\n", at + 300);
            let writes = repeat(1000, 100, 400, write);
            let text = format!(
                "image app path /bin/app language Go\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n\
                 {writes}500000 exit\n500000 off dead"
            );
            weighed(&text).findings.first().map_or(String::new(), |finding| finding.remedy.clone())
        };
        let flushed = remedy(&format!("{written} <- bufio.(*Writer).Flush <- main.main (m.go:9)"));
        assert!(flushed.starts_with("Don't flush"), "{flushed}");
        // A buffer that is too small, and none.
        let full = "bufio.(*Writer).Flush <- bufio.(*Writer).Write <- main.main (m.go:9)";
        for stack in [format!("{written} <- {full}"), format!("{written} <- main.main (m.go:9)")] {
            assert!(remedy(&stack).contains("NewWriterSize"), "{}", remedy(&stack));
        }
    }

    #[test]
    fn the_stack_says_what_empties_the_buffer() {
        let flush = "write @libc.so.6 <- _IO_file_write @libc.so.6 <- fflush @libc.so.6";
        let tied = "std::ostream::flush @libstdc++.so.6 <- \
                    \"std::basic_istream<char, std::char_traits<char> >::sentry::sentry\" @libstdc++.so.6";
        let endl = "std::ostream::flush @libstdc++.so.6 <- \"std::endl<char, std::char_traits<char> >\" @libstdc++.so.6";
        for (stack, expected) in [
            (format!("{flush} <- {tied} <- next (a.cpp:3) <- main"), "std::cin.tie(nullptr), once"),
            (format!("{flush} <- {endl} <- print (a.cpp:3) <- main"), "instead of std::endl, which"),
            (format!("{flush} <- std::ostream::flush @libstdc++.so.6 <- main (a.cpp:9)"), "Don't flush"),
            (format!("{flush} <- std::ostream::put @libstdc++.so.6 <- main (a.cpp:9)"), "std::unitbuf"),
            (format!("{flush} <- log (a.cpp:9) <- main"), "Don't flush"),
            ("write @libc.so.6 <- _IO_file_write @libc.so.6 <- vfprintf @libc.so.6 <- main (a.cpp:9)".into(), "setvbuf"),
            ("write @libc.so.6 <- emit (a.cpp:9) <- main".into(), "passes to write"),
        ] {
            let remedy = remedy_of(1, &stack);
            assert!(remedy.contains(expected), "{stack}: {remedy}");
        }
        assert!(!remedy_of(1, "write @libc.so.6 <- emit (a.cpp:9) <- main").contains("endl"));
    }
}
