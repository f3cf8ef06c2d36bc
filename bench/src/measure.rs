//! Alternating trials of floor and engine. Trials are discarded while another process uses the disk.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use serde::Serialize;

/// Maximum duration of a sync of 4 KiB. If it takes longer, another process is using the disk.
const BUSY_SECONDS: f64 = 0.000_5;

/// Delay after a discarded trial.
const PAUSE: Duration = Duration::from_secs(1);

/// Interval between checks of whether a process is idle.
const IDLE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of these checks.
const MAX_IDLE_POLLS: u32 = 240;

/// The error if too many trials were discarded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyDisk;

impl std::fmt::Display for BusyDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("the disk is too busy: syncs take over 0.5 ms (use --busy-disk to measure anyway)")
    }
}

impl std::error::Error for BusyDisk {}

/// The results of one trial, all in the same unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) raw: Option<f64>,
    pub(crate) same_sql: Option<f64>,
    pub(crate) engine: f64,
}

/// Median, minimum and maximum of a figure over several trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` if there are no figures.
    pub(crate) fn of(figures: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut figures: Vec<f64> = figures.into_iter().collect();
        figures.sort_unstable_by(f64::total_cmp);
        let (min, max) = (*figures.first()?, *figures.last()?);
        let middle = figures.len() / 2;
        let median = if figures.len().is_multiple_of(2) {
            f64::midpoint(figures[middle - 1], figures[middle])
        } else {
            figures[middle]
        };
        Some(Self { median, min, max })
    }
}

/// Returns the median of some latencies.
pub(crate) fn median(figures: &[f64]) -> Result<f64> {
    Ok(Spread::of(figures.iter().copied()).context("no latencies were measured")?.median)
}

/// Returns a percentile in milliseconds, rounded to the microsecond.
pub(crate) fn percentile_ms(seconds: &[f64], percent: usize) -> f64 {
    let mut sorted = seconds.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let index = (sorted.len() * percent / 100).min(sorted.len().saturating_sub(1));
    sorted.get(index).map_or(0.0, |seconds| (seconds * 1e6).round() / 1e3)
}

/// The valid trials of a workload, and the number of discarded ones.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) samples: Vec<Sample>,
    pub(crate) discarded: usize,
}

impl Series {
    /// Runs trials until `wanted` trials are valid. Fails with [`BusyDisk`] if three times as many were discarded.
    pub(crate) async fn run(
        wanted: usize,
        disk: &Disk,
        mut trial: impl AsyncFnMut(usize) -> Result<Sample>,
    ) -> Result<Self> {
        let mut series = Self { samples: Vec::with_capacity(wanted), discarded: 0 };
        while series.samples.len() < wanted {
            if disk.is_busy()? {
                series.discarded += 1;
                if series.discarded >= wanted * 3 {
                    return Err(BusyDisk.into());
                }
                std::thread::sleep(PAUSE);
                continue;
            }
            series.samples.push(trial(series.samples.len()).await?);
        }
        Ok(series)
    }

    pub(crate) fn engine(&self) -> Result<Spread> {
        Spread::of(self.samples.iter().map(|sample| sample.engine)).context("no trials were run")
    }

    pub(crate) fn raw(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.raw))
    }

    pub(crate) fn same_sql(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.same_sql))
    }

    /// Returns the ratio to `raw`, computed for each trial.
    pub(crate) fn ratio_to_raw(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.raw.map(|raw| sample.engine / raw)))
    }

    /// Returns the ratio to `same`, computed for each trial.
    pub(crate) fn ratio_to_same_sql(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.same_sql.map(|same| sample.engine / same)))
    }
}

/// A small file on the same disk as the stores, for measuring sync times.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    is_busy_allowed: bool,
}

impl Disk {
    /// Creates the file. If `is_busy_allowed`, the disk never counts as busy.
    pub(crate) fn of(folder: &Path, is_busy_allowed: bool) -> Result<Self> {
        let file = File::create(folder.join("probe"))?;
        file.write_all_at(&[0; 4096], 0)?;
        file.sync_all()?;
        Ok(Self { file, is_busy_allowed })
    }

    /// Whether another process is using the disk, so a trial would not be valid.
    pub(crate) fn is_busy(&self) -> Result<bool> {
        Ok(!self.is_busy_allowed && self.sync_seconds()? > BUSY_SECONDS)
    }

    /// Returns how long a write of 4 KiB takes, including its sync.
    fn sync_seconds(&self) -> Result<f64> {
        self.file.write_all_at(&[1; 4096], 0)?;
        let began = Instant::now();
        self.file.sync_data()?;
        Ok(began.elapsed().as_secs_f64())
    }
}

/// Returns the path of the program to measure; default: `threadkeep` in the folder of this program.
pub(crate) fn program(given: Option<&Path>) -> Result<PathBuf> {
    let program = match given {
        Some(given) => given.to_owned(),
        None => std::env::current_exe()?.with_file_name("threadkeep"),
    };
    ensure!(
        program.is_file(),
        "{} not found; build it with `cargo build --release -p threadkeep-cli`, or pass --binary",
        program.display()
    );
    Ok(program)
}

/// Waits until a process has been idle for half a second, so that its background work does not affect the next measurement.
pub(crate) async fn until_idle(process: u32) -> Result<()> {
    let mut used = cpu_seconds_of(process)?;
    for _ in 0..MAX_IDLE_POLLS {
        tokio::time::sleep(IDLE_INTERVAL).await;
        let now = cpu_seconds_of(process)?;
        // The kernel reports hundredths of a second; a waiting process may use up to two.
        if now - used <= 0.02 {
            return Ok(());
        }
        used = now;
    }
    bail!("process {process} was not idle within {} s", (IDLE_INTERVAL * MAX_IDLE_POLLS).as_secs())
}

/// Returns the seconds of CPU time that this process has used, to a hundredth.
pub(crate) fn cpu_seconds() -> Result<f64> {
    cpu_seconds_of(std::process::id())
}

/// Returns the seconds of CPU time that a process has used, to a hundredth.
pub(crate) fn cpu_seconds_of(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path)?;
    // The program's name in parentheses may contain spaces; user and system time are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')').with_context(|| format!("unexpected format of {path}"))?;
    let mut times = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let (user, system) = (times.next().context("missing user time")??, times.next().context("missing system time")??);
    Ok((user + system) / 100.0)
}

/// Returns the resident memory of a process in KiB: current and peak.
pub(crate) fn resident_kib(process: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| {
        let line = status
            .lines()
            .find_map(|line| line.strip_prefix(name))
            .with_context(|| format!("no {name} in /proc/{process}/status"))?;
        Ok::<u64, anyhow::Error>(line.trim().trim_end_matches(" kB").parse()?)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_has_median_minimum_and_maximum() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_computed_for_each_trial() {
        let sample = |raw, engine| Sample { raw: Some(raw), same_sql: None, engine };
        let series = Series { samples: vec![sample(1.0, 2.0), sample(4.0, 4.0), sample(2.0, 1.0)], discarded: 0 };
        assert_eq!(series.ratio_to_raw(), Some(Spread { median: 1.0, min: 0.5, max: 2.0 }));
        assert_eq!(series.ratio_to_same_sql(), None);
    }

    #[test]
    fn memory_and_cpu_time_of_a_process_are_measured() {
        let (resident, peak) = resident_kib(std::process::id()).unwrap();
        assert!(resident > 100 && peak >= resident, "{resident} of {peak}");
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}
