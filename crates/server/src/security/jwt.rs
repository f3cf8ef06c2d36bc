//! Tokens that somebody else issues: JSON Web Tokens signed with HS256, whose issuer, audience and end are demanded.
//!
//! The algorithm is that of the issuer's configuration, never that of the token.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde::Deserialize;
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use threadkeep::{Scope, TenantId, UserId, Value};

use super::Caller;
use super::keys::KeyRole;

/// Bytes of a token at most.
const TOKEN_BYTES: usize = 8 * 1024;
/// Bytes of a secret at least: as many as the hash has.
const SECRET_BYTES: usize = 32;
/// Seconds by which two clocks may differ.
const LEEWAY: i64 = 30;
const BLOCK: usize = 64;

/// Somebody whose tokens are taken.
#[derive(Clone)]
pub struct TokenIssuer {
    /// What the token has to name as `iss`.
    pub issuer: String,
    /// What the token has to name as `aud`.
    pub audience: String,
    /// The tenant that all its users belong to. It is never read from the token.
    pub tenant: TenantId,
    /// What its users may do.
    pub roles: Vec<KeyRole>,
    /// Whether a token of the role `service_role` (Supabase's name for the application itself) acts for the whole tenant.
    /// Otherwise it is refused.
    pub takes_service_role: bool,
    secret: Vec<u8>,
}

impl std::fmt::Debug for TokenIssuer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut shown = f.debug_struct("TokenIssuer");
        shown.field("issuer", &self.issuer).field("audience", &self.audience).field("tenant", &self.tenant);
        shown.field("roles", &self.roles).finish_non_exhaustive()
    }
}

/// Why an issuer's tokens cannot be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum IssuerError {
    /// The secret could be guessed.
    #[error("a secret for HS256 has at least {SECRET_BYTES} bytes")]
    ShortSecret,
    /// Issuer or audience is empty.
    #[error("issuer and audience are demanded of every token, so both have to be named")]
    Unnamed,
}

impl TokenIssuer {
    /// Takes tokens of an issuer, signed with a secret by HS256, on behalf of the users of a tenant, who may write.
    ///
    /// # Errors
    /// `ShortSecret` and `Unnamed`.
    pub fn hs256(
        secret: impl Into<Vec<u8>>,
        issuer: impl Into<String>,
        audience: impl Into<String>,
        tenant: TenantId,
    ) -> Result<Self, IssuerError> {
        let (secret, issuer, audience) = (secret.into(), issuer.into(), audience.into());
        if secret.len() < SECRET_BYTES {
            return Err(IssuerError::ShortSecret);
        }
        if issuer.is_empty() || audience.is_empty() {
            return Err(IssuerError::Unnamed);
        }
        Ok(Self { issuer, audience, tenant, roles: vec![KeyRole::Write], takes_service_role: false, secret })
    }

    /// Who shows a token; `None` for one that is not good.
    pub(super) fn caller(&self, token: &str, now_seconds: i64) -> Option<Caller> {
        let claims = self.claims(token, now_seconds)?;
        let scope = match claims.role.as_deref() {
            None | Some("authenticated") => Scope::User(self.tenant.clone(), UserId::new(claims.sub?).ok()?),
            Some("service_role") if self.takes_service_role => Scope::Tenant(self.tenant.clone()),
            Some(_) => return None,
        };
        Some(Caller { scope, roles: self.roles.clone(), key_id: None, until_seconds: Some(claims.exp) })
    }

    fn claims(&self, token: &str, now_seconds: i64) -> Option<Claims> {
        if token.len() > TOKEN_BYTES {
            return None;
        }
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, payload) = signed.split_once('.')?;
        let header: Header = decoded(header)?;
        if header.alg != "HS256" || header.crit.is_some() {
            return None;
        }
        let signature = BASE64_URL_SAFE_NO_PAD.decode(signature).ok()?;
        let is_signed: bool = hmac(&self.secret, signed.as_bytes()).ct_eq(signature.as_slice()).into();
        if !is_signed {
            return None;
        }
        let claims: Claims = decoded(payload)?;
        let is_for_us = match &claims.aud {
            Value::String(audience) => *audience == self.audience,
            Value::Array(audiences) => audiences.iter().any(|audience| *audience == *self.audience),
            _ => false,
        };
        let is_current = claims.exp.saturating_add(LEEWAY) > now_seconds
            && claims.nbf.is_none_or(|not_before| not_before.saturating_sub(LEEWAY) <= now_seconds);
        (is_for_us && is_current && claims.iss == self.issuer).then_some(claims)
    }
}

#[derive(Deserialize)]
struct Header {
    alg: String,
    #[serde(default)]
    crit: Option<Value>,
}

#[derive(Deserialize)]
struct Claims {
    iss: String,
    aud: Value,
    exp: i64,
    #[serde(default)]
    nbf: Option<i64>,
    #[serde(default)]
    sub: Option<String>,
    #[serde(default)]
    role: Option<String>,
}

