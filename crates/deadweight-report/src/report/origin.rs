//! What a run is comparable with: the machine, and the builds of the program.
//!
//! Data only.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The machine of a run. Texts are empty where unknown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct MachineInfo {
    /// Its architecture (`x86_64`).
    pub arch: String,
    /// Model name of the CPU.
    pub cpu: String,
    /// CPUs that could run the program.
    pub cpus: u32,
    /// Release of the kernel.
    pub kernel: String,
    /// What virtualises it, or empty.
    pub virtualisation: String,
    /// The policy that sets the CPU's speed, or empty.
    pub governor: String,
    /// The setting of transparent huge pages, or empty.
    pub huge_pages: String,
    /// How many CPUs a cgroup grants; 0 without a quota.
    pub cpu_quota: f64,
}

impl MachineInfo {
    /// Whether nothing is known: reports of earlier versions.
    #[must_use]
    pub fn is_unknown(&self) -> bool {
        *self == Self::default()
    }

    /// All that decides whether times can be compared, in one line: two machines of one kind have the same. The
    /// kernel counts by its first two numbers, so that a security update begins no new series.
    #[must_use]
    pub fn fingerprint(&self) -> String {
        let kernel: Vec<&str> = self.kernel.splitn(3, ['.', '-']).take(2).collect();
        let quota =
            if self.cpu_quota > 0.0 { format!("{:.2}", self.cpu_quota) } else { String::new() };
        // Of a file of benchmarks it may be unknown.
        let cpus = if self.cpus > 0 { self.cpus.to_string() } else { String::new() };
        let facts = [
            ("", self.arch.as_str()),
            ("", self.cpu.as_str()),
            ("CPUs ", &cpus),
            ("Linux ", &kernel.join(".")),
            ("on ", self.virtualisation.as_str()),
            ("governor ", self.governor.as_str()),
            ("huge pages ", self.huge_pages.as_str()),
            ("quota ", &quota),
        ];
        let known = facts.iter().filter(|(_, fact)| !fact.is_empty());
        known.map(|(label, fact)| format!("{label}{fact}")).collect::<Vec<_>>().join(" | ")
    }
}

/// A binary that code ran in.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Build {
    /// Path as mapped.
    pub path: String,
    /// GNU build-id in hexadecimal, or empty.
    pub build_id: String,
    /// Source language of its main part, or empty.
    pub language: String,
    /// The compiler that produced it, or empty.
    pub producer: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_security_update_of_the_kernel_is_the_same_machine() {
        let machine = |kernel: &str, cpus| MachineInfo {
            arch: "x86_64".into(),
            cpu: "AMD EPYC".into(),
            cpus,
            kernel: kernel.into(),
            ..MachineInfo::default()
        };
        let old = machine("6.1.0-18-amd64", 2).fingerprint();
        assert_eq!(old, "x86_64 | AMD EPYC | CPUs 2 | Linux 6.1");
        assert_eq!(machine("6.1.0-21-amd64", 2).fingerprint(), old);
        assert_ne!(machine("6.12.1", 2).fingerprint(), old);
        assert_ne!(machine("6.1.0-18-amd64", 4).fingerprint(), old);
    }
}
