use axum::extract::State;
use axum::http::StatusCode;
use serde::Deserialize;
use threadkeep::core::RecordWrite;
use threadkeep::{JsonText, Namespace, Timestamp};
use utoipa::ToSchema;

use super::{BulkJson, BulkResultJson, check_count};
use crate::app::App;
use crate::error::{ApiError, ErrorEnvelope, Result};
use crate::input::{JsonBody, QueryParams, optional_whole_number};
use crate::output::json;
use crate::rest::records::take_owner;
use crate::security::Caller;

/// The records to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PutRecordsJson {
    /// 1 to 500 records.
    records: Vec<BulkRecordJson>,
}

/// A record to write.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BulkRecordJson {
    namespace: String,
    key: String,
    /// Any JSON value. It is returned byte for byte.
    #[schema(value_type = Value)]
    value: JsonText,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = DateTime)]
    expires_at: Option<Timestamp>,
    /// The version that the record must have; 0 if it must not exist. Default: any.
    #[serde(default, deserialize_with = "optional_whole_number")]
    version: Option<u64>,
}

/// Writes many records
///
/// Each record is written separately.
#[utoipa::path(
    post,
    path = "/v1/bulk/records",
    operation_id = "put_records",
    tag = "bulk",
    params(("owner" = Option<String>, Query, description = "`user` or `tenant`; default: the caller")),
    request_body = PutRecordsJson,
    responses((status = 200, body = BulkJson), (status = "4XX", body = ErrorEnvelope<'_>)),
    security(("key" = []))
)]
pub(crate) async fn put_records(
    State(app): State<App>,
    caller: Caller,
    mut params: QueryParams,
    JsonBody { value: body, .. }: JsonBody<PutRecordsJson>,
) -> Result {
    let owner = take_owner(&caller.scope, &mut params)?;
    params.finish()?;
    check_count("records", body.records.len())?;
    let memory = app.memory();
    let mut results = Vec::with_capacity(body.records.len());
    for BulkRecordJson { namespace, key, value, expires_at, version: expected } in body.records {
        let name = format!("{namespace}/{key}");
        let written = async {
            let (owner, namespace, value) = (owner.clone(), Namespace::app(namespace)?, Some(value));
            let write = RecordWrite { owner, namespace, key, expected, value, expires_at };
            memory.backend().store.write_record(&caller.scope, write, memory.now()).await?;
            Ok(())
        };
        let written = written.await.map_err(|error: ApiError| match error.status {
            StatusCode::PRECONDITION_FAILED if expected == Some(0) => {
                ApiError { message: "the record already exists".to_owned(), ..error }.param("version")
            }
            StatusCode::PRECONDITION_FAILED => {
                ApiError { message: "the record has a different version".to_owned(), ..error }.param("version")
            }
            _ => error,
        });
        results.push(BulkResultJson::of(name, 200, written)?);
    }
    Ok(json(&BulkJson::of(results)))
}
