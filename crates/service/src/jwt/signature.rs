//! Verification of token signatures. The algorithm is a property of the key: tokens with another algorithm are rejected.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::signature::{self, RsaParameters, RsaPublicKeyComponents, UnparsedPublicKey, VerificationAlgorithm};
use serde::Deserialize;

/// A public key that verifies tokens.
#[derive(Clone, Debug)]
pub(super) struct PublicKey {
    /// The key id (`kid`).
    pub(super) id: Option<String>,
    /// The only algorithm with which the key may be used.
    pub(super) algorithm: &'static str,
    material: Material,
}

#[derive(Clone)]
enum Material {
    Rsa { modulus: Vec<u8>, exponent: Vec<u8>, parameters: &'static RsaParameters },
    Other { key: Vec<u8>, algorithm: &'static dyn VerificationAlgorithm },
}

impl std::fmt::Debug for Material {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Rsa { .. } => "Rsa",
            Self::Other { .. } => "Other",
        })
    }
}

/// A JSON Web Key (RFC 7517), with only the fields that are used here.
#[derive(Debug, Deserialize)]
struct Jwk {
    kty: String,
    #[serde(default)]
    kid: Option<String>,
    #[serde(default)]
    alg: Option<String>,
    #[serde(default, rename = "use")]
    usage: Option<String>,
    #[serde(default)]
    key_ops: Option<Vec<String>>,
    #[serde(default)]
    crv: Option<String>,
    #[serde(default)]
    n: String,
    #[serde(default)]
    e: String,
    #[serde(default)]
    x: String,
    #[serde(default)]
    y: String,
}

const RSA: [(&str, &RsaParameters); 6] = [
    ("RS256", &signature::RSA_PKCS1_2048_8192_SHA256),
    ("RS384", &signature::RSA_PKCS1_2048_8192_SHA384),
    ("RS512", &signature::RSA_PKCS1_2048_8192_SHA512),
    ("PS256", &signature::RSA_PSS_2048_8192_SHA256),
    ("PS384", &signature::RSA_PSS_2048_8192_SHA384),
    ("PS512", &signature::RSA_PSS_2048_8192_SHA512),
];

impl PublicKey {
    /// Reads a key. Returns `None` if it cannot verify tokens: it has an unsupported type, is for another use, or is a published
    /// secret.
    pub(super) fn read(jwk: &serde_json::Value) -> Option<Self> {
        let jwk = Jwk::deserialize(jwk).ok()?;
        let is_for_signing = jwk.usage.as_deref().is_none_or(|usage| usage == "sig")
            && jwk.key_ops.as_ref().is_none_or(|operations| operations.iter().any(|operation| operation == "verify"));
        if !is_for_signing {
            return None;
        }
        let (algorithm, material) = match (jwk.kty.as_str(), jwk.crv.as_deref()) {
            // RS256 is the default for RSA keys that specify no algorithm.
            ("RSA", _) => {
                let specified = jwk.alg.as_deref().unwrap_or("RS256");
                let (algorithm, parameters) = RSA.into_iter().find(|(name, _)| *name == specified)?;
                (
                    algorithm,
                    Material::Rsa { modulus: decode_field(&jwk.n)?, exponent: decode_field(&jwk.e)?, parameters },
                )
            }
            ("EC", Some("P-256")) => ("ES256", curve_point(&jwk, 32, &signature::ECDSA_P256_SHA256_FIXED)?),
            ("EC", Some("P-384")) => ("ES384", curve_point(&jwk, 48, &signature::ECDSA_P384_SHA384_FIXED)?),
            ("OKP", Some("Ed25519")) => {
                ("EdDSA", Material::Other { key: decode_field(&jwk.x)?, algorithm: &signature::ED25519 })
            }
            _ => return None,
        };
        let is_consistent = jwk.alg.as_deref().is_none_or(|specified| specified == algorithm);
        is_consistent.then_some(Self { id: jwk.kid, algorithm, material })
    }

    /// Whether `signature` is a valid signature of `text`.
    pub(super) fn verifies(&self, text: &str, signature: &[u8]) -> bool {
        let verified = match &self.material {
            Material::Rsa { modulus, exponent, parameters } => {
                let key = RsaPublicKeyComponents { n: modulus, e: exponent };
                key.verify(parameters, text.as_bytes(), signature)
            }
            Material::Other { key, algorithm } => {
                UnparsedPublicKey::new(*algorithm, key).verify(text.as_bytes(), signature)
            }
        };
        verified.is_ok()
    }
}

/// Returns the key on an elliptic curve, encoded as an uncompressed point. Returns `None` if a coordinate does not have `length`
/// bytes.
fn curve_point(jwk: &Jwk, length: usize, algorithm: &'static dyn VerificationAlgorithm) -> Option<Material> {
    let (x, y) = (decode_field(&jwk.x)?, decode_field(&jwk.y)?);
    let has_valid_length = x.len() == length && y.len() == length;
    has_valid_length.then(|| Material::Other { key: [vec![4], x, y].concat(), algorithm })
}

/// Decodes a base64url field of a key; `None` if it is invalid or empty.
fn decode_field(text: &str) -> Option<Vec<u8>> {
    BASE64_URL_SAFE_NO_PAD.decode(text).ok().filter(|bytes| !bytes.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn key_has_one_algorithm() {
        let rsa_algorithm = |members: serde_json::Value| {
            let mut jwk = json!({ "kty": "RSA", "kid": "a", "n": "AQAB", "e": "AQAB" });
            jwk.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
            PublicKey::read(&jwk).map(|key| key.algorithm)
        };
        assert_eq!(rsa_algorithm(json!({})), Some("RS256"));
        assert_eq!(rsa_algorithm(json!({ "alg": "PS384", "use": "sig", "key_ops": ["verify"] })), Some("PS384"));
        for rejected in
            [json!({ "alg": "HS256" }), json!({ "alg": "none" }), json!({ "use": "enc" }), json!({ "n": "" })]
        {
            assert_eq!(rsa_algorithm(rejected.clone()), None, "{rejected}");
        }
        assert!(rsa_algorithm(json!({ "key_ops": ["encrypt"] })).is_none());
        let secret = json!({ "kty": "oct", "k": "c2VjcmV0", "alg": "HS256" });
        assert!(PublicKey::read(&secret).is_none(), "a published secret is not accepted as a key");

        let short = json!({ "kty": "EC", "crv": "P-256", "x": "AQAB", "y": "AQAB" });
        assert!(PublicKey::read(&short).is_none());
    }
}
