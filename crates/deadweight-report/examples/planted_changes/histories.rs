//! Simulated histories: noise of several kinds, a planted change, and how often a method finds it. Used by the table beside and by
//! `tests/planted_changes.rs`.
//!
//! A value of a history is the median of a commit's clean runs.

use deadweight_report::change_points::{ChangePoint, Options, find, find_refined};

/// Random numbers, the same in each run (SplitMix64: Steele et al. 2014).
struct Random(u64);

impl Random {
    /// Uniform between 0 and 1, never 0.
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * self.uniform().ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Whole, below `end`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small")]
    fn below(&mut self, end: usize) -> usize {
        (self.uniform() * end as f64) as usize
    }
}

/// The noise of a history. Shares of the level, and probabilities.
#[derive(Copy, Clone)]
pub(crate) struct Noise {
    pub(crate) name: &'static str,
    /// Clean runs of a commit.
    runs: usize,
    /// Between runs: lognormal.
    run: f64,
    /// How often one run is disturbed by 10 to 30 %.
    run_spikes: f64,
    /// Between commits, all runs of one alike: the layout of its code, its place in memory.
    commit: f64,
    /// How often all runs of a commit are disturbed by 10 to 30 %.
    commit_spikes: f64,
    /// How much of it remains at the next commit: a machine that warms up, or is shared.
    wander: f64,
}

pub(crate) const QUIET: Noise = Noise {
    name: "10 runs, 2 % noise, 8 % of runs disturbed",
    runs: 10,
    run: 0.02,
    run_spikes: 0.08,
    commit: 0.0,
    commit_spikes: 0.0,
    wander: 0.0,
};
pub(crate) const NOISES: [Noise; 7] = [
    QUIET,
    Noise { name: "15 % of runs disturbed", run_spikes: 0.15, ..QUIET },
    Noise { name: "3 % of commits disturbed", commit_spikes: 0.03, ..QUIET },
    Noise { name: "commits differ by 0.7 %", commit: 0.007, ..QUIET },
    Noise { name: "5 runs only", runs: 5, ..QUIET },
    Noise { name: "one run only, 2 % noise, 5 % disturbed", runs: 1, run_spikes: 0.05, ..QUIET },
    Noise { name: "commits wander by 1 %", commit: 0.01, wander: 0.8, ..QUIET },
];

impl Noise {
    /// Measured values of commits with these levels.
    fn measured(&self, levels: &[f64], random: &mut Random) -> Vec<f64> {
        let mut wandering = 0.0;
        let fresh = (1.0 - self.wander * self.wander).sqrt();
        let spike = |random: &mut Random, often: f64| match random.uniform() < often {
            true => 1.1 + 0.2 * random.uniform(),
            false => 1.0,
        };
        levels
            .iter()
            .map(|level| {
                wandering = wandering * self.wander + fresh * self.commit * random.normal();
                let commit = level * wandering.exp() * spike(random, self.commit_spikes);
                let run = |random: &mut Random| {
                    commit * (self.run * random.normal()).exp() * spike(random, self.run_spikes)
                };
                let mut runs: Vec<f64> = (0..self.runs).map(|_| run(random)).collect();
                runs.sort_by(f64::total_cmp);
                runs[(runs.len() - 1) / 2].midpoint(runs[runs.len() / 2])
            })
            .collect()
    }
}

/// In ns.
const LEVEL: f64 = 1e6;
const COMMITS: usize = 40;

pub(crate) type Method = fn(&[f64]) -> Vec<ChangePoint>;

pub(crate) const OTAVA: Method = |series| find(series, &Options::default());
pub(crate) const REFINED: Method = |series| find_refined(series, &Options::refined());

