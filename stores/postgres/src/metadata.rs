//! Computes the metadata terms in the table `thread_metadata` in the same way as the SQL function `metadata_terms`.

use sha2::{Digest, Sha256};
use threadkeep_core::{MetadataFilter, MetadataValue};

/// The length of a term, in bytes.
const TERM_BYTES: usize = 16;

/// Returns the terms of all accepted values of a filter. A thread has one value for each key, so a thread that meets all conditions has
/// as many of these terms as the filter has conditions.
pub(crate) fn terms(filter: &MetadataFilter) -> Vec<Vec<u8>> {
    let conditions = filter.conditions().iter();
    conditions.flat_map(|condition| condition.values.iter().map(|value| term(&condition.key, value))).collect()
}

fn term(key: &str, value: &MetadataValue) -> Vec<u8> {
    let value = match value {
        MetadataValue::Text(text) => format!("s{text}"),
        MetadataValue::Integer(integer) => format!("j{integer}"),
        MetadataValue::Bool(bool) => format!("j{bool}"),
    };
    Sha256::digest(format!("{}:{key}{value}", key.len()))[..TERM_BYTES].to_vec()
}
