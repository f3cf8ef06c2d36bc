//! Signatures of webhooks, as the Standard Webhooks specification defines them.

use std::fmt;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use serde::{Deserialize, Serialize};
use threadkeep::Timestamp;

use crate::error::{Error, Result};

const SECRET_BYTES: usize = 32;
/// How long the previous secret also signs after a rotation: one day, in milliseconds.
const ROTATION_MS: i64 = 24 * 60 * 60 * 1000;

/// A secret that signs deliveries. It is stored in plain text, because signing requires it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Secret(String);

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(…)")
    }
}

impl Secret {
    fn generate() -> Result<Self> {
        let mut bytes = [0; SECRET_BYTES];
        getrandom::fill(&mut bytes).map_err(|error| Error::internal(error.to_string()))?;
        Ok(Self(STANDARD.encode(bytes)))
    }

    /// Returns the secret in the form in which receivers configure it.
    pub(super) fn as_text(&self) -> String {
        format!("whsec_{}", self.0)
    }

    fn sign(&self, signed: &str) -> Option<String> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &STANDARD.decode(&self.0).ok()?);
        Some(format!("v1,{}", STANDARD.encode(hmac::sign(&key, signed.as_bytes()))))
    }
}

/// The secrets of a webhook. After a rotation, the previous secret also signs for a day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Secrets {
    pub(super) current: Secret,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    previous: Option<(Secret, Timestamp)>,
}

impl Secrets {
    pub(super) fn generate() -> Result<Self> {
        Ok(Self { current: Secret::generate()?, previous: None })
    }

    pub(super) fn rotate(&mut self, now: Timestamp) -> Result<()> {
        let former = std::mem::replace(&mut self.current, Secret::generate()?);
        self.previous = Some((former, now.plus_ms(ROTATION_MS)));
        Ok(())
    }

    /// Returns the value of the header `webhook-signature`: a signature with each valid secret, separated by spaces.
    pub(super) fn sign(&self, id: &str, seconds: i64, payload: &str, now: Timestamp) -> String {
        let signed = format!("{id}.{seconds}.{payload}");
        let previous = self.previous.as_ref().filter(|(_, until)| *until > now).map(|(secret, _)| secret);
        let secrets = std::iter::once(&self.current).chain(previous);
        secrets.filter_map(|secret| secret.sign(&signed)).collect::<Vec<_>>().join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the specification's reference implementations.
    #[test]
    fn signatures_match_the_specification() {
        let secret = Secret("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw".to_owned());
        let secrets = Secrets { current: secret, previous: None };
        let signature =
            secrets.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, r#"{"test": 2432232314}"#, Timestamp::MIN);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn the_previous_secret_signs_for_a_day() {
        let now = Timestamp::from_millis(1_000).unwrap();
        let mut secrets = Secrets::generate().unwrap();
        let former = secrets.sign("evt_1", 1, "{}", now);
        secrets.rotate(now).unwrap();
        let signatures = secrets.sign("evt_1", 1, "{}", now);
        assert_eq!(signatures.split(' ').count(), 2);
        assert!(signatures.ends_with(&former) && !signatures.starts_with(&former));
        let later = secrets.sign("evt_1", 1, "{}", now.plus_ms(ROTATION_MS));
        assert_eq!(later.split(' ').count(), 1);
        assert!(
            !format!("{secrets:?}").contains(&secrets.current.0) && secrets.current.as_text().starts_with("whsec_")
        );
    }
}
