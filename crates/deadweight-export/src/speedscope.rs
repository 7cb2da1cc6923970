//! speedscope's own file format: sampled profiles of the path, of CPU time and of time without a CPU.
//!
//! Each stack is one sample that is as long as all its time, heaviest rows first; so the view "time order" shows no order.

use crate::names::{Frame, frames, roots};
use deadweight_core::{OneRun, StackTime};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The profiles of a run as JSON. The weights of the first add up to the wall time exactly.
#[must_use]
pub fn speedscope(run: &OneRun<'_, '_>) -> String {
    let mut table = Table::default();
    let scopes = [
        ("wall time, on the path", run.path_stacks()),
        ("CPU time of all threads", run.cpu_stacks()),
        ("time without a CPU, of all threads", run.off_cpu_stacks()),
    ];
    let profiles: Vec<Value> = scopes
        .iter()
        .filter(|(_, stacks)| !stacks.is_empty())
        .map(|(name, stacks)| table.profile(run, name, stacks))
        .collect();
    let file = json!({
        "$schema": "https://www.speedscope.app/file-format-schema.json",
        "exporter": format!("deadweight {}", run.trace().meta.recorder),
        "name": crate::names::plain(&run.trace().meta.command.join(" ")),
        "activeProfileIndex": 0,
        "shared": { "frames": table.frames },
        "profiles": profiles,
    });
    format!("{file}\n")
}

/// The frames of all profiles.
#[derive(Default)]
struct Table<'s> {
    ids: BTreeMap<Frame<'s>, usize>,
    frames: Vec<Value>,
}

impl<'s> Table<'s> {
    fn profile(&mut self, run: &'s OneRun<'_, '_>, name: &str, stacks: &[StackTime]) -> Value {
        let (mut samples, mut weights) = (Vec::new(), Vec::new());
        for time in stacks {
            samples.push(self.stack(run, time));
            weights.push(time.ns.0);
        }
        json!({
            "type": "sampled",
            "name": name,
            "unit": "nanoseconds",
            "startValue": 0,
            "endValue": weights.iter().sum::<u64>(),
            "samples": samples,
            "weights": weights,
        })
    }

    /// Root first: the row, the process, the thread if it has a name of its own, and the stack.
    fn stack(&mut self, run: &'s OneRun<'_, '_>, time: &StackTime) -> Vec<usize> {
        let named = |name: String| Frame { function: Cow::Owned(name), ..Frame::default() };
        let mut stack: Vec<Frame<'s>> = roots(run, time).into_iter().map(named).collect();
        stack.extend(frames(run.symbols(), time));
        stack.into_iter().map(|frame| self.id(frame)).collect()
    }

    fn id(&mut self, frame: Frame<'s>) -> usize {
        if let Some(id) = self.ids.get(&frame) {
            return *id;
        }
        let mut value = json!({ "name": frame.function });
        if !frame.file.is_empty() {
            value["file"] = json!(frame.file);
        }
        if frame.line > 0 {
            value["line"] = json!(frame.line);
        }
        self.frames.push(value);
        self.ids.insert(frame, self.frames.len() - 1);
        self.frames.len() - 1
    }
}

#[cfg(test)]
mod tests {
    use super::speedscope;
    use crate::tests::of_golden;
    use serde_json::Value;

    #[test]
    fn weights_of_the_first_profile_add_up_to_the_wall_time() {
        of_golden(|name, report, run| {
            let file: Value = serde_json::from_str(&speedscope(run)).unwrap();
            let frames = file["shared"]["frames"].as_array().unwrap().len() as u64;
            let path = &file["profiles"][0];
            let weights = path["weights"].as_array().unwrap().iter().filter_map(Value::as_u64);
            assert_eq!(weights.sum::<u64>(), report.wall_ns, "{name}");
            assert_eq!(path["endValue"], report.wall_ns, "{name}");
            let mut ids =
                path["samples"].as_array().unwrap().iter().flat_map(|s| s.as_array().unwrap());
            assert!(ids.all(|id| id.as_u64() < Some(frames)), "{name}");
        });
    }
}
