//! A door whose senders sign the body of each form that they send, as chat services do.

use std::sync::Arc;

use async_trait::async_trait;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::Response;
use bytes::Bytes;
use ring::hmac;
use serde_json::json;
use threadkeep::{MessageQuery, Scope, ThreadId, TurnRequest};
use threadkeep_server::{
    ApiError, Door, ErrorFormat, FormBody, KeyRole, OwnedIds, Probe, Rule, SenderAuthenticator, TenantCase,
    json as json_response,
};
use threadkeep_service::turns::{self, AskRequest, TurnTask};
use threadkeep_service::{Caller, RequestIdentity, Sender, Service, hex};
use utoipa_axum::routes;

use crate::TestServer;
use crate::server::{Answer, send};

const SECRET: &[u8] = b"the secret that the chat service and this door share";
const SIGNATURE: &str = "x-letters-signature";

pub(crate) fn letters_door() -> Door {
    let authenticator: Arc<dyn SenderAuthenticator> =
        Arc::new(SignatureCheck(hmac::Key::new(hmac::HMAC_SHA256, SECRET)));
    let signed = |role| Rule::sender(role, Arc::clone(&authenticator));
    Door::new("letters")
        .security_scheme("letters_signature", SIGNATURE)
        .error_format(
            ErrorFormat::default().with_body(|error, _| json!({ "ok": false, "error": error.code }).to_string()),
        )
        .route(signed(KeyRole::Write).without_time_limit(), || routes!(receive_event))
        .route(signed(KeyRole::Write).audited(), || routes!(delete_thread))
        .route(signed(KeyRole::Admin), || routes!(change_settings))
        .route(Rule::role(KeyRole::Read), || routes!(read_thread))
        .cases(list_tenant_cases)
}

fn list_tenant_cases(owned: &OwnedIds) -> Vec<TenantCase> {
    let probe_of = |owned: &OwnedIds| Probe::at(format!("/letters/{}", owned.thread));
    vec![
        TenantCase::new("GET", "/letters/{thread}", vec![(probe_of(owned), probe_of(&OwnedIds::nonexistent()))]),
        // The signed form identifies the team.
        TenantCase::without_ids("POST", "/letters/events"),
        TenantCase::without_ids("POST", "/letters/forget"),
        TenantCase::without_ids("POST", "/letters/settings"),
    ]
}

#[derive(Debug)]
struct SignatureCheck(hmac::Key);

#[async_trait]
impl SenderAuthenticator for SignatureCheck {
    async fn sender(&self, _: &Service, head: &Parts, body: &Bytes) -> Result<Sender, ApiError> {
        let signature = head.headers.get(SIGNATURE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if hex(hmac::sign(&self.0, body).as_ref()) != signature {
            return Err(ApiError::new(
                StatusCode::UNAUTHORIZED,
                "bad_signature",
                "the signature does not match the body",
            ));
        }
        let team = form_urlencoded::parse(body).find(|(name, _)| name == "team").map(|(_, team)| team.into_owned());
        let team = team.ok_or_else(|| ApiError::invalid("team", "missing field"))?;
        let (name, scope) = (format!("letters {team}"), Scope::tenant(team.as_str()).map_err(ApiError::from)?);
        Ok(Sender { name, scope, roles: vec![KeyRole::Write] })
    }
}

/// An event that the chat service sends.
#[derive(Clone, Copy)]
pub(super) struct Letter {
    pub(super) team: &'static str,
    pub(super) event: &'static str,
    /// The form-encoded text.
    pub(super) text: &'static str,
}

impl Letter {
    /// Returns the form-encoded body.
    pub(super) fn body(&self) -> String {
        format!("team={}&channel=E&event={}&text={}", self.team, self.event, self.text.replace(' ', "+"))
    }
}

/// Sends a form, signed with the signature of `signed`, or of `body` if `signed` is `None`.
pub(super) async fn send_letter(server: &TestServer, path: &str, body: &str, signed: Option<&str>) -> Answer {
    let key = hmac::Key::new(hmac::HMAC_SHA256, SECRET);
    let signature = hex(hmac::sign(&key, signed.unwrap_or(body).as_bytes()).as_ref());
    let request = server.anonymous_client().request("POST", path).header(SIGNATURE, signature);
    send(request.header("content-type", "application/x-www-form-urlencoded").body(body.to_owned())).await
}

fn require_field<'a>(form: &'a FormBody, name: &'static str) -> Result<&'a str, ApiError> {
    form.find(name).ok_or_else(|| ApiError::invalid(name, "missing field"))
}

/// Answers a message in a channel
#[utoipa::path(post, path = "/letters/events", operation_id = "receive_letter", responses((status = 200, description = "The reply.")), security(("letters_signature" = [])))]
async fn receive_event(State(service): State<Service>, caller: Caller, form: FormBody) -> Result<Response, ApiError> {
    let key = format!("letters:{}", require_field(&form, "channel")?);
    let thread = service.memory().open_by_key(&caller.scope, &key).await?.thread.id;
    let agent = service.assistants().find("keeper").ok_or_else(|| ApiError::not_found("assistant"))?;
    let identity = RequestIdentity::new("letters", Some(require_field(&form, "event")?.to_owned()), &form.digest, 0);
    let turn_request = TurnRequest::new(require_field(&form, "text")?);
    let request = AskRequest {
        service: service.clone(),
        agent,
        scope: caller.scope,
        thread,
        ask: turn_request,
        identity,
        is_ephemeral: false,
    };
    let answered = turns::wait_for_result(turns::start(service.delay_shutdown(), TurnTask::Ask(request))).await?;
    Ok(json_response(&json!({ "ok": true, "reply": answered.turn.reply, "replayed": answered.replayed })))
}

/// Deletes the thread of a channel
#[utoipa::path(post, path = "/letters/forget", operation_id = "forget_letters", responses((status = 200, description = "The thread is deleted.")), security(("letters_signature" = [])))]
async fn delete_thread(State(service): State<Service>, caller: Caller, form: FormBody) -> Result<Response, ApiError> {
    let key = format!("letters:{}", require_field(&form, "channel")?);
    let thread = service.memory().find_thread_by_key(&caller.scope, &key).await?;
    let thread = thread.ok_or_else(|| ApiError::not_found("channel"))?;
    service.memory().delete_thread(&caller.scope, thread.id).await?;
    Ok(json_response(&json!({ "ok": true })))
}

/// Changes settings of the door
#[utoipa::path(post, path = "/letters/settings", operation_id = "change_letters_settings", responses((status = 200, description = "The settings are changed.")), security(("letters_signature" = [])))]
async fn change_settings() -> Response {
    json_response(&json!({ "ok": true }))
}

/// Reads a thread
#[utoipa::path(get, path = "/letters/{thread}", operation_id = "read_letters", params(("thread" = String, Path)), responses((status = 200, description = "The texts of its messages.")), security(("key" = [])))]
async fn read_thread(
    State(service): State<Service>,
    caller: Caller,
    Path(thread): Path<String>,
) -> Result<Response, ApiError> {
    let thread: ThreadId = thread.parse().map_err(|_| ApiError::not_found("thread"))?;
    let page = service.memory().messages(&caller.scope, thread, &MessageQuery::newest(100)).await?;
    let texts: Vec<_> = page.messages.iter().map(|message| message.plain_text().into_owned()).collect();
    Ok(json_response(&json!({ "texts": texts })))
}

/// A built-in path with another parameter name
#[utoipa::path(get, path = "/v1/threads/{thread}", params(("thread" = String, Path)), responses((status = 200, description = "Nothing.")), security(("key" = [])))]
pub(super) async fn colliding_route() {}
