//! `deadweight doctor` on a terminal and as JSON. Does not check anything; see `deadweight_record`.

use super::page::{Ink, Line, Page, Sheet};
use deadweight_record::{Capability, Checkup, Level, MachineHazard, Plan};
use serde_json::json;

/// Each feature, the rows that need it, and how to get the missing ones.
#[must_use]
pub fn render(checkup: &Checkup, page: Page) -> String {
    let mut sheet = Sheet::new(Page { width: page.width.min(100), ..page });
    let plan = &checkup.plan;
    sheet.paragraph(
        Line::indented(2),
        2,
        Ink::Strong,
        &format!("{}: {}", plan.rung.level.name(), verdict(plan)),
    );
    sheet.gap();
    let capabilities = &checkup.capabilities;
    let widest = capabilities.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let mut head = Line::indented(2);
    head.push(Ink::Faint, "can").pad_to(7).push(Ink::Faint, "record").pad_to(2 + 5 + widest + 2);
    sheet.line(head.push(Ink::Faint, "for these rows and features"));
    capabilities.iter().for_each(|c| capability(&mut sheet, c, 2 + 5 + widest + 2));
    if let Some(everything) = &checkup.everything {
        sheet.gap();
        command(&mut sheet, 2, "for all of it: ", everything);
    }
    sheet.gap();
    for hazard in &checkup.hazards {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ");
        sheet.paragraph(line, 4, Ink::Plain, &hazard.text);
        if let Some(remedy) = &hazard.remedy {
            command(&mut sheet, 4, "try: ", remedy);
        }
    }
    for warning in notes(checkup) {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "note: ");
        sheet.paragraph(line, 8, Ink::Faint, warning);
    }
    sheet.into_text()
}

fn capability(sheet: &mut Sheet, capability: &Capability, column: usize) {
    let mut line = Line::indented(2);
    let (ink, mark) = match (capability.available, capability.instead) {
        (true, _) => (Ink::Command, "yes"),
        (false, Some(_)) => (Ink::Doubt, "part"),
        (false, None) => (Ink::Cost, "no"),
    };
    line.push(ink, mark).pad_to(7).push(Ink::Strong, capability.name).pad_to(column);
    sheet.paragraph(line, column, Ink::Plain, capability.gives);
    if let Some(instead) = capability.instead {
        sheet.paragraph(Line::indented(column), column, Ink::Plain, &format!("here: {instead}"));
    }
    if !capability.available {
        sheet.paragraph(Line::indented(column), column, Ink::Doubt, &capability.why);
    }
    if let Some(grant) = &capability.grant {
        command(sheet, column, "try: ", grant);
    }
}

/// A command on one line, even if it is long, so that it can be copied. A command that does not fit
/// begins further left.
fn command(sheet: &mut Sheet, column: usize, lead: &str, command: &str) {
    let fits = column + lead.len() + command.len() <= sheet.width();
    let mut line = Line::indented(if fits { column } else { 7.min(column) });
    line.push(Ink::Plain, lead).push(Ink::Command, command);
    sheet.line(&line);
}

/// The rung and the reason for it, in one sentence.
fn verdict(plan: &Plan) -> String {
    let what = match plan.rung.level {
        Level::Root => "deadweight can record everything that a ledger needs",
        Level::User => {
            "deadweight can record what the kernel reports to every user about his own programs"
        }
        Level::Stops => {
            "deadweight can record programs by stopping them at their system calls (ptrace)"
        }
        Level::None => "deadweight cannot record programs yet",
    };
    let why = &plan.rung.why;
    if why.is_empty() { what.to_owned() } else { format!("{what}: {why}") }
}

/// The plan's warnings that are not already in the list of missing features.
fn notes(checkup: &Checkup) -> impl Iterator<Item = &str> {
    let is_listed = |warning: &str| {
        let mut missing = checkup.capabilities.iter().filter(|c| !c.available);
        missing.any(|c| warning.contains(c.name) && warning.contains(&c.why))
    };
    checkup.plan.warnings.iter().map(String::as_str).filter(move |warning| !is_listed(warning))
}

/// The result as JSON, for scripts.
#[must_use]
pub fn json(checkup: &Checkup) -> String {
    let plan = &checkup.plan;
    let capability = |c: &Capability| {
        json!({
            "name": c.name, "available": c.available, "why": c.why, "gives": c.gives, "grant": c.grant,
            "instead": c.instead,
        })
    };
    let hazard = |h: &MachineHazard| json!({ "id": h.id, "text": h.text, "remedy": h.remedy });
    let capabilities: Vec<_> = checkup.capabilities.iter().map(capability).collect();
    let hazards: Vec<_> = checkup.hazards.iter().map(hazard).collect();
    let value = json!({
        "schema": 1,
        "deadweight": env!("CARGO_PKG_VERSION"),
        "rung": plan.rung.level.name(),
        "why": verdict(plan),
        "lacks": plan.rung.lacks_in_words(),
        "records": plan.allows_recording().is_ok(),
        "capabilities": capabilities,
        "grant_all": checkup.everything,
        "hazards": hazards,
        "notes": notes(checkup).collect::<Vec<_>>(),
    });
    format!("{value:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_record::{Lack, Rung};
    use expect_test::expect;

    const PAGE: Page = Page { width: 80, colour: false, unicode: true };

    /// A first line without indentation keeps the text's own from being trimmed.
    fn framed(text: &str) -> String {
        format!("page:\n{text}")
    }

    #[test]
    fn what_is_missing_comes_with_the_command_that_grants_it() {
        let capability = |name, available, why: &str, grant: Option<&str>| Capability {
            name,
            available,
            why: why.into(),
            gives: "every row: who was on a CPU, and until when",
            grant: grant.map(str::to_owned),
            instead: None,
        };
        let capabilities = vec![
            capability("context switches", true, "works", None),
            capability("calls", false, "only root may", Some("sudo deadweight -- COMMAND")),
        ];
        let warnings = vec!["no calls: only root may".into(), "it is late".into()];
        let checkup = Checkup {
            plan: Plan {
                rung: Rung {
                    level: Level::None,
                    why: "no calls: only root may".into(),
                    lacks: vec![Lack::Everything],
                },
                capabilities: capabilities.clone(),
                warnings,
            },
            capabilities,
            hazards: vec![MachineHazard {
                id: "one-cpu",
                text: "there is one CPU only".into(),
                remedy: Some("taskset".into()),
            }],
            everything: Some("sudo setcap".into()),
        };
        expect![[r#"
            page:
              none: deadweight cannot record programs yet: no calls: only root may

              can  record            for these rows and features
              yes  context switches  every row: who was on a CPU, and until when
              no   calls             every row: who was on a CPU, and until when
                                     only root may
                                     try: sudo deadweight -- COMMAND

              for all of it: sudo setcap

              ! there is one CPU only
                try: taskset
              note: it is late
        "#]]
        .assert_eq(&framed(&render(&checkup, PAGE)));
    }
}