fn decoded<T: serde::de::DeserializeOwned>(part: &str) -> Option<T> {
    serde_json::from_slice(&BASE64_URL_SAFE_NO_PAD.decode(part).ok()?).ok()
}

/// HMAC with SHA-256, as RFC 2104 has it.
fn hmac(secret: &[u8], message: &[u8]) -> [u8; 32] {
    let mut key = [0; BLOCK];
    if secret.len() > BLOCK {
        key[..32].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let keyed = |pad: u8| Sha256::new().chain_update(key.map(|byte| byte ^ pad));
    let inner = keyed(0x36).chain_update(message).finalize();
    keyed(0x5c).chain_update(inner).finalize().into()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SECRET: &str = "a secret that has 32 bytes or more";
    const NOW: i64 = 1_800_000_000;

    fn issuer() -> TokenIssuer {
        TokenIssuer::hs256(SECRET, "https://issuer", "authenticated", TenantId::new("acme").unwrap()).unwrap()
    }

    fn token(header: &Value, claims: &Value, secret: &str) -> String {
        let part = |value: &Value| BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
        let signed = format!("{}.{}", part(header), part(claims));
        format!("{signed}.{}", BASE64_URL_SAFE_NO_PAD.encode(hmac(secret.as_bytes(), signed.as_bytes())))
    }

    fn claims() -> Value {
        json!({ "iss": "https://issuer", "aud": "authenticated", "exp": NOW + 60, "sub": "ana", "role": "authenticated",
            "user_metadata": { "tenant": "other" } })
    }

    fn scope(claims: &Value) -> Option<Scope> {
        issuer()
            .caller(&token(&json!({ "alg": "HS256", "typ": "JWT" }), claims, SECRET), NOW)
            .map(|caller| caller.scope)
    }

    // Test case 2 of RFC 4231, and case 6 for a long key.
    #[test]
    fn the_hash_is_that_of_the_standard() {
        let hex = |bytes: [u8; 32]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        assert_eq!(
            hex(hmac(b"Jefe", b"what do ya want for nothing?")),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
        assert_eq!(
            hex(hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
        );
    }

    #[test]
    fn a_good_token_is_its_users_and_the_tenant_is_not_read_from_it() {
        assert_eq!(scope(&claims()), Some(Scope::user("acme", "ana").unwrap()));
        let mut several = claims();
        several["aud"] = json!(["other", "authenticated"]);
        assert!(scope(&several).is_some());
    }

    #[test]
    fn what_is_missing_wrong_or_over_is_refused() {
        for (claim, values) in [
            ("exp", vec![Value::Null, json!(NOW - 31), json!("soon")]),
            ("iss", vec![Value::Null, json!("https://other")]),
            ("aud", vec![Value::Null, json!("other"), json!([])]),
            ("sub", vec![Value::Null, json!(""), json!("a\nb")]),
            ("nbf", vec![json!(NOW + 31)]),
            ("role", vec![json!("anon"), json!("service_role"), json!("postgres")]),
        ] {
            for value in values {
                let mut wrong = claims();
                wrong[claim] = value.clone();
                assert_eq!(scope(&wrong), None, "{claim}: {value}");
            }
        }
    }

    #[test]
    fn the_algorithm_is_not_the_tokens_to_choose() {
        for algorithm in ["none", "None", "HS512", "RS256", "hs256"] {
            let header = json!({ "alg": algorithm });
            assert!(issuer().caller(&token(&header, &claims(), SECRET), NOW).is_none(), "{algorithm}");
        }
        let header = json!({ "alg": "HS256" });
        assert!(issuer().caller(&token(&header, &claims(), "another secret with enough bytes in it"), NOW).is_none());
        let good = token(&header, &claims(), SECRET);
        let unsigned = good.rsplit_once('.').unwrap().0;
        for text in [format!("{unsigned}."), unsigned.to_owned(), format!("{good}x"), String::new(), "..".to_owned()] {
            assert!(issuer().caller(&text, NOW).is_none(), "{text}");
        }
    }

    #[test]
    fn the_application_itself_is_taken_where_that_is_configured() {
        let issuer = TokenIssuer { takes_service_role: true, ..issuer() };
        let mut service = claims();
        service["role"] = json!("service_role");
        let token = token(&json!({ "alg": "HS256" }), &service, SECRET);
        assert_eq!(issuer.caller(&token, NOW).unwrap().scope, Scope::tenant("acme").unwrap());
    }

    #[test]
    fn a_secret_that_could_be_guessed_is_refused() {
        let tenant = TenantId::new("acme").unwrap();
        let short = TokenIssuer::hs256("secret", "i", "a", tenant.clone());
        assert_eq!(short.unwrap_err(), IssuerError::ShortSecret);
        assert_eq!(TokenIssuer::hs256(SECRET, "", "a", tenant).unwrap_err(), IssuerError::Unnamed);
    }
}
