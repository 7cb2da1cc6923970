//! Warnings about code that ran and has no name or no line, so that missing names are not mistaken for
//! missing code.
//!
//! Only where it matters for the reader: a large part of the program's own time, or a finding's place. Problems of a file were
//! reported when it was sealed; they are not repeated.

use crate::account::Attribution;
use crate::facts::Facts;
use crate::facts::call_site::is_system_image;
use deadweight_report::report::Finding;
use deadweight_trace::ids::ImageId;
use deadweight_trace::symbols::is_c_library;
use std::collections::{BTreeMap, BTreeSet};

/// From this share of the program's own time on, an image gets a warning.
const LARGE: f64 = 0.1;
/// Fewer samples show nothing.
const SAMPLES: u64 = 20;

/// What is unknown of the code that had the program's own time on the path.
pub(crate) fn warnings(facts: &Facts<'_>, wall: &Attribution, findings: &[Finding]) -> Vec<String> {
    let symbols = facts.symbols();
    let mut of_image: BTreeMap<ImageId, u64> = BTreeMap::new();
    let samples = wall.user_time().flat_map(|entry| &entry.samples);
    for (site, weight) in samples.filter(|(site, _)| site.is_known()) {
        if let Some((location, _)) = site.frames(symbols).next() {
            *of_image.entry(location.image).or_default() += weight.amount;
        }
    }
    let all: u64 = of_image.values().sum();
    let large = |samples: u64| samples >= SAMPLES && samples as f64 >= LARGE * all as f64;
    let large = of_image.into_iter().filter(|(_, samples)| large(*samples));
    let mut images: BTreeSet<ImageId> = large.map(|(image, _)| image).collect();
    images.extend(images_of_findings(facts, findings));
    let (stripped, others): (Vec<ImageId>, Vec<ImageId>) = images
        .into_iter()
        .filter(|image| is_unsaid(facts, *image))
        .partition(|image| is_stripped(facts, *image));
    let mut warnings: Vec<String> = about_stripped(facts, &stripped).into_iter().collect();
    warnings.extend(others.into_iter().filter_map(|image| about(facts, image)));
    // Several processes may each have generated code.
    warnings.dedup();
    warnings
}

/// The images that hold the first place of a finding, if it has no line: its time may be in calls that no sample shows.
fn images_of_findings(facts: &Facts<'_>, findings: &[Finding]) -> Vec<ImageId> {
    let symbols = facts.symbols();
    let paths: BTreeSet<&str> = findings
        .iter()
        .filter_map(|f| f.sites.first().filter(|site| site.line == 0))
        .map(|site| site.image.as_str())
        .collect();
    let images = (0..).map(ImageId::at).zip(&symbols.images);
    let named = images.filter(|(_, image)| {
        let path = symbols.name(image.path);
        paths.contains(path) && !is_system_image(path)
    });
    named.map(|(id, _)| id).collect()
}

/// The option that makes a program list the code it generates, by the name of the file that runs it.
const LISTERS: &[(&str, &str)] = &[
    ("libjvm.so", "java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit"),
    ("node", "node --perf-basic-prof"),
    ("libpython3", "python3 -X perf (3.12 or later)"),
    ("python3", "python3 -X perf (3.12 or later)"),
];

