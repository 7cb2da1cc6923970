//! Recordings as text with and without symbols: what is asked for, and what an answer changes.

use super::*;

const HEADER: &str = "\
image zstd path /usr/bin/zstd build-id 00ff no-symbols no-lines
image libz.so.1 path /lib/libz.so.1 build-id 11ff no-symbols no-lines
image libc.so.6 path /lib/libc.so.6 build-id 22ff no-symbols no-lines
image app path /usr/bin/app build-id 33ff
sample-period 1000
task 1 zstd
0 on
0 exec /usr/bin/zstd
0 main
";

fn trace(stacks: &[&str]) -> Trace {
    let lines = stacks.iter().zip(1..).map(|(stack, at)| format!("{} sample {stack}\n", at * 1000));
    let text = format!("{HEADER}{}99000 exit\n", lines.collect::<String>());
    Trace::from_text(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn names(wanted: &[Wanted]) -> Vec<&str> {
    wanted.iter().map(|wanted| wanted.name.as_str()).collect()
}

#[test]
fn binaries_without_symbols_are_found_those_with_most_samples_first() {
    let traces = [trace(&[
        "inflate @libz.so.1+0x80 <- zstd+0x40 @zstd+0x44 <- main @app+0x10",
        "zstd+0x40 @zstd+0x48 <- main @app+0x10",
    ])];
    let wanted = of(&traces);
    assert_eq!(names(&wanted), ["zstd", "libz.so.1"]);
    assert_eq!((wanted[0].build_id.as_str(), wanted[0].lines), ("00ff", true));
    assert_eq!(wanted[0].addresses, [0x44, 0x48]);
    // The runs of one command have the same binaries.
    let runs = [traces[0].clone(), trace(&["zstd+0x40 @zstd+0x50"])];
    assert_eq!(of(&runs)[0].addresses, [0x44, 0x48, 0x50]);
}

#[test]
fn a_binary_in_few_stacks_is_minor() {
    let mut stacks = vec!["inflate @libz.so.1+0x80 <- main @app+0x10"];
    stacks.resize(90, "zstd+0x40 @zstd+0x44");
    let wanted = of(&[trace(&stacks)]);
    let minor = wanted.iter().map(|wanted| (wanted.name.as_str(), wanted.is_minor));
    assert_eq!(minor.collect::<Vec<_>>(), [("zstd", false), ("libz.so.1", true)]);
    assert!(!of(&[trace(&stacks[..2])])[1].is_minor);
}

#[test]
fn binaries_with_symbols_or_without_an_address_are_refused() {
    assert_eq!(of(&[trace(&["main @app+0x10"])]), []);
    assert_eq!(of(&[trace(&["zstd+0x40 @zstd"])]), []);
    assert_eq!(of(&[]), []);
}

#[test]
fn of_the_c_library_only_unknown_functions_are_wanted() {
    assert_eq!(of(&[trace(&["malloc @libc.so.6+0x10"])]), []);
    let wanted = of(&[trace(&["libc.so.6+0x40 @libc.so.6+0x48 <- malloc @libc.so.6+0x10"])]);
    assert_eq!(names(&wanted), ["libc.so.6"]);
    assert_eq!((wanted[0].lines, wanted[0].addresses.as_slice()), (false, &[0x48][..]));
}

#[test]
fn what_was_found_replaces_addresses_and_keeps_exported_names() {
    let mut trace = trace(&["zstd+0x40 @zstd+0x44 <- run @zstd+0x90 <- main @app+0x44"]);
    let question = Question { quiet: true, images: of(&[trace.clone()]) };
    let frame = |function: &str, line| (function.to_owned(), "/src/a.c".to_owned(), line);
    let facts =
        Found { language: "C".into(), has_symbols: true, has_lines: true, ..Found::default() };
    let frames = vec![vec![frame("inlined", 5), frame("compress", 9)], vec![frame("__run", 7)]];
    let found = by_build_id(&question, vec![Some(Found { frames, ..facts })]);
    fill(&mut trace.symbols, &found);
    let symbols = &trace.symbols;
    let of_image = |name: &str, address: u64| {
        let location = symbols.locations.iter().find(|location| {
            let image = symbols.images.get(location.image.index());
            location.addr.0 == address
                && image.is_some_and(|image| file_name(symbols.name(image.path)) == name)
        });
        let frames = location.into_iter().flat_map(|location| &location.frames);
        frames.map(|frame| (symbols.name(frame.function), frame.line)).collect::<Vec<_>>()
    };
    assert_eq!(of_image("zstd", 0x44), [("inlined", 5), ("compress", 9)]);
    assert_eq!(of_image("zstd", 0x90), [("run", 7)]);
    assert_eq!(of_image("app", 0x44), [("main", 0)], "another binary's address");
    let zstd = symbols.images.iter().find(|image| symbols.name(image.path) == "/usr/bin/zstd");
    let zstd = zstd.expect("it is in the header");
    assert!(zstd.has_symbols && zstd.has_lines && symbols.name(zstd.language) == "C");
    assert_eq!(of(&[trace]), [], "nothing is missing any more");
}

#[test]
fn a_file_that_was_not_found_changes_nothing() {
    let mut trace = trace(&["zstd+0x40 @zstd+0x44"]);
    let before = trace.symbols.clone();
    let question = Question { quiet: true, images: of(&[trace.clone()]) };
    fill(&mut trace.symbols, &by_build_id(&question, vec![None]));
    fill(&mut trace.symbols, &by_build_id(&question, Vec::new()));
    let unnamed =
        Found { frames: vec![vec![(String::new(), String::new(), 0)]], ..Found::default() };
    fill(&mut trace.symbols, &by_build_id(&question, vec![Some(unnamed)]));
    assert_eq!(trace.symbols, before);
}

#[test]
fn a_placeholder_is_the_files_name_and_an_address() {
    assert!(is_placeholder("zstd+0xf8140", "zstd") && is_placeholder("", "zstd"));
    for name in ["zstd", "zstd+1", "zstd+0xg", "libz+0x10", "main"] {
        assert!(!is_placeholder(name, "zstd"), "{name}");
    }
}

#[test]
fn machine_code_gets_its_name_and_those_of_what_it_calls() {
    let mut trace = trace(&["zstd+0x100 @zstd+0x104"]);
    let image = trace.symbols.locations[1].image;
    let name = trace.symbols.intern("zstd+0x100");
    let malloc = trace.symbols.intern("malloc");
    // Calls of 0x110 and of 0x210, and a return.
    let bytes = vec![0xe8, 0x0b, 0, 0, 0, 0xe8, 0x06, 1, 0, 0, 0xc3];
    let targets = vec![(FileAddr(0x210), malloc)];
    trace.symbols.code.push(FunctionCode { image, addr: FileAddr(0x100), name, bytes, targets });
    let question = Question { quiet: true, images: of(&[trace.clone()]) };
    assert_eq!(question.images[0].addresses, [0x100, 0x104, 0x110]);
    let frames = ["compress", "compress", "check_bounds"];
    let frames = frames.map(|name| vec![(name.to_owned(), String::new(), 0)]).to_vec();
    let found = by_build_id(&question, vec![Some(Found { frames, ..Found::default() })]);
    fill(&mut trace.symbols, &found);
    let code = &trace.symbols.code[0];
    assert_eq!(trace.symbols.name(code.name), "compress");
    let names = code.targets.iter().map(|(at, name)| (at.0, trace.symbols.name(*name)));
    assert_eq!(names.collect::<Vec<_>>(), [(0x110, "check_bounds"), (0x210, "malloc")]);
}
