//! The compact serialisation of a timetable.
//!
//! The layout is `TKTT`, a format version, a checksum of the payload, and the payload: the timetable in postcard format. A cache
//! is derived from a feed and regenerated whenever it cannot be read. It is not an interchange format.

use super::Timetable;

const MAGIC: &[u8; 4] = b"TKTT";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;
/// The maximum size of a cache. New York's has 2 MB.
const LIMIT_BYTES: usize = 512 << 20;

/// An error in reading a cache. For each, regenerate the cache from the feed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The bytes are not a cache.
    #[error("not a cached timetable")]
    NotACache,
    /// The cache was written by another version of this crate.
    #[error("the cached timetable has version {found}, expected {VERSION}")]
    OtherVersion {
        /// The version of the cache.
        found: u32,
    },
    /// The cache is damaged or truncated.
    #[error("the cached timetable is damaged")]
    Corrupt,
}

impl Timetable {
    /// Writes the cache.
    pub fn to_cache(&self) -> Vec<u8> {
        let payload = postcard::to_stdvec(self)
            .expect("a timetable has no maps or sequences of unknown length, which could fail");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Reads a cache written by [`to_cache`](Self::to_cache).
    ///
    /// # Errors
    /// [`CacheError`], for any bytes that this version did not write. Never panics.
    pub fn from_cache(bytes: &[u8]) -> Result<Self, CacheError> {
        let Some((header, payload)) = bytes.split_at_checked(HEADER_BYTES) else { return Err(CacheError::NotACache) };
        let number = |at: usize| header[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        if header[..4] != MAGIC[..] || bytes.len() > LIMIT_BYTES {
            return Err(CacheError::NotACache);
        }
        if number(4) != VERSION {
            return Err(CacheError::OtherVersion { found: number(4) });
        }
        if number(8) != crc32fast::hash(payload) {
            return Err(CacheError::Corrupt);
        }
        let timetable: Self = postcard::from_bytes(payload).map_err(|_| CacheError::Corrupt)?;
        if timetable.is_valid() { Ok(timetable) } else { Err(CacheError::Corrupt) }
    }

    /// Whether every index is within its table. A checksum does not protect against a crafted file.
    fn is_valid(&self) -> bool {
        let within = |index: u32, length: usize| (index as usize) < length;
        let platforms = self.platforms.iter().all(|platform| within(platform.station, self.stations.len()));
        let stops = self.patterns.iter().flat_map(|pattern| &pattern.stops);
        let patterns = stops.into_iter().all(|stop| within(stop.platform, self.platforms.len()));
        let profiles = self.profiles.iter().all(|profile| {
            let pattern = self.patterns.get(profile.pattern as usize);
            pattern.is_some_and(|pattern| pattern.stops.len() == profile.times.len() && pattern.stops.len() > 1)
                && profile.times.is_sorted_by(|one, next| one.departure <= next.arrival)
                && profile.times.iter().all(|time| time.arrival <= time.departure && time.departure < 1 << 24)
        });
        let trips = self.trips.iter().all(|trip| {
            within(trip.route, self.routes.len())
                && within(trip.service, self.services.len())
                && within(trip.profile, self.profiles.len())
                && trip.start < 1 << 24
        });
        let transfers = self
            .transfers
            .iter()
            .all(|transfer| within(transfer.from, self.stations.len()) && within(transfer.to, self.stations.len()));
        platforms && patterns && profiles && trips && transfers
    }
}
