//! JSON Web Tokens of external issuers. The claims `iss`, `aud` and `exp` are required.
//!
//! The algorithm is determined by the configuration of the issuer (HS256 with a secret) or by the issuer's published key
//! (`key_set`), never by the token.

mod key_set;
mod signature;

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::hmac;
use serde::Deserialize;
use threadkeep::{Scope, TenantId, UserId, Value};

use crate::caller::{Caller, Credential};
use crate::keys::KeyRole;
use crate::outgoing::OutgoingProxy;
use key_set::KeySet;

/// The maximum length of a token, in bytes.
const MAX_TOKEN_BYTES: usize = 8 * 1024;
/// The minimum length of a secret, in bytes: the size of the hash.
const MIN_SECRET_BYTES: usize = 32;
/// The tolerated clock skew in seconds.
const LEEWAY_SECONDS: i64 = 30;

/// An issuer whose tokens are accepted.
#[derive(Clone)]
pub struct TrustedIssuer {
    /// The required `iss` claim.
    pub issuer: String,
    /// The required `aud` claim.
    pub audience: String,
    /// The tenant of every user whom this issuer authenticates. It is never read from the token.
    pub tenant: TenantId,
    /// The roles of these users.
    pub roles: Vec<KeyRole>,
    /// Whether tokens with the role `service_role` (Supabase's name for the application itself) are accepted. They are valid for
    /// the whole tenant.
    pub accepts_service_role: bool,
    verifier: Verifier,
}

/// How signatures are verified.
#[derive(Clone)]
enum Verifier {
    Secret(hmac::Key),
    Keys(Arc<KeySet>),
}

/// Counts the keys of a set that can verify tokens. Returns `None` if `bytes` are not a JSON Web Key Set. Only used by fuzz targets.
pub fn count_keys(bytes: &[u8]) -> Option<usize> {
    Some(key_set::parse(bytes)?.len())
}

impl std::fmt::Debug for TrustedIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut debug = f.debug_struct("TrustedIssuer");
        debug.field("issuer", &self.issuer).field("audience", &self.audience).field("tenant", &self.tenant);
        debug.field("roles", &self.roles).finish_non_exhaustive()
    }
}

/// An invalid configuration of an issuer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// The secret is too short.
    #[error("the HS256 secret must be at least {MIN_SECRET_BYTES} bytes long")]
    ShortSecret,
    /// The issuer or the audience is empty.
    #[error("the issuer and the audience must not be empty")]
    EmptyName,
    /// The tenant is the internal tenant.
    #[error("this tenant is reserved for keys and the audit log; choose another one")]
    ReservedTenant,
    /// The location of the keys is not trustworthy: it must be a file, an https URL, or a loopback URL.
    #[error("the location of keys must be a file, an https URL, or a loopback URL such as http://127.0.0.1:8000/keys")]
    UntrustedLocation,
    /// The HTTP client that fetches keys cannot be created.
    #[error("cannot set up TLS or the proxy to fetch keys")]
    ClientSetup,
}

impl TrustedIssuer {
    /// Accepts an issuer whose tokens are signed with a secret (HS256). Its users belong to `tenant` and have the role `write`.
    ///
    /// # Errors
    /// `ShortSecret`, `EmptyName` and `ReservedTenant`.
    pub fn hs256(
        secret: impl Into<Vec<u8>>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
        tenant: TenantId,
    ) -> Result<Self, IssuerError> {
        let secret = secret.into();
        if secret.len() < MIN_SECRET_BYTES {
            return Err(IssuerError::ShortSecret);
        }
        let verifier = Verifier::Secret(hmac::Key::new(hmac::HMAC_SHA256, &secret));
        Self::with_verifier(verifier, issuer.into(), audience.into(), tenant)
    }

    /// Accepts an issuer that publishes its keys (JWKS) in a file or at a URL. Its users belong to `tenant` and have the role
    /// `write`.
    ///
    /// The keys are fetched when the first token arrives, through the proxy if one is set. They are fetched again when they are ten
    /// minutes old or a token refers to an unknown key, but at most four times a minute.
    ///
    /// # Errors
    /// `UntrustedLocation`, `ClientSetup`, `EmptyName` and `ReservedTenant`.
    pub fn jwks(
        location: &str,
        proxy: Option<&OutgoingProxy>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
        tenant: TenantId,
    ) -> Result<Self, IssuerError> {
        let verifier = Verifier::Keys(Arc::new(KeySet::new(location, proxy)?));
        Self::with_verifier(verifier, issuer.into(), audience.into(), tenant)
    }

