//! The endpoints for events and interactions. They verify, store and acknowledge each request; the worker processes it.

use std::sync::Arc;

use async_trait::async_trait;
use axum::Extension;
use axum::extract::State;
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use ring::hmac;
use serde_json::{Value, json};
use threadkeep::Scope;
use threadkeep_server::{
    ApiError, Door, ErrorFormat, KeyRole, RawBody, Rule, SenderAuthenticator, TenantCase, json as json_response,
};
use threadkeep_service::{Sender, Service};
use utoipa_axum::router::UtoipaMethodRouterExt;
use utoipa_axum::routes;

use crate::EventSource;
use crate::worker::Worker;

/// The path of the endpoint for events.
pub const EVENTS_PATH: &str = "/slack/events";
/// The path of the endpoint for pressed buttons.
pub const INTERACTIONS_PATH: &str = "/slack/interactions";

/// The maximum age of a request, in seconds.
const MAX_AGE_SECONDS: i64 = 300;
/// The tenant of requests without a workspace.
const NO_TEAM: &str = "slack-setup";

pub(crate) fn door(worker: Arc<Worker>) -> Door {
    let door = match &worker.options().source {
        EventSource::Requests { signing_secret } => with_endpoints(Door::new("slack"), &worker, signing_secret),
        EventSource::SocketMode { .. } => Door::new("slack"),
    };
    door.background_task(move |service| Arc::clone(&worker).run(service))
}

fn with_endpoints(door: Door, worker: &Arc<Worker>, signing_secret: &str) -> Door {
    let key = hmac::Key::new(hmac::HMAC_SHA256, signing_secret.as_bytes());
    let authenticator: Arc<dyn SenderAuthenticator> = Arc::new(SignatureCheck(key));
    let signed = || Rule::sender(KeyRole::Write, Arc::clone(&authenticator));
    let [events_worker, interactions_worker] = [Extension(Arc::clone(worker)), Extension(Arc::clone(worker))];
    let format = ErrorFormat::default().with_body(|error, _| json!({ "ok": false, "error": error.code }).to_string());
    door.error_format(format)
        .security_scheme("slack_signature", "x-slack-signature")
        .route(signed(), move || routes!(receive_event).layer(events_worker.clone()))
        .route(signed(), move || routes!(receive_interaction).layer(interactions_worker.clone()))
        .cases(|_| {
            // The signed body names the workspace.
            [EVENTS_PATH, INTERACTIONS_PATH].map(|path| TenantCase::without_ids("POST", path)).to_vec()
        })
}

struct SignatureCheck(hmac::Key);

impl std::fmt::Debug for SignatureCheck {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SignatureCheck")
    }
}

#[async_trait]
impl SenderAuthenticator for SignatureCheck {
    async fn sender(&self, service: &Service, head: &Parts, body: &Bytes) -> Result<Sender, ApiError> {
        let header = |name: &str| head.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let refuse = |code, message| ApiError::new(StatusCode::UNAUTHORIZED, code, message);
        let timestamp = header("x-slack-request-timestamp");
        let sent: i64 =
            timestamp.parse().map_err(|_| refuse("bad_timestamp", "the timestamp is missing or invalid"))?;
        let now = service.memory().now().as_millis().div_euclid(1_000);
        if now.abs_diff(sent) > MAX_AGE_SECONDS.unsigned_abs() {
            return Err(refuse("old_timestamp", "the request is older than five minutes"));
        }
        let signed = [b"v0:", timestamp.as_bytes(), b":", body].concat();
        let signature = header("x-slack-signature").strip_prefix("v0=").and_then(from_hex);
        let is_valid = signature.is_some_and(|signature| hmac::verify(&self.0, &signed, &signature).is_ok());
        if !is_valid {
            return Err(refuse("bad_signature", "the signature does not match the body"));
        }
        let payload = read_payload(body, header("content-type")).unwrap_or_default();
        let team = payload["team_id"].as_str().or(payload["team"]["id"].as_str()).filter(|team| !team.is_empty());
        let scope = Scope::tenant(team.unwrap_or(NO_TEAM)).map_err(ApiError::from)?;
        let name = format!("slack {}", team.unwrap_or(NO_TEAM));
        Ok(Sender { name, scope, roles: vec![KeyRole::Write] })
    }
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    if !text.is_ascii() || text.len() != 64 {
        return None;
    }
    (0..text.len()).step_by(2).map(|at| u8::from_str_radix(&text[at..at + 2], 16).ok()).collect()
}

/// Reads the JSON of a body, or of the field `payload` of a form.
fn read_payload(body: &[u8], content_type: &str) -> Option<Value> {
    if content_type.starts_with("application/x-www-form-urlencoded") {
        let (_, payload) = form_urlencoded::parse(body).find(|(name, _)| name == "payload")?;
        return serde_json::from_str(&payload).ok();
    }
    serde_json::from_slice(body).ok()
}

fn invalid() -> ApiError {
    ApiError::invalid("body", "the body is not a request from Slack")
}

/// Receives an event from Slack
#[utoipa::path(post, path = "/slack/events", operation_id = "receive_slack_event", responses((status = 200, description = "The event is stored.")), security(("slack_signature" = [])))]
async fn receive_event(
    State(service): State<Service>,
    Extension(worker): Extension<Arc<Worker>>,
    RawBody(body): RawBody,
) -> Result<Response, ApiError> {
    let envelope: Value = serde_json::from_slice(&body).map_err(|_| invalid())?;
    match envelope["type"].as_str() {
        Some("url_verification") => {
            let challenge = envelope["challenge"].as_str().ok_or_else(invalid)?;
            Ok(json_response(&json!({ "challenge": challenge })))
        }
        Some("event_callback") => {
            worker.receive_event(&service, &envelope).await?;
            Ok(json_response(&json!({ "ok": true })))
        }
        // Other requests, such as rate-limit warnings, need no work.
        Some(_) => Ok(json_response(&json!({ "ok": true }))),
        None => Err(invalid()),
    }
}

/// Receives a button press from Slack
#[utoipa::path(post, path = "/slack/interactions", operation_id = "receive_slack_interaction", responses((status = 200, description = "The decision is stored.")), security(("slack_signature" = [])))]
async fn receive_interaction(
    State(service): State<Service>,
    Extension(worker): Extension<Arc<Worker>>,
    RawBody(body): RawBody,
) -> Result<Response, ApiError> {
    let payload = read_payload(&body, "application/x-www-form-urlencoded").ok_or_else(invalid)?;
    worker.receive_interaction(&service, &payload).await?;
    Ok(json_response(&json!({ "ok": true })))
}
