//! Findings: the cost, the saving, the place, the evidence and the remedy. Ranks nothing.

use crate::render::page::{Ink, Line, Sheet, columns, fitted, fitted_path, from_here};
use crate::render::quantity::{Scale, beside, count, percent, time};
use deadweight_report::report::{Finding, Hazard, How, Report, Site};

/// Sites of one finding that are shown.
const SITES: usize = 3;
/// Callers of a site that are shown: so many next to it, and as many of the outermost.
const CALLERS: usize = 2;
/// A range of savings narrower than this share of the wall time is shown as one number.
const NARROW: f64 = 0.02;

pub(super) fn write(sheet: &mut Sheet, report: &Report, here: &str) {
    let whole = Whole::of(report);
    for (index, finding) in report.findings.iter().enumerate() {
        title(sheet, index + 1, finding, whole);
        sheet.paragraph(Line::indented(5), 5, Ink::Plain, &finding.text);
        for site in finding.sites.iter().take(SITES) {
            place(sheet, finding, site, here);
        }
        for line in &finding.evidence {
            evidence(sheet, line);
        }
        remedy(sheet, finding);
        sheet.gap();
    }
}

/// Findings that the proof has refuted.
pub(super) fn withdrawn(sheet: &mut Sheet, report: &Report) {
    for finding in &report.withdrawn {
        let mut line = Line::indented(2);
        line.push(Ink::Strong, "withdrawn: ").push(Ink::Plain, &finding.title);
        sheet.line(&line);
        for proof in &finding.proofs {
            sheet.paragraph(Line::indented(5), 7, Ink::Plain, &proof.text);
        }
        sheet.gap();
    }
}

/// A sentence, and the code below it with its columns kept.
fn evidence(sheet: &mut Sheet, text: &str) {
    let (said, code) = text.split_once('\n').unwrap_or((text, ""));
    sheet.paragraph(Line::indented(7), 9, Ink::Faint, said);
    for code in code.lines() {
        let mut line = Line::indented(9);
        line.push(Ink::Faint, &fitted(code, sheet.width().saturating_sub(9)));
        sheet.line(&line);
    }
}

/// The base of savings: the wall time without tracing and without other programs, because the saving is
/// for an untraced run on a quiet machine.
#[derive(Copy, Clone)]
struct Whole {
    ns: u64,
    scale: Scale,
    /// ` undisturbed`, if the base differs from the ledger's total; ` busy` of a program that serves; ` recorded`, if
    /// the run may take longer without recording.
    word: &'static str,
    /// An upper bound, if so much was tracing that the time without it is not known.
    most: Option<u64>,
    /// Whether the time is that of a run, as it was, and not of many.
    one_run: bool,
}

/// From this share of tracing on, a single traced run only bounds the time without it: of 35 programs that were also
/// run without tracing, the rest was too long for all nine with 20 % or more, by 4 to 73 %.
const BOUNDED: f64 = 0.1;
/// The bound includes one in so many parts of tracing: for dense system calls its calibration can be too large, by up to
/// 12 % of it.
const OVERESTIMATED: u64 = 5;

impl Whole {
    fn of(report: &Report) -> Self {
        let tracing: u64 =
            report.ledger.iter().filter(|r| r.account == "observer").map(|r| r.ns).sum();
        let scale = Scale::for_largest(report.wall_ns);
        let untraced = report.wall_ns.saturating_sub(tracing);
        // Older reports do not have the time that other programs took.
        let ns = if report.net_ns > 0 { report.net_ns.min(untraced) } else { untraced };
        let differs = scale.steps(ns) != scale.steps(report.wall_ns);
        let longer = report.hazards.iter().any(|hazard| hazard.id == Hazard::LESS_CONTENDED);
        let word = match (&report.service, differs) {
            (Some(_), _) => " busy",
            (None, _) if longer => " recorded",
            (None, true) => " undisturbed",
            (None, false) => "",
        };
        let alone = report.runs.clean.count == 0;
        let heavy = tracing as f64 >= BOUNDED * report.wall_ns.max(1) as f64;
        let bounded = alone && heavy && report.service.is_none() && !longer;
        let most = bounded.then(|| ns + tracing / OVERESTIMATED);
        Self { ns, scale, word, most, one_run: alone }
    }

    /// A share of it in digits, without the unit.
    fn part(self, share: f64) -> String {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a share of 0 to 1 of a wall time, rounded for display"
        )]
        let ns = (share.clamp(0.0, 1.0) * self.ns as f64).round() as u64;
        beside(ns, self.scale)
    }
}

fn title(sheet: &mut Sheet, number: usize, finding: &Finding, whole: Whole) {
    let mut line = Line::default();
    line.right(3, Ink::Strong, &number.to_string()).pad_to(5);
    line.push(Ink::Strong, &finding.title);
    let saving = saved(finding, whole);
    if line.columns() + 2 + columns(&saving) > sheet.width() {
        sheet.line(&line);
        line = Line::default();
    }
    line.right(sheet.width(), Ink::Cost, &saving);
    sheet.line(&line);
}

