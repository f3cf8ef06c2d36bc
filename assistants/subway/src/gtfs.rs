//! The timetable: brought from where the MTA publishes it, and kept in a file between runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Client;
use threadkeep_transit::{CacheError, FeedError, Timetable};

use crate::live::install_provider;
use crate::system::network;
use crate::travel::{ServiceMoment, instant};

/// Where the MTA publishes the subway's timetable as GTFS.
pub const GTFS_ADDRESS: &str = "https://rrgtfsfeeds.s3.amazonaws.com/gtfs_subway.zip";

/// A feed is never larger: the subway's has 5 MB.
const LIMIT_BYTES: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// How long nothing may come.
const SILENCE: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Why a timetable could not be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GtfsError {
    /// What should be an address is none.
    #[error("this is no address of a feed")]
    Address(#[source] reqwest::Error),
    /// No answer, or it broke off.
    #[error("the feed cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// An answer that is no feed.
    #[error("the address answered with status {0}")]
    Status(u16),
    /// More bytes than any feed has.
    #[error("the feed has more than {LIMIT_BYTES} bytes")]
    TooLarge,
    /// A file cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What the system said.
        #[source]
        source: io::Error,
    },
    /// The feed has something wrong in it.
    #[error("the feed is not valid")]
    Feed(#[from] FeedError),
    /// A feed of other stations.
    #[error(
        "the feed is not the subway's: it has {known} of the subway's stations among its {stations}, and {trips} trips"
    )]
    OtherSystem {
        /// How many of its stations are the subway's.
        known: usize,
        /// How many stations it has.
        stations: usize,
        /// How many trips it has.
        trips: usize,
    },
    /// The kept file is damaged, or of another version.
    #[error("the timetable kept in {} cannot be used", path.display())]
    Kept {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        #[source]
        source: CacheError,
    },
}

/// Brings a feed from its address. `progress` hears how many bytes have come, and how many there are if that is known.
///
/// # Errors
/// [`GtfsError`]. No error tells the address, which may hold a password.
pub async fn download_gtfs(address: &str, mut progress: impl FnMut(u64, Option<u64>)) -> Result<Vec<u8>, GtfsError> {
    install_provider();
    let unreachable = |error: reqwest::Error| GtfsError::Unreachable(error.without_url());
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(SILENCE).timeout(TIMEOUT);
    let client = client.build().map_err(unreachable)?;
    let request = client.get(address).build().map_err(|error| GtfsError::Address(error.without_url()))?;
    let mut answer = client.execute(request).await.map_err(unreachable)?;
    if !answer.status().is_success() {
        return Err(GtfsError::Status(answer.status().as_u16()));
    }
    let total = answer.content_length();
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LIMIT_BYTES {
            return Err(GtfsError::TooLarge);
        }
        progress(bytes.len() as u64, total);
    }
    Ok(bytes)
}

/// Reads a feed from the bytes of its zip archive, and checks that it is the subway's.
///
/// # Errors
/// [`GtfsError::Feed`], which says the file, line and column; [`GtfsError::OtherSystem`].
pub fn read_gtfs(bytes: Vec<u8>) -> Result<Timetable, GtfsError> {
    checked(Timetable::from_zip(bytes)?)
}

/// Reads a feed from a zip archive or from a folder that holds its files, and checks that it is the subway's.
///
/// # Errors
/// As [`read_gtfs`], and [`GtfsError::File`].
pub fn read_gtfs_at(path: &Path) -> Result<Timetable, GtfsError> {
    if path.is_dir() {
        return checked(Timetable::from_folder(path)?);
    }
    let failed = |source| GtfsError::File { path: path.to_owned(), source };
    if std::fs::metadata(path).map_err(failed)?.len() > LIMIT_BYTES {
        return Err(GtfsError::TooLarge);
    }
    read_gtfs(std::fs::read(path).map_err(failed)?)
}

/// A timetable in which the tools find their stations and trains.
fn checked(timetable: Timetable) -> Result<Timetable, GtfsError> {
    let (stations, trips) = (timetable.stations().len(), timetable.trip_count());
    let known = timetable.stations().iter().filter(|station| network().find_station(&station.id).is_some()).count();
    if trips == 0 || known * 2 <= stations {
        return Err(GtfsError::OtherSystem { known, stations, trips });
    }
    Ok(timetable)
}

/// Reads the timetable that is kept in a file; `None` where there is no such file.
///
/// # Errors
/// [`GtfsError::File`], [`GtfsError::Kept`]: fetching it anew helps.
pub fn load_timetable(path: &Path) -> Result<Option<Timetable>, GtfsError> {
    match std::fs::read(path) {
        Ok(bytes) => {
            let timetable = Timetable::from_cache(&bytes);
            timetable.map(Some).map_err(|source| GtfsError::Kept { path: path.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(GtfsError::File { path: path.to_owned(), source }),
    }
}

/// Whether a timetable knows the day in New York that an instant falls on. For another day, the times of a weekday stand for
/// those of the same weekday.
pub fn knows_today(timetable: &Timetable, now: threadkeep::Timestamp) -> bool {
    ServiceMoment::new(timetable, instant(now)).is_some_and(|moment| moment.is_covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_no_timetable_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subway.timetable");
        assert_eq!(load_timetable(&path).unwrap(), None);
        std::fs::write(&path, b"something else entirely").unwrap();
        let error = load_timetable(&path).unwrap_err();
        assert!(error.to_string().contains("subway.timetable"), "{error}");
        assert!(matches!(error, GtfsError::Kept { source: CacheError::NotACache, .. }), "{error:?}");
    }
}
