//! The compact form in which a timetable is kept between runs.
//!
//! `TKTT`, the version of the layout, a checksum of the rest, and the rest: the timetable as postcard writes it. A cache
//! is derived from a feed and made again whenever it does not read; it is not meant for exchange.

use super::Timetable;

const MAGIC: &[u8; 4] = b"TKTT";
const VERSION: u32 = 1;
const HEADER_BYTES: usize = 12;
/// New York's cache has 2 MB.
const LIMIT_BYTES: usize = 512 << 20;

/// Why a cache does not read. The feed it was made from is the remedy for each.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// The bytes are something else.
    #[error("not a cached timetable")]
    NotACache,
    /// Another version of this crate wrote it.
    #[error("the cached timetable has layout {found}, and {VERSION} is read")]
    OtherVersion {
        /// The version that stands in it.
        found: u32,
    },
    /// The bytes are damaged or cut.
    #[error("the cached timetable is damaged")]
    Corrupt,
}

impl Timetable {
    /// Writes the cache.
    pub fn to_cache(&self) -> Vec<u8> {
        let payload = postcard::to_stdvec(self).expect("a timetable has no map and no unsized part that could fail");
        let mut bytes = Vec::with_capacity(HEADER_BYTES + payload.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&VERSION.to_le_bytes());
        bytes.extend_from_slice(&crc32fast::hash(&payload).to_le_bytes());
        bytes.extend_from_slice(&payload);
        bytes
    }

    /// Reads what [`to_cache`](Self::to_cache) wrote.
    ///
    /// # Errors
    /// [`CacheError`], for any bytes that this version did not write; no bytes make it panic.
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
        if timetable.is_sound() { Ok(timetable) } else { Err(CacheError::Corrupt) }
    }

    /// Whether every index points into its table: a checksum is no proof against a file that was made to fit.
    fn is_sound(&self) -> bool {
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
