//! Requests that change many threads or records. Each thread or record is changed separately, and the response lists the results
//! in the order of the request.

pub(crate) mod delete_threads;
pub(crate) mod patch_threads;
pub(crate) mod put_records;

use serde::Serialize;
use utoipa::ToSchema;

use crate::error::{ApiError, Result};

/// The maximum number of threads or records in one request.
const MAX_ENTRIES: usize = 500;

/// The results, in the order of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkJson {
    /// The number of entries without an error.
    succeeded: usize,
    failed: usize,
    results: Vec<BulkResultJson>,
}

/// What happened to one thread or record.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkResultJson {
    /// The name in the request: that of a thread, or `namespace/key` of a record.
    name: String,
    /// The status that a request for this entry alone would have.
    status: u16,
    /// Null if the entry succeeded.
    error: Option<BulkErrorJson>,
}

/// Why an entry failed.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BulkErrorJson {
    code: String,
    message: String,
    /// The invalid field of the entry.
    param: Option<String>,
}

impl BulkJson {
    fn of(results: Vec<BulkResultJson>) -> Self {
        let failed = results.iter().filter(|result| result.error.is_some()).count();
        Self { succeeded: results.len() - failed, failed, results }
    }
}

impl BulkResultJson {
    /// Describes the result of an entry. A server error fails the whole request, which can then be repeated.
    fn of(name: String, status: u16, result: Result<()>) -> Result<Self> {
        match result {
            Ok(()) => Ok(Self { name, status, error: None }),
            Err(error) if error.status.is_server_error() => Err(error),
            Err(error) => {
                let status = error.status.as_u16();
                let error =
                    Some(BulkErrorJson { code: error.code.to_owned(), message: error.message, param: error.param });
                Ok(Self { name, status, error })
            }
        }
    }
}

fn check_count(param: &str, count: usize) -> Result<()> {
    if (1..=MAX_ENTRIES).contains(&count) {
        return Ok(());
    }
    Err(ApiError::invalid(param, format!("`{param}` must contain 1 to {MAX_ENTRIES} entries")))
}
