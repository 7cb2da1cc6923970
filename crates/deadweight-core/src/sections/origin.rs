//! The machine, the recorder and the binaries of a run, as facts to compare by.

use crate::facts::Facts;
use deadweight_report::report::{Build, MachineInfo, Recording};
use deadweight_trace::Meta;
use deadweight_trace::ids::ImageId;
use deadweight_trace::symbols::Image;
use deadweight_trace::syscall::Arch;

/// The machine that a trace was recorded on.
pub(crate) fn machine(meta: &Meta) -> MachineInfo {
    if meta.machine.is_unknown() {
        return MachineInfo::default();
    }
    let of = meta.machine.clone();
    MachineInfo {
        arch: match meta.arch {
            Arch::X86_64 => "x86_64".into(),
            Arch::Aarch64 => "aarch64".into(),
        },
        cpu: of.cpu,
        cpus: meta.cpus.into(),
        kernel: of.kernel,
        virtualisation: of.virtualisation,
        governor: of.governor,
        huge_pages: of.huge_pages,
        cpu_quota: of.cpu_quota,
    }
}

/// How a trace was recorded.
pub(crate) fn recording(meta: &Meta) -> Recording {
    Recording {
        rung: meta.rung.clone(),
        why: meta.rung_why.clone(),
        lacks: meta.lacks.clone(),
        attached: meta.attached,
    }
}

/// The binaries of a run that have a build-id or a known compiler, the subject's first.
pub(crate) fn builds(facts: &Facts<'_>) -> Vec<Build> {
    let symbols = facts.symbols();
    let own = facts.processes.get(facts.subject()).image;
    let build = |image: &Image| Build {
        path: symbols.name(image.path).to_owned(),
        build_id: symbols.name(image.build_id).to_owned(),
        language: symbols.name(image.language).to_owned(),
        producer: symbols.name(image.producer).to_owned(),
    };
    let mut found: Vec<(bool, Build)> = symbols
        .images
        .iter()
        .enumerate()
        .map(|(index, image)| (own != Some(ImageId::at(index)), build(image)))
        .filter(|(_, build)| !build.build_id.is_empty() || !build.producer.is_empty())
        .collect();
    found.sort_by_key(|(other, _)| *other);
    found.into_iter().map(|(_, build)| build).collect()
}