/// How to give the code names.
fn advice(facts: &Facts<'_>) -> &'static str {
    let symbols = facts.symbols();
    let called = |name: &str| {
        symbols.images.iter().any(|image| {
            let file = symbols.name(image.path).rsplit('/').next().unwrap_or_default();
            let version = file.strip_prefix(name);
            version.is_some_and(|v| v.chars().all(|c| c.is_ascii_digit() || "so.".contains(c)))
        })
    };
    let lister = LISTERS.iter().find(|(name, _)| called(name));
    lister.map_or("an option of its compiler that writes /tmp/perf-PID.map", |(_, how)| how)
}

fn path<'f>(facts: &'f Facts<'_>, id: ImageId) -> &'f str {
    let symbols = facts.symbols();
    symbols.images.get(id.index()).map_or("", |image| symbols.name(image.path))
}

/// Whether an image may lack names, and nothing was said of its file when that was sealed.
fn is_unsaid(facts: &Facts<'_>, id: ImageId) -> bool {
    let path = path(facts, id);
    let said = |warning: &String| warning.starts_with(path) && !path.is_empty();
    !["[kernel]", "[vdso]", "[unknown]"].contains(&path)
        && !facts.trace.meta.warnings.iter().any(said)
}

/// Whether an image is a file with neither symbols nor debug information.
fn is_stripped(facts: &Facts<'_>, id: ImageId) -> bool {
    let path = path(facts, id);
    let image = facts.symbols().images.get(id.index());
    image.is_some_and(|image| !image.has_symbols) && !path.starts_with('[') && !is_c_library(path)
}

/// One sentence about all stripped files.
fn about_stripped(facts: &Facts<'_>, stripped: &[ImageId]) -> Option<String> {
    let mut paths: Vec<&str> = stripped.iter().map(|id| path(facts, *id)).collect();
    paths.dedup();
    let last = paths.pop()?;
    if paths.is_empty() {
        return Some(format!(
            "{last} has neither symbols nor debug information: functions that it does not export are named by their \
             address. Build it with -g, install its debug file, or set DEBUGINFOD_URLS to a server that has it"
        ));
    }
    Some(format!(
        "{} and {last} have neither symbols nor debug information: functions that they do not export are named by \
         their address. Build them with -g, install their debug files, or set DEBUGINFOD_URLS to a server that has them",
        paths.join(", ")
    ))
}

fn about(facts: &Facts<'_>, id: ImageId) -> Option<String> {
    let image = facts.symbols().images.get(id.index())?;
    let path = path(facts, id);
    if path.starts_with('[') {
        let how = advice(facts);
        return (!image.has_symbols).then(|| {
            format!(
                "code in {path} is in no file: the program, or a compiler in it, generated it at run time. \
                 Its instructions are not analysed. To give it names: {how}"
            )
        });
    }
    // Some of a program's objects may be built with -g.
    let of_image = facts.symbols().locations.iter().filter(|at| at.image == id);
    let has_some = of_image.flat_map(|at| &at.frames).any(|frame| frame.line > 0);
    (!image.has_lines && !is_system_image(path)).then(|| {
        let (code, places) = match has_some {
            true => ("most of the code", "most of its places"),
            false => ("the code", "its places"),
        };
        format!(
            "{path} has no debug information for {code} that ran: {places} are functions, \
             without lines and inlined functions. Build it with -g, or install its debug file"
        )
    })
}

#[cfg(test)]
mod tests {
    use crate::weigh::{Weighing, weigh};
    use deadweight_trace::Trace;
    use std::fmt::Write;

    /// The warnings about a program that spends so many samples in each of these stacks.
    fn warned(images: &str, stacks: &[(u64, &str)]) -> String {
        let mut text =
            format!("{images}\nsample-period 1000\ntask 1 app\n0 on\n0 exec /bin/app\n0 main\n");
        let samples = stacks.iter().flat_map(|(count, stack)| (0..*count).map(move |_| stack));
        for (at, stack) in samples.enumerate() {
            writeln!(text, "{} sample {stack}", at * 1000 + 500).unwrap();
        }
        write!(text, "99000 exit\n99000 off dead").unwrap();
        let traces = [Trace::from_text(&text).unwrap()];
        let report = weigh(&Weighing { traces: &traces, ..Weighing::default() });
        report.unwrap().warnings.join("\n")
    }

    #[test]
    fn a_stripped_program_and_one_without_lines_are_said_to_be() {
        let stacks = [(50, "work <- main"), (5, "inflate @libz.so.1 <- main")];
        let image = "image app path /bin/app language C";
        let small = "image libz.so.1 path /lib/libz.so.1 no-symbols no-lines";
        assert_eq!(warned(&format!("{image}\n{small}"), &stacks), "");
        let warnings_of = |facts| warned(&format!("{image} {facts}\n{small}"), &stacks);
        assert!(
            warnings_of("no-lines").starts_with("/bin/app has no debug information for the code")
        );
        let some = [(50, "work <- main"), (5, "inflate (zip.c:9) <- main")];
        let some = warned(&format!("{image} no-lines\n{small}"), &some);
        assert!(
            some.starts_with("/bin/app has no debug information for most of the code"),
            "{some}"
        );
        let stripped = warnings_of("no-symbols no-lines");
        assert!(stripped.starts_with("/bin/app has neither") && stripped.lines().count() == 1);
    }

    #[test]
    fn a_stripped_program_that_is_mostly_in_calls_is_said_to_be() {
        let calls = |facts: &str| {
            let calls = crate::cost::tests::repeat(50, 100, 1000, |at| {
                format!(
                    "{at} syscall fsync 3 from fsync @libc.so.6 <- ? @app+0x1200 <- main\n{} back 0\n",
                    at + 900
                )
            });
            let text = format!(
                "image app path /bin/app {facts}\nimage libc.so.6 path /lib/libc.so.6\ntask 1 app\n0 on\n\
                 0 exec /bin/app\n0 main\n{calls}60000 exit\n60000 off dead"
            );
            let traces = [Trace::from_text(&text).unwrap()];
            weigh(&Weighing { traces: &traces, ..Weighing::default() }).unwrap().warnings.join("\n")
        };
        assert!(calls("no-symbols no-lines").starts_with("/bin/app has neither symbols"));
        assert_eq!(calls(""), "");
    }

    #[test]
    fn a_warning_of_sealing_is_not_repeated() {
        let images = "warning \"/bin/app: has broken debug information\"\n\
             image app path /bin/app language C no-lines";
        assert_eq!(warned(images, &[(50, "main")]), "/bin/app: has broken debug information");
    }

    #[test]
    fn libraries_that_are_known_by_name_need_no_lines() {
        let images =
            "image app path /bin/app\nimage libc.so.6 path /lib/libc.so.6 no-symbols no-lines";
        assert_eq!(warned(images, &[(50, "malloc @libc.so.6 <- main")]), "");
    }

    #[test]
    fn code_made_while_running_is_said_to_be() {
        let images =
            "image app path /bin/app\nimage [anonymous] path [anonymous] no-symbols no-lines";
        let warning = warned(images, &[(50, "? @[anonymous]+0x10 <- main")]);
        assert!(warning.starts_with("code in [anonymous] is in no file"), "{warning}");
    }

    #[test]
    fn stripped_files_share_a_sentence() {
        let images = "image app path /bin/app no-symbols no-lines\nimage libz.so.1 path /lib/libz.so.1 no-symbols no-lines";
        let text =
            warned(images, &[(40, "app+0x10 @app"), (40, "inflate @libz.so.1 <- app+0x10 @app")]);
        assert!(text.starts_with("/bin/app and /lib/libz.so.1 have neither symbols"), "{text}");
        assert_eq!(text.matches("neither").count(), 1, "{text}");
    }
}
