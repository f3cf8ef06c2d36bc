//! Short-lived tokens that pages in a browser use to sign in. A token acts for the caller that created it, with at most
//! the caller's roles.
//!
//! A token contains its claims and a MAC. The key of the MAC is stored in the store, so a token is valid on all instances, and no
//! instance stores tokens.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use threadkeep::core::RecordWrite;
use threadkeep::{Conflict, JsonText, Memory, Namespace, RecordOwner, Scope, StoreError, TenantId, Timestamp, UserId};
use tokio::sync::OnceCell;

use crate::caller::{Caller, Credential};
use crate::error::{Error, Result};
use crate::keys::KeyRole;

/// The prefix of tokens.
const PREFIX: &str = "tkb_";
const SECRET_BYTES: usize = 32;
/// The maximum length of a token, in bytes.
const MAX_BYTES: usize = 4096;
/// The maximum lifetime of a token, in seconds.
pub const MAX_SECONDS: i64 = 60 * 60;

/// The content of a token.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    tenant: TenantId,
    user: Option<UserId>,
    roles: Vec<KeyRole>,
    /// When the token expires, in seconds since 1970.
    until: i64,
    issuer: Issuer,
}

/// The credential of the caller that created a token.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Issuer {
    Key(String),
    Token(i64),
    Local(Option<i64>),
}

/// Creates and verifies tokens.
pub(crate) struct BrowserTokens {
    memory: Memory,
    key: OnceCell<hmac::Key>,
}

impl fmt::Debug for BrowserTokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("BrowserTokens")
    }
}

impl BrowserTokens {
    pub(crate) fn new(memory: &Memory) -> Self {
        Self { memory: memory.clone(), key: OnceCell::new() }
    }

    /// Creates a token for a caller with some of the caller's roles. Returns its text and when it expires.
    ///
    /// # Errors
    /// `Forbidden` if the caller lacks a role, or is itself authenticated by such a token; errors from the store.
    pub(crate) async fn create(
        &self,
        caller: &Caller,
        roles: Vec<KeyRole>,
        seconds: i64,
    ) -> Result<(String, Timestamp)> {
        for role in &roles {
            caller.require(*role)?;
        }
        let issuer = match &caller.credential {
            Credential::Key(id) => Issuer::Key(id.clone()),
            Credential::Token { expires_at_seconds } => Issuer::Token(*expires_at_seconds),
            Credential::Local { expires_at_seconds } => Issuer::Local(*expires_at_seconds),
            Credential::Browser { .. } | Credential::Door(_) => {
                return Err(Error::forbidden("token_refused", "create tokens with a key, not with another token"));
            }
        };
        let until = self.memory.now().as_millis().div_euclid(1000) + seconds.clamp(1, MAX_SECONDS);
        let (tenant, user) = match &caller.scope {
            Scope::Tenant(tenant) => (tenant.clone(), None),
            Scope::User(tenant, user) => (tenant.clone(), Some(user.clone())),
        };
        let claims = Claims { tenant, user, roles, until, issuer };
        let claims = URL_SAFE_NO_PAD.encode(JsonText::of(&claims)?.as_str());
        let mac = URL_SAFE_NO_PAD.encode(hmac::sign(self.key().await?, claims.as_bytes()));
        Ok((format!("{PREFIX}{claims}.{mac}"), Timestamp::from_millis(until * 1000)?))
    }

    /// Whether a credential has the form of a token.
    pub(crate) fn is_token(text: &str) -> bool {
        text.starts_with(PREFIX)
    }

    /// Returns the caller of a valid token. Does not check whether the issuer's credential is still valid.
    ///
    /// # Errors
    /// Errors from the store.
    pub(crate) async fn verify(&self, text: &str) -> Result<Option<Caller>> {
        let parts = text.strip_prefix(PREFIX).filter(|_| text.len() <= MAX_BYTES).and_then(|rest| rest.split_once('.'));
        let Some((claims, mac)) = parts else { return Ok(None) };
        let Ok(mac) = URL_SAFE_NO_PAD.decode(mac) else { return Ok(None) };
        if hmac::verify(self.key().await?, claims.as_bytes(), &mac).is_err() {
            return Ok(None);
        }
        let decoded = URL_SAFE_NO_PAD.decode(claims).ok();
        let claims = decoded.and_then(|decoded| serde_json::from_slice::<Claims>(&decoded).ok());
        let now = self.memory.now().as_millis().div_euclid(1000);
        let Some(Claims { tenant, user, roles, issuer, .. }) = claims.filter(|claims| claims.until > now) else {
            return Ok(None);
        };
        let scope = match user {
            Some(user) => Scope::User(tenant, user),
            None => Scope::Tenant(tenant),
        };
        let issuer = match issuer {
            Issuer::Key(id) => Credential::Key(id),
            Issuer::Token(expires_at_seconds) => Credential::Token { expires_at_seconds },
            Issuer::Local(expires_at_seconds) => Credential::Local { expires_at_seconds },
        };
        let credential = Credential::Browser { issuer: Box::new(issuer) };
        Ok(Some(Caller { scope, may_select_user: false, roles, credential, rate: None }))
    }

    /// Returns the key that signs tokens. The first instance that needs it creates it.
    async fn key(&self) -> Result<&hmac::Key> {
        self.key.get_or_try_init(|| self.read_or_create_key()).await
    }

    async fn read_or_create_key(&self) -> Result<hmac::Key> {
        let scope = Scope::Tenant(TenantId::internal());
        let (owner, namespace) = (RecordOwner::Tenant, Namespace::System("server.browser_tokens".to_owned()));
        let store = &self.memory.backend().store;
        for _ in 0..2 {
            if let Some(found) = store.find_record(&scope, &owner, &namespace, "key", self.memory.now()).await? {
                let secret = URL_SAFE_NO_PAD.decode(found.value.read::<String>()?);
                let secret = secret.map_err(|_| Error::internal("the key of browser tokens is corrupt"))?;
                return Ok(hmac::Key::new(hmac::HMAC_SHA256, &secret));
            }
            let mut secret = [0; SECRET_BYTES];
            getrandom::fill(&mut secret).map_err(|error| Error::internal(error.to_string()))?;
            let write = RecordWrite {
                owner: owner.clone(),
                namespace: namespace.clone(),
                key: "key".to_owned(),
                expected: Some(0),
                value: Some(JsonText::of(&URL_SAFE_NO_PAD.encode(secret))?),
                expires_at: None,
            };
            match store.write_record(&scope, write, self.memory.now()).await {
                // Another instance created the key first.
                Ok(_) | Err(StoreError::Conflict(Conflict::Record { .. })) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(Error::internal("the key of browser tokens cannot be created"))
    }
}
