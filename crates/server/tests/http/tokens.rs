//! Tokens signed with keys that their issuer publishes, tested with a real HTTP server.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use threadkeep::TenantId;
use threadkeep_server::{ServerOptions, TrustedIssuer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::server::{Answer, TestConfig};
use crate::{Client, TestServer};

const ISSUER: &str = "https://issuer";
const AUDIENCE: &str = "authenticated";
/// The beginning of the year 2100, in seconds since 1970.
const EXPIRES_AT_SECONDS: i64 = 4_102_444_800;

enum KeyPairKind {
    Ec(Box<EcdsaKeyPair>),
    Ed(Box<Ed25519KeyPair>),
}

/// A key that signs tokens.
struct Key {
    id: &'static str,
    pair: KeyPairKind,
}

impl Key {
    fn generate_ec(id: &'static str) -> Self {
        let (algorithm, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let generated = EcdsaKeyPair::generate_pkcs8(algorithm, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, generated.as_ref(), &random).unwrap();
        Self { id, pair: KeyPairKind::Ec(Box::new(pair)) }
    }

    fn generate_ed(id: &'static str) -> Self {
        let generated = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, pair: KeyPairKind::Ed(Box::new(Ed25519KeyPair::from_pkcs8(generated.as_ref()).unwrap())) }
    }

    /// Returns the public key as a JSON Web Key.
    fn public_jwk(&self) -> Value {
        match &self.pair {
            KeyPairKind::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id, "x": base64url(x), "y": base64url(y) })
            }
            KeyPairKind::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": base64url(pair.public_key().as_ref()) })
            }
        }
    }

    fn algorithm(&self) -> &'static str {
        match self.pair {
            KeyPairKind::Ec(_) => "ES256",
            KeyPairKind::Ed(_) => "EdDSA",
        }
    }

    fn sign(&self, claims: &Value) -> String {
        self.sign_with_header(&json!({ "alg": self.algorithm(), "kid": self.id }), claims)
    }

    fn sign_with_header(&self, header: &Value, claims: &Value) -> String {
        let signed =
            format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(claims.to_string().as_bytes()));
        let signature = match &self.pair {
            KeyPairKind::Ec(pair) => pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
            KeyPairKind::Ed(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", base64url(&signature))
    }
}

fn base64url(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn valid_claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": EXPIRES_AT_SECONDS, "sub": "ana", "role": "authenticated",
        "user_metadata": { "tenant": "other" }, "app_metadata": { "tenant": "other" } })
}

/// A server that publishes keys and counts the requests for them.
struct Publisher {
    url: String,
    /// The published key set in JSON; `None` makes requests fail.
    set: Arc<Mutex<Option<String>>>,
    fetch_count: Arc<AtomicUsize>,
}

