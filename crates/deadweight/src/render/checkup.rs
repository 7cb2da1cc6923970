//! What a machine lets us see, on a terminal: `deadweight doctor`.

use super::page::{Ink, Line, Page, Sheet};
use deadweight_record::{Level, Plan};

/// What was found out, what it is good for, and how to get the rest.
#[must_use]
pub fn render(plan: &Plan, page: Page) -> String {
    let mut sheet = Sheet::new(Page { width: page.width.min(100), ..page });
    let verdict = match plan.rung.level {
        Level::Root => "everything that deadweight needs can be recorded here",
        Level::User => "programs can be recorded here as far as any user may see them",
        Level::Stops => "programs can be recorded here by stopping them at their system calls",
        Level::None => "nothing can be recorded here yet",
    };
    sheet.paragraph(Line::indented(2), 2, Ink::Strong, verdict);
    sheet.gap();
    let widest = plan.capabilities.iter().map(|c| c.name.len()).max().unwrap_or(0);
    let column = 2 + 5 + widest + 2;
    for capability in &plan.capabilities {
        let mut line = Line::indented(2);
        let (ink, mark) =
            if capability.available { (Ink::Command, "yes") } else { (Ink::Cost, "no") };
        line.push(ink, mark).pad_to(7).push(Ink::Strong, capability.name).pad_to(column);
        sheet.paragraph(line, column, Ink::Plain, capability.gives);
        if !capability.available {
            sheet.paragraph(Line::indented(column), column, Ink::Doubt, &capability.why);
        }
        if let Some(grant) = &capability.grant {
            let mut line = Line::indented(column);
            line.push(Ink::Plain, "try: ");
            sheet.paragraph(line, column + 5, Ink::Command, grant);
        }
    }
    sheet.gap();
    for hazard in &plan.hazards {
        let mut line = Line::indented(2);
        line.push(Ink::Doubt, "! ");
        sheet.paragraph(line, 4, Ink::Plain, &hazard.text);
    }
    let told = |warning: &str| {
        let mut missing = plan.capabilities.iter().filter(|c| !c.available);
        missing.any(|c| warning.contains(c.name) && warning.contains(&c.why))
    };
    for warning in plan.warnings.iter().filter(|warning| !told(warning)) {
        let mut line = Line::indented(2);
        line.push(Ink::Faint, "note: ");
        sheet.paragraph(line, 8, Ink::Faint, warning);
    }
    sheet.into_text()
}

#[cfg(test)]
mod tests {
    use super::*;
    use deadweight_record::{Capability, Lack, MachineHazard, Rung};
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
        };
        let plan = Plan {
            rung: Rung {
                level: Level::None,
                why: "only root may".into(),
                lacks: vec![Lack::Everything],
            },
            capabilities: vec![
                capability("context switches", true, "works", None),
                capability("calls", false, "only root may", Some("sudo deadweight -- COMMAND")),
            ],
            hazards: vec![MachineHazard { id: "one-cpu", text: "there is one CPU only".into() }],
            warnings: vec!["no calls: only root may".into()],
        };
        expect![[r#"
            page:
              nothing can be recorded here yet

              yes  context switches  every row: who was on a CPU, and until when
              no   calls             every row: who was on a CPU, and until when
                                     only root may
                                     try: sudo deadweight -- COMMAND

              ! there is one CPU only
        "#]]
        .assert_eq(&framed(&render(&plan, PAGE)));
    }
}
