//! Tokens of issuers that publish their keys, tested with a real HTTP server of keys.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair};
use serde_json::{Value, json};
use threadkeep::TenantId;
use threadkeep_server::{ServerOptions, TokenIssuer};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

use crate::server::{Answer, TestConfig};
use crate::{Client, TestServer};

const ISSUER: &str = "https://issuer";
const AUDIENCE: &str = "authenticated";
/// The year 2100.
const LATER: i64 = 4_102_444_800;

/// A key that signs tokens.
enum Signing {
    Ec(Box<EcdsaKeyPair>),
    Ed(Box<Ed25519KeyPair>),
}

struct Key {
    id: &'static str,
    signing: Signing,
}

impl Key {
    fn ec(id: &'static str) -> Self {
        let (how, random) = (&ECDSA_P256_SHA256_FIXED_SIGNING, SystemRandom::new());
        let made = EcdsaKeyPair::generate_pkcs8(how, &random).unwrap();
        let pair = EcdsaKeyPair::from_pkcs8(how, made.as_ref(), &random).unwrap();
        Self { id, signing: Signing::Ec(Box::new(pair)) }
    }

    fn ed(id: &'static str) -> Self {
        let made = Ed25519KeyPair::generate_pkcs8(&SystemRandom::new()).unwrap();
        Self { id, signing: Signing::Ed(Box::new(Ed25519KeyPair::from_pkcs8(made.as_ref()).unwrap())) }
    }

    fn public(&self) -> Value {
        match &self.signing {
            Signing::Ec(pair) => {
                let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": self.id, "x": text(x), "y": text(y) })
            }
            Signing::Ed(pair) => {
                json!({ "kty": "OKP", "crv": "Ed25519", "kid": self.id, "x": text(pair.public_key().as_ref()) })
            }
        }
    }

    fn algorithm(&self) -> &'static str {
        match self.signing {
            Signing::Ec(_) => "ES256",
            Signing::Ed(_) => "EdDSA",
        }
    }

    fn token(&self, claims: &Value) -> String {
        self.token_as(&json!({ "alg": self.algorithm(), "kid": self.id }), claims)
    }

    fn token_as(&self, header: &Value, claims: &Value) -> String {
        let signed = format!("{}.{}", text(header.to_string().as_bytes()), text(claims.to_string().as_bytes()));
        let signature = match &self.signing {
            Signing::Ec(pair) => pair.sign(&SystemRandom::new(), signed.as_bytes()).unwrap().as_ref().to_vec(),
            Signing::Ed(pair) => pair.sign(signed.as_bytes()).as_ref().to_vec(),
        };
        format!("{signed}.{}", text(&signature))
    }
}

fn text(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": AUDIENCE, "exp": LATER, "sub": "ana", "role": "authenticated",
        "user_metadata": { "tenant": "other" }, "app_metadata": { "tenant": "other" } })
}

/// A server that publishes keys and counts requests.
struct Publisher {
    url: String,
    set: Arc<Mutex<Option<String>>>,
    fetches: Arc<AtomicUsize>,
}

impl Publisher {
    async fn of(keys: &[&Key]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/.well-known/jwks.json", listener.local_addr().unwrap());
        let publisher = Self { url, set: Arc::default(), fetches: Arc::default() };
        publisher.publish(keys);
        let (set, fetches) = (Arc::clone(&publisher.set), Arc::clone(&publisher.fetches));
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap();
                let request = String::from_utf8_lossy(&head[..length]).into_owned();
                assert!(request.starts_with("GET /.well-known/jwks.json "), "{request}");
                fetches.fetch_add(1, Ordering::SeqCst);
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
        let keys: Vec<Value> = keys.iter().map(|key| key.public()).collect();
        *self.set.lock().unwrap() = Some(json!({ "keys": keys }).to_string());
    }

    fn fetches(&self) -> usize {
        self.fetches.load(Ordering::SeqCst)
    }
}

fn issuer(location: &str) -> TokenIssuer {
    TokenIssuer::jwks(location, None, ISSUER, AUDIENCE, TenantId::new("acme").unwrap()).unwrap()
}

async fn server(issuer: TokenIssuer) -> TestServer {
    let options = ServerOptions { token_issuers: vec![issuer], sweep_every: None, ..TestConfig::default().options };
    TestServer::start_with(TestConfig { options, ..TestConfig::default() }).await
}

