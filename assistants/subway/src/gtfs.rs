//! The timetable: downloaded from the MTA, and cached in a file between runs.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use reqwest::Client;
use threadkeep_transit::fetch::install_provider;
use threadkeep_transit::tools::instant;
use threadkeep_transit::{CacheError, FeedError, Timetable};

use crate::system::network;
use crate::travel::ServiceMoment;

/// The URL at which the MTA publishes the subway's GTFS timetable.
pub const GTFS_ADDRESS: &str = "https://rrgtfsfeeds.s3.amazonaws.com/gtfs_subway.zip";

/// Maximum size of a feed. The subway's feed has 5 MB.
const LIMIT_BYTES: u64 = 256 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);
/// Maximum time between chunks of the response.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
const TIMEOUT: Duration = Duration::from_secs(15 * 60);

/// Why a timetable could not be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum GtfsError {
    /// The feed address is not a valid URL.
    #[error("invalid feed address")]
    Address(#[source] reqwest::Error),
    /// The server did not respond, or the response was cut off.
    #[error("the feed cannot be reached")]
    Unreachable(#[source] reqwest::Error),
    /// The server responded with an HTTP error status.
    #[error("the address responded with status {0}")]
    Status(u16),
    /// The feed exceeds the size limit.
    #[error("the feed has more than {LIMIT_BYTES} bytes")]
    TooLarge,
    /// A file cannot be read or written.
    #[error("{} cannot be read or written", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The I/O error.
        #[source]
        source: io::Error,
    },
    /// The feed is malformed.
    #[error("the feed is not valid")]
    Feed(#[from] FeedError),
    /// The feed describes another transit system.
    #[error(
        "the feed is not the subway's: {known} of its {stations} stations are subway stations, and it has {trips} trips"
    )]
    OtherSystem {
        /// The number of its stations that are in the subway.
        known: usize,
        /// The number of its stations.
        stations: usize,
        /// The number of its trips.
        trips: usize,
    },
    /// The cached timetable is damaged or has another format version.
    #[error("the cached timetable in {} cannot be used", path.display())]
    Cache {
        /// The file.
        path: PathBuf,
        /// The reason.
        #[source]
        source: CacheError,
    },
}

/// Downloads a feed. Calls `progress` with the number of bytes received and, if known, the total.
///
/// # Errors
/// [`GtfsError`]. Errors do not contain the address, which may include a password.
pub async fn download_gtfs(address: &str, mut progress: impl FnMut(u64, Option<u64>)) -> Result<Vec<u8>, GtfsError> {
    install_provider();
    let unreachable = |error: reqwest::Error| GtfsError::Unreachable(error.without_url());
    let client = Client::builder().connect_timeout(CONNECT_TIMEOUT).read_timeout(READ_TIMEOUT).timeout(TIMEOUT);
    let client = client.build().map_err(unreachable)?;
    let request = client.get(address).build().map_err(|error| GtfsError::Address(error.without_url()))?;
    let mut response = client.execute(request).await.map_err(unreachable)?;
    if !response.status().is_success() {
        return Err(GtfsError::Status(response.status().as_u16()));
    }
    let total = response.content_length();
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() as u64 > LIMIT_BYTES {
            return Err(GtfsError::TooLarge);
        }
        progress(bytes.len() as u64, total);
    }
    Ok(bytes)
}

/// Reads a feed from a zip archive in memory, and checks that it is the subway's.
///
/// # Errors
/// [`GtfsError::Feed`], with the file, line and column; [`GtfsError::OtherSystem`].
pub fn read_gtfs(bytes: Vec<u8>) -> Result<Timetable, GtfsError> {
    checked(Timetable::from_zip(bytes)?)
}

/// Reads a feed from a zip archive or a folder, and checks that it is the subway's.
///
/// # Errors
/// Those of [`read_gtfs`]; [`GtfsError::File`]; [`GtfsError::TooLarge`].
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

/// Rejects a timetable without trips, and one in which at most half of the stations are in the subway.
fn checked(timetable: Timetable) -> Result<Timetable, GtfsError> {
    let (stations, trips) = (timetable.stations().len(), timetable.trip_count());
    let known = timetable.stations().iter().filter(|station| network().find_station(&station.id).is_some()).count();
    if trips == 0 || known * 2 <= stations {
        return Err(GtfsError::OtherSystem { known, stations, trips });
    }
    Ok(timetable)
}

/// Reads the cached timetable; `None` if the file does not exist.
///
/// # Errors
/// [`GtfsError::File`]; [`GtfsError::Cache`], which downloading the timetable again resolves.
pub fn load_timetable(path: &Path) -> Result<Option<Timetable>, GtfsError> {
    match std::fs::read(path) {
        Ok(bytes) => {
            let timetable = Timetable::from_cache(&bytes);
            timetable.map(Some).map_err(|source| GtfsError::Cache { path: path.to_owned(), source })
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(source) => Err(GtfsError::File { path: path.to_owned(), source }),
    }
}

/// Whether a timetable covers the date in New York at `now`. If not, the times of a covered date with the same weekday are
/// used.
pub fn covers_today(timetable: &Timetable, now: threadkeep::Timestamp) -> bool {
    ServiceMoment::new(timetable, instant(now)).is_some_and(|moment| moment.is_covered)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn load_timetable_rejects_a_file_of_another_format() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("subway.timetable");
        assert_eq!(load_timetable(&path).unwrap(), None);
        std::fs::write(&path, b"something else entirely").unwrap();
        let error = load_timetable(&path).unwrap_err();
        assert!(error.to_string().contains("subway.timetable"), "{error}");
        assert!(matches!(error, GtfsError::Cache { source: CacheError::NotACache, .. }), "{error:?}");
    }
}