    fn with_verifier(
        verifier: Verifier,
        issuer: String,
        audience: String,
        tenant: TenantId,
    ) -> Result<Self, IssuerError> {
        if issuer.is_empty() || audience.is_empty() {
            return Err(IssuerError::EmptyName);
        }
        if tenant.is_internal() {
            return Err(IssuerError::ReservedTenant);
        }
        Ok(Self { issuer, audience, tenant, roles: vec![KeyRole::Write], accepts_service_role: false, verifier })
    }

    /// Authenticates the caller who sent a token; `None` if the token is invalid.
    pub(crate) async fn authenticate(&self, token: &str, now_seconds: i64) -> Option<Caller> {
        let claims = self.verify(token, now_seconds).await?;
        let scope = match claims.role.as_deref() {
            None | Some("authenticated") => Scope::User(self.tenant.clone(), UserId::new(claims.sub?).ok()?),
            Some("service_role") if self.accepts_service_role => Scope::Tenant(self.tenant.clone()),
            Some(_) => return None,
        };
        Some(Caller {
            scope,
            // The token determines the user: the request does not name one.
            may_select_user: false,
            roles: self.roles.clone(),
            credential: Credential::Token { expires_at_seconds: claims.exp.0 },
            rate: None,
        })
    }

    /// Returns the claims of a token if the token is valid.
    async fn verify(&self, token: &str, now_seconds: i64) -> Option<Claims> {
        if token.len() > MAX_TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let header: Header = decode_part(header)?;
        let claims: Claims = decode_part(payload)?;
        // The claims are checked before the signature, so that tokens with invalid claims do not make the server fetch keys.
        if header.crit.is_some() || !self.accepts(&claims, now_seconds) {
            return None;
        }
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_signature_valid = match &self.verifier {
            Verifier::Secret(secret) => {
                header.alg == "HS256" && hmac::verify(secret, signed.as_bytes(), &signature).is_ok()
            }
            Verifier::Keys(keys) => {
                let key = keys.find(header.kid.as_deref()).await?;
                header.alg == key.algorithm && key.verifies(signed, &signature)
            }
        };
        is_signature_valid.then_some(claims)
    }

    fn accepts(&self, claims: &Claims, now_seconds: i64) -> bool {
        let is_for_audience = match &claims.aud {
            Value::String(audience) => *audience == self.audience,
            Value::Array(audiences) => audiences.iter().any(|audience| *audience == *self.audience),
            _ => false,
        };
        let is_current = claims.exp.0.saturating_add(LEEWAY_SECONDS) > now_seconds
            && claims.nbf.is_none_or(|not_before| not_before.0.saturating_sub(LEEWAY_SECONDS) <= now_seconds);
        is_for_audience && is_current && claims.iss == self.issuer
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    crit: Option<Value>,
}

/// Seconds since 1970. In JSON they may have a fraction, which is rounded down.
#[derive(Clone, Copy, Deserialize)]
#[serde(from = "serde_json::Number")]
struct Seconds(i64);

impl From<serde_json::Number> for Seconds {
    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates")]
    fn from(number: serde_json::Number) -> Self {
        Self(number.as_i64().unwrap_or_else(|| number.as_f64().unwrap_or(0.0).floor() as i64))
    }
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Value,
    exp: Seconds,
    #[serde(default)]
    nbf: Option<Seconds>,
    #[serde(default)]
    sub: Option<String>,
    #[serde(default)]
    role: Option<String>,
}

fn decode_part<T: serde::de::DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "a secret that has 32 bytes or more";
    const NOW: i64 = 1_800_000_000;

    fn issuer() -> TrustedIssuer {
        TrustedIssuer::hs256(SECRET, "https://issuer", "authenticated", TenantId::new("acme").unwrap()).unwrap()
    }

