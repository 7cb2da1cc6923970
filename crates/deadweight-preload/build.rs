//! Compiles the libraries of `src/library`, one shared object for each.
//!
//! They are no part of the crate itself: they have no std, and must not be linked into the command.
//! A target that they are not written for gets empty files.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

const SOURCES: &str = "src/library";
const LIBRARIES: [&str; 10] = [
    "nothing",
    "allocator",
    "answers",
    "buffers",
    "durable",
    "maps",
    "sockets",
    "time_outs",
    "twice",
    "yields",
];

fn main() {
    println!("cargo::rerun-if-changed={SOURCES}");
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(variable("OUT_DIR"));
    let written_for =
        variable("CARGO_CFG_TARGET_ARCH") == "x86_64" && variable("CARGO_CFG_TARGET_OS") == "linux";
    for library in LIBRARIES {
        let file = out.join(format!("{library}.so"));
        if written_for {
            compile(library, &file);
        } else if let Err(error) = std::fs::write(&file, []) {
            fail(&format!("{}: {error}", file.display()));
        }
    }
}

fn compile(library: &str, file: &Path) {
    let mut rustc = Command::new(variable("RUSTC"));
    rustc
        .args(["--crate-name", &format!("deadweight_preload_{library}"), "--crate-type", "cdylib"])
        .args(["--edition", "2024", "--target", &variable("TARGET")])
        .args(["-C", "opt-level=3", "-C", "panic=abort", "-C", "strip=symbols"])
        // One unit: the fast paths span modules.
        .args(["-C", "codegen-units=1", "-C", "overflow-checks=off", "-C", "debuginfo=0"])
        // The C library of the program is used, whichever it is: none is named, no version is demanded.
        .args(["-C", "link-arg=-nostartfiles", "-C", "target-feature=-crt-static"])
        .arg("--check-cfg")
        .arg(format!("cfg(library, values(\"{}\"))", LIBRARIES.join("\", \"")))
        .arg("--cfg")
        .arg(format!("library=\"{library}\""));
    if let Ok(linker) = env::var("RUSTC_LINKER") {
        rustc.arg("-C").arg(format!("linker={linker}"));
    }
    rustc.arg("-o").arg(file).arg(Path::new(SOURCES).join("mod.rs"));
    match rustc.status() {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("the library `{library}` does not compile: {status}")),
        Err(error) => fail(&format!("rustc does not start: {error}")),
    }
}

fn variable(name: &str) -> String {
    env::var(name).unwrap_or_else(|_| fail(&format!("cargo did not set {name}")))
}

fn fail(text: &str) -> ! {
    println!("cargo::error={text}");
    std::process::exit(1)
}