/// What removing a finding's cost saves, in words: `saves 1.69 ms of 2.02 (84 %), exact`.
pub(crate) fn saving(report: &Report, finding: &Finding) -> String {
    saved(finding, Whole::of(report))
}

/// `saves 1.69 ms of 2.02 (84 %), exact`. A measured time that is a saving as it stands is exact; a range, or a share
/// of a run that was not timed, is predicted.
fn saved(finding: &Finding, whole: Whole) -> String {
    let unit = whole.scale.unit();
    let of = match whole.most {
        Some(most) => format!("at most {}{}", beside(most, whole.scale), whole.word),
        None => format!("{}{}", beside(whole.ns, whole.scale), whole.word),
    };
    let is_range = finding.high - finding.low > NARROW;
    let how = match finding.how {
        How::Exact if !is_range && whole.word.is_empty() && whole.one_run => "exact",
        How::Exact | How::Estimate => "estimate",
        How::Candidate => "candidate",
        How::Measured => "measured",
    };
    let verb = if finding.how == How::Candidate { "may save" } else { "saves" };
    // Of an upper bound, a saving is at least this share; the time may be shorter than the bound.
    let of_shown = whole.ns as f64 / whole.most.unwrap_or(whole.ns).max(1) as f64;
    if finding.high <= 0.0 && finding.saving_ns == 0 {
        let share = percent(of_shown * finding.amount_ns as f64 / whole.ns.max(1) as f64);
        return format!("{} {unit} of {of} ({share})", beside(finding.amount_ns, whole.scale));
    }
    if is_range {
        let (low, high) = (whole.part(finding.low), whole.part(finding.high));
        let (least, most) = (finding.low * of_shown * 100.0, percent(finding.high));
        return format!("{verb} {low} to {high} {unit} of {of} ({least:.0} to {most}), {how}");
    }
    let (saved, share) = (beside(finding.saving_ns, whole.scale), finding.saving_share);
    let [least, share] = [share * of_shown, share].map(percent);
    if least == share {
        return format!("{verb} {saved} {unit} of {of} ({share}), {how}");
    }
    let least = least.trim_end_matches(" %");
    format!("{verb} {saved} {unit} of {of} ({least} to {share}), {how}")
}

/// A site and the calls that lead to it.
fn place(sheet: &mut Sheet, finding: &Finding, site: &Site, here: &str) {
    let mut line = Line::indented(7);
    let amount = amount(finding, site);
    let room = sheet.width().saturating_sub(7 + 2 + columns(&amount));
    let name = if site.file.is_empty() {
        let image = site.image.rsplit('/').next().unwrap_or_default();
        let image = if image.is_empty() { String::new() } else { format!(" in {image}") };
        format!("{}{image}", site.function)
    } else {
        let line = if site.line > 0 { format!(":{}", site.line) } else { String::new() };
        let path =
            fitted_path(from_here(&site.file, here), (room * 2 / 3).max(20) - columns(&line));
        format!("{path}{line}")
    };
    line.push(Ink::Place, &fitted(&name, room));
    let beside = if site.source.trim().is_empty() && !site.file.is_empty() {
        site.function.as_str()
    } else {
        site.source.trim()
    };
    let left = (7 + room).saturating_sub(line.columns() + 3);
    if left >= 10 && !beside.is_empty() {
        line.push(Ink::Plain, "   ").push(Ink::Plain, &fitted(beside, left));
    }
    line.right(sheet.width(), Ink::Plain, &amount);
    sheet.line(&line);
    if !site.chain.is_empty() {
        let room = sheet.width().saturating_sub(15);
        let text = format!("← {}", callers(&site.chain, room).join(" ← "));
        sheet.paragraph(Line::indented(9), 11, Ink::Faint, &text);
    }
}

/// The nearest and the outermost callers, with `…` for those between.
fn callers(chain: &[String], room: usize) -> Vec<String> {
    let short = |callers: &[String]| callers.iter().map(|c| fitted(c, room)).collect::<Vec<_>>();
    if chain.len() <= 2 * CALLERS + 1 {
        return short(chain);
    }
    let (near, far) = (&chain[..CALLERS], &chain[chain.len() - CALLERS..]);
    [short(near), vec!["…".to_owned()], short(far)].concat()
}

/// `4 003 ×   426 ns`, or the site's share where nothing was counted.
fn amount(finding: &Finding, site: &Site) -> String {
    let ns = finding.time_at(site);
    match site.count {
        _ if ns == 0 => String::new(),
        0 | 1 => time(ns),
        n => format!("{} × {:>7}", count(n), time(ns / n)),
    }
}

fn remedy(sheet: &mut Sheet, finding: &Finding) {
    if !finding.remedy.is_empty() {
        let mut line = Line::indented(5);
        line.push(Ink::Strong, "Do: ");
        sheet.paragraph(line, 9, Ink::Plain, &finding.remedy);
    }
    let mut line = Line::indented(5);
    line.push(Ink::Faint, "more: ");
    line.push(Ink::Command, &format!("deadweight explain {}", finding.class));
    sheet.line(&line);
}