    fn token(header: &Value, claims: &Value, secret: &str) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(hmac::sign(&key, signed.as_bytes())))
    }

    fn claims() -> Value {
        json!({ "iss": "https://issuer", "aud": "authenticated", "exp": NOW + 60, "sub": "ana", "role": "authenticated",
            "user_metadata": { "tenant": "other" } })
    }

    async fn scope(claims: &Value) -> Option<Scope> {
        issuer()
            .authenticate(&token(&json!({ "alg": "HS256", "typ": "JWT" }), claims, SECRET), NOW)
            .await
            .map(|caller| caller.scope)
    }

    #[tokio::test]
    async fn valid_token_authenticates_its_user_in_the_configured_tenant() {
        assert_eq!(scope(&claims()).await, Some(Scope::user("acme", "ana").unwrap()));
        let mut several_audiences = claims();
        several_audiences["aud"] = json!(["other", "authenticated"]);
        assert!(scope(&several_audiences).await.is_some());
        let mut with_fractions = claims();
        with_fractions["exp"] = json!(1_800_000_060.25);
        with_fractions["nbf"] = json!(1_799_999_999.75);
        assert!(scope(&with_fractions).await.is_some());
        with_fractions["exp"] = json!(1_799_999_969.75);
        assert!(scope(&with_fractions).await.is_none());
    }

    #[tokio::test]
    async fn missing_invalid_and_expired_claims_are_rejected() {
        for (claim, values) in [
            ("exp", vec![Value::Null, json!(NOW - 31), json!("soon")]),
            ("iss", vec![Value::Null, json!("https://other")]),
            ("aud", vec![Value::Null, json!("other"), json!([])]),
            ("sub", vec![Value::Null, json!(""), json!("a\nb")]),
            ("nbf", vec![json!(NOW + 31)]),
            ("role", vec![json!("anon"), json!("service_role"), json!("postgres")]),
        ] {
            for value in values {
                let mut invalid = claims();
                invalid[claim] = value.clone();
                assert_eq!(scope(&invalid).await, None, "{claim}: {value}");
            }
        }
    }

    #[tokio::test]
    async fn token_cannot_choose_the_algorithm() {
        for algorithm in ["none", "None", "HS512", "RS256", "hs256"] {
            let header = json!({ "alg": algorithm });
            assert!(issuer().authenticate(&token(&header, &claims(), SECRET), NOW).await.is_none(), "{algorithm}");
        }
        let header = json!({ "alg": "HS256" });
        let other_secret = token(&header, &claims(), "another secret with enough bytes in it");
        assert!(issuer().authenticate(&other_secret, NOW).await.is_none());
        let valid = token(&header, &claims(), SECRET);
        let unsigned = valid.rsplit_once('.').unwrap().0;
        for text in [format!("{unsigned}."), unsigned.to_owned(), format!("{valid}x"), String::new(), "..".to_owned()] {
            assert!(issuer().authenticate(&text, NOW).await.is_none(), "{text}");
        }
    }

    #[tokio::test]
    async fn service_role_is_accepted_if_configured() {
        let issuer = TrustedIssuer { accepts_service_role: true, ..issuer() };
        let mut service = claims();
        service["role"] = json!("service_role");
        let token = token(&json!({ "alg": "HS256" }), &service, SECRET);
        assert_eq!(issuer.authenticate(&token, NOW).await.unwrap().scope, Scope::tenant("acme").unwrap());
    }

    #[test]
    fn invalid_configurations_are_rejected() {
        let tenant = TenantId::new("acme").unwrap();
        let short = TrustedIssuer::hs256("secret", "i", "a", tenant.clone());
        assert_eq!(short.unwrap_err(), IssuerError::ShortSecret);
        assert_eq!(TrustedIssuer::hs256(SECRET, "", "a", tenant.clone()).unwrap_err(), IssuerError::EmptyName);
        for location in ["http://issuer.example/keys", "http://", "http://127.0.0.1.nip.io/keys"] {
            let error = TrustedIssuer::jwks(location, None, "i", "a", tenant.clone()).unwrap_err();
            assert_eq!(error, IssuerError::UntrustedLocation, "{location}");
        }
    }
}