async fn call(client: &Client, token: &str) -> Answer {
    client.clone().with_key(token).get("/v1/threads").await
}

#[tokio::test]
async fn keys_are_fetched_once_and_again_when_they_are_rotated() {
    let (old, new) = (Key::ec("2026-10"), Key::ed("2026-11"));
    let publisher = Publisher::of(&[&old]).await;
    let server = server(issuer(&publisher.url)).await;
    let client = server.client();
    assert_eq!(publisher.fetches(), 0, "no token was sent yet");
    for _ in 0..5 {
        call(&client, &old.token(&claims())).await.expect(200);
    }
    assert_eq!(publisher.fetches(), 1);
    publisher.publish(&[&new]);
    call(&client, &new.token(&claims())).await.expect(200);
    assert_eq!(publisher.fetches(), 2, "an unknown key is fetched");
    assert_eq!(call(&client, &old.token(&claims())).await.code(401), "invalid_key", "the key is no longer published");
    for _ in 0..100 {
        assert_eq!(call(&client, &Key::ec("unknown").token(&claims())).await.code(401), "invalid_key");
    }
    assert!(
        (3..=5).contains(&publisher.fetches()),
        "{} fetches, regardless of the keys that tokens name",
        publisher.fetches()
    );
    // The issuer is down: cached keys remain valid.
    *publisher.set.lock().unwrap() = None;
    call(&client, &new.token(&claims())).await.expect(200);
}

#[tokio::test]
async fn tokens_with_wrong_claims_are_rejected_without_fetching_keys() {
    let key = Key::ec("a");
    let publisher = Publisher::of(&[&key]).await;
    let server = server(issuer(&publisher.url)).await;
    let client = server.client();
    for (claim, value) in [
        ("iss", json!("https://other")),
        ("aud", json!("other")),
        ("exp", json!(1_700_000_000)),
        ("iss", Value::Null),
        ("aud", Value::Null),
        ("exp", Value::Null),
    ] {
        let mut wrong = claims();
        wrong[claim] = value;
        assert_eq!(call(&client, &key.token(&wrong)).await.code(401), "invalid_key", "{wrong}");
    }
    for claim in ["iss", "aud", "exp"] {
        let mut lacking = claims();
        lacking.as_object_mut().unwrap().remove(claim);
        assert_eq!(call(&client, &key.token(&lacking)).await.code(401), "invalid_key", "without {claim}");
    }
    assert_eq!(publisher.fetches(), 0);
    call(&client, &key.token(&claims())).await.expect(200);
}

#[tokio::test]
async fn keys_are_valid_for_their_own_algorithm_only() {
    let (ec, ed) = (Key::ec("ec"), Key::ed("ed"));
    let publisher = Publisher::of(&[&ec, &ed]).await;
    let server = server(issuer(&publisher.url)).await;
    let client = server.client();
    call(&client, &ec.token(&claims())).await.expect(200);
    call(&client, &ed.token(&claims())).await.expect(200);
    for (key, header) in [
        (&ec, json!({ "alg": "EdDSA", "kid": "ec" })),
        (&ec, json!({ "alg": "none", "kid": "ec" })),
        (&ec, json!({ "alg": "HS256", "kid": "ec" })),
        (&ec, json!({ "alg": "EdDSA", "kid": "ed" })),
        (&ed, json!({ "alg": "EdDSA", "kid": "ed", "crit": ["exp"] })),
        (&ec, json!({ "alg": "ES256" })),
    ] {
        assert_eq!(call(&client, &key.token_as(&header, &claims())).await.code(401), "invalid_key", "{header}");
    }
    // A public key must not be accepted as the secret of an HMAC.
    let header = json!({ "alg": "HS256", "kid": "ec" });
    let signed = format!("{}.{}", text(header.to_string().as_bytes()), text(claims().to_string().as_bytes()));
    let public = ec.public().to_string();
    let secret = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, public.as_bytes());
    let forged = format!("{signed}.{}", text(ring::hmac::sign(&secret, signed.as_bytes()).as_ref()));
    assert_eq!(call(&client, &forged).await.code(401), "invalid_key");
}