impl Publisher {
    async fn start(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/.well-known/jwks.json", listener.local_addr().unwrap());
        let publisher = Self { url, set: Arc::default(), fetch_count: Arc::default() };
        publisher.publish(keys);
        let (set, fetch_count) = (Arc::clone(&publisher.set), Arc::clone(&publisher.fetch_count));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                let request = String::from_utf8_lossy(&head[..length]).into_owned();
                assert!(request.starts_with("GET /.well-known/jwks.json "), "{request}");
                fetch_count.fetch_add(1, Ordering::SeqCst);
                let set = set.lock().unwrap().clone();
                let (status, body) = set.map_or(("503 Down", String::new()), |set| ("200 OK", set));
                let length = body.len();
                let answer =
                    format!("HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        publisher
    }

    fn publish(&self, keys: &[&Key]) {
        let keys: Vec<Value> = keys.iter().map(|key| key.public_jwk()).collect();
        *self.set.lock().unwrap() = Some(json!({ "keys": keys }).to_string());
    }

    fn fetch_count(&self) -> usize {
        self.fetch_count.load(Ordering::SeqCst)
    }
}

fn issuer_at(location: &str) -> TrustedIssuer {
    TrustedIssuer::jwks(location, None, ISSUER, AUDIENCE, TenantId::new("acme").unwrap()).unwrap()
}

async fn start_server(issuer: TrustedIssuer) -> TestServer {
    let options = ServerOptions { token_issuers: vec![issuer], sweep_every: None, ..TestConfig::default().options };
    TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await
}

async fn list_threads(client: &Client, token: &str) -> Answer {
    client.clone().with_key(token).get("/v1/threads").await
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_after_a_rotation() {
    let (old, new) = (Key::generate_ec("2026-10"), Key::generate_ed("2026-11"));
    let publisher = Publisher::start(&[&old]).await;
    let server = start_server(issuer_at(&publisher.url)).await;
    let client = server.client();
    assert_eq!(publisher.fetch_count(), 0, "no token was sent yet");
    for _ in 0..5 {
        list_threads(&client, &old.sign(&valid_claims())).await.expect(200);
    }
    assert_eq!(publisher.fetch_count(), 1);
    publisher.publish(&[&new]);
    list_threads(&client, &new.sign(&valid_claims())).await.expect(200);
    assert_eq!(publisher.fetch_count(), 2, "a token that names an unknown key causes a fetch");
    assert_eq!(
        list_threads(&client, &old.sign(&valid_claims())).await.code(401),
        "invalid_key",
        "the key is no longer published"
    );
    for _ in 0..100 {
        assert_eq!(
            list_threads(&client, &Key::generate_ec("unknown").sign(&valid_claims())).await.code(401),
            "invalid_key"
        );
    }
    assert!(
        (3..=5).contains(&publisher.fetch_count()),
        "unknown keys in tokens caused {} fetches",
        publisher.fetch_count()
    );
    // While the issuer is down, cached keys remain valid.
    *publisher.set.lock().unwrap() = None;
    list_threads(&client, &new.sign(&valid_claims())).await.expect(200);
}

#[tokio::test]
async fn tokens_with_wrong_claims_are_rejected_without_fetching_keys() {
    let key = Key::generate_ec("a");
    let publisher = Publisher::start(&[&key]).await;
    let server = start_server(issuer_at(&publisher.url)).await;
    let client = server.client();
    for (claim, value) in [
        ("iss", json!("https://other")),
        ("aud", json!("other")),
        ("exp", json!(1_700_000_000)),
        ("iss", Value::Null),
        ("aud", Value::Null),
        ("exp", Value::Null),
    ] {
        let mut wrong = valid_claims();
        wrong[claim] = value;
        assert_eq!(list_threads(&client, &key.sign(&wrong)).await.code(401), "invalid_key", "{wrong}");
    }
    for claim in ["iss", "aud", "exp"] {
        let mut incomplete = valid_claims();
        incomplete.as_object_mut().unwrap().remove(claim);
        assert_eq!(list_threads(&client, &key.sign(&incomplete)).await.code(401), "invalid_key", "without {claim}");
    }
    assert_eq!(publisher.fetch_count(), 0);
    list_threads(&client, &key.sign(&valid_claims())).await.expect(200);
}

#[tokio::test]
async fn keys_are_valid_for_their_own_algorithm_only() {
    let (ec, ed) = (Key::generate_ec("ec"), Key::generate_ed("ed"));
    let publisher = Publisher::start(&[&ec, &ed]).await;
    let server = start_server(issuer_at(&publisher.url)).await;
    let client = server.client();
    list_threads(&client, &ec.sign(&valid_claims())).await.expect(200);
    list_threads(&client, &ed.sign(&valid_claims())).await.expect(200);
    for (key, header) in [
        (&ec, json!({ "alg": "EdDSA", "kid": "ec" })),
        (&ec, json!({ "alg": "none", "kid": "ec" })),
        (&ec, json!({ "alg": "HS256", "kid": "ec" })),
        (&ec, json!({ "alg": "EdDSA", "kid": "ed" })),
        (&ed, json!({ "alg": "EdDSA", "kid": "ed", "crit": ["exp"] })),
        (&ec, json!({ "alg": "ES256" })),
    ] {
        assert_eq!(
            list_threads(&client, &key.sign_with_header(&header, &valid_claims())).await.code(401),
            "invalid_key",
            "{header}"
        );
    }
    // A public key must not be accepted as the secret of an HMAC.
    let header = json!({ "alg": "HS256", "kid": "ec" });
    let signed =
        format!("{}.{}", base64url(header.to_string().as_bytes()), base64url(valid_claims().to_string().as_bytes()));
    let public = ec.public_jwk().to_string();
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let forged = format!("{signed}.{}", base64url(ring::hmac::sign(&secret, signed.as_bytes()).as_ref()));
    assert_eq!(list_threads(&client, &forged).await.code(401), "invalid_key");
}

#[tokio::test]
async fn supabase_roles_map_to_users_and_the_application() {
    let key = Key::generate_ec("a");
    let publisher = Publisher::start(&[&key]).await;
    let token_with_role = |role: &str| {
        let mut claims = valid_claims();
        claims["role"] = json!(role);
        key.sign(&claims)
    };
    let user_server = start_server(issuer_at(&publisher.url)).await;
    let client = user_server.client();
    let ana = client.clone().with_key(&token_with_role("authenticated"));
    let opened = ana.post("/v1/threads", json!({})).await.expect(201);
    assert_eq!(opened["owner"], json!({ "user": "ana" }));
    for refused in ["anon", "service_role", "supabase_admin", ""] {
        assert_eq!(list_threads(&client, &token_with_role(refused)).await.code(401), "invalid_key", "{refused}");
    }
    // A user's tenant is the configured one, regardless of the token's metadata: a token for the tenant lists the user's thread.
    let mut issuer = issuer_at(&publisher.url);
    issuer.accepts_service_role = true;
    let options = ServerOptions { token_issuers: vec![issuer], sweep_every: None, ..TestConfig::default().options };
    let service_server =
        TestServer::start_on(user_server.memory.clone(), TestConfig { options, ..TestConfig::default() }).await;
    let service = service_server.client().with_key(&token_with_role("service_role"));
    let listed = service.get("/v1/threads").await.expect(200);
    assert_eq!(listed["data"][0]["id"], opened["id"]);
    assert_eq!(service.post("/v1/threads", json!({})).await.expect(201)["owner"], "tenant");
    assert_eq!(list_threads(&service_server.client(), &token_with_role("anon")).await.code(401), "invalid_key");
}

/// A token for the user `ana` that is valid until 2100. Another program signed it with a 2,048-bit key.
const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6ImF1dGhlbnRpY2F0ZWQiLCJleHAiOjQxMDI0NDQ4MDAsInN1YiI6ImFuYSIsInJvbGUiOiJhdXRoZW50aWNhdGVkIn0.bgRgyadpaW_AJXtNE-J25MygnyzuYas_q2e_Y7PoIJcqArmQy8VIQd7J3I27_VTryNnqqRsdJWR0nIwGTF_cJ31aUsuJRzzzglf6fv6XIFEoLpSf1oPw4sEMlCjWiovuYffLYPJtzsuekH9X_xl-3yoQIKc9WHY6viFd1DAL2SoqDBguMF6L8xYQqTJlQNDpSwiqlRlZcULLhch6qgEj6FG78F2dR0A3BE8bwzSFpRMWDedOiQuXSZdVUtgTVZIvsABjvW1F7nHz9fYdWbd0Z6CNh-qLv-QcoBH4fFG7NM2WBjj12maCCCMmVJJGJZdrmabkICP-kDAtRnUPrgdiaA";
const RSA_MODULUS: &str = "s0tqdC5x0EERjLvoRkNx-qVKUVvE6K_lw37uuk_tXXs_vbzKDD1kLbS45tFEp6Mg-bqTgv_1ezTkRJKi4PGnJBM_48R4RQOaoNYZlJU_U5Kjw9dTgLzqHKF8gAJ2jTAZX_j_8DFAIsenXSApmaYwFsWKSidRX30xFjdNch5poCs4k3p8M-adV0-7HGJJwnJekHlZjWAGd-yuA6Bar6FnM1-k50LplJFjqrvShtLOjymyX9fvz7DsVzv95Bq6LJcR53spld4CE-2yc0SsPj4S6gCueGjj0NFIoG1Ruy5A1jnXHuxtVW1EfH2GT5HzyiPOzFvvbw-FY3cHBmZwvQGERw";

#[tokio::test]
async fn keys_can_be_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let set_with_modulus = |n: &str| json!({ "keys": [{ "kty": "oct", "k": "AAAA" }, { "kty": "RSA", "kid": "rsa", "n": n, "e": "AQAB" }] });
    let flipped = RSA_MODULUS.replacen('A', "B", 1);
    std::fs::write(&file, set_with_modulus(&flipped).to_string()).unwrap();
    let first = start_server(issuer_at(file.to_str().unwrap())).await;
    assert_eq!(list_threads(&first.client(), RSA_TOKEN).await.code(401), "invalid_key");
    std::fs::write(&file, set_with_modulus(RSA_MODULUS).to_string()).unwrap();
    let second = start_server(issuer_at(file.to_str().unwrap())).await;
    list_threads(&second.client(), RSA_TOKEN).await.expect(200);
    let (start, end) = RSA_TOKEN.rsplit_once('.').unwrap();
    let forged = format!("{start}.{}", end.replacen('A', "B", 1));
    assert_eq!(list_threads(&second.client(), &forged).await.code(401), "invalid_key");
}
