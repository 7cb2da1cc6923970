//! An emulated machine for a test: it runs a distribution's kernel, with deadweight and a few tools in memory.
//!
//! It is emulated on purpose, also where a hypervisor could be had: then it is the same everywhere, down to the clock
//! that is slow to read.

use std::collections::HashMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Words that run the rest as an ordinary user.
pub(crate) const USER: &str = "/bin/setpriv --reuid 1001 --regid 1001 --clear-groups";

/// Tools copied from the host, with their libraries. BusyBox's shell provides all other commands.
const TOOLS: [&str; 3] = ["busybox", "cpupower", "setpriv"];
/// Where `setup.sh tests` puts a distribution's kernel.
const KERNEL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/stock-kernel/vmlinuz");
/// The cpufreq driver (`acpi-cpufreq`), for tests that change a CPU's frequency.
const DRIVER: &str =
    concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/stock-kernel/acpi-cpufreq.ko");
/// Source of the ACPI table with the frequencies that the driver offers.
const SPEEDS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/machines/speeds.asl");
/// Longer than any guest takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);
/// Longer than it takes to come up: usually some 10 s.
const UP: Duration = Duration::from_secs(120);

/// Profile of every user in the guest, so that suggested commands run as printed. BusyBox's `sysctl` needs `-w` to write.
const SUDO: &str = "#!/bin/sh
if [ \"$1\" = sysctl ]; then shift; exec sysctl -w \"$@\"; fi
exec \"$@\"
";

/// The guest's first process: runs the steps and switches it off.
const INIT: &str = "#!/bin/busybox sh
/bin/busybox --install -s /bin 2> /dev/null
export PATH=/bin HOME=/tmp LC_ALL=C.UTF-8
mount -t proc proc /proc; mount -t sysfs sys /sys; mount -t devtmpfs dev /dev
mount -t tracefs tracefs /sys/kernel/tracing
mount -t cgroup2 none /sys/fs/cgroup
mount -t securityfs none /sys/kernel/security
chmod 1777 /tmp
sh /steps > /dev/ttyS1
poweroff -f
";

/// The result of a step.
#[derive(Debug, Default)]
pub(crate) struct Step {
    pub(crate) code: i32,
    /// Both outputs.
    pub(crate) said: String,
}

/// What a guest was started with, and its steps, by name.
pub(crate) struct Guest(HashMap<String, Step>);

impl Guest {
    /// Starts a machine with so many CPUs and these words for its kernel, has it run these named shell scripts, one
    /// after the other, and switches it off.
    pub(crate) fn run(cpus: u32, kernel: &str, steps: &[(&str, &str)]) -> Self {
        // Two at a time would only disturb each other.
        static ONE: Mutex<()> = Mutex::new(());
        let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
        let place = Place::new();
        place.furnish(steps);
        let (out, console) = (place.0.join("out"), place.0.join("console"));
        let serial = |file: &Path| format!("file:{}", file.display());
        let words = format!("console=ttyS0 quiet panic=-1 {kernel}");
        let mut command = Command::new("qemu-system-x86_64");
        // One thread for all CPUs: with one each, the emulator loses an interrupt between them now and then, and both
        // wait for it. The driver believes an AMD processor of a later family only.
        command.args(["-accel", "tcg,thread=single", "-cpu", "max,family=23", "-m", "1024"]);
        command.arg("-acpitable").arg(format!("file={}", place.0.join("speeds.aml").display()));
        command.args(["-display", "none", "-no-reboot", "-smp", &cpus.to_string()]);
        command.args(["-kernel", KERNEL, "-append", &words, "-initrd"]).arg(place.0.join("image"));
        command.args(["-serial", &serial(&console), "-serial", &serial(&out)]);
        command.stdin(Stdio::null());
        let mut start = || {
            let machine = command.spawn();
            machine.expect("qemu-system-x86_64, which `./setup.sh tests` installs")
        };
        let mut ended = await_end(start(), &out, &console);
        if let End::Hangs(why) = ended {
            eprintln!("the emulated machine {why}, and is started anew");
            ended = await_end(start(), &out, &console);
        }
        let said = fs::read(&out).unwrap_or_default();
        let guest = Self(taken_apart(&String::from_utf8_lossy(&said).replace('\r', "")));
        let console = fs::read(console).unwrap_or_default();
        for (name, _) in steps {
            let whole = guest.0.contains_key(*name);
            let console = String::from_utf8_lossy(&console);
            assert!(whole && matches!(ended, End::Off), "{name}: {ended:?}: {console}");
        }
        guest
    }

    /// The result of this step.
    pub(crate) fn step(&self, name: &str) -> &Step {
        &self.0[name]
    }

    /// What a step that succeeded said.
    pub(crate) fn said(&self, name: &str) -> &str {
        let step = self.step(name);
        assert_eq!(step.code, 0, "{name}: {}", step.said);
        &step.said
    }

    /// What `doctor --json` said in this step.
    pub(crate) fn doctor(&self, name: &str) -> Doctor {
        let said = &self.step(name).said;
        Doctor(serde_json::from_str(said).unwrap_or_else(|error| panic!("{name}: {error}: {said}")))
    }
}

/// The result of `doctor` on a machine.
pub(crate) struct Doctor(serde_json::Value);

impl Doctor {
    /// The rung.
    pub(crate) fn rung(&self) -> &str {
        self.0["rung"].as_str().unwrap_or_default()
    }

    /// The names of what is missing.
    pub(crate) fn missing(&self) -> Vec<&str> {
        let missing = self.list("capabilities").filter(|found| found["available"] == false);
        missing.filter_map(|found| found["name"].as_str()).collect()
    }

    /// All that is said of a capability.
    pub(crate) fn capability(&self, name: &str) -> &serde_json::Value {
        let found = self.list("capabilities").find(|found| found["name"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {}", self.0))
    }

    /// What is said of a hazard and the command against it; `None` if it is not reported.
    pub(crate) fn hazard(&self, id: &str) -> Option<(&str, Option<&str>)> {
        let found = self.list("hazards").find(|found| found["id"] == id)?;
        Some((found["text"].as_str()?, found["remedy"].as_str()))
    }

    fn list(&self, name: &str) -> impl Iterator<Item = &serde_json::Value> {
        self.0[name].as_array().into_iter().flatten()
    }
}

/// How a machine ended.
#[derive(Debug)]
enum End {
    /// It switched itself off.
    Off,
    /// It was killed, and the emulator is to blame: on a busy machine, one start in some dozens does not come up.
    Hangs(&'static str),
    /// It was killed because it took too long.
    Late,
}

/// Waits until it ends, or kills it.
fn await_end(mut machine: Child, out: &Path, console: &Path) -> End {
    let start = Instant::now();
    let end = loop {
        if machine.try_wait().is_ok_and(|ended| ended.is_some()) {
            return End::Off;
        }
        let says = |words: &str| fs::read(console).is_ok_and(|said| contains(&said, words));
        let is_up = fs::metadata(out).is_ok_and(|said| said.len() > 0);
        if says("soft lockup") {
            break End::Hangs("lost an interrupt");
        } else if !is_up && start.elapsed() > UP {
            break End::Hangs("did not come up");
        } else if start.elapsed() > PATIENCE {
            break End::Late;
        }
        sleep(Duration::from_millis(50));
    };
    let _ = machine.kill();
    let _ = machine.wait();
    end
}

fn contains(bytes: &[u8], words: &str) -> bool {
    bytes.windows(words.len()).any(|window| window == words.as_bytes())
}

/// The steps that are complete in an output.
fn taken_apart(out: &str) -> HashMap<String, Step> {
    let steps = out.split("=== begin ").skip(1);
    let step = |text: &str| {
        let (name, rest) = text.split_once('\n')?;
        let (said, end) = rest.rsplit_once("=== end ")?;
        let code = end.trim().parse().ok()?;
        Some((name.to_owned(), Step { code, said: said.to_owned() }))
    };
    steps.filter_map(step).collect()
}

/// The host's folder with everything that a guest is made of; removed when the value is dropped.
struct Place(PathBuf);

impl Place {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("deadweight-guest-{}-{number}", std::process::id());
        let place = Self(std::env::temp_dir().join(name));
        for folder in ["bin", "dev", "proc", "sys", "tmp"] {
            fs::create_dir_all(place.0.join("root").join(folder)).unwrap();
        }
        place
    }

    /// The image of the guest's files: the tools, their libraries, and the steps.
    fn furnish(&self, steps: &[(&str, &str)]) {
        assert!(Path::new(KERNEL).exists(), "no {KERNEL}: run `./setup.sh tests`");
        let root = self.0.join("root");
        fs::copy(DRIVER, root.join("speeds.ko")).unwrap();
        must(
            Command::new("iasl")
                .arg("-p")
                .arg(self.0.join("speeds"))
                .arg(SPEEDS)
                .stdout(Stdio::null())
                .stderr(Stdio::null()),
        );
        let ours = Path::new(env!("CARGO_BIN_EXE_deadweight"));
        must(
            Command::new("objcopy").arg("--strip-debug").arg(ours).arg(root.join("bin/deadweight")),
        );
        libraries(ours, &root);
        for tool in TOOLS {
            let found = std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default())
                .chain([PathBuf::from("/usr/sbin")])
                .map(|folder| folder.join(tool))
                .find(|path| path.exists())
                .unwrap_or_else(|| panic!("no {tool}: run `./setup.sh tests`"));
            fs::copy(&found, root.join("bin").join(tool)).unwrap();
            libraries(&found, &root);
        }
        let each = steps.iter().map(|(name, script)| {
            format!(
                "echo '=== begin {name}'; ({script}\n) > /tmp/said 2>&1; code=$?; cat /tmp/said; \
                 echo; echo \"=== end $code\"\n"
            )
        });
        fs::write(root.join("steps"), each.collect::<String>()).unwrap();
        for (name, script) in [("init", INIT), ("bin/sudo", SUDO)] {
            fs::write(root.join(name), script).unwrap();
            must(Command::new("chmod").arg("755").arg(root.join(name)));
        }
        let pack = "find . | busybox cpio -o -H newc 2> /dev/null";
        let image = File::create(self.0.join("image")).unwrap();
        must(Command::new("sh").args(["-c", pack]).current_dir(&root).stdout(image));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Copies what a program is linked to, at the same paths.
fn libraries(program: &Path, root: &Path) {
    let listed = Command::new("ldd").arg(program).output().unwrap().stdout;
    let listed = String::from_utf8_lossy(&listed);
    for library in listed.split_whitespace().filter(|word| word.starts_with('/')) {
        let copy = root.join(&library[1..]);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(library, copy).unwrap();
    }
}

fn must(command: &mut Command) {
    let done = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(done.success(), "{command:?}");
}