#[tokio::test]
async fn roles_of_supabase_map_to_users_and_the_application() {
    let key = Key::ec("a");
    let publisher = Publisher::of(&[&key]).await;
    let role = |role: &str| {
        let mut claims = claims();
        claims["role"] = json!(role);
        key.token(&claims)
    };
    let server_of_users = server(issuer(&publisher.url)).await;
    let client = server_of_users.client();
    let ana = client.clone().with_key(&role("authenticated"));
    let opened = ana.post("/v1/threads", json!({})).await.expect(201);
    assert_eq!(opened["owner"], json!({ "user": "ana" }));
    for refused in ["anon", "service_role", "supabase_admin", ""] {
        assert_eq!(call(&client, &role(refused)).await.code(401), "invalid_key", "{refused}");
    }
    // The tenant is the configured one, regardless of metadata: its key sees the thread.
    let mut issuer = issuer(&publisher.url);
    issuer.accepts_service_role = true;
    let options = ServerOptions { token_issuers: vec![issuer], sweep_every: None, ..TestConfig::default().options };
    let other = TestServer::over(server_of_users.memory.clone(), TestConfig { options, ..TestConfig::default() }).await;
    let service = other.client().with_key(&role("service_role"));
    let listed = service.get("/v1/threads").await.expect(200);
    assert_eq!(listed["data"][0]["id"], opened["id"]);
    assert_eq!(service.post("/v1/threads", json!({})).await.expect(201)["owner"], "tenant");
    assert_eq!(call(&other.client(), &role("anon")).await.code(401), "invalid_key");
}

/// Signed with a key of 2,048 bits by an independent program: user `ana`, valid until 2100.
const RSA_TOKEN: &str = "eyJhbGciOiJSUzI1NiIsImtpZCI6InJzYSIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2lzc3VlciIsImF1ZCI6ImF1dGhlbnRpY2F0ZWQiLCJleHAiOjQxMDI0NDQ4MDAsInN1YiI6ImFuYSIsInJvbGUiOiJhdXRoZW50aWNhdGVkIn0.bgRgyadpaW_AJXtNE-J25MygnyzuYas_q2e_Y7PoIJcqArmQy8VIQd7J3I27_VTryNnqqRsdJWR0nIwGTF_cJ31aUsuJRzzzglf6fv6XIFEoLpSf1oPw4sEMlCjWiovuYffLYPJtzsuekH9X_xl-3yoQIKc9WHY6viFd1DAL2SoqDBguMF6L8xYQqTJlQNDpSwiqlRlZcULLhch6qgEj6FG78F2dR0A3BE8bwzSFpRMWDedOiQuXSZdVUtgTVZIvsABjvW1F7nHz9fYdWbd0Z6CNh-qLv-QcoBH4fFG7NM2WBjj12maCCCMmVJJGJZdrmabkICP-kDAtRnUPrgdiaA";
const RSA_MODULUS: &str = "s0tqdC5x0EERjLvoRkNx-qVKUVvE6K_lw37uuk_tXXs_vbzKDD1kLbS45tFEp6Mg-bqTgv_1ezTkRJKi4PGnJBM_48R4RQOaoNYZlJU_U5Kjw9dTgLzqHKF8gAJ2jTAZX_j_8DFAIsenXSApmaYwFsWKSidRX30xFjdNch5poCs4k3p8M-adV0-7HGJJwnJekHlZjWAGd-yuA6Bar6FnM1-k50LplJFjqrvShtLOjymyX9fvz7DsVzv95Bq6LJcR53spld4CE-2yc0SsPj4S6gCueGjj0NFIoG1Ruy5A1jnXHuxtVW1EfH2GT5HzyiPOzFvvbw-FY3cHBmZwvQGERw";

#[tokio::test]
async fn keys_can_be_read_from_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jwks.json");
    let set = |n: &str| json!({ "keys": [{ "kty": "oct", "k": "AAAA" }, { "kty": "RSA", "kid": "rsa", "n": n, "e": "AQAB" }] });
    let flipped = RSA_MODULUS.replacen('A', "B", 1);
    std::fs::write(&file, set(&flipped).to_string()).unwrap();
    let first = server(issuer(file.to_str().unwrap())).await;
    assert_eq!(call(&first.client(), RSA_TOKEN).await.code(401), "invalid_key");
    std::fs::write(&file, set(RSA_MODULUS).to_string()).unwrap();
    let second = server(issuer(file.to_str().unwrap())).await;
    call(&second.client(), RSA_TOKEN).await.expect(200);
    let (start, end) = RSA_TOKEN.rsplit_once('.').unwrap();
    let forged = format!("{start}.{}", end.replacen('A', "B", 1));
    assert_eq!(call(&second.client(), &forged).await.code(401), "invalid_key");
}
