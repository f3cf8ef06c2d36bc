//! How numbers come about: trials of floor and engine in turn, thrown away when the disk is somebody else's.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use serde::Serialize;

/// A sync of 4 KiB that takes longer tells of a busy neighbour.
const BUSY_SECONDS: f64 = 0.000_5;

/// Between a trial that was thrown away and the next one.
const PAUSE: Duration = Duration::from_secs(1);

/// Between two looks at whether a process is idle, and how many there are at most.
const IDLE: Duration = Duration::from_millis(500);
const IDLE_LOOKS: u32 = 240;

/// Too many trials in a row were thrown away.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BusyDisk;

impl std::fmt::Display for BusyDisk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("given up: the disk is too busy, its syncs take over 0.5 ms (--busy-disk measures all the same)")
    }
}

impl std::error::Error for BusyDisk {}

/// One trial's figures, in one unit.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sample {
    pub(crate) raw: Option<f64>,
    pub(crate) same: Option<f64>,
    pub(crate) engine: f64,
}

/// A figure over several trials.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) median: f64,
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Spread {
    /// `None` without figures.
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

/// The middle one of some latencies.
pub(crate) fn median(figures: &[f64]) -> Result<f64> {
    Ok(Spread::of(figures.iter().copied()).context("nothing was timed")?.median)
}

/// All trials of a workload, and how many did not count.
#[derive(Clone, Debug)]
pub(crate) struct Series {
    pub(crate) samples: Vec<Sample>,
    pub(crate) thrown_away: usize,
}

impl Series {
    /// Runs trials until enough count.
    pub(crate) async fn run(
        wanted: usize,
        disk: &Disk,
        mut trial: impl AsyncFnMut(usize) -> Result<Sample>,
    ) -> Result<Self> {
        let mut series = Self { samples: Vec::with_capacity(wanted), thrown_away: 0 };
        while series.samples.len() < wanted {
            if disk.is_busy()? {
                series.thrown_away += 1;
                if series.thrown_away >= wanted * 3 {
                    return Err(BusyDisk.into());
                }
                // The neighbour may be done by then; nothing is taken for granted, the disk is asked again.
                std::thread::sleep(PAUSE);
                continue;
            }
            series.samples.push(trial(series.samples.len()).await?);
        }
        Ok(series)
    }

    pub(crate) fn engine(&self) -> Result<Spread> {
        Spread::of(self.samples.iter().map(|sample| sample.engine)).context("there was no trial")
    }

    pub(crate) fn raw(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.raw))
    }

    pub(crate) fn same(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.same))
    }

    /// The ratio to `raw`, taken trial by trial.
    pub(crate) fn to_raw(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.raw.map(|raw| sample.engine / raw)))
    }

    /// The ratio to `same`, taken trial by trial.
    pub(crate) fn to_same(&self) -> Option<Spread> {
        Spread::of(self.samples.iter().filter_map(|sample| sample.same.map(|same| sample.engine / same)))
    }
}

/// A small file beside the stores, to feel the disk's pulse with.
#[derive(Debug)]
pub(crate) struct Disk {
    file: File,
    is_taken_as_it_is: bool,
}

impl Disk {
    /// A disk that is taken as it is is never called busy.
    pub(crate) fn of(folder: &Path, is_taken_as_it_is: bool) -> Result<Self> {
        let file = File::create(folder.join("pulse"))?;
        file.write_all_at(&[0; 4096], 0)?;
        file.sync_all()?;
        Ok(Self { file, is_taken_as_it_is })
    }

    /// Whether a trial would measure what somebody else does.
    pub(crate) fn is_busy(&self) -> Result<bool> {
        Ok(!self.is_taken_as_it_is && self.sync_seconds()? > BUSY_SECONDS)
    }

    /// How long a write of 4 KiB takes to be on the disk.
    fn sync_seconds(&self) -> Result<f64> {
        self.file.write_all_at(&[1; 4096], 0)?;
        let began = Instant::now();
        self.file.sync_data()?;
        Ok(began.elapsed().as_secs_f64())
    }
}

/// Waits until a process has had nothing to do for half a second: what it left for later is no part of what is timed next.
pub(crate) async fn until_idle(process: u32) -> Result<()> {
    let mut used = cpu_seconds_of(process)?;
    for _ in 0..IDLE_LOOKS {
        tokio::time::sleep(IDLE).await;
        let now = cpu_seconds_of(process)?;
        // Two of the hundredths that it is told in: what a process does that waits.
        if now - used <= 0.02 {
            return Ok(());
        }
        used = now;
    }
    bail!("process {process} had no rest within {} s", (IDLE * IDLE_LOOKS).as_secs())
}

/// Seconds of processor time that this process has used, to a hundredth.
pub(crate) fn cpu_seconds() -> Result<f64> {
    cpu_seconds_of(std::process::id())
}

fn cpu_seconds_of(process: u32) -> Result<f64> {
    let path = format!("/proc/{process}/stat");
    let stat = std::fs::read_to_string(&path)?;
    // The program's name in parentheses may hold spaces; user and system time are the 12th and 13th fields after it.
    let (_, fields) = stat.rsplit_once(')').with_context(|| format!("{path} is not as expected"))?;
    let mut times = fields.split_ascii_whitespace().skip(11).take(2).map(str::parse::<f64>);
    let (user, system) = (times.next().context("no user time")??, times.next().context("no system time")??);
    Ok((user + system) / 100.0)
}

/// Memory of a process in KiB: resident now, and at most.
pub(crate) fn resident_kib(process: u32) -> Result<(u64, u64)> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).context("no such line")?;
        Ok::<u64, anyhow::Error>(line.trim().trim_end_matches(" kB").parse()?)
    };
    Ok((field("VmRSS:")?, field("VmHWM:")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spread_is_the_middle_and_the_ends() {
        assert_eq!(Spread::of([3.0, 1.0, 2.0]), Some(Spread { median: 2.0, min: 1.0, max: 3.0 }));
        assert_eq!(Spread::of([4.0, 1.0]), Some(Spread { median: 2.5, min: 1.0, max: 4.0 }));
        assert_eq!(Spread::of([]), None);
    }

    #[test]
    fn ratios_are_taken_trial_by_trial() {
        let sample = |raw, engine| Sample { raw: Some(raw), same: None, engine };
        let series = Series { samples: vec![sample(1.0, 2.0), sample(4.0, 4.0), sample(2.0, 1.0)], thrown_away: 0 };
        assert_eq!(series.to_raw(), Some(Spread { median: 1.0, min: 0.5, max: 2.0 }));
        assert_eq!(series.to_same(), None);
    }

    #[test]
    fn a_process_knows_its_size_and_time() {
        let (resident, most) = resident_kib(std::process::id()).unwrap();
        assert!(resident > 100 && most >= resident, "{resident} of {most}");
        assert!(cpu_seconds().unwrap() >= 0.0);
    }
}