/// Histories of 40 commits with one change of 5 %, up and down alternately, not among the first or last five. Each with
/// its levels, its values, and the commit.
fn histories(noise: &Noise, count: usize) -> Vec<(Vec<f64>, Vec<f64>, usize)> {
    let mut random = Random(7);
    (0..count)
        .map(|number| {
            let at = 5 + random.below(COMMITS - 9);
            let factor = if number % 2 == 0 { 1.05 } else { 1.0 / 1.05 };
            let level = |i| if i < at { LEVEL } else { LEVEL * factor };
            let levels: Vec<f64> = (0..COMMITS).map(level).collect();
            let values = noise.measured(&levels, &mut random);
            (levels, values, at)
        })
        .collect()
}

/// How a method did on histories with one change each.
#[derive(Default)]
pub(crate) struct Found {
    pub(crate) exactly: usize,
    pub(crate) within_one: usize,
    /// With the commit in the point's span.
    pub(crate) in_span: usize,
    /// Points farther away than one commit.
    pub(crate) elsewhere: usize,
}

pub(crate) fn found(noise: &Noise, method: Method, count: usize) -> Found {
    let mut result = Found::default();
    for (_, values, at) in histories(noise, count) {
        let points = method(&values);
        let any = |is: &dyn Fn(&ChangePoint) -> bool| usize::from(points.iter().any(is));
        let is_near = |point: &ChangePoint| point.index.abs_diff(at) <= 1;
        result.exactly += any(&|point| point.index == at);
        result.within_one += any(&is_near);
        result.in_span += any(&|point| (point.earliest..=point.latest).contains(&at));
        result.elsewhere += points.iter().filter(|point| !is_near(point)).count();
    }
    result
}

/// In how many histories the commit is found that fits best if both levels are known, and only the commit is not. A
/// difference counts up to 8 %, so that disturbances do not decide.
pub(crate) fn with_known_levels(noise: &Noise, count: usize) -> usize {
    let fits = |(levels, values, at): &(Vec<f64>, Vec<f64>, usize)| {
        let [before, after] = [levels[0], levels[COMMITS - 1]];
        let misfit = |split: &usize| -> f64 {
            let level = |i: usize| if i < *split { before } else { after };
            let differences = values.iter().enumerate().map(|(i, value)| value - level(i));
            differences.map(|d| d.abs().min(0.08 * LEVEL).powi(2)).sum()
        };
        (1..COMMITS).min_by(|a, b| misfit(a).total_cmp(&misfit(b))) == Some(*at)
    };
    histories(noise, count).iter().filter(|history| fits(history)).count()
}

/// Points per 1 000 commits of series without a change.
pub(crate) fn false_points(noise: &Noise, method: Method, series: usize, length: usize) -> f64 {
    let mut random = Random(11);
    let levels = vec![LEVEL; length];
    let count: usize =
        (0..series).map(|_| method(&noise.measured(&levels, &mut random)).len()).sum();
    count as f64 * 1e3 / (series * length) as f64
}

/// Histories of 200 commits in which one in `every` changes the level by 5 to 15 %: how many changes there are, how
/// many are found exactly, and how many points are elsewhere.
pub(crate) fn several(noise: &Noise, method: Method, every: f64) -> [usize; 3] {
    let mut random = Random(13);
    let mut counts = [0; 3];
    for _ in 0..100 {
        let (mut level, mut changes) = (LEVEL, Vec::new());
        let mut levels = Vec::new();
        for i in 0..200 {
            let may = changes.last().map_or(i >= 5, |last| i >= last + 4) && i < 195;
            if may && random.uniform() < 1.0 / every {
                let size = 1.05 + 0.1 * random.uniform();
                level *= if random.uniform() < 0.5 { size } else { 1.0 / size };
                changes.push(i);
            }
            levels.push(level);
        }
        let points = method(&noise.measured(&levels, &mut random));
        let exact = points.iter().filter(|point| changes.contains(&point.index)).count();
        counts[0] += changes.len();
        counts[1] += exact;
        counts[2] += points.len() - exact;
    }
    counts
}
